"""Ask a library file for its own version by loading it. A program of its own, since loading may crash.

``python -I -S asklibrary.py KEY PATH`` prints the version. Entry points need no GPU: cudnnGetVersion,
cublasGetProperty, ncclGetVersion, cudaRuntimeGetVersion, nvrtcVersion.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable


def _number(function: str) -> int:
    value = ctypes.c_int()
    return value.value if getattr(_library, function)(ctypes.byref(value)) == 0 else 0


def _property(function: str) -> str:
    """MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL of library_types.h."""
    parts = []
    for which in range(3):
        value = ctypes.c_int()
        if getattr(_library, function)(which, ctypes.byref(value)) != 0:
            return ""
        parts.append(str(value.value))
    return ".".join(parts)


def _cudnn() -> str:
    get = _library.cudnnGetVersion
    get.restype = ctypes.c_size_t
    number = int(get())
    scale = 10_000 if number >= 90_000 else 1000
    return f"{number // scale}.{number % scale // 100}.{number % 100}"


def _nccl() -> str:
    number = _number("ncclGetVersion")
    return f"{number // 10_000}.{number % 10_000 // 100}.{number % 100}" if number else ""


def _cudart() -> str:
    number = _number("cudaRuntimeGetVersion")
    return f"{number // 1000}.{number % 1000 // 10}" if number else ""


def _nvrtc() -> str:
    major, minor = ctypes.c_int(), ctypes.c_int()
    failed = _library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return "" if failed else f"{major.value}.{minor.value}"


def _cublas() -> str:
    return _property("cublasGetProperty")


def _cufft() -> str:
    return _property("cufftGetProperty")


def _cusolver() -> str:
    return _property("cusolverGetProperty")


ASK: dict[str, Callable[[], str]] = {
    "cudnn": _cudnn,
    "nccl": _nccl,
    "cudart": _cudart,
    "nvrtc": _nvrtc,
    "cublas": _cublas,
    "cufft": _cufft,
    "cusolver": _cusolver,
}


if __name__ == "__main__":
    _library = ctypes.CDLL(sys.argv[2])
    sys.stdout.write(ASK[sys.argv[1]]() + "\n")
