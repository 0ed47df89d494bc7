"""Secrets are taken out before anything is written: of environment variables and of command lines.

Values of variables that this field reads are kept; of all others only the name is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

REDACTED = "<redacted>"
NOT_RECORDED = "<not recorded>"

_SECRET_NAME = re.compile(
    # whole words: --max-tokens and --tokenizer are no secrets
    r"(?:^|[_-])(?:TOKEN|AUTH|AUTHORIZATION|COOKIE|(?:API|ACCESS|PRIVATE|SIGNING)?[_-]?KEY)(?:$|[_-])"
    r"|SECRET|PASSW|PASSPHRASE|CREDENTIAL",
    re.IGNORECASE,
)
# Hugging Face, OpenAI and like, GitHub, AWS, Slack, JSON web tokens, and credentials in a URL.
_SECRET_VALUE = re.compile(
    r"hf_[A-Za-z0-9]{16,}|\bsk-[\w-]{16,}|\bgh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|\bAKIA[A-Z0-9]{12,}"
    # The first part of a token is bounded: "-eyJ-eyJ…" would be read to its end from each of its words.
    r"|\bxox[abprs]-[\w-]{10,}|\beyJ[\w-]{6,2000}\.[\w-]{6,}\.[\w-]*|(?<=://)[^/\s@]+(?=@)"
)
# Values worth keeping: what changes how a GPU program runs.
_KEPT_PREFIXES = (
    "CUDA", "CUBLAS", "CUDNN", "NVIDIA_", "NCCL_", "NVSHMEM_", "TORCH", "PYTORCH", "TRITON_", "VLLM_", "SGLANG_",
    "FLASHINFER_", "XLA_", "TF_", "JAX_", "OMP_", "MKL_", "UCX_", "GLOO_", "LD_", "PYTHON", "RANK", "LOCAL_RANK",
    "WORLD_SIZE", "MASTER_", "DG_", "DEEPEP_", "CRASHLAB_", "MALLOC_", "GGML_", "LLAMA_",
)  # fmt: skip
_KEPT_NAMES = frozenset(
    ("PATH", "HOME", "HF_HOME", "TMPDIR", "LANG", "LC_ALL", "SHELL", "VIRTUAL_ENV", "CONDA_PREFIX")
)


def text(value: str) -> str:
    """``value`` without anything that looks like a secret."""
    return _SECRET_VALUE.sub(REDACTED, value)


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Every variable's name; the value where it matters and is no secret."""
    out = {}
    for name, value in sorted(environment.items()):
        if _SECRET_NAME.search(name):
            out[name] = REDACTED
        elif name in _KEPT_NAMES or name.startswith(_KEPT_PREFIXES):
            out[name] = text(value)
        else:
            out[name] = NOT_RECORDED
    return out


def command(argv: Iterable[str]) -> list[str]:
    """A command line; the value of an option with a secret's name goes, in both spellings."""
    out: list[str] = []
    hide_next = False
    for part in argv:
        name, equals, _ = part.partition("=")
        option = part.startswith("-") and _SECRET_NAME.search(name.lstrip("-")) is not None
        assignment = bool(equals) and name.isidentifier() and _SECRET_NAME.search(name) is not None
        if hide_next and not part.startswith("--"):
            out.append(REDACTED)
        elif (option and equals) or assignment:
            out.append(f"{name}={REDACTED}")
        else:
            out.append(text(part))
        hide_next = option and not equals
    return out
