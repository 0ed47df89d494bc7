"""One case, and the child process in which many of them run under limits."""

from __future__ import annotations

import hashlib
import mmap
import os
import random
import resource
import signal
import struct
import time
import traceback
import warnings
from pathlib import Path
from typing import NamedTuple

from tests.support.fuzz.target import Target

_PRINTED = (FutureWarning, RuntimeWarning, SyntaxWarning, UserWarning)
"""Warnings that Python prints on the terminal of whoever reads a strange file: findings as well."""
_SHARED = struct.Struct("<QdQdQ")


class Limits(NamedTuple):
    """``seconds`` of processor time for one case; wall time may be ``patience`` times that.

    ``memory`` is the address space (bytes) that a child may use beyond what it has at its start.
    """

    seconds: float = 3.0
    patience: float = 8.0
    memory: int = 768 << 20


class Finding(NamedTuple):
    """``kind``: the exception's name, ``slow``, ``hang`` or ``killed``; ``where``: the innermost own frame."""

    kind: str
    where: str
    detail: str

    @property
    def name(self) -> str:
        """A short name that is the same for the same mistake."""
        return f"{self.kind}-{hashlib.sha256(f'{self.kind} {self.where}'.encode()).hexdigest()[:10]}"


class OutOfTime(BaseException):
    """Raised by the alarm; no BaseException is caught by a parser."""


class Progress:
    """What a child tells its parent through shared memory, readable even when the child was killed."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, _SHARED.size)
        self.set(0, 0.0, 0, 0.0, 0)

    def set(self, seed: int, since: float, done: int, slowest: float, slowest_seed: int) -> None:
        _SHARED.pack_into(self._map, 0, seed, since, done, slowest, slowest_seed)

    def get(self) -> tuple[int, float, int, float, int]:
        """(seed under way, since when, cases done, longest processor time, its seed)."""
        seed, since, done, slowest, which = _SHARED.unpack_from(self._map, 0)
        return seed, since, done, slowest, which


def case_of(target: Target, seed: int) -> bytes:
    """The bytes of a case: the same for the same target and seed on every machine."""
    return target.make(random.Random(f"{target.name}:{seed}"))


def attempt(target: Target, case: bytes, place: Path, limits: Limits) -> tuple[Finding | None, float]:
    """Run one case here, under the alarm. Returns what went wrong, and the processor seconds it took."""

    def ring(_number: int, _frame: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limits.seconds * limits.patience)
    started = time.process_time()
    finding: Finding | None = None
    try:
        with warnings.catch_warnings():
            for kind in _PRINTED:
                warnings.simplefilter("error", kind)
            target.run(case, place)
    except OutOfTime as error:
        finding = _found("hang", error)
    except (Exception, RecursionError) as error:  # noqa: BLE001 - that is what this program looks for
        finding = _found(type(error).__name__, error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    seconds = time.process_time() - started
    if finding is None and seconds > limits.seconds:
        finding = Finding("slow", target.name, f"{seconds:.2f} s of processor time")
    return finding, seconds


def _found(kind: str, error: BaseException) -> Finding:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.name != "ring"]
    own = [f for f in frames if f"{os.sep}crashlab{os.sep}" in f.filename] or list(frames)
    last = own[-1]
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__, limit=-12))
    return Finding(kind, f"{Path(last.filename).name}:{last.name}", text[-6000:])


def restrict(limits: Limits) -> None:
    """Limit this process's address space and forbid core files."""
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    room = pages * resource.getpagesize() + limits.memory
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
