"""Versions that a log prints, each as a fact with the line it stands on.

Sources: server banners, engine configuration lines, collect_env and nvidia-smi output, pip lists,
llama.cpp's start-up, and paths of caches that carry a version.
"""

from __future__ import annotations

from crashlab.facts import EnvFact
from crashlab.logs.lazy import Lazy
from crashlab.logs.text import Line

_V = r"v?(\d{1,5}\.[\w.+!-]{1,60})"
_WORDS = ("ersion", "==", "engine (v", "GPU ", "Device ", "flashinfer", "release ", "CUDA used", "build: ")
_PIP = Lazy(r"(?:\[(?:pip3?|conda)\] |^|[\s'\"])([A-Za-z][\w.-]{1,60})==(\d[\w.+!-]{0,60})")
_PIP_KEYS = {
    "vllm": "vllm",
    "sglang": "sglang",
    "torch": "torch",
    "triton": "triton",
    "transformers": "transformers",
    "flashinfer-python": "flashinfer",
    "flashinfer": "flashinfer",
    "flashinfer-cubin": "flashinfer_cubin",
    "flashinfer-jit-cache": "flashinfer_jit_cache",
    "flash-attn": "flash_attn",
    "nvidia-cudnn-cu12": "cudnn",
    "nvidia-cudnn-cu13": "cudnn",
    "nvidia-nccl-cu12": "nccl",
    "nvidia-nccl-cu13": "nccl",
    "nccl": "nccl",
    "nvidia-cublas-cu12": "cublas",
    "nvidia-cublas": "cublas",
    "nvidia-cutlass-dsl": "cutlass_dsl",
    "deep-gemm": "deep_gemm",
    "sgl-kernel": "sgl_kernel",
    "nvidia-nvshmem-cu12": "nvshmem",
    "nvidia-nvshmem-cu13": "nvshmem",
}
_PATTERNS: tuple[tuple[str, Lazy], ...] = tuple(
    (key, Lazy(pattern))
    for key, pattern in (
        ("vllm", rf"█\s{{1,8}}version {_V}"),
        ("vllm", rf"vLLM API server version {_V}"),
        ("vllm", rf"Initializing a V\d LLM engine \({_V}\)"),
        ("vllm", rf"vLLM Version\s{{0,40}}: {_V}"),
        ("sglang", rf"[Ss][Gg][Ll]ang [Vv]ersion:? {_V}"),
        ("torch", rf"PyTorch version\s{{0,40}}: {_V}"),
        ("torch_cuda", r"CUDA used to build PyTorch\s{0,40}: (\d[\d.]{1,16})"),
        ("cuda_toolkit", r"CUDA runtime version\s{0,40}: (\d[\d.]{1,16})"),
        ("cuda_toolkit", r"Cuda compilation tools, release \d[\d.]{1,8}, V(\d[\d.]{1,16})"),
        ("driver", r"Nvidia driver version\s{0,40}: (\d[\d.]{1,16})"),
        ("driver", r"Driver Version: (\d[\d.]{1,16})"),
        ("cuda_driver", r"Driver Version: [\d.]{1,16}\s{1,16}CUDA Version: (\d[\d.]{1,16})"),
        ("cudnn", r"cuDNN version\s{0,40}: (\d[\d.]{1,16})"),
        ("nccl", rf"NCCL version {_V}"),
        ("python", r"Python version\s{0,40}: (3\.[\w.+]{1,16})"),
        ("gpu", r"GPU \d{1,3}: (NVIDIA [\w -]{1,60}\w)"),
        ("gpu", r"Device \d{1,3}: (NVIDIA [\w -]{1,60}\w), compute capability"),
        ("arch", r"Device \d{1,3}: NVIDIA [\w -]{1,60}, compute capability (\d{1,2}\.\d)"),
        ("flashinfer", r"flashinfer_autotune_cache/(\d[\w.]{1,30})/\d{2,3}[a-z]?/"),
        ("flashinfer", r"\.cache/flashinfer/(\d[\w.]{1,30})/"),
        ("arch", r"flashinfer(?:_autotune_cache)?/\d[\w.]{1,30}/(\d{2,3}[a-z]?)/"),
        ("llama_cpp", r"(?:^|\W)build: (\d{1,7} \(\w{4,40}\))"),
        ("llama_cpp", r"^version: (\d{1,7} \(\w{4,40}\)|\d[\w.-]{1,30} \(build \d{1,7}, commit \w{4,40}\))"),
    )
)
_LOCAL_CUDA = Lazy(r"\+cu(\d{2})(\d)$")


class VersionCollector:
    """Feed it lines; the first value of each key stands."""

    def __init__(self) -> None:
        self.facts: dict[str, EnvFact] = {}

    def feed(self, line: Line, text: str) -> bool:
        """Read one line, whose header has been split off; True if it told a version."""
        if not any(word in text for word in _WORDS):
            return False
        text, before = text[:4096], len(self.facts)
        source = f"log:line {line.number}"
        for key, pattern in _PATTERNS:
            if key not in self.facts and (found := pattern.search(text)):
                self._add(key, found.group(1), source)
        if "==" in text:
            for found in _PIP.finditer(text):
                name = _PIP_KEYS.get(found.group(1).lower().replace("_", "-"))
                if name is not None:
                    self._add(name, found.group(2), source)
        return len(self.facts) > before

    def _add(self, key: str, value: str, source: str) -> None:
        value = value.rstrip(".,;")
        if key == "arch":
            value = "sm_" + value.replace(".", "")
        self.facts.setdefault(key, EnvFact(value, source))
        if key == "torch" and (local := _LOCAL_CUDA.search(value)):
            version = f"{local.group(1)}.{local.group(2)}"
            self.facts.setdefault("torch_cuda", EnvFact(version, f"{source}, torch's version suffix"))
