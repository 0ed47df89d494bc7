"""Which lines report a CUDA, NCCL, cuBLAS, cuDNN or Triton error, and which error it is."""

from __future__ import annotations

from typing import NamedTuple

from crashlab.logs.cuda_names import CudaErrorName, named
from crashlab.logs.lazy import Lazy

_MAX_MESSAGE = 1024

_SHAPES: tuple[tuple[str, Lazy, bool], ...] = tuple(
    (source, Lazy(pattern), needs_name)
    for source, pattern, needs_name in (
        ("custom-all-reduce", r"custom_all_reduce\.cuh:\d{1,9} '", False),
        ("nccl-watchdog", r"watchdog thread terminated with exception|Watchdog caught collective", False),
        ("cublas", r"CUBLAS_STATUS_(?!SUCCESS)[A-Z_]{3,60}", False),
        ("cudnn", r"CUDNN_STATUS_(?!SUCCESS)[A-Z_]{3,60}", False),
        ("triton", r"Triton Error \[CUDA\]: ", False),
        ("nccl", r"Cuda failure(?: \d{1,4})? '|ncclUnhandledCudaError|NCCL error|ncclRemoteError", False),
        ("cuda", r"C(?:UDA|uda) (?:driver |runtime |Runtime )?[Ee]rror(?: in| at|:)", False),
        ("cuda", r"cudaError(?!_t|String|Name|Enum)[A-Z][A-Za-z]{3,60}|CUDA_ERROR_(?!S)[A-Z_]{3,60}", True),
        ("cuda", r"CUDA out of memory|GPUassert:", True),
        ("cuda", r"an illegal memory access was encountered|unspecified launch failure", True),
    )
)
# Text that talks about CUDA errors without reporting one.
_NOT_A_REPORT = Lazy(
    r"CUDA_LAUNCH_BLOCKING=1|TORCH_USE_CUDA_DSA|docs\.nvidia\.com|cudaSuccess|CUDA error: no error"
)


class Report(NamedTuple):
    """One recognised report: ``source`` names the printer, ``error`` the CUDA error where known."""

    source: str
    message: str
    error: CudaErrorName | None

    @property
    def group(self) -> str:
        """The error's class, see :mod:`crashlab.logs.cuda_names`; ``library`` for status codes."""
        if self.error is not None:
            return self.error.group
        if self.source == "nccl-watchdog":
            return "timeout" if "timeout" in self.message else "library"
        return "library" if self.source in ("cublas", "cudnn", "nccl") else "unknown"


def is_advice(text: str) -> bool:
    """True for the hints that torch prints below an error."""
    return _NOT_A_REPORT.search(text) is not None


def classify(text: str) -> Report | None:
    """The report in ``text``, or None. Words about CUDA that name no error are not reports."""
    if is_advice(text):
        return None
    for source, pattern, needs_name in _SHAPES:
        if pattern.search(text):
            error = named(text, in_cuda_context=True)
            if error is not None or not needs_name:
                return Report(source, text.strip()[:_MAX_MESSAGE], error)
    return None
