"""Words for what was seen. Every sentence states an observation; none states a cause as fact."""

from __future__ import annotations

import re
from typing import Any

from crashlab.postmortem.words import article
from crashlab.signatures.criteria import Criterion
from crashlab.signatures.observed import Observed

_MAX_VALUE = 120
_FIELD = r"\{([a-z_]{1,40})\}"
_LABELS = {
    "cudnn": "cuDNN",
    "torch": "torch",
    "vllm": "vLLM",
    "flashinfer": "FlashInfer",
    "sglang": "SGLang",
    "cuda_toolkit": "the CUDA toolkit",
    "cuda_driver": "the driver's CUDA",
    "torch_cuda": "torch's CUDA",
    "driver": "the driver",
    "llama_cpp": "llama.cpp",
    "nccl": "NCCL",
    "triton": "Triton",
    "cutlass_dsl": "nvidia-cutlass-dsl",
    "deep_gemm": "DeepGEMM",
    "tensorrt_llm": "TensorRT-LLM",
    "transformers": "Transformers",
}


def label(key: str) -> str:
    """The usual spelling of a software name ("cuDNN" for ``cudnn``)."""
    return _LABELS.get(key, key)


def holds(criterion: Criterion, seen: Observed) -> str:
    """What was seen that answers ``criterion`` with yes."""
    key, sub = criterion.key, criterion.sub or ""
    if key in ("affected", "seen"):
        kind = "affected range" if key == "affected" else "versions it was seen with"
        return f"{label(sub)} {_version(seen, sub)} is in the {kind} ({criterion.want})"
    if key == "run":
        return f"the run used {sub} = {_cut(seen.lever(sub))}"
    if key == "cuda_graph":
        return f"CUDA graphs were {'on' if criterion.want else 'off'}"
    if key in ("log", "log_all"):
        return f"the log has {' and '.join(_quote(want) for want in _found(criterion, seen))}"
    if key == "exception":
        return f"exception {seen.code} ({_cut(seen.exception or 'unnamed')})"
    if key == "error":
        return f"the host error is {' or '.join(sorted(seen.errors & set(criterion.want)))}"
    return _observation(key, seen)


def _observation(key: str, seen: Observed) -> str:
    values: dict[str, Any] = {
        "verdict": f"the verdict is {seen.kind}",
        "precision": f"the exception has {seen.precision} precision",
        "space": f"the access goes to {seen.space} memory",
        "access": f"the access is {article(seen.access or '')} {seen.access}",
        "width": f"the access is {seen.width} bytes wide",
        "arch": f"the GPU is sm_{seen.arch}",
        "garbage": f"the answers show {seen.garbage}",
        "hang": f"resident warps are {', '.join(sorted(seen.hang or ()))}",
        "finding": f"the address finding is {seen.finding}",
        "address_below": f"the address is 0x{seen.address or 0:x}",
        "address_from": f"the address is 0x{seen.address or 0:x}",
        "stray_lane": "the bad lanes are far from others of the same access that are in place"
        if seen.stray_lane
        else "the bad lanes lie near the others",
        "pc_in_image": "a loaded image holds the PC" if seen.pc_in_image else "no loaded image holds the PC",
        "library": f"the kernel belongs to {seen.library}",
        "opcode": f"the instruction is {seen.opcode}",
        "family": f"the kernel family is {seen.family}",
        "kernel": f"the kernel is {(seen.names + seen.functions + ('unnamed',))[0]}",
        "function": f"the function is {(*seen.functions, 'unnamed')[0]}",
        "xid": f"the kernel log has Xid {', '.join(map(str, sorted(set(seen.xids or ()))))}",
    }
    return _cut(values[key], 200)


def contradicts(criterion: Criterion, seen: Observed) -> str:
    """Why a circumstance speaks against the entry."""
    if criterion.key == "cuda_graph":
        was, needed = ("off", "on") if criterion.want else ("on", "off")
        return f"CUDA graphs were {was}, and this needs them {needed}"
    sub = criterion.sub or ""
    return (
        f"{label(sub)} {_version(seen, sub)} is outside the affected range ({criterion.want}), "
        "which ends where the fault was fixed"
    )


def outside(criterion: Criterion, seen: Observed) -> str:
    """A version that nobody reported this with, and that nobody called fixed either."""
    sub = criterion.sub or ""
    return (
        f"{label(sub)} {_version(seen, sub)} is not among the versions it was seen with "
        f"({criterion.want}); no fixed version is known"
    )


def fill(says: str, seen: Observed) -> str:
    """Replace ``{cudnn}``, ``{opcode}``, … by what was seen; unknown fields stay as "unknown"."""
    return re.sub(_FIELD, lambda found: _cut(_field(found[1], seen)), says)


def _field(name: str, seen: Observed) -> str:
    direct: dict[str, Any] = {
        "exception": seen.exception if seen.exception else seen.code,
        "kernel": seen.names[0] if seen.names else None,
        "function": seen.functions[0] if seen.functions else None,
        "opcode": seen.opcode,
        "space": seen.space,
        "width": seen.width,
        "finding": seen.finding,
        "library": seen.library,
        "arch": None if seen.arch is None else f"sm_{seen.arch}",
        "address": None if seen.address is None else f"0x{seen.address:x}",
        "limit": seen.limit,
    }
    value = direct.get(name)
    if value is None:
        value = seen.version(name) or seen.lever(name)
    return "unknown" if value is None else str(value)


def _version(seen: Observed, sub: str) -> str:
    return _cut(seen.version(sub) or "of unknown version")


def _found(criterion: Criterion, seen: Observed) -> list[str]:
    from crashlab.signatures.patterns import folded

    lines = []
    for want in criterion.want:
        pattern = folded(want)
        line = seen.log.find(pattern) if seen.log is not None else None
        if line is not None:
            literals = [text for branch in pattern.branches for text in branch.literals]
            lines.append(_around(line.strip(), literals))
    return lines if criterion.key == "log_all" else lines[:1]


def _around(line: str, literals: list[str]) -> str:
    """The part of a long line that holds the longest of the literals, which say why it was quoted."""
    if len(line) <= _MAX_VALUE:
        return line
    lower = line.lower()
    literal = max((text for text in literals if text in lower), key=len, default="")
    start = max(0, lower.find(literal) - _MAX_VALUE // 3)
    return ("…" if start else "") + line[start:]


def _quote(line: str) -> str:
    return f'"{_cut(line)}"'


def _cut(value: str | None, most: int = _MAX_VALUE) -> str:
    """Shorten, and keep control characters out of what a terminal will print."""
    text = "".join(char if char.isprintable() else "�" for char in (value or "")[: most + 1])
    return text if len(text) <= most else text[: most - 1] + "…"


def spelled(text: str) -> str:
    """A text of an entry with words where a crash fills something in: ``{opcode}`` as ``<the opcode>``."""

    def words(found: re.Match[str]) -> str:
        name = found[1]
        return f"<the version of {label(name)}>" if name in _LABELS else f"<the {name.replace('_', ' ')}>"

    return re.sub(_FIELD, words, text)
