"""Keep a program alive: run it again after a crash, with one case of evidence for each."""

from __future__ import annotations

import time
from collections.abc import Callable

from crashlab.capture.config import AttemptResult
from crashlab.capture.signals import SignalBox

_SHORT_LIFE = 10.0
_MAX_PAUSE = 60.0


def run_attempts(
    box: SignalBox,
    restarts: int,
    one: Callable[[int], AttemptResult],
    after: Callable[[AttemptResult], bool],
    *,
    say: Callable[[str], None],
) -> list[AttemptResult]:
    """Call ``one(number)`` and ``after(result)`` until the program ends well, the user ends it,
    ``after`` says False, or ``restarts`` are used up. A program that dies at once is given growing
    pauses."""
    results: list[AttemptResult] = []
    pause = 1.0
    while True:
        result = one(len(results) + 1)
        results.append(result)
        if not after(result) or not _crashed(result) or len(results) > restarts:
            return results
        pause = min(_MAX_PAUSE, pause * 2) if result.seconds < _SHORT_LIFE else 1.0
        say(f"starting again in {pause:g} s ({len(results)} of {restarts} restarts)")
        if _interrupted(box, pause):
            return results


def _crashed(result: AttemptResult) -> bool:
    if result.ended_by == "user":
        return False
    return result.suspicious or result.exit_code != 0


def _interrupted(box: SignalBox, pause: float) -> bool:
    """Sleep; True if the user wants to stop."""
    deadline = time.monotonic() + pause
    while (left := deadline - time.monotonic()) > 0:
        box.wait(left, box.wake)
        if box.wants_stop():
            return True
    return False
