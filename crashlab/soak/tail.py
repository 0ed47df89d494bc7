"""What the requests of a load say of its server when the load ends: how many failed, and the last ones."""

from __future__ import annotations

from crashlab.postmortem.words import counted
from crashlab.soak import classes
from crashlab.soak.board import Board

_ENOUGH = 3
"""So many failures in a row, and the server is not called well: one alone may be the request's own fault."""
_TURNED_AWAY = 10
_TURNED_AWAY_SECONDS = 5.0
"""An overloaded server turns many away (429, 503) between two answers; it is well if an answer comes at all."""
_CHOSEN = (*classes.INNOCENT, classes.EMPTY, classes.REJECTED)


def failures_words(board: Board) -> str | None:
    """``47 of 82 requests failed (http 47)``; None if none did."""
    kinds = {kind: count for kind, count in board.errors.items() if kind not in classes.INNOCENT}
    failed = sum(kinds.values())
    if not failed:
        return None
    return f"{failed:,} of {counted(board.finished, 'request')} failed ({_kinds(kinds)})"


def last_words(board: Board) -> str | None:
    """``the last 48 requests all failed (refused 44, reset 4)``; None if the last one got its answer."""
    kinds = dict(board.unserved)
    failed = sum(kinds.values())
    if not failed:
        return None
    return f"{'the last request' if failed == 1 else f'the last {failed:,} requests all'} failed ({_kinds(kinds)})"


def last_reason(board: Board) -> str:
    """What the last failed request was told."""
    for record in reversed(board.recent):
        if record.error is not None and record.error not in classes.INNOCENT:
            status = f"HTTP {record.status}" if record.status is not None and record.status != 200 else None
            return ": ".join(part for part in (status, record.detail) if part) or record.error
    return ""


def answers_nothing(board: Board, now: float) -> bool:
    """Whether the last requests got no answer and none is on its way."""
    flights = board.in_flight()
    if flights.requests > flights.waiting:
        return False
    if board.failures_in_a_row >= _ENOUGH:
        return True
    if sum(board.unserved.values()) < _TURNED_AWAY:
        return False
    taken = (
        flights.oldest is not None and now - flights.oldest >= 1.0
    )  # 429 comes at once: this one is worked on
    quiet = board.last_success is None or now - board.last_success >= _TURNED_AWAY_SECONDS
    return quiet and not taken


def mostly_failed(board: Board) -> bool:
    """More than half, those that the server turned away or answered with nothing not counted."""
    failed = sum(count for kind, count in board.errors.items() if kind not in _CHOSEN)
    return 2 * failed > board.finished


def _kinds(kinds: dict[str, int]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in sorted(kinds.items(), key=lambda one: -one[1]))
