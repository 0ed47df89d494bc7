"""What to do about a server that never became ready."""

from __future__ import annotations

_OWN = "read what the server printed: it is under output/ in the run directory"
_ADVICE = (
    ("HTTP 401", "put the server's API key into CRASHLAB_API_KEY"),
    ("HTTP 403", "put the server's API key into CRASHLAB_API_KEY"),
    (
        "no OpenAI-compatible",
        "give the address of a server that speaks OpenAI's API (vLLM, SGLang, llama-server)",
    ),
    ("HTTP 404", "name a model with --model that the server lists under /v1/models"),
    ("nobody listens", "check that the server runs, and that host and port are right"),
    ("is not known", "check how the host is written, and that this machine can resolve its name"),
    (
        "no connection",
        "check that the server can be reached from this machine, and that host and port are right",
    ),
)
_WAIT = "see in the server's own log what it waits for; --ready-within says how long is waited for it"


def next_step(why: str, *, ended: bool) -> str:
    """A sentence for the report; ``ended``: the server's own process has ended."""
    step = _OWN if ended else next((advice for words, advice in _ADVICE if words in why), _WAIT)
    return f"What to do: {step}."
