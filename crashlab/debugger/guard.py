"""An end for a foreign program whose caller is killed and can end nothing any more."""

from __future__ import annotations

import os
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess

_SHELL = "/bin/sh"
_SCRIPT = 'read -r group && { read -r _; kill -s KILL -- "-$group"; }'
"""Waits for a line that never comes: the pipe ends when its only writer, the caller, is gone."""


class Guard:
    """A shell that kills a process group when this process dies, whatever it dies of.

    ``PR_SET_PDEATHSIG`` would have to be set between fork and exec, which is not safe in a process with
    threads, and does not reach the program's own children. Without a shell there is no guard.
    """

    def __init__(self) -> None:
        self._shell: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Guard:
        import subprocess

        with suppress(OSError):
            self._shell = subprocess.Popen(
                [_SHELL, "-c", _SCRIPT],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        return self

    def watch(self, group: int) -> None:
        """Name the process group to end; its leader must not be reaped before :meth:`dismiss`."""
        if self._shell is not None and self._shell.stdin is not None:
            with suppress(OSError):
                os.write(self._shell.stdin.fileno(), b"%d\n" % group)

    def dismiss(self) -> None:
        """Give the guard up: it is dead before its pipe is closed, so it ends nothing. May be called twice."""
        if self._shell is None:
            return
        self._shell.kill()
        self._shell.wait()
        if self._shell.stdin is not None:
            self._shell.stdin.close()
        self._shell = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.dismiss()
