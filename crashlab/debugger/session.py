"""One batch session of cuda-gdb over one dump: confined, limited, and worth something even if it dies."""

from __future__ import annotations

import os
from typing import NamedTuple

from crashlab.debugger import commands, flags
from crashlab.debugger.candidates import Candidate, Choice
from crashlab.debugger.disassembler import find_tools
from crashlab.debugger.process import Limits, OnOutput, Outcome, Runner, run
from crashlab.debugger.room import private_room
from crashlab.debugger.transcript import Transcript, parse
from crashlab.debugger.version import spell
from crashlab.errors import CrashlabError
from crashlab.facts import ReaderStatus

OK = "ok"
ABORTED = "aborted"
TIMED_OUT = "timed-out"
MISSING = "missing"
REFUSED = "refused"
FAILED = "failed"

DEFAULT_SECONDS = 120.0
MAX_OUTPUT = 8 << 20
_TAIL = 2000
# Address space seen: cuda-gdb 12.4 0.3 GiB and three times the dump; 13.0 2.5 GiB with one thread for
# each of 32 processors, and the C library reserves 64 MiB and a stack for every thread.
_MEMORY_BASE = 8 << 30
_MEMORY_PER_CPU = 128 << 20
_MEMORY_PER_BYTE = 4
_FILE_BASE = 256 << 20


class SessionResult(NamedTuple):
    """How a session went and all that it printed.

    ``status`` is one of the constants above. ``transcript`` holds what could be understood, also of a
    session that was aborted or killed; it is None when the debugger printed nothing. ``detail`` is one
    sentence for anything but ``ok``. ``tail`` is the end of the output, at most 2,000 characters.
    """

    status: str
    argv: tuple[str, ...] = ()
    version: str | None = None
    exit_code: int | None = None
    ms: float | None = None
    output: str = ""
    tail: str | None = None
    detail: str | None = None
    transcript: Transcript | None = None

    def reader_status(self) -> ReaderStatus:
        """The same for the report's ``readers.cuda_gdb``."""
        return ReaderStatus(
            self.status, self.ms, self.version, self.argv, self.exit_code, self.tail, self.detail
        )


def run_session(
    dump: str | os.PathLike[str],
    debugger: Choice | Candidate | str,
    *,
    seconds: float = DEFAULT_SECONDS,
    output_bytes: int = MAX_OUTPUT,
    memory_bytes: int | None = None,
    runner: Runner = run,
    on_output: OnOutput | None = None,
) -> SessionResult:
    """Open ``dump`` in ``debugger`` and ask it everything; never raises for what either of them does.

    The call returns within ``seconds`` and a moment. ``memory_bytes`` limits the debugger's address
    space; by default it grows with the dump, which cuda-gdb maps. ``on_output`` gets raw output while
    it comes. Statuses: ``missing`` no debugger, ``refused`` the dump is no file that can be given to
    it, ``timed-out``, ``aborted`` the debugger died, ``failed`` anything else that is not ``ok``.
    """
    candidate, missing = _candidate(debugger)
    if candidate is None:
        return missing
    argv = (candidate.path, *commands.arguments())
    version = spell(candidate.version)
    try:
        with private_room(os.fspath(dump), find_tools(candidate.path)) as room:
            limits = Limits(
                seconds,
                output_bytes,
                memory_bytes or _memory_for(room.dump_bytes),
                _FILE_BASE + room.dump_bytes,
            )
            outcome = runner(argv, room.env, room.root, limits, on_output)
            text = outcome.output.decode("utf-8", "replace").replace(room.root + os.sep, "")
    except CrashlabError as error:
        return SessionResult(REFUSED, argv, version, detail=str(error))
    except OSError as error:  # the private folder could not be made
        return SessionResult(FAILED, argv, version, detail=f"no room to run cuda-gdb in: {error.strerror}")
    return _result(argv, version, outcome, text, seconds)


def _memory_for(dump_bytes: int) -> int:
    return _MEMORY_BASE + _MEMORY_PER_CPU * (os.cpu_count() or 1) + _MEMORY_PER_BYTE * dump_bytes


def _candidate(debugger: Choice | Candidate | str) -> tuple[Candidate | None, SessionResult]:
    if isinstance(debugger, str):
        debugger = Candidate(os.path.abspath(debugger), "option")
    if isinstance(debugger, Choice):
        return debugger.candidate, SessionResult(MISSING, detail=debugger.why)
    if debugger.problem is not None:
        return None, SessionResult(MISSING, (debugger.path,), detail=f"{debugger.path}: {debugger.problem}")
    return debugger, SessionResult(MISSING)


def _result(
    argv: tuple[str, ...], version: str | None, outcome: Outcome, text: str, seconds: float
) -> SessionResult:
    transcript = parse(text) if text.strip() else None
    status, detail = _judge(outcome, transcript, text, seconds)
    if transcript is not None and version is None:
        version = transcript.version
    return SessionResult(
        status,
        argv,
        version,
        outcome.exit_code,
        outcome.ms,
        text,
        text.rstrip()[-_TAIL:] or None,
        detail,
        transcript if transcript is not None and transcript.says_anything else None,
    )


def _judge(
    outcome: Outcome, transcript: Transcript | None, text: str, seconds: float
) -> tuple[str, str | None]:
    if outcome.missing:
        return MISSING, f"cannot be started: {outcome.error}"
    if outcome.error is not None:
        return FAILED, f"cannot be started: {outcome.error}"
    if outcome.timed_out:
        return TIMED_OUT, f"stopped after {seconds:g} s"
    if outcome.flooded:
        return FAILED, f"stopped because it printed more than {len(outcome.output)} bytes"
    reason = transcript.abort_reason if transcript else None
    if transcript is not None and transcript.aborted:
        return ABORTED, reason
    if outcome.exit_code is not None and outcome.exit_code < 0:
        return ABORTED, f"killed by signal {-outcome.exit_code}"
    if transcript is not None and flags.CANNOT_OPEN in transcript.flags:
        return FAILED, reason
    if f"=={commands.END}" in text.splitlines():
        return OK, None
    said = "printed nothing" if not text.strip() else "stopped before its last command"
    return FAILED, f"{said} (exit code {outcome.exit_code})"
