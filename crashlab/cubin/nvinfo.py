"""What a kernel needs: ``.nv.info`` and ``.nv.info.NAME``, plus the sections named for the kernel.

An attribute is a format byte, an attribute byte and 16 bits that are either the value (formats 1 to
3) or the length of a payload (format 4). Names as in nvdisasm (EIATTR_…). Unknown ones are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from crashlab.cubin.elf import Elf
from crashlab.cubin.symbols import Symbols

_PARAM_CBANK, _FRAME_SIZE, _MIN_STACK_SIZE = 0x0A, 0x11, 0x12
_KPARAM_INFO, _CBANK_PARAM_SIZE, _MAXREG_COUNT = 0x17, 0x19, 0x1B
_MAX_THREADS, _REQNTID, _REGCOUNT, _KPARAM_INFO_V2 = 0x05, 0x10, 0x2F, 0x45
_WITH_PAYLOAD = 4
_MAX_PARAMETERS = 4096
"""More than fit into the 32,764 bytes of a parameter bank in words of 8; a bound, not a rule."""


class Parameter(NamedTuple):
    """One kernel parameter: position in the argument list, and place in the parameter bank in bytes.

    ``pointer`` is True when the compiler marked it as one (Triton's always, nvcc 13.0's from sm_100 on);
    None says nothing, as others mark none.
    """

    ordinal: int
    offset: int
    size: int
    pointer: bool | None = None


class KernelInfo(NamedTuple):
    """Resources of a kernel, in bytes where not counts; None is what the image does not say.

    ``parameter_base`` is where the parameters begin in constant bank 0, ``parameter_bytes`` their total.
    ``shared_bytes`` is the static size of ``.nv.shared.NAME``, which on sm_90 and later includes the
    1 KiB that the system reserves. ``frame_bytes`` and ``stack_bytes`` are a thread's local memory.
    """

    registers: int | None = None
    max_registers: int | None = None
    parameter_base: int | None = None
    parameter_bytes: int | None = None
    shared_bytes: int | None = None
    constant_bytes: int | None = None
    frame_bytes: int | None = None
    stack_bytes: int | None = None
    max_threads: tuple[int, int, int] | None = None
    required_threads: tuple[int, int, int] | None = None


def attributes(elf: Elf, name: str) -> Iterator[tuple[int, int, bytes]]:
    """Attribute, 16-bit value and payload of each entry of a section; stops where an entry is cut off."""
    data = bytes(elf.named_data(name) or b"")
    at = 0
    while at + 4 <= len(data):
        form, attribute, value = struct.unpack_from("<BBH", data, at)
        at += 4
        payload = b""
        if form == _WITH_PAYLOAD:
            payload = data[at : at + value]
            if len(payload) < value:
                return
            at += value
        yield attribute, value, payload


def parameters(elf: Elf, kernel: str) -> tuple[Parameter, ...]:
    """The parameters of a kernel by ordinal; empty when the image describes none.

    Two forms exist: the older packs the size into bits 18 to 31, the newer one (for kernels with more
    than 4 KiB of parameters) has it in 16 bits of its own.
    """
    found: dict[int, Parameter] = {}
    for attribute, _, payload in attributes(elf, f".nv.info.{kernel}"):
        if attribute not in (_KPARAM_INFO, _KPARAM_INFO_V2) or len(payload) < 12:
            continue
        _, ordinal, offset, packed = struct.unpack_from("<IHHI", payload)
        if attribute == _KPARAM_INFO:
            size, space = packed >> 18, packed >> 8 & 0xF
        else:
            size, space = packed & 0xFFFF, packed >> 24 & 0xF
        found[ordinal] = Parameter(ordinal, offset, size, True if space and size == 8 else None)
        if len(found) >= _MAX_PARAMETERS:
            break
    return tuple(found[ordinal] for ordinal in sorted(found))


def kernel_info(elf: Elf, symbols: Symbols, kernel: str) -> KernelInfo:
    """Resources of a kernel, gathered from its own attributes, the module's, and its sections."""
    facts: dict[str, Any] = {}
    for attribute, value, payload in attributes(elf, f".nv.info.{kernel}"):
        if attribute == _MAXREG_COUNT:
            facts["max_registers"] = value
        elif attribute == _CBANK_PARAM_SIZE:
            facts["parameter_bytes"] = value
        elif attribute == _PARAM_CBANK and len(payload) >= 8:
            facts["parameter_base"] = struct.unpack_from("<H", payload, 4)[0]
        elif attribute in (_MAX_THREADS, _REQNTID) and len(payload) >= 12:
            key = "max_threads" if attribute == _MAX_THREADS else "required_threads"
            facts[key] = struct.unpack_from("<III", payload)
    facts.update(_module_wide(elf, symbols, kernel))
    for key, prefix in (("shared_bytes", ".nv.shared."), ("constant_bytes", ".nv.constant0.")):
        section = elf.find(prefix + kernel)
        if section is not None:
            facts[key] = section.size
    return KernelInfo(**facts)


def _module_wide(elf: Elf, symbols: Symbols, kernel: str) -> dict[str, int]:
    """``.nv.info`` keys its entries by symbol number; a kernel and its device functions each have some."""
    keys = {_REGCOUNT: "registers", _FRAME_SIZE: "frame_bytes", _MIN_STACK_SIZE: "stack_bytes"}
    found: dict[str, int] = {}
    names: dict[int, bool] = {}
    for attribute, _, payload in attributes(elf, ".nv.info"):
        if attribute not in keys or len(payload) < 8:
            continue
        index, value = struct.unpack_from("<II", payload)
        if index not in names:
            names[index] = index < symbols.count and symbols.name(symbols.row(index)[0]) == kernel
        if names[index]:
            found[keys[attribute]] = value
    return found
