"""Which lines of a serving log are events of the story (vLLM, SGLang, llama.cpp)."""

from __future__ import annotations

import re
from typing import NamedTuple

from crashlab.logs.lazy import Lazy
from crashlab.logs.serving_facts import Backend, Throughput

_TABLE: tuple[tuple[str, str | None, str], ...] = (
    # kind, server it proves (or None), pattern
    ("ready", None, r"Application startup complete"),
    ("ready", "sglang", r"The server is fired up and ready to roll"),
    ("ready", "llama.cpp", r"(?:server is listening on|llama_server: listening on|HTTP server listening)"),
    ("engine-start", "vllm", r"Initializing a V\d LLM engine"),
    ("engine-start", "sglang", r"server_args=ServerArgs\("),
    ("engine-fatal", "vllm", r"EngineCore encountered a fatal error"),
    ("engine-fatal", "sglang", r"Scheduler hit an exception"),
    ("start-failed", "vllm", r"EngineCore failed to start|Engine core initialization failed"),
    ("start-failed", None, r"Engine process failed to start|error loading model|failed to load model"),
    ("engine-died", "vllm", r"[Ee]ngine core (?:proc(?:ess)? )?.{0,80}(?:exited|died) unexpectedly"),
    ("engine-died", "vllm", r"Worker(?: p|P)roc .{0,80}(?:died|terminated) unexpectedly"),
    ("engine-died", "sglang", r"Received sigquit from a child proces"),
    ("engine-died", None, r"Child process .{0,80}(?:died|terminated)"),
    ("shm-silence", "vllm", r"No available shared memory broadcast block found"),
    ("rpc-timeout", "vllm", r"RPC call to \w{1,64} timed out"),
    ("watchdog-timeout", "sglang", r"Watchdog timeout \(self\.watchdog_timeout"),
    ("collective-timeout", None, r"Watchdog caught collective operation timeout"),
    ("shutdown", None, r"Application shutdown complete|Finished server process"),
    ("cleanup", "vllm", r"force killing remaining processes"),
    ("killed", None, r"^Killed$|Segmentation fault|\(core dumped\)"),
    ("killed", None, r"Fatal Python error: |^Aborted$"),
)  # fmt: skip
_EVENTS = tuple((kind, server, Lazy(pattern)) for kind, server, pattern in _TABLE)
# One of these stands in every event line: plain substring tests are ten times faster than a pattern.
_EVENT_WORDS = (
    "startup complete",
    "fired up",
    "listening",
    "LLM engine",
    "ServerArgs(",
    "fatal",
    "exception",
    "failed to ",
    "initialization failed",
    "loading model",
    "unexpectedly",
    "sigquit",
    "Child process",
    "shared memory broadcast",
    "timed out",
    "imeout",
    "shutdown complete",
    "Finished server",
    "killing",
    "Killed",
    "Segmentation",
    "core dumped",
    "Fatal Python",
    "Aborted",
)

_THROUGHPUT = Lazy(
    r"Avg prompt throughput: ([\d.]{1,16}) tokens/s, Avg generation throughput: ([\d.]{1,16}) tokens/s, "
    r"Running: (\d{1,9}) reqs,.{0,60}?Waiting: (\d{1,9}) reqs"
)
_ENGINE = Lazy(r"\bEngine (\d{1,6}): ")
_CORRUPTED = Lazy(r"Corrupted: (\d{1,9}) reqs")
_SGL_DECODE = Lazy(
    r"Decode batch\D{0,20}.{0,40}#running-req: (\d{1,9}),.{0,200}gen throughput \(token/s\): ([\d.]{1,16}),"
    r".{0,40}#queue-req: (\d{1,9})"
)
_BACKEND = Lazy(r"\b(?:Using|Use) (.{1,100}?)[ -](?:backend|kernel)s?\b", re.IGNORECASE)
_VERSIONED = Lazy(r"Using (FlashAttention version \d{1,2}|V\d Model Runner)")
_SAMPLER = Lazy(r"(Using FlashInfer for .{0,40}sampling|FlashInfer .{0,40}sampling disabled.{0,80})")
_OTHER = Lazy(r"(DeepGEMM E8M0 \w{1,16}|DeepGEMM PDL \w{1,16})")
_OVERRIDE = Lazy(
    r"[Oo]verriding|[Ff]alling back|[Ff]allback|not compatible with|disabled via|disabled by user|"
    r"not supported, |will be ignored"
)
_GRAPH_OFF = Lazy(
    r"Skipping CUDA graph capture|Overriding to NONE|Disable cuda graph|CUDA graphs? (?:is|are) disabled"
)
_GRAPH_BEGIN = Lazy(r"Capturing (?:CUDA|cuda) graph|Capture cuda graph begin|Capturing CUDA graphs")
_GRAPH_END = Lazy(r"Graph capturing finished|Capture cuda graph end")
_GRAPH_MODE = Lazy(r"'cudagraph_mode': <CUDAGraphMode\.(\w{1,40})")
_HTTP = Lazy(r'"(GET|POST) (\S{1,512}) HTTP/[\d.]{1,4}" (\d{3})')


class Recognised(NamedTuple):
    """An event line: its kind, and the server that prints such lines."""

    kind: str
    server: str | None


def event_of(text: str) -> Recognised | None:
    """The event that a line reports, or None."""
    if not any(word in text for word in _EVENT_WORDS):
        return None
    for kind, server, pattern in _EVENTS:
        if pattern.search(text):
            return Recognised(kind, server)
    return None


def throughput_of(text: str, line: int, time: str | None) -> Throughput | None:
    """vLLM's and SGLang's statistics lines."""
    if "throughput" not in text:
        return None
    if found := _THROUGHPUT.search(text):
        corrupted = _CORRUPTED.search(text, found.end())
        engine = _ENGINE.search(text)
        return Throughput(
            line,
            time,
            _float(found.group(1)),
            _float(found.group(2)),
            int(found.group(3)),
            int(found.group(4)),
            int(corrupted.group(1)) if corrupted else None,
            int(engine.group(1)) if engine else None,
        )
    if found := _SGL_DECODE.search(text):
        running, rate, waiting = found.groups()
        return Throughput(line, time, None, _float(rate), int(running), int(waiting))
    return None


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def backend_of(text: str, line: int) -> Backend | None:
    """A line that says which implementation was chosen."""
    if not any(word in text for word in ("Using ", "using ", "Use ", "FlashInfer", "DeepGEMM", "backend")):
        return None
    for pattern in (_VERSIONED, _SAMPLER, _OTHER, _BACKEND):
        if found := pattern.search(text[:512]):
            name = found.group(1).strip().strip("'\"")
            return Backend(_role(text), name, line, text.strip()[:300])
    return None


def _role(text: str) -> str:
    lower = text.lower()
    for role, words in (
        ("sampler", ("sampl",)),
        ("moe", ("moe",)),
        ("linear", ("linear", "gemm", "scaled_mm")),
        ("attention", ("attention", "attn", "mla")),
        ("runner", ("model runner",)),
    ):
        if any(word in lower for word in words):
            return role
    return "other"


def is_override(text: str) -> bool:
    """True for lines that say that a wish was not granted."""
    return _OVERRIDE.search(text) is not None


def graph_state_of(text: str) -> tuple[str, str, bool] | None:
    """(state, reason, said) if the line tells about CUDA graphs; ``said`` False: only configured so."""
    if not any(word in text for word in ("raph", "Overriding to NONE", "enforce_eager=True")):
        return None
    if _GRAPH_OFF.search(text):
        return "off", text.strip()[:300], True
    if _GRAPH_END.search(text):
        return "captured", text.strip()[:300], True
    if _GRAPH_BEGIN.search(text):
        return "capturing", text.strip()[:300], True
    if found := _GRAPH_MODE.search(text):
        mode = found.group(1)
        return ("off" if mode == "NONE" else "configured"), f"cudagraph_mode {mode}", False
    if "enforce_eager=True" in text:
        return "off", "enforce_eager=True", False
    return None


def http_of(text: str) -> tuple[str, str, int] | None:
    """(method, path, status) of an access-log line."""
    found = _HTTP.search(text)
    return (found.group(1), found.group(2), int(found.group(3))) if found else None
