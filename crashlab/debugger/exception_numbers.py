"""What cuda-gdb says of an exception that is not its name: its own numbers, and its word for not knowing.

The numbers in ``CUDA_EXCEPTION_17`` and ``CUDA_EXCEPTION_18`` stand the other way round than the codes of the
debugger API (CUDBGException_t), which is why a name always wins over such a number (gdb/signals.def of
cuda-gdb 12.4; cudadebugger.h). Names are understood by :func:`crashlab.gpucore.exceptions.code_of`.
"""

from __future__ import annotations

UNKNOWN = "device unknown exception"
"""What a debugger says that is older than the exception; the number is in a warning."""

_SIGNAL_OWN = {17: 18, 18: 17}


def code_of_signal(number: int) -> int | None:
    """The code behind ``CUDA_EXCEPTION_N``, for texts that give no name. 0 is the unknown exception."""
    return _SIGNAL_OWN.get(number, number) or None
