"""What the supervisor says at the terminal about what it does to a program, in words. Pure."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from crashlab.capture.tree import Proc
from crashlab.postmortem.words import counted

_SHOWN = 5


def processes(found: Sequence[Proc]) -> str:
    """``2 processes (worker 17, sleep 18)``."""
    names = ", ".join(f"{one.name or 'unnamed'} {one.pid}" for one in found[:_SHOWN])
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"{counted(len(found), 'process', 'processes')} ({names}{more})"


def still_running(found: Sequence[Proc], left: float | None) -> str:
    """The command has ended and others have not; ``left`` seconds until they are ended, None: never."""
    verb, them = ("is", "it") if len(found) == 1 else ("are", "them")
    what = f"the command has ended; {processes(found)} that it started {verb} still running"
    if left is None:
        return f"{what}, and {verb} waited for (--linger never)"
    return f"{what} and will be ended in {left:.0f} s (--linger TIME or --linger never lets {them} live on)"


def outlived(found: Sequence[Proc], linger: float | None) -> str:
    """They are ended now."""
    after = f" by {linger:g} s" if linger is not None else ""
    return f"ending {processes(found)} that outlived the command{after} (--linger)"


def killed(count: int, grace: float, *, hurried: bool) -> str:
    """They did not end when asked."""
    why = "at the second request" if hurried else f"after --grace {grace:g} s"
    return f"killed {counted(count, 'process', 'processes')} (SIGKILL) {why}"


def nobody_reads(stream: str, error: int | None) -> str | None:
    """The program's output finds no taker; None where it was closed from the start, which was wanted."""
    if error == errno.EBADF:
        return None
    gone = error in (errno.EPIPE, errno.EIO)
    why = "nobody reads" if gone else f"{os.strerror(error) if error else 'an error'} while writing"
    return (
        f"{why} the program's {stream}{' any more' if gone else ''}: the program is not told and goes on, recorded "
        f"but not shown (to end it: kill {os.getpid()})"
    )
