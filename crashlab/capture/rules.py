"""When a program counts as hung: rules over time-stamped signs of life. Pure; reads no clock."""

from __future__ import annotations

from typing import NamedTuple


class HangRules(NamedTuple):
    """Seconds, None: off. ``silence``: no byte of output at all. ``stall_after``: no sign of progress,
    where a stalled server's own chatter (health checks, 0 tokens/s with requests running) is none."""

    silence: float | None = None
    stall_after: float | None = None


class Life:
    """Remembers when output and progress last changed."""

    def __init__(self, now: float) -> None:
        self._bytes = self._progress = 0
        self._heard = self._moved = now

    def see(self, output_bytes: int, progress: int, now: float) -> None:
        """Take the counters as they are now."""
        if output_bytes != self._bytes:
            self._bytes, self._heard = output_bytes, now
        if progress != self._progress:
            self._progress, self._moved = progress, now

    def restart(self, now: float) -> None:
        """Begin to count anew."""
        self._heard = self._moved = now

    def hung(self, rules: HangRules, now: float) -> str | None:
        """Why the program counts as hung, or None."""
        if rules.silence is not None and now - self._heard >= rules.silence:
            return f"no output for {now - self._heard:.0f} s (--silence {rules.silence:g})"
        if rules.stall_after is not None and now - self._moved >= rules.stall_after:
            return f"no sign of progress for {now - self._moved:.0f} s (--stall-after {rules.stall_after:g})"
        return None
