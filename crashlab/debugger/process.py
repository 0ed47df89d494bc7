"""Run one foreign program that may hang, flood, crash or breed, and be rid of it afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from crashlab.debugger.guard import Guard

if TYPE_CHECKING:
    import subprocess

_POLL_SECONDS = 0.05
_DRAIN_BYTES = 1 << 20
_CHUNK = 1 << 16
_DEATH_SECONDS = 5.0
_DEATH_POLL_SECONDS = 0.002
_MAX_ENVIRON = 1 << 20
_MARK = "CRASHLAB_CHILD"


class Limits(NamedTuple):
    """What the program may use. ``memory_bytes`` limits address space, not resident memory.

    ``file_bytes`` is the size of the largest file it may write.
    """

    seconds: float = 120.0
    output_bytes: int = 8 << 20
    memory_bytes: int | None = None
    file_bytes: int | None = None


class Outcome(NamedTuple):
    """How it went. ``exit_code`` is negative for a signal; None when it never ran or was killed by us.

    ``output`` is stdout and stderr as one, cut at the limit. ``error`` says why it could not be started.
    """

    output: bytes = b""
    exit_code: int | None = None
    ms: float = 0.0
    timed_out: bool = False
    flooded: bool = False
    missing: bool = False
    error: str | None = None


OnOutput = Callable[[bytes], None]
Runner = Callable[[Sequence[str], Mapping[str, str], str, Limits, "OnOutput | None"], Outcome]


def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str,
    limits: Limits,
    on_output: OnOutput | None = None,
) -> Outcome:
    """Run ``argv`` in a session of its own with nothing on stdin; return when it ends or must end.

    ``on_output`` gets each piece of output as it comes. Nothing of the program outlives the call: its
    process group is killed, and so is every process whose environment has this call's own token, which
    finds children that opened a session of their own and can match nothing else. Should this process be
    killed meanwhile, a guard ends the group.
    """
    import secrets
    import time

    mark = f"{_MARK}={secrets.token_hex(16)}"
    started = time.monotonic()
    with Guard() as guard:
        read_end, write_end = _channel()
        try:
            child = _start(argv, {**env, _MARK: mark.partition("=")[2]}, cwd, write_end)
        except (OSError, ValueError) as error:
            os.close(read_end)
            return Outcome(missing=isinstance(error, FileNotFoundError), error=_reason(error))
        finally:
            os.close(write_end)
        reader = _Reader(read_end, limits.output_bytes, on_output)
        try:
            guard.watch(child.pid)
            _restrict(child.pid, limits)
            ended = reader.follow(child.pid, started + limits.seconds)
        finally:
            _kill_marked(mark)
            _kill_group(child.pid)
            guard.dismiss()
            code = child.wait()
            os.close(read_end)
    return Outcome(
        output=b"".join(reader.pieces),
        exit_code=code if ended else None,
        ms=(time.monotonic() - started) * 1e3,
        timed_out=not ended and not reader.full,
        flooded=reader.full,
    )


def _start(argv: Sequence[str], env: Mapping[str, str], cwd: str, output: int) -> subprocess.Popen[bytes]:
    import subprocess

    return subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=env,
        cwd=cwd,
        start_new_session=True,
    )


def _channel() -> tuple[int, int]:
    """A terminal pair where there is one, else a pipe: read end, write end.

    Into a pipe the C library writes 4 KiB at a time, and an abort throws the rest away: cuda-gdb 13.0
    lost the exception line that it had "printed" that way. To a terminal every line goes out at once.
    """
    try:
        import termios

        reader, writer = os.openpty()
        mode = termios.tcgetattr(writer)
        mode[1] &= ~termios.OPOST  # keep line ends as they are
        termios.tcsetattr(writer, termios.TCSANOW, mode)
        return reader, writer
    except (ImportError, OSError):
        return os.pipe()


class _Reader:
    """Collects output until the program ends, the limit is reached or the time is up."""

    def __init__(self, fd: int, room: int, on_output: OnOutput | None) -> None:
        self.pieces: list[bytes] = []
        self.full = False
        self._fd = fd
        self._room = room
        self._on_output = on_output

    def follow(self, pid: int, deadline: float) -> bool:
        """True when the program ended by itself."""
        import select
        import time

        os.set_blocking(self._fd, False)
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)
        listening = True
        while not self.full:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            if listening:
                poller.poll(min(left, _POLL_SECONDS) * 1e3)
            else:  # it closed its output and goes on
                time.sleep(min(left, _POLL_SECONDS))
            ended = has_ended(pid)
            listening = listening and self._take(_DRAIN_BYTES)
            if ended:
                return not self.full
        return False

    def _take(self, most: int) -> bool:
        """Read what is there, at most about ``most`` bytes; False at the end of the stream."""
        while most > 0 and not self.full:
            try:
                piece = os.read(self._fd, _CHUNK)
            except BlockingIOError:
                return True
            except OSError:  # how a terminal says that the other end is closed
                return False
            if not piece:
                return False
            most -= len(piece)
            self.full = len(piece) > self._room
            piece = piece[: self._room]
            self._room -= len(piece)
            self.pieces.append(piece)
            if self._on_output is not None:
                self._on_output(piece)
        return True


def has_ended(pid: int) -> bool:
    """Whether a child has ended, without reaping it: until it is reaped its number is not used again.

    A child that somebody else has reaped (a program that is PID 1 reaps all) has ended too.
    """
    with suppress(ChildProcessError):
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return True


def _restrict(pid: int, limits: Limits) -> None:
    """Set limits from outside: ``preexec_fn`` is not safe in a process with threads (subprocess docs).

    The few milliseconds before they hold are spent in the dynamic loader.
    """
    import resource

    wanted: dict[int, int] = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: int(limits.seconds * 4) + 10,  # also ends an orphan that spins
    }
    if limits.memory_bytes is not None:
        wanted[resource.RLIMIT_AS] = limits.memory_bytes
    if limits.file_bytes is not None:
        wanted[resource.RLIMIT_FSIZE] = limits.file_bytes
    for kind, value in wanted.items():
        try:
            _, hard = resource.prlimit(pid, kind)
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.prlimit(pid, kind, (value, value))
        except (OSError, ValueError):  # it has ended already
            return


def _kill_group(pid: int) -> None:
    import signal

    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _kill_marked(mark: str) -> None:
    """Kill every process whose environment has the entry ``mark`` and see it dead, for a bounded time.

    Several sweeps, since they may breed. A process that is being killed gives its memory back first and
    then has no environment to be known by, so those found are remembered until they are gone.
    """
    import signal
    import time

    deadline = time.monotonic() + _DEATH_SECONDS
    dying: set[int] = set()
    while True:
        found = [pid for pid in _own_processes() if _is_marked(pid, os.fsencode(mark))]
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        dying = {pid for pid in dying.union(found) if _runs(pid)}
        if not (found or dying) or time.monotonic() > deadline:
            return
        time.sleep(_DEATH_POLL_SECONDS)


def _runs(pid: int) -> bool:
    """Whether a process exists and is more than a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[:1] not in ([b"Z"], [b"X"])
    except OSError:
        return False


def _own_processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != os.getpid()]
    except OSError:
        return []


def _is_marked(pid: int, mark: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            return mark in environ.read(_MAX_ENVIRON).split(b"\0")
    except OSError:
        return False


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
