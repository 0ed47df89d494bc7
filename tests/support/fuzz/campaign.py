"""A campaign: children that run cases until the time is over, and what is kept of what they find."""

from __future__ import annotations

import json
import os
import pickle
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.support.fuzz.target import Target
from tests.support.fuzz.worker import Finding, Limits, Progress, attempt, case_of, restrict

_BATCH = 2000
"""Cases of one child: memory that leaks or caches that grow end with it."""
_POLL = 0.05


class Told(NamedTuple):
    """What a child came back with."""

    finding: Finding | None
    seed: int
    seconds: float


class Summary(NamedTuple):
    """One campaign. ``findings``: name → how often."""

    target: str
    first_seed: int
    cases: int
    minutes: float
    findings: dict[str, int]
    slowest: float
    slowest_seed: int


def run(
    target: Target,
    *,
    minutes: float,
    first_seed: int,
    folder: Path,
    limits: Limits,
    cases: int | None = None,
    shrink: float = 30.0,
    say: Callable[[str], None] = lambda _: None,
) -> Summary:
    """Run cases from ``first_seed`` on until the time is over (or ``cases`` are done); keep findings in ``folder``.

    ``shrink``: seconds for making a finding smaller, beyond the campaign's own time.
    """
    started = time.monotonic()
    deadline = started + minutes * 60
    seed, done, slowest, slowest_seed = first_seed, 0, 0.0, first_seed
    found: dict[str, int] = {}
    case_of(target, first_seed)  # children inherit the fixtures; cases run only in them, since they may kill
    while time.monotonic() < deadline and (cases is None or done < cases):
        count = _BATCH if cases is None else min(_BATCH, cases - done)
        told, ran, longest, which = _batch(target, seed, count, deadline, limits)
        done, seed = done + ran, seed + ran
        if longest > slowest:
            slowest, slowest_seed = longest, which
        if told is not None and told.finding is not None:
            name = told.finding.name
            found[name] = found.get(name, 0) + 1
            if found[name] == 1:
                say(f"{target.name}: seed {told.seed}: {told.finding.kind} at {told.finding.where}")
                _keep(target, told, folder / target.name / name, limits, shrink)
    spent = (time.monotonic() - started) / 60
    return Summary(target.name, first_seed, done, spent, found, slowest, slowest_seed)


def _batch(
    target: Target, first: int, count: int, deadline: float, limits: Limits
) -> tuple[Told | None, int, float, int]:
    """Run cases in a child until one is a finding; (what it told, cases done, slowest seconds, its seed)."""
    progress = Progress()
    with tempfile.TemporaryDirectory(prefix="crashlab-fuzz-") as name:
        place, answer = Path(name), Path(name) / "answer"
        (place / "case").mkdir()
        child = os.fork()
        if child == 0:
            _in_child(target, first, count, deadline, limits, progress, place / "case", answer)
        told = _watch(child, progress, limits, answer)
    seed, _, done, slowest, which = progress.get()
    if told is not None and told.finding is not None and told.seed < 0:
        told = told._replace(seed=seed)
    ran = done + (1 if told is not None and told.finding is not None else 0)
    return told, ran, slowest, which


def _in_child(
    target: Target,
    first: int,
    count: int,
    deadline: float,
    limits: Limits,
    progress: Progress,
    place: Path,
    answer: Path,
) -> None:
    """Never returns."""
    code = 1
    try:
        restrict(limits)
        slowest, which = 0.0, first
        for done in range(count):
            seed = first + done
            progress.set(seed, time.monotonic(), done, slowest, which)
            finding, seconds = attempt(target, case_of(target, seed), place, limits)
            if seconds > slowest:
                slowest, which = seconds, seed
            if finding is not None:
                progress.set(seed, 0.0, done, slowest, which)
                answer.write_bytes(pickle.dumps((tuple(finding), seed, seconds)))
                break
            progress.set(seed, 0.0, done + 1, slowest, which)
            if time.monotonic() > deadline:
                break
        code = 0
    finally:
        os._exit(code)


def _watch(child: int, progress: Progress, limits: Limits, answer: Path) -> Told | None:
    """Wait for the child; kill it when a case takes far too long (a loop in C hears no alarm)."""
    hard = limits.seconds * limits.patience * 1.5 + 5
    killed, pause = False, 0.001
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        since = progress.get()[1]
        if since and time.monotonic() - since > hard and not killed:
            os.kill(child, signal.SIGKILL)
            killed = True
        time.sleep(pause)
        pause = min(_POLL, pause * 2)
    if answer.exists():
        finding, seed, seconds = pickle.loads(answer.read_bytes())
        return Told(Finding(*finding), seed, seconds)
    if os.waitstatus_to_exitcode(status) == 0:
        return None
    kind = "hang" if killed else "killed"
    return Told(Finding(kind, "child", f"the child ended with status {status}"), -1, hard)


def finding_of(target: Target, case: bytes, limits: Limits) -> Finding | None:
    """What one case finds, run in a child of its own."""
    with tempfile.TemporaryDirectory(prefix="crashlab-fuzz-") as name:
        answer, progress = Path(name) / "answer", Progress()
        (Path(name) / "case").mkdir()
        child = os.fork()
        if child == 0:
            fixed = target._replace(make=lambda _rng: case)
            _in_child(fixed, 0, 1, time.monotonic() + 1, limits, progress, Path(name) / "case", answer)
        told = _watch(child, progress, limits, answer)
    return told.finding if told is not None else None


def smaller(target: Target, case: bytes, name: str, limits: Limits, *, seconds: float) -> bytes:
    """The shortest case that was found to give the same finding, by leaving out ever smaller pieces."""
    deadline = time.monotonic() + seconds
    step = max(1, len(case) // 2)
    while step and time.monotonic() < deadline:
        at, shrunk = 0, False
        while at < len(case) and time.monotonic() < deadline:
            shorter = case[:at] + case[at + step :]
            finding = finding_of(target, shorter, limits)
            if finding is not None and finding.name == name:
                case, shrunk = shorter, True
            else:
                at += step
        if not shrunk or step > len(case):
            step //= 2
    return case


def _keep(target: Target, told: Told, folder: Path, limits: Limits, shrink: float) -> None:
    """Write the case as found and made smaller, with all that is needed to see it again."""
    if told.finding is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    case = case_of(target, told.seed)
    (folder / "original.bin").write_bytes(case)
    facts = {
        "target": target.name,
        "seed": told.seed,
        "kind": told.finding.kind,
        "where": told.finding.where,
        "seconds": round(told.seconds, 3),
        "bytes": len(case),
        "again": f"scripts/fuzz {target.name} --seed {told.seed} --cases 1",
    }
    (folder / "finding.json").write_text(json.dumps(facts, indent=2) + "\n")
    (folder / "traceback.txt").write_text(told.finding.detail)
    with suppress(OSError):
        (folder / "smaller.bin").write_bytes(smaller(target, case, told.finding.name, limits, seconds=shrink))
