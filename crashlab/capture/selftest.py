"""Prove the whole chain on this machine: a kernel with a known fault, its dump, and the verdict on it."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

from crashlab import facts
from crashlab.capture.config import AttemptResult, RunConfig
from crashlab.capture.doctor.check import FAIL, UNKNOWN, WARN, Check, ok
from crashlab.capture.plan import plan_environment
from crashlab.capture.rules import HangRules
from crashlab.capture.selftest_gpu import BAD_ADDRESS, FAULT_KERNEL, GUILTY_THREAD, NO_GPU, SPIN_KERNEL
from crashlab.capture.session import describe, run_one
from crashlab.capture.signals import SignalBox
from crashlab.rundir.writer import RunWriter

_ILLEGAL_ADDRESS = 14
_HANG_AFTER = 3.0
_PAIRS = 3
_NO_GPU_FIX = "See the checks 'driver' and 'gpu' above: a GPU must be visible to this process."
Analyze = Callable[[str], facts.Report]


class Tested(NamedTuple):
    """The checks of one self-test, and its run directory."""

    checks: tuple[Check, ...]
    folder: str


def program(what: str) -> tuple[str, ...]:
    """The command line of the GPU side; ``what``: fault, spin or time."""
    script = os.path.join(os.path.dirname(__file__), "selftest_gpu.py")
    return (sys.executable, "-I", "-S", script, what)


def fault_test(folder: str, analyze: Analyze, *, command: tuple[str, ...] | None = None) -> Tested:
    """A load from an unmapped address by one thread: dump, reader, verdict, address, cuda-gdb."""
    writer, result = _record(folder, command or program("fault"), HangRules())
    if result.exit_code == NO_GPU:
        why = "without a GPU nothing can be proven"
        return Tested((Check("fault: kernel", FAIL, _no_gpu(writer.path), why, _NO_GPU_FIX),), writer.path)
    checks = [_dump_written("fault", result.dumps)]
    if result.dumps:
        report = analyze(writer.path)
        checks += [_verdict(report), _address(report), _debugger(report)]
    writer.finish(exit_code=0)
    return Tested(tuple(checks), writer.path)


def hang_test(folder: str, analyze: Analyze, *, command: tuple[str, ...] | None = None) -> Tested:
    """A kernel that never ends: noticed, asked for its dump through the pipe, ended."""
    writer, result = _record(folder, command or program("spin"), HangRules(stall_after=_HANG_AFTER))
    if result.exit_code == NO_GPU:
        why = "without a GPU nothing can be proven"
        return Tested((Check("hang: kernel", FAIL, _no_gpu(writer.path), why, _NO_GPU_FIX),), writer.path)
    checks = [_dump_written("hang", result.dumps)]
    if result.dumps:
        verdict = analyze(writer.path).verdict
        name = verdict.kernel.name if verdict.kernel is not None else None
        found = f"{verdict.kind}: {name or 'no kernel named'}"
        why = "a hang is only explained if the dump shows where the GPU stood"
        right = verdict.kind == "hang" and (name or "").startswith(SPIN_KERNEL)
        checks.append(
            ok("hang: verdict", found, why) if right else Check("hang: verdict", FAIL, found, why, _REPORT)
        )
    why = "a hung process keeps its GPU until it is gone"
    if result.unreaped:
        checks.append(Check("hang: ended", FAIL, f"processes {list(result.unreaped)} cannot be ended", why))
    else:
        checks.append(ok("hang: ended", "the process is gone", why))
    writer.finish(exit_code=0)
    return Tested(tuple(checks), writer.path)


def overhead_test(*, command: tuple[str, ...] | None = None, folder: str = ".") -> Check:
    """Launch times with and without the dump environment, taken in turns."""
    # Measured (H200, driver 580, 64 short kernels): 3 to 5 % of a graph replay, nothing of eager launches.
    why = "enabled dumps may cost about 0.05 us a kernel of a replayed graph, and should cost no more"
    argv = command or program("time")
    plan = plan_environment({}, os.path.abspath(folder), hang_dumps=False)
    on = {one.name: one.value for one in plan.settings}
    off = {name: value for name, value in os.environ.items() if name not in on}
    times: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(_PAIRS):
        for enabled in (False, True):
            value = _time(argv, {**off, **on} if enabled else off)
            if value is None:
                return Check("overhead", UNKNOWN, "the timing program did not run", why)
            times[enabled].append(value)
    without, with_dumps = (statistics.median(times[enabled]) for enabled in (False, True))
    found = f"{without:.0f} us a batch of 32 launches without, {with_dumps:.0f} us with dumps enabled"
    if with_dumps > without * 1.05:
        return Check("overhead", WARN, found, why)
    return ok("overhead", found, why)


_REPORT = "Please report this with the run directory: it is a bug, or a driver that is not known yet."


def _record(folder: str, command: tuple[str, ...], rules: HangRules) -> tuple[RunWriter, AttemptResult]:
    writer = RunWriter.create(folder, command)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_COREDUMP")}
    plan = plan_environment(clean, writer.path)
    config = RunConfig(
        command, clean, plan, "/", rules=rules, grace=3.0, linger=1.0, dump_patience=60.0, sinks=(-1, -1)
    )
    describe(writer, config, {"self-test": command[-1]})
    with SignalBox() as box:
        result = run_one(config, writer, box, 1, say=_nothing)
    return writer, result


def _nothing(text: str) -> None:
    """The self-test speaks through its checks."""


def _no_gpu(folder: str) -> str:
    try:
        with open(
            os.path.join(folder, "output", "001.stdout.log"), encoding="utf-8", errors="replace"
        ) as file:
            return file.read(400).strip().removeprefix("NO-GPU ") or "no GPU"
    except OSError:
        return "no GPU"


def _dump_written(what: str, dumps: tuple[str, ...]) -> Check:
    why = "the dump is the evidence that everything else rests on"
    if dumps:
        return ok(f"{what}: dump", f"{os.path.getsize(dumps[0]):,} bytes", why)
    fix = "See the check 'libcudadebugger' above: without it no dump is written."
    return Check(f"{what}: dump", FAIL, "no dump was written", why, fix)


def _verdict(report: facts.Report) -> Check:
    verdict = report.verdict
    code = verdict.exception.code if verdict.exception is not None else None
    name = verdict.kernel.name if verdict.kernel is not None else None
    found = f"{verdict.kind}, exception {code}, kernel {name}"
    why = "the verdict must name what was planted"
    right = verdict.kind == "gpu-fault" and code == _ILLEGAL_ADDRESS and (name or "").startswith(FAULT_KERNEL)
    return ok("fault: verdict", found, why) if right else Check("fault: verdict", FAIL, found, why, _REPORT)


def _address(report: facts.Report) -> Check:
    why = f"thread {GUILTY_THREAD} loaded from {BAD_ADDRESS:#x}; the address is rebuilt from registers"
    address = report.verdict.address
    bad = {
        lane.address
        for lane in (address.per_lane if address is not None else ())
        if lane.address is not None and not lane.predicated_off
    }
    value = address.value if address is not None else None
    if value == BAD_ADDRESS or BAD_ADDRESS in bad:
        return ok("fault: address", f"{BAD_ADDRESS:#x}", why)
    told = (address.why if address is not None else None) or "not recovered"
    found = f"{value if value is not None else told}"
    # Without a disassembler the address cannot be rebuilt; everything else still holds.
    return Check("fault: address", WARN, found, why, "pip install nvidia-cuda-nvdisasm")


def _debugger(report: facts.Report) -> Check:
    why = "a second reader that agrees makes the verdict hard to doubt"
    status = (report.readers or {}).get("cuda_gdb")
    if status is None:
        return Check("fault: cuda-gdb", UNKNOWN, "no cuda-gdb was found", why)
    if status.status != "ok":
        return Check(
            "fault: cuda-gdb", WARN, f"{status.status}: {status.detail or status.tail or ''}"[:300], why
        )
    against = [one.what for one in report.inconsistencies if "cuda_gdb" in one.sources]
    if against:
        return Check("fault: cuda-gdb", WARN, f"disagrees: {against[0]}", why, _REPORT)
    return ok("fault: cuda-gdb", f"cuda-gdb {status.version or ''} agrees", why)


def _time(argv: tuple[str, ...], env: dict[str, str]) -> float | None:
    try:
        done = subprocess.run(argv, env=env, capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        words = line.split()
        if words[:2] == ["FACT", "microseconds"] and len(words) == 3:
            return float(words[2])
    return None
