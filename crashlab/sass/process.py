"""A child process that cannot outlive, out-talk or outwait its caller."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable

from crashlab.errors import MissingTool, ToolFailed

_PIPE_BYTES = 1 << 20  # the most that an unprivileged process may ask for (pipe-max-size)
_CHUNK = 1 << 16


class Child:
    """Runs ``argv`` in its own process group with output to pipes.

    ``argv`` may be a function of the path under which the child can read ``stdin_file``. Raises
    MissingTool when the program does not exist, ToolFailed when it cannot be started.
    """

    def __init__(
        self,
        argv: tuple[str, ...] | Callable[[str], tuple[str, ...]],
        *,
        max_output: int,
        stdin_file: bytes | None = None,
    ) -> None:
        import subprocess

        self._max_output = max_output
        descriptor = None if stdin_file is None else _anonymous_file(stdin_file)
        try:
            command = argv(f"/dev/fd/{descriptor}") if callable(argv) else argv
            self._name = os.path.basename(command[0])
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # one signal then reaches the program and all that it started
                pass_fds=() if descriptor is None else (descriptor,),
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            )
        except FileNotFoundError as error:
            raise MissingTool(f"{error.filename} does not exist") from error
        except OSError as error:
            raise ToolFailed(f"cannot start {command[0]}: {error.strerror}") from error
        finally:
            if descriptor is not None:
                os.close(descriptor)
        # A larger pipe lets the child finish although nobody reads yet: that is the whole point of
        # starting it early.
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                _enlarge(pipe.fileno())

    def collect(self, timeout: float) -> tuple[int, str, str]:
        """Wait for the end; give exit code, standard output and error output.

        Raises ToolFailed at the time limit or when more than ``max_output`` bytes came. Whatever
        happens, the process and its descendants are gone afterwards.
        """
        deadline = time.monotonic() + timeout
        try:
            out, err = self._read(deadline)
            self._wait_for_exit(deadline)
        finally:
            self.close()
        return self._process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    def close(self) -> None:
        """Kill the group, reap the child, close the pipes. May be called more than once."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _read(self, deadline: float) -> tuple[bytes, bytes]:
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        parts: dict[int, list[bytes]] = {self._process.stdout.fileno(): [], self._process.stderr.fileno(): []}
        poller = select.poll()
        for descriptor in parts:
            poller.register(descriptor, select.POLLIN | select.POLLHUP)
        open_pipes, total = len(parts), 0
        while open_pipes:
            left = deadline - time.monotonic()
            events = poller.poll(left * 1000) if left > 0 else []
            if not events:
                raise ToolFailed(f"{self._name} did not finish in time and was ended")
            for descriptor, _ in events:
                chunk = os.read(descriptor, _CHUNK)
                if not chunk:
                    poller.unregister(descriptor)
                    open_pipes -= 1
                parts[descriptor].append(chunk)
                total += len(chunk)
            if total > self._max_output:
                raise ToolFailed(f"{self._name} printed more than {self._max_output} bytes and was ended")
        out, err = parts.values()
        return b"".join(out), b"".join(err)

    def _wait_for_exit(self, deadline: float) -> None:
        """Wait without reaping: the group id stays ours until :meth:`close` has signalled it."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while os.waitid(os.P_PID, self._process.pid, flags) is None:
            if time.monotonic() >= deadline:
                raise ToolFailed(f"{self._name} did not end in time and was ended")
            time.sleep(0.002)


def _anonymous_file(content: bytes) -> int:
    """A descriptor of a file that has no name, positioned at its start."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("crashlab-code")
    else:  # Python built for an old C library (conda)
        import tempfile

        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _enlarge(descriptor: int) -> None:
    import fcntl

    with contextlib.suppress(OSError):
        fcntl.fcntl(descriptor, getattr(fcntl, "F_SETPIPE_SZ", 1031), _PIPE_BYTES)
