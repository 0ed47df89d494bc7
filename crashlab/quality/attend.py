"""Wait for an interview while its server is watched: a server that dies ends the interview, not the report."""

from __future__ import annotations

import time
from typing import NamedTuple

from crashlab.quality.examiner import DONE, WAITING, Examiner
from crashlab.quality.scoring import ERROR
from crashlab.soak.servers import ServerHandle

_PATIENCE = 20.0
_LAST = 5
COMPLETE, DIED, INTERRUPTED, NEVER_READY = "complete", "died", "interrupted", "never-ready"


class Attended(NamedTuple):
    """How the interview ended, and the words; ``faults`` are what the supervisor saw of a GPU fault."""

    end: str
    why: str | None = None
    faults: tuple[str, ...] = ()


def attend(examiner: Examiner, server: ServerHandle, step: float = 0.25) -> Attended:
    """Start the examiner and wait. Nothing is cut off while a GPU dump is being written."""
    examiner.start()
    faults: tuple[str, ...] = ()
    while examiner.phase != DONE and examiner.alive:
        view = server.step(step)
        faults = view.faults or faults
        if view.dumping:
            continue
        if view.ended is not None:
            waiting = examiner.phase == WAITING
            examiner.stop()
            end = NEVER_READY if waiting and not view.faults else DIED
            return Attended(
                end, f"{view.ended} {'before it answered' if waiting else 'while it was asked'}", faults
            )
        if server.interrupted():
            examiner.stop()
            return Attended(INTERRUPTED, "interrupted by the user", faults)
    examiner.join(1.0)
    died = _died_meanwhile(examiner, server, step)
    if died is not None:
        return died
    if examiner.talk.problem is not None and not examiner.talk.passes and examiner.error is None:
        return Attended(NEVER_READY, examiner.talk.problem, faults)
    return Attended(COMPLETE, None, faults)


def _died_meanwhile(examiner: Examiner, server: ServerHandle, step: float) -> Attended | None:
    """The interview is over, but was the server? A dead engine answers errors so fast that all questions
    are through before its processes have ended."""
    view = server.step(step)
    passes = examiner.talk.passes
    failing = bool(passes) and all(one.outcome == ERROR for one in passes[-1][-_LAST:])
    until = time.monotonic() + _PATIENCE
    while view.ended is None and (view.faults or failing) and (view.dumping or time.monotonic() < until):
        view = server.step(step)
    if view.faults or (failing and view.ended is not None):
        return Attended(DIED, f"{view.ended or 'the server failed'} while it was asked", view.faults)
    return None
