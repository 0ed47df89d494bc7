"""What a caller can ask of a supervised run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from crashlab.capture.plan import Plan
from crashlab.capture.rules import HangRules


class RunConfig(NamedTuple):
    """Times in seconds, sizes in bytes; None: no limit.

    ``grace``: between asking the program to end and killing it. ``linger``: how long processes may
    outlive the command (None: as long as they like). ``after_fault``: how long a program that lost a
    process to a GPU fault may go on before it is ended (None: for ever). ``dump_patience``: all dumps
    of an attempt together. ``hang_patience``: until the first sign of a dump that was asked for.
    ``before_stacks`` are called first when a hang is examined (a server's metrics, say).
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    plan: Plan
    cwd: str
    rules: HangRules = HangRules()
    hang_dumps: bool = True
    grace: float = 10.0
    linger: float | None = 10.0
    after_fault: float | None = 60.0
    dump_patience: float = 3600.0
    hang_patience: float = 30.0
    max_dumps_bytes: int | None = None
    max_output_bytes: int = 4 << 30
    gpu_seconds: float = 10.0
    sinks: tuple[int, int] = (1, 2)
    before_stacks: tuple[Callable[[], None], ...] = ()


class AttemptResult(NamedTuple):
    """How one attempt went.

    ``exit_code`` None: the command could not be reaped; ``signal`` is set when one ended it.
    ``ended_by``: None (by itself), user, hang, after-fault, outlived or caller. ``hang`` is the reason
    for which hang evidence was taken (None also where it was taken on request and the program went on to
    its own end). ``suspicious``: there is something to analyse. ``killed``: something had to be.
    """

    attempt: int
    exit_code: int | None
    signal: int | None
    ended_by: str | None
    hang: str | None
    dumps: tuple[str, ...]
    findings: tuple[str, ...]
    interrupts: int
    terminations: int
    unreaped: tuple[int, ...]
    suspicious: bool
    seconds: float
    killed: bool = False

    @property
    def shell_code(self) -> int:
        """The exit code as a shell tells it: 128 + signal for a program that one ended."""
        if self.signal is not None:
            return 128 + self.signal
        return self.exit_code if self.exit_code is not None else 1
