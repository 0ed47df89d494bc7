"""Kernels with a known fault, started through the CUDA driver alone. A program of its own.

``python -I -S selftest_gpu.py fault|spin|time``. No toolkit is needed: the driver compiles the PTX
below for whatever GPU there is. Prints ``FACT name value`` lines; exit code 77: no usable GPU.
"""

from __future__ import annotations

import ctypes
import statistics
import sys
import time
from typing import Any

FAULT_KERNEL = "crashlab_selftest_fault"
SPIN_KERNEL = "crashlab_selftest_spin"
EMPTY_KERNEL = "crashlab_selftest_empty"
BAD_ADDRESS = 0x4242424200
"""Below anything that the driver maps, and a multiple of four."""
GUILTY_THREAD = 5

# A load, whose value is needed: after a bad store the warp may have gone on and ended before the
# exception is reported, and its registers with it.
# PTX ISA 6.3 is the first that knows sm_75; drivers compile older targets for newer GPUs.
PTX = f"""
.version 6.3
.target sm_75
.address_size 64

.visible .entry {FAULT_KERNEL}(.param .u64 pointer, .param .u64 out)
{{
    .reg .pred %p<2>;
    .reg .u32 %r<3>;
    .reg .u64 %rd<3>;
    ld.param.u64 %rd1, [pointer];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, {GUILTY_THREAD};
    @%p1 bra DONE;
    ld.global.u32 %r2, [%rd1];
    st.global.u32 [%rd2], %r2;
DONE:
    ret;
}}

.visible .entry {SPIN_KERNEL}(.param .u64 flag)
{{
    .reg .pred %p<2>;
    .reg .u32 %r<2>;
    .reg .u64 %rd<2>;
    ld.param.u64 %rd1, [flag];
AGAIN:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra AGAIN;
    ret;
}}

.visible .entry {EMPTY_KERNEL}()
{{
    ret;
}}
"""
NO_GPU = 77
_STEPS, _LAUNCHES = 300, 32


class Failed(Exception):
    """A driver call did not succeed."""


class Gpu:
    """The few driver calls that are needed, on device 0."""

    def __init__(self) -> None:
        self.lib: Any = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(self.module), PTX.encode() + b"\0")

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.lib, name)(*arguments)
        if code != 0:
            text = ctypes.c_char_p()
            self.lib.cuGetErrorName(code, ctypes.byref(text))
            raise Failed(f"{name}: {(text.value or b'?').decode()} ({code})")

    def launch(self, name: str, threads: int, *pointers: int) -> None:
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), self.module, name.encode())
        self.start(function, threads, *pointers)

    def start(self, function: ctypes.c_void_p, threads: int, *pointers: int) -> None:
        values = [ctypes.c_uint64(pointer) for pointer in pointers]
        places = [ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values]
        arguments = (ctypes.c_void_p * len(places))(*places) if places else None
        self.call("cuLaunchKernel", function, 1, 1, 1, threads, 1, 1, 0, None, arguments, None)

    def memory(self, size: int) -> int:
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        self.call("cuMemsetD8_v2", pointer, ctypes.c_ubyte(0), ctypes.c_size_t(size))
        return pointer.value


def say(text: str) -> None:
    """One line to the parent, at once: it waits for it."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def fault(gpu: Gpu) -> None:
    """One thread reads an address that nothing is mapped at."""
    say(f"FACT bad_address {BAD_ADDRESS:#x}")
    say(f"FACT thread {GUILTY_THREAD}")
    gpu.launch(FAULT_KERNEL, 32, BAD_ADDRESS, gpu.memory(4096))
    gpu.call("cuCtxSynchronize")


def spin(gpu: Gpu) -> None:
    """A kernel that never ends, for a dump of a hang."""
    gpu.launch(SPIN_KERNEL, 64, gpu.memory(4096))
    say("READY")
    gpu.call("cuCtxSynchronize")


def timing(gpu: Gpu) -> None:
    """Microseconds for a batch of launches and a wait; the median of many."""
    function = ctypes.c_void_p()
    gpu.call("cuModuleGetFunction", ctypes.byref(function), gpu.module, EMPTY_KERNEL.encode())
    times = []
    for _ in range(_STEPS):
        began = time.perf_counter()
        for _ in range(_LAUNCHES):
            gpu.start(function, 32)
        gpu.call("cuCtxSynchronize")
        times.append((time.perf_counter() - began) * 1e6)
    say(f"FACT microseconds {statistics.median(times):.2f}")


def main() -> int:
    """Do what the first argument says; 0 when the GPU reported nothing, 4 when it reported an error."""
    try:
        gpu = Gpu()
    except (OSError, AttributeError, Failed) as error:
        say(f"NO-GPU {error}")
        return NO_GPU
    try:
        {"fault": fault, "spin": spin, "time": timing}[sys.argv[1]](gpu)
    except Failed as error:
        say(f"END {error}")
        return 4
    say("END no error")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
