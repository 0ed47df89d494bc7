"""Call sites that report somebody else's fault.

A CUDA fault is sticky and asynchronous: the first call that waits, copies, allocates, loads a module
or merely touches the context gets the error of a kernel that was launched earlier. These sites
therefore name no culprit.
"""

from __future__ import annotations

from typing import NamedTuple

from crashlab.logs.lazy import Lazy


class VictimSite(NamedTuple):
    """``kind`` is stable, ``why`` a clause that fits behind "this is"."""

    kind: str
    why: str


_SITES: tuple[tuple[Lazy, VictimSite], ...] = tuple(
    (Lazy(pattern), VictimSite(kind, why))
    for pattern, kind, why in (
        (
            r"custom_all_reduce\.cuh",
            "custom-all-reduce",
            "the custom all-reduce's check of the last error, not a fault of the all-reduce",
        ),
        (
            r"watchdog|workCleanupLoop|ncclCommWatchdog|WorkNCCL",
            "nccl-watchdog",
            "NCCL's watchdog thread, which only queries events",
        ),
        (
            r"(?i)\bnccl|ProcessGroupNCCL|\ball_reduce\b|\ball_gather\b|\bbarrier\(",
            "nccl-call",
            "a collective call, which meets the error of an earlier kernel",
        ),
        (
            r"(?i)cublas",
            "cublas-call",
            "a cuBLAS call, which meets the error of an earlier kernel",
        ),
        (
            r"\breplay\(|graph\.replay|cudaGraphLaunch|CUDAGraph",
            "graph-replay",
            "a CUDA graph replay, which stands for every kernel in the graph",
        ),
        (
            r"\bsynchronize\b|Synchronize\b|cudaEventQuery|cudaStreamQuery|EventSynchronize|\.wait\(",
            "synchronize",
            "a wait for the GPU (event, stream or device), which only reports",
        ),
        (
            r"\.item\(|\.tolist\(|\.numpy\(|\.cpu\(|\.to\(.{0,40}cpu|_local_scalar_dense|is_nonzero|nonzero\(",
            "copy-to-host",
            "a copy to the host that waits for earlier kernels",
        ),
        (
            r"cudaMemcpy|cuMemcpy|cudaMemset|copy_\(|memcpy",
            "memcpy",
            "a memory copy, which meets the error of an earlier kernel",
        ),
        (
            r"load_binary|cuModuleLoad|cuLibraryLoad|ModuleLoadData|load_cubin|_init_handles",
            "module-load",
            "the loading of a kernel module, which runs nothing yet",
        ),
        (
            r"cudaSetDevice|set_device|cudaGetDevice|_cuda_init|cudaDeviceGetAttribute",
            "set-device",
            "a call that only selects or queries a device",
        ),
        (
            r"empty_cache|cudaMalloc|cudaFree|\.empty\(|\.zeros\(|CUDACachingAllocator",
            "allocator",
            "a memory allocation or release, which meets the error of an earlier kernel",
        ),
        (
            r"c10_cuda_check|CUDAException\.cpp|getLastError|GetLastError|PeekAtLastError",
            "error-check",
            "a check of the last error, which is sticky",
        ),
    )
)


def victim_site(*texts: str | None) -> VictimSite | None:
    """The kind of victim site that any of ``texts`` (code, function, file, message) shows, or None."""
    for text in texts:
        if not text:
            continue
        for pattern, site in _SITES:
            if pattern.search(text[:2048]):
                return site
    return None
