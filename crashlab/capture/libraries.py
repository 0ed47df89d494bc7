"""Which GPU libraries a process really has loaded, and in which version: from its memory map, not from pip."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_MAX_MAPS = 16 << 20


class Loaded(NamedTuple):
    """One library of one process. ``version`` None: neither file name nor neighbours tell it;
    ``source`` says what told it."""

    key: str
    path: str
    version: str | None
    source: str


# (key as the signature catalogue names it, file name pattern whose group 1 may be the version)
_RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (key, re.compile(pattern))
    for key, pattern in (
        ("driver", r"libcuda\.so\.(\d{3}\.[\d.]+)"),
        ("cudart", r"libcudart\.so\.?([\d.]*)"),
        ("cudnn", r"libcudnn\.so\.?([\d.]*)"),
        ("cudnn_parts", r"libcudnn_\w+\.so\.?([\d.]*)"),
        ("cublas", r"libcublas\.so\.?([\d.]*)"),
        ("cublaslt", r"libcublasLt\.so\.?([\d.]*)"),
        ("nccl", r"libnccl\.so\.?([\d.]*)"),
        ("nvrtc", r"libnvrtc\.so\.?([\d.]*)"),
        ("nvshmem", r"libnvshmem_host\.so\.?([\d.]*)"),
        ("cufft", r"libcufft\.so\.?([\d.]*)"),
        ("cusolver", r"libcusolver\.so\.?([\d.]*)"),
        ("cusparse", r"libcusparse\.so\.?([\d.]*)"),
        ("cusparselt", r"libcusparseLt\.so\.?([\d.]*)"),
        ("cuda_debugger", r"libcudadebugger\.so\.(\d{3}\.[\d.]+)"),
        ("torch", r"libtorch_cuda\.so"),
        ("llama_cpp", r"libggml-cuda\.so"),
    )
)
# Parts of a path that name a package, wherever its .so lies.
_PACKAGES = (
    "vllm", "flashinfer", "flash_attn", "deep_gemm", "sgl_kernel", "triton", "xformers", "transformer_engine",
    "cupy", "jaxlib", "bitsandbytes", "deep_ep", "nixl", "tensorrt_llm",
)  # fmt: skip
_DIST = {
    "cudnn": ("nvidia_cudnn",),
    "cublas": ("nvidia_cublas",),
    "cublaslt": ("nvidia_cublas",),
    "nccl": ("nvidia_nccl",),
    "nvshmem": ("nvidia_nvshmem",),
    "cudart": ("nvidia_cuda_runtime",),
    "nvrtc": ("nvidia_cuda_nvrtc",),
    "cufft": ("nvidia_cufft",),
    "cusolver": ("nvidia_cusolver",),
    "cusparse": ("nvidia_cusparse",),
    "cusparselt": ("nvidia_cusparselt",),
    "flashinfer": ("flashinfer_python", "flashinfer"),
    "flash_attn": ("flash_attn",),
    "sgl_kernel": ("sgl_kernel", "sglang_kernel"),
    "cupy": ("cupy_cuda13x", "cupy_cuda12x", "cupy"),
}
# Packages that are Python code for the most part: they leave no file in the map, but stand beside those that do.
_BESIDE = ("vllm", "sglang", "flashinfer", "triton", "transformers", "nvidia_cutlass_dsl", "deep_gemm")
_CACHED = re.compile(r"/flashinfer/(\d[\w.+-]*)/")
_TORCH_VERSION = re.compile(r"^__version__ *= *['\"]([\w.+-]+)", re.MULTILINE)
_TORCH_CUDA = re.compile(r"^cuda[^=\n]*= *['\"]([\d.]+)", re.MULTILINE)
LOADED, BESIDE = "loaded", "installed beside"


def mapped_files(pid: int, root: str = "/proc") -> list[str]:
    """Paths of the files that a process has mapped, each once. Empty if it has gone or is not ours to see."""
    try:
        with open(os.path.join(root, str(pid), "maps"), "rb") as file:
            text = file.read(_MAX_MAPS)
    except OSError:
        return []
    seen: dict[str, None] = {}
    for line in text.split(b"\n"):
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[5].startswith(b"/"):
            seen.setdefault(os.fsdecode(fields[5]).removesuffix(" (deleted)"))
    return list(seen)


def uses_cuda(paths: Iterable[str]) -> bool:
    """Whether a process has the CUDA driver library loaded."""
    return any("/libcuda.so" in path for path in paths)


def identify(paths: Iterable[str]) -> tuple[Loaded, ...]:
    """What the paths tell: every known library, each file once, then packages that stand beside them."""
    found: list[Loaded] = []
    sites: dict[str, None] = {}
    packages: set[str] = set()
    for path in paths:
        if (site := _site_of(path)) is not None:
            sites.setdefault(site)
        name = os.path.basename(path)
        for key, pattern in _RULES:
            if matched := pattern.fullmatch(name):
                found.append(_library(key, path, matched.group(1) if pattern.groups else None))
                break
        if ".so" in name:
            for package in _PACKAGES:
                if f"/{package}/" in path and package not in packages:
                    packages.add(package)
                    found.append(_package(package, path))
    for site in sites:
        dists = _distributions(site)
        for key in _BESIDE:
            if key not in packages and (version := _version_in(dists, key)) is not None:
                packages.add(key)
                found.append(Loaded(key, site, version, BESIDE))
    return tuple(found)


def duplicates(found: Iterable[Loaded]) -> tuple[str, ...]:
    """Libraries that are loaded from two files at once, a classic cause of faults."""
    by_key: dict[str, list[Loaded]] = {}
    for one in found:
        if one.source != BESIDE and one.key not in ("cudnn_parts",):
            by_key.setdefault(one.key, []).append(one)
    out = []
    for key, several in by_key.items():
        if len({one.path for one in several}) > 1:
            shown = ", ".join(f"{one.path} ({one.version or 'version unknown'})" for one in several[:4])
            out.append(f"{key} is loaded from {len(several)} files: {shown}")
    return tuple(out)


def _library(key: str, path: str, in_name: str | None) -> Loaded:
    if key == "torch":
        return Loaded(key, path, _torch(path)[0], "version.py beside the loaded library")
    # "libcudnn.so.9" tells the major version only; a full one has a second dot
    if in_name and in_name.count(".") >= (2 if key not in ("driver", "cuda_debugger") else 1):
        return Loaded(key, path, in_name.strip("."), "file name")
    site = _site_of(path)
    if site is not None and (version := _version_in(_distributions(site), key)) is not None:
        return Loaded(key, path, version, "the package that the loaded file belongs to")
    return Loaded(key, path, None, LOADED)


def _package(key: str, path: str) -> Loaded:
    if key == "flashinfer" and (cached := _CACHED.search(path)):
        return Loaded(key, path, cached.group(1), "path of the loaded kernel cache")
    site = _site_of(path)
    version = _version_in(_distributions(site), key) if site is not None else None
    return Loaded(key, path, version, "the package that the loaded file belongs to")


def torch_cuda(found: Iterable[Loaded]) -> str | None:
    """The CUDA version that the loaded torch was built for."""
    return next((cuda for one in found if one.key == "torch" and (cuda := _torch(one.path)[1])), None)


def _torch(path: str) -> tuple[str | None, str | None]:
    """Version and CUDA version of the torch that a loaded library belongs to."""
    text = _read(os.path.join(os.path.dirname(os.path.dirname(path)), "version.py"))
    version, cuda = _TORCH_VERSION.search(text), _TORCH_CUDA.search(text)
    return version.group(1) if version else None, cuda.group(1) if cuda else None


def _site_of(path: str) -> str | None:
    for part in ("/site-packages/", "/dist-packages/"):
        if part in path:
            return path[: path.index(part) + len(part) - 1]
    return None


_listed: dict[str, tuple[str, ...]] = {}


def _distributions(site: str) -> tuple[str, ...]:
    """Names of the ``*.dist-info`` folders of a site directory; read once."""
    if site not in _listed:
        try:
            names = tuple(name[: -len(".dist-info")] for name in _list(site))
        except OSError:
            names = ()
        if len(_listed) > 64:
            _listed.clear()
        _listed[site] = names
    return _listed[site]


def _list(site: str) -> Iterator[str]:
    return (name for name in os.listdir(site) if name.endswith(".dist-info"))


def _version_in(distributions: tuple[str, ...], key: str) -> str | None:
    """``nvidia_cudnn_cu13-9.19.0.56`` for ``cudnn``: 9.19.0.56; None also when two could be meant."""
    versions = set()
    for start in _DIST.get(key, (key,)):
        pattern = re.compile(rf"{re.escape(start)}(?:_cu\d+)?-([\w.+!]+)", re.IGNORECASE)
        versions |= {found.group(1) for name in distributions if (found := pattern.fullmatch(name))}
        if versions:
            break
    return versions.pop() if len(versions) == 1 else None


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 16)
    except OSError:
        return ""
