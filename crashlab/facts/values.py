"""Addresses and coordinates: values that every output format writes in its own way."""

from typing import NamedTuple

EM_CUDA = 190
"""What an ELF header calls the GPU (``e_machine``): in a dump as well as in the code images inside it."""


class Hex(int):
    """An address, PC or bit mask: computes like an ``int``, is written as ``0x…``."""

    __slots__ = ()

    def __str__(self) -> str:
        return hex(self)

    def __repr__(self) -> str:
        return hex(self)

    def __format__(self, spec: str) -> str:
        return format(int(self), spec) if spec else hex(self)


class Dim3(NamedTuple):
    """Three CUDA coordinates or extents."""

    x: int
    y: int
    z: int

    def __str__(self) -> str:
        return f"({self.x},{self.y},{self.z})"
