"""CUDA's error strings and names, and what kind of trouble each one is.

Source: the cudaError_t and CUresult documentation (CUDA 13.0); strings are those of
cudaGetErrorString. Classes: ``gpu-fault`` a kernel did something wrong (asynchronous: reported at a
later call), ``hardware``, ``memory`` (out of memory), ``setup`` (installation, build or driver),
``usage`` (the call itself), ``timeout``.
"""

from __future__ import annotations

from typing import NamedTuple

from crashlab.logs.lazy import Lazy


class CudaErrorName(NamedTuple):
    """A runtime error name with its number, message and class."""

    name: str
    number: int
    message: str
    group: str


# Name, number, class, message; a table as text because the messages are long.
_TABLE = """\
cudaErrorInvalidValue 1 usage invalid argument
cudaErrorMemoryAllocation 2 memory out of memory
cudaErrorInitializationError 3 setup initialization error
cudaErrorCudartUnloading 4 usage driver shutting down
cudaErrorInvalidConfiguration 9 usage invalid configuration argument
cudaErrorInsufficientDriver 35 setup CUDA driver version is insufficient for CUDA runtime version
cudaErrorDevicesUnavailable 46 setup CUDA-capable device(s) is/are busy or unavailable
cudaErrorInvalidDeviceFunction 98 setup invalid device function
cudaErrorNoDevice 100 setup no CUDA-capable device is detected
cudaErrorInvalidDevice 101 usage invalid device ordinal
cudaErrorInvalidKernelImage 200 setup device kernel image is invalid
cudaErrorNoKernelImageForDevice 209 setup no kernel image is available for execution on the device
cudaErrorECCUncorrectable 214 hardware uncorrectable ECC error encountered
cudaErrorInvalidPtx 218 setup a PTX JIT compilation failed
cudaErrorNvlinkUncorrectable 220 hardware uncorrectable NVLink error detected during the execution
cudaErrorUnsupportedPtxVersion 222 setup the provided PTX was compiled with an unsupported toolchain.
cudaErrorContained 226 hardware Invalid access of peer GPU memory over nvlink or a hardware error
cudaErrorInvalidResourceHandle 400 usage invalid resource handle
cudaErrorNotReady 600 usage device not ready
cudaErrorIllegalAddress 700 gpu-fault an illegal memory access was encountered
cudaErrorLaunchOutOfResources 701 usage too many resources requested for launch
cudaErrorLaunchTimeout 702 timeout the launch timed out and was terminated
cudaErrorAssert 710 gpu-fault device-side assert triggered
cudaErrorHardwareStackError 714 gpu-fault hardware stack error
cudaErrorIllegalInstruction 715 gpu-fault an illegal instruction was encountered
cudaErrorMisalignedAddress 716 gpu-fault misaligned address
cudaErrorInvalidAddressSpace 717 gpu-fault operation not supported on global/shared address space
cudaErrorInvalidPc 718 gpu-fault invalid program counter
cudaErrorLaunchFailure 719 gpu-fault unspecified launch failure
cudaErrorCooperativeLaunchTooLarge 720 usage too many blocks in cooperative launch
cudaErrorTensorMemoryLeak 721 gpu-fault tensor memory not completely freed
cudaErrorNotPermitted 800 usage operation not permitted
cudaErrorNotSupported 801 usage operation not supported
cudaErrorSystemNotReady 802 setup system not yet initialized
cudaErrorSystemDriverMismatch 803 setup system has unsupported display driver / cuda driver combination
cudaErrorMpsConnectionFailed 805 setup MPS client failed to connect to the MPS control daemon
cudaErrorStreamCaptureUnsupported 900 usage operation not permitted when stream is capturing
cudaErrorStreamCaptureInvalidated 901 usage operation failed due to a previous error during capture
cudaErrorExternalDevice 911 hardware an async error has occurred in external entity outside of CUDA
cudaErrorUnknown 999 gpu-fault unknown error
"""


def _row(line: str) -> CudaErrorName:
    name, number, group, message = line.split(maxsplit=3)
    return CudaErrorName(name, int(number), message, group)


ERRORS: tuple[CudaErrorName, ...] = tuple(_row(line) for line in _TABLE.splitlines())
_BY_NAME = {row.name.lower(): row for row in ERRORS}
_BY_NUMBER = {row.number: row for row in ERRORS}
# Driver names differ from the runtime's only for a few: CUDA_ERROR_ILLEGAL_ADDRESS etc.
_DRIVER = {
    "out_of_memory": "cudaErrorMemoryAllocation",
    "launch_failed": "cudaErrorLaunchFailure",
    "no_binary_for_gpu": "cudaErrorNoKernelImageForDevice",
    "launch_out_of_resources": "cudaErrorLaunchOutOfResources",
    "invalid_handle": "cudaErrorInvalidResourceHandle",
    "not_initialized": "cudaErrorInitializationError",
}
_RUNTIME_NAME = Lazy(r"cudaError[A-Z][A-Za-z]{2,60}")
_DRIVER_NAME = Lazy(r"CUDA_ERROR_([A-Z_]{3,60})")
_NUMBER = Lazy(r"Cuda failure (\d{1,4})|code[ =](\d{1,4})\(")
# Longest first: "unknown error" and "invalid argument" must not win over a fuller sentence.
_MESSAGES = tuple(sorted(((row.message.lower(), row) for row in ERRORS), key=lambda pair: -len(pair[0])))
# Messages too general to count without the word CUDA beside them.
_GENERAL = frozenset(
    row.message.lower()
    for row in ERRORS
    if row.group in ("usage", "memory") or row.number in (3, 716, 802, 999)
)


def named(text: str, *, in_cuda_context: bool = False) -> CudaErrorName | None:
    """The CUDA error that ``text`` speaks of: by runtime or driver name, by number, by message.

    General messages ("invalid argument") count only ``in_cuda_context``.
    """
    if found := _RUNTIME_NAME.search(text):
        row = _BY_NAME.get(found.group().lower())
        return row or CudaErrorName(found.group(), -1, "", "unknown")
    if found := _DRIVER_NAME.search(text):
        return _driver(found.group(1))
    if found := _NUMBER.search(text):
        return _BY_NUMBER.get(int(found.group(1) or found.group(2)))
    lower = text[:8192].lower()
    for message, row in _MESSAGES:
        if message in lower and (in_cuda_context or message not in _GENERAL):
            return row
    return None


def by_name(name: str) -> CudaErrorName | None:
    """The row of a runtime name in any case."""
    return _BY_NAME.get(name.lower())


def _driver(tail: str) -> CudaErrorName:
    lower = tail.lower().strip("_")
    name = _DRIVER.get(lower) or "cudaerror" + lower.replace("_", "")
    row = _BY_NAME.get(name.lower())
    return row or CudaErrorName(f"CUDA_ERROR_{tail}", -1, "", "unknown")
