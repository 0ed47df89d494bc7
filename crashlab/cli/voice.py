"""What is said to the person at the terminal, on stderr while something runs and on stdout at its end.

Whoever reads may go away at any moment (``2>&1 | head``, a closed terminal). That ends neither what is being
recorded nor changes the exit code, so nothing here raises because nobody reads.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from typing import Any

import click

_LONGEST = 500
_GONE = (errno.EPIPE, errno.EIO, errno.EBADF)
"""Of a pipe without a reader, a terminal that hung up, a descriptor that was closed."""


def tell(text: str) -> bool:
    """Say it; False when nobody reads stderr any more, which must never end what is being recorded."""
    from crashlab.report.safe import one_line

    return line(f"crashlab: {one_line(text, _LONGEST)}")


def line(text: str) -> bool:
    """A line on stderr as it is; False when it could not be written, whatever the reason."""
    try:
        click.echo(text, err=True)
    except (OSError, ValueError) as error:
        _let_go(sys.stderr, error)
        return False
    return True


def result(text: str) -> bool:
    """The final text on stdout; False when nobody reads it. A full disk still raises OSError."""
    try:
        click.echo(text, nl=False)
    except OSError as error:
        if error.errno not in _GONE:
            raise
        _let_go(sys.stdout, error)
        return False
    return True


class Unbroken:
    """A stream for libraries that draw on stderr by themselves: what cannot be written is dropped."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """As the stream does."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """As the stream does."""
        try:
            self._stream.flush()
        except (OSError, ValueError) as error:
            _let_go(self._stream, error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _let_go(stream: Any, error: Exception) -> None:
    """What waits in the stream's buffer would fail again at exit, and Python would end with 120."""
    if not isinstance(error, OSError) or error.errno not in _GONE:
        return
    with suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, stream.fileno())
        finally:
            os.close(null)
