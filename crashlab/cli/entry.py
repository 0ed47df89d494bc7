"""From the command line to the exit code: every CrashlabError becomes a message with its next step.

Nothing here imports click: the plain analysis of a dump does without it (:mod:`crashlab.cli.plain`).
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import sys
from typing import NoReturn

from crashlab.cli import plain
from crashlab.errors import CrashlabError, UnreadableInput
from crashlab.report.safe import one_line


def main(argv: list[str] | None = None) -> NoReturn:
    """Do what the arguments say and leave with the exit code that tells how it went."""
    _occupy_closed()
    try:
        code = _invoke(argv)
    except CrashlabError as error:
        _fail(error)
    except KeyboardInterrupt:
        _say("Interrupted.")
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output went away (crashlab … | head): not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF):
            _internal(error)
        _unwritable(error)
    except Exception as error:  # noqa: BLE001 - the last line of defence: no traceback for users
        _internal(error)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads any more (crashlab … | head). Nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError) as error:
        _unwritable(error)
    sys.exit(code)


def _occupy_closed() -> None:
    """Standard streams that were closed before (``>&-``) get a descriptor that takes nothing.

    Else the next file that is opened, an evidence file say, would be standard output; and what is written
    there fails in the same way as on a full disk, not for want of a stream.
    """
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    with contextlib.suppress(OSError):
        while (fd := os.open(os.devnull, os.O_RDONLY)) <= 2:
            os.set_inheritable(fd, True)
        os.close(fd)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process


def _invoke(argv: list[str] | None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    asked = plain.asked(arguments)
    if asked is None:
        from crashlab.cli.main import invoke

        return invoke(arguments)
    code = plain.analyze(asked)
    if argv is None:
        # The process ends, and before Python lets go of all modules it looks for cycles among them: 7 % of an
        # answer in a hurry. What is frozen is left out. An analysis has nothing in a cycle that must be closed.
        gc.freeze()
    return code


def _say(text: str) -> None:
    """A line on stderr. Where nobody reads it, the exit code still tells."""
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr is not None:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


def _unwritable(error: Exception) -> NoReturn:
    """Standard output or a file cannot be written: the disk is full, or it was closed."""
    _say(f"crashlab: the output could not be written: {getattr(error, 'strerror', None) or error}.")
    closed = getattr(error, "errno", None) == errno.EBADF
    what = "Standard output is closed: leave it open" if closed else "Free some space"
    _say(f"          {what}, or write to another place with -o.")
    os._exit(UnreadableInput.exit_code)


def _fail(error: CrashlabError) -> NoReturn:
    """Print an error and its hint to stderr and leave with its exit code."""
    _say(f"crashlab: {one_line(str(error))}")
    if error.hint:
        _say(f"          {one_line(error.hint)}")
    sys.exit(error.exit_code)


def _internal(error: Exception) -> NoReturn:
    """An error of ours: say so, keep the traceback for whoever asks for it, leave with 1."""
    if os.environ.get("CRASHLAB_TRACEBACK"):
        raise error
    _say(f"crashlab: internal error: {type(error).__name__}: {one_line(str(error), 300)}")
    _say("          This is a bug in crashlab. CRASHLAB_TRACEBACK=1 shows where; please report it.")
    sys.exit(CrashlabError.exit_code)
