"""Scenes and their facts, and tensors whose memory can be taken away under them."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import NoReturn

import torch

SCENES: dict[str, Callable[[], object]] = {}
FAR = 64 * 2**30 // 4  # floats: 64 GiB
MIB = 2**20


def scene(function: Callable[[], object]) -> Callable[[], object]:
    """Registers a function without arguments under its name."""
    SCENES[function.__name__] = function
    return function


def fact(name: str, value: object) -> None:
    """Prints what is planted; addresses in hexadecimal."""
    print(f"FACT {name} {hex(value) if name.endswith('address') or name == 'buffer' else value}", flush=True)


class RawMemory:
    """Memory straight from the driver, outside PyTorch's caching allocator: freeing it really unmaps it."""

    def __init__(self, shape: tuple[int, ...], typestr: str, itemsize: int) -> None:
        torch.cuda.init()
        # Later allocations come out of this cached block: none may take over the address range that is freed.
        torch.zeros(2**30, device="cuda", dtype=torch.uint8)
        self.driver = ctypes.CDLL("libcuda.so.1")
        elements = 1
        for extent in shape:
            elements *= extent
        pointer = ctypes.c_uint64()
        self._must(self.driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(elements * itemsize)))
        self.pointer = pointer.value
        self.bytes = elements * itemsize
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (self.pointer, False),
            "version": 3,
        }

    @staticmethod
    def _must(code: int) -> None:
        if code:
            raise RuntimeError(f"the driver answered {code}")

    def free(self) -> None:
        torch.cuda.synchronize()
        self._must(self.driver.cuMemFree_v2(ctypes.c_uint64(self.pointer)))
        fact("buffer", self.pointer)
        fact("buffer_bytes", self.bytes)
        fact("bad_address", self.pointer)


KINDS = {
    "fp32": ("<f4", 4, torch.float32),
    "fp16": ("<f2", 2, torch.float16),
    "bf16": ("<i2", 2, torch.bfloat16),
    "int8": ("|i1", 1, torch.int8),
    "fp8": ("|u1", 1, torch.float8_e4m3fn),
}


def raw(shape: tuple[int, ...], kind: str) -> tuple[RawMemory, torch.Tensor]:
    """A tensor over raw memory (zeroed), and the memory, to be freed under it."""
    typestr, itemsize, dtype = KINDS[kind]
    memory = RawMemory(shape, typestr, itemsize)
    tensor = torch.as_tensor(memory, device="cuda")
    tensor.zero_()
    return memory, tensor if tensor.dtype == dtype else tensor.view(dtype)


def dangling(shape: tuple[int, ...], kind: str) -> torch.Tensor:
    memory, tensor = raw(shape, kind)
    memory.free()
    return tensor


def replay_dangling(memory: RawMemory, call: Callable[[], object]) -> None:
    """Frees `memory` under `call`, which is replayed from a CUDA graph: Triton looks its arguments up at launch."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    memory.free()
    graph.replay()


def unavailable(reason: object) -> NoReturn:
    """Ends the process: this machine cannot run the scene."""
    print(f"ERROR {reason}", flush=True)
    sys.exit(77)
