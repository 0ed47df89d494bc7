"""What the host calls a fault, against what the hardware called it.

The driver folds many device exceptions into few ``cudaError`` values: an out-of-range shared store
(5) and an unmapped global load (14) both reach the program as "an illegal memory access was
encountered". So a log alone narrows the exception down and never names it.
"""

from __future__ import annotations

from crashlab.signatures.logtext import LogText
from crashlab.signatures.patterns import folded

ILLEGAL_ADDRESS = "illegal-address"
_BY_CODE = {
    4: "illegal-instruction",
    5: ILLEGAL_ADDRESS,
    6: "misaligned-address",
    7: "invalid-address-space",
    8: "invalid-pc",
    9: "stack-error",
    10: ILLEGAL_ADDRESS,
    12: "assert",
    14: ILLEGAL_ADDRESS,
    17: ILLEGAL_ADDRESS,
    18: ILLEGAL_ADDRESS,
    26: "illegal-instruction",
    27: "illegal-instruction",
    30: ILLEGAL_ADDRESS,
}
_BY_TEXT = (
    (
        "an illegal memory access was encountered|cudaErrorIllegalAddress|CUDA_ERROR_ILLEGAL_ADDRESS",
        ILLEGAL_ADDRESS,
    ),
    ("misaligned address|cudaErrorMisalignedAddress|CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned-address"),
    (
        "an illegal instruction was encountered|cudaErrorIllegalInstruction|CUDA_ERROR_ILLEGAL_INSTRUCTION",
        "illegal-instruction",
    ),
    ("unspecified launch failure|cudaErrorLaunchFailure|CUDA_ERROR_LAUNCH_FAILED", "launch-failure"),
    ("device-side assert triggered|cudaErrorAssert", "assert"),
    ("operation not supported on global/shared address space", "invalid-address-space"),
    ("invalid program counter|cudaErrorInvalidPc", "invalid-pc"),
    ("CUDA error: invalid argument|'invalid argument'", "invalid-argument"),
    ("CUDA out of memory|CUDA error: out of memory|cudaErrorMemoryAllocation", "out-of-memory"),
    ("no kernel image is available|cudaErrorNoKernelImageForDevice", "no-kernel-image"),
)

ERRORS = frozenset(_BY_CODE.values()) | frozenset(name for _, name in _BY_TEXT)


def host_error(code: int) -> str | None:
    """The host error class that exception ``code`` is reported as; None where that varies."""
    return _BY_CODE.get(code)


def errors_in(log: LogText) -> frozenset[str]:
    """The host error classes that the lines of ``log`` name."""
    return frozenset(name for text, name in _BY_TEXT if log.find(folded(text)) is not None)
