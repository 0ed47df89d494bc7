"""How the debugger itself fared: died, stayed silent, or is of the wrong version for the dump."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crashlab import facts
from crashlab.debugger import flags
from crashlab.debugger.transcript import Transcript
from crashlab.postmortem.from_transcript import kind_of

_DIED = {"aborted": "aborted", "timed-out": "did not finish in time", "failed": "failed"}


def fate_of(
    session: facts.ReaderStatus, verdict: facts.Verdict, transcript: Transcript | None
) -> Iterator[facts.Inconsistency]:
    """One line for a debugger that died on the way, and what its last words are worth."""
    if session.status not in _DIED:
        return
    if transcript is None or kind_of(transcript) in ("unreadable", "no-fault"):
        worth = "It had not printed anything about the fault, so this report rests on the dump alone."
    else:
        worth = "What it printed before is compared with the dump like that of a session that ended well."
    why = ""
    if session.status == "aborted" and "out_of_range" in (session.detail or ""):
        why = "cuda-gdb 13.0 does so when the faulting warp had exited: it looks up a warp that is gone. "
    elif verdict.kind == "unreadable":
        why = "The dump itself cannot be read, see the verdict. "
    program = f"cuda-gdb {session.version}" if session.version else "cuda-gdb"
    yield facts.Inconsistency(
        f"{program} {_DIED[session.status]} on this dump.",
        {"native": verdict.headline or verdict.kind, "cuda_gdb": session.detail},
        why + worth,
    )


def version_trouble(
    misfits: Sequence[str], transcript: Transcript, session: facts.ReaderStatus | None
) -> Iterator[facts.Inconsistency]:
    """A debugger older than the dump's driver, or than the exception in it."""
    version = session.version if session is not None else transcript.version
    if not misfits and flags.UNHANDLED not in transcript.flags:
        return
    why = "; ".join(misfits) or f"it knows no name for exception {transcript.exception_code}"
    yield facts.Inconsistency(
        "cuda-gdb is not of the dump's version.",
        {"native": why, "cuda_gdb": f"version {version}" if version else None},
        "Exception names, and faults of warps that have exited, may be unknown to it; a newer cuda-gdb "
        "settles what it leaves open. The native reading does not depend on it.",
    )


def unheard(session: facts.ReaderStatus | None) -> tuple[str, ...]:
    """A sentence for the provenance when the debugger never spoke."""
    if session is None or session.status == "ok" or session.status in _DIED:
        return ()
    return (f"cuda-gdb was not heard ({session.status}): {session.detail or 'no reason given'}.",)
