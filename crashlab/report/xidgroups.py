"""Xid events as a reader wants them: equal ones together, the crash's own first, the others as a number."""

from collections.abc import Iterable
from typing import NamedTuple

from crashlab.facts import XidEvent
from crashlab.postmortem.words import counted


class XidGroup(NamedTuple):
    """``number`` events alike, the first of them, and the last one's time (None where it is the only one).

    Alike are those of one code, and of one process and address where they are surely the crash's.
    """

    event: XidEvent
    number: int
    last: str | None

    @property
    def span(self) -> str:
        """The time of the event, or from the first to the last of them; empty without a stamp."""
        first = self.event.time or ""
        return f"{first} to {self.last}" if first and self.last and self.last != first else first


def own(events: Iterable[XidEvent]) -> tuple[XidGroup, ...]:
    """What belongs to the crash, or may do, in order of the first of each group."""
    groups: dict[tuple[object, ...], XidGroup] = {}
    for event in events:
        if event.relevant is False:
            continue
        # of what may be another's, neither process nor page tells anything that a number does not
        mine = (event.pid, event.address) if event.relevant else None
        key = (event.code, event.relevant, event.pci, mine)
        known = groups.get(key)
        groups[key] = (
            XidGroup(event, 1, None) if known is None else XidGroup(known.event, known.number + 1, event.time)
        )
    return tuple(groups.values())


def others(events: Iterable[XidEvent]) -> str | None:
    """One sentence about the events that are certainly not this crash's; None without any."""
    codes: dict[int, int] = {}
    for event in events:
        if event.relevant is False:
            codes[event.code] = codes.get(event.code, 0) + 1
    if not codes:
        return None
    total = sum(codes.values())
    told = ", ".join(
        f"Xid {code}" + (f" ({count})" if count > 1 else "") for code, count in sorted(codes.items())[:8]
    )
    verb = "is" if total == 1 else "are"
    return f"{counted(total, 'more Xid event')} {verb} of another time or process: {told}"
