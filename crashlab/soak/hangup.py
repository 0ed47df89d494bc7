"""Signals of a load: a hangup asks to stop, as the other two do."""

from __future__ import annotations

import signal
from types import FrameType

from crashlab.capture.signals import SignalBox


class LoadSignals(SignalBox):
    """A terminal that closes ends the load like SIGTERM, with its report. Under nohup it does not."""

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number != signal.SIGHUP:
            super()._note(number, frame)
        elif self._old.get(signal.SIGHUP) != signal.SIG_IGN:
            super()._note(signal.SIGTERM, frame)
