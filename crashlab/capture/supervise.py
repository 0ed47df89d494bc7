"""Run one attempt of a program: watch it, wait for its dumps, take evidence, end what must be ended."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

from crashlab.capture import announce, evidence, hoststacks, tree
from crashlab.capture.config import AttemptResult, RunConfig
from crashlab.capture.dumps import DumpWatch
from crashlab.capture.ending import Ending
from crashlab.capture.kmsg import KernelFollower
from crashlab.capture.launch import launch
from crashlab.capture.live import CUDA_ERROR
from crashlab.capture.patience import DumpPatience, Limits
from crashlab.capture.recording import Recording
from crashlab.capture.rules import Life
from crashlab.capture.samples import LibrarySampler
from crashlab.capture.signals import EVIDENCE, FORWARDED, STOPPING, SignalBox, send
from crashlab.capture.watch import Watch
from crashlab.postmortem.words import counted
from crashlab.rundir import layout
from crashlab.rundir.writer import RunWriter

_STEP = 0.25
_FIRST_STEPS = 0.05
_PUMP_SECONDS = 5.0
_TOLD_AFTER = 1.0
"""Seconds: what outlives the command for less (a pool that is torn down) is not worth a word."""

Say = Callable[[str], None]


def _quiet(text: str) -> None:
    """Say nothing."""


class Supervisor:
    """One attempt. ``start``, then ``step`` until ``over``, then ``finish``; or simply :meth:`run`.

    A load generator or a server probe calls ``step`` in its own loop and may call
    :meth:`take_evidence` and :meth:`stop` when it has seen something.
    """

    def __init__(
        self,
        config: RunConfig,
        writer: RunWriter,
        box: SignalBox,
        attempt: int = 1,
        *,
        say: Say = _quiet,
        overflow: str = "/nonexistent",
        means: evidence.Means | None = None,
        kernel: KernelFollower | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self.attempt = attempt
        self.over = False
        self.hang: str | None = None
        self.interrupts = 0
        self.terminations = 0
        self._writer, self._box, self._say, self._clock = writer, box, say, clock
        self._overflow = overflow
        self._means = means or evidence.Means(hoststacks.find_py_spy(), before=config.before_stacks)
        self._kernel = kernel if kernel is not None else KernelFollower()
        self._patience = DumpPatience(Limits(config.dump_patience, config.max_dumps_bytes))
        self._ending: Ending | None = None
        self._ended_by: str | None = None
        self._looks = 0
        self._fault_at: float | None = None
        self._asked_at: float | None = None
        self._expected = 0
        self._asked_why = "hang"
        self._command_ended_at: float | None = None
        self._unreaped: tuple[int, ...] = ()
        self._told: set[str] = set()
        self._asked_for = False
        self._waiting: list[int] = []
        self._handed_on: list[int] = []
        self._killed = False

    def start(self) -> None:
        """Start the program. Raises MissingTool if it cannot be started."""
        config = self.config
        self.started = self._clock()
        self._life = Life(self.started)
        self._subreaper = tree.become_subreaper()
        self._recording = Recording(
            self._writer.file(layout.OUTPUT),
            self._overflow,
            self.attempt,
            sinks=config.sinks,
            cap=config.max_output_bytes,
        )
        environment = config.plan.apply(config.environment)
        dumps = DumpWatch(config.plan.dump_pattern, config.cwd)
        self.process = launch(config, self._recording, environment, self._not_started)
        self.tree = tree.ProcessTree(self.process.pid, ours=(self._recording.process.pid,))
        self.watch = Watch(
            self._writer,
            self.attempt,
            self._recording,
            self.tree,
            dumps,
            LibrarySampler(environment),
            self._overflow,
            self._kernel,
            config.gpu_seconds,
            listens=(config.plan.pipe_pattern, config.cwd),
        )
        self.watch.event("started", pid=self.process.pid)
        self._tell_of_limits()
        self.watch.start()

    def run(self) -> AttemptResult:
        """Start, watch to the end, and say how it went."""
        self.start()
        while not self.over:
            self.step()
        return self.finish()

    def step(self, seconds: float | None = None) -> None:
        """Wait at most ``seconds`` (default a quarter) for something to happen, look, and act."""
        self._looks += 1
        if seconds is None:
            seconds = _FIRST_STEPS if self._looks < 20 else _STEP
        self._box.wait(seconds, self._recording.notify)
        now = self._clock()
        for number in self._box.take():
            self._signal(number, now)
        found = self.watch.look(now)
        self._tell_of_readers()
        for one in found:
            if one.kind != CUDA_ERROR:
                self._fault_at = now
            self._say_once(f"{one.kind}: {one.text}")
        self._life.see(self.watch.live.bytes, self.watch.live.progress, now)
        busy = self._patience.busy(self.watch.sight(), now)
        self._tell_of_dump(busy, now)
        self._hand_on(busy)
        self._see_command(now)
        if self._ending is None and not busy:
            self._decide(now)
        self._advance(busy, now)

    def take_evidence(self, reason: str, *, dumps: bool | None = None, requested: bool = False) -> None:
        """Host evidence of every process, then GPU dumps through the pipes (unless ``dumps`` is False).

        A process that is dumped this way aborts; the others are ended when all dumps are there.
        ``requested``: somebody wants to see it, and nothing says that the program hangs.
        """
        now = self._clock()
        self._asked_for = requested and (self.hang is None or self._asked_for)
        self.hang = reason
        self._say(f"taking evidence: {reason}")
        self.watch.event("hang", reason=reason, requested=requested or None)
        living = self.tree.alive()
        enough = self._box.wants_stop
        evidence.take_host_evidence(self._writer, self.attempt, self._looks, living, self._means, enough)
        if not (self.config.hang_dumps if dumps is None else dumps):
            return
        asked = evidence.ask_for_dumps(
            self._writer,
            self.attempt,
            self.config.plan.pipe_pattern,
            self.config.cwd,
            [process.pid for process in living],
        )
        if any(one.ok for one in asked):
            ready = sum(one.ok for one in asked)
            self._asked_at, self._expected = self._clock(), len(self.watch.dumps.files) + ready
            self._say(f"asked {counted(ready, 'process', 'processes')} for a GPU dump")
        else:
            self._say("no process could be asked for a GPU dump")
        self._life.restart(now)

    def stop(self, reason: str, number: int = signal.SIGTERM) -> None:
        """Begin to end the program; ``step`` goes on with it, after any dump that is being written."""
        if self._ending is None:
            self._ended_by = reason
            self._ending = Ending(reason, number, self.config.grace, group=self.process.pid)
            self.watch.event("ending", reason=reason, signal=signal.Signals(number).name)

    def finish(self) -> AttemptResult:
        """Everything has ended: read the last words and settle the record."""
        watch = self.watch
        if not self._recording.wait(_PUMP_SECONDS):
            self._writer.problem("some process still holds the program's output open; it was not waited for")
        if left_out := watch.last_words():
            self._writer.problem(
                f"{left_out:,} bytes of output came faster than they could be searched for faults"
            )
        watch.dumps.scan(self._clock(), tuple)
        watch.dumps.settle_all()
        for dump in watch.dumps.settled:
            watch.event("dump", path=watch.short(dump.path), state="final", bytes=dump.bytes, pid=dump.pid)
        watch.close()
        for problem in self._recording.problems():
            self._writer.problem(problem)
        self._recording.close()
        result = self._result()
        watch.event(
            "ended",
            exit_code=result.exit_code,
            signal=signal.Signals(result.signal).name if result.signal else None,
            ended_by=result.ended_by,
            unreaped=list(result.unreaped) or None,
            seconds=round(result.seconds, 3),
            dump_gave_up=self._patience.gave_up,
            exception_announced=any(d.exceptions for d in watch.live.driver.dumps) or None,
        )
        return result

    def _signal(self, number: int, now: float) -> None:
        name = signal.Signals(number).name
        self.watch.event("signal", signal=name)
        if number == EVIDENCE:
            self.take_evidence("asked for by SIGUSR1", requested=True)
        elif number in STOPPING:
            self._interrupted(number, now)
        elif number in FORWARDED:
            self._waiting.append(number)

    def _hand_on(self, busy: bool) -> None:
        """Signals that the program may answer as it likes; they would end one that is writing a dump."""
        if busy:
            return
        for number in self._waiting:
            send([], number, self.process.pid)
        self._handed_on += self._waiting
        self._waiting.clear()

    def _interrupted(self, number: int, now: float) -> None:
        name = signal.Signals(number).name
        if number == signal.SIGINT:
            self.interrupts += 1
        else:
            self.terminations += 1
        if self._ending is None or self._ending.reason != "user":
            self._ending = None
            self.stop("user", number)
            if self._patience.busy(self.watch.sight(), now):
                self._say(f"{name}: a GPU dump is being written; waiting for it (again: cut it short)")
            return
        if number == signal.SIGHUP:
            return  # a terminal that closes tells twice, through the shell and by itself: nobody insists
        if self._patience.busy(self.watch.sight(), now):
            self._say(f"{name} again: the dump is cut short")
            self.watch.event("dump-cut-short", signal=name)
            self._patience.gave_up = "the user insisted"
        self._ending.hurry()
        if not self._ending.begun:
            self._ending.advance(self.tree, now)

    def _see_command(self, now: float) -> None:
        if self._command_ended_at is None and self.process.poll() is not None:
            self._command_ended_at = now
            self.watch.event("command-ended", code=self.process.returncode)

    def _decide(self, now: float) -> None:
        """Nothing is being written and nothing ends: is it time for evidence, or for an end?"""
        config = self.config
        if self._asked_at is not None:
            here = len(self.watch.dumps.files) >= self._expected
            if here or now - self._asked_at >= config.hang_patience:
                self.stop(self._asked_why)
        elif self._command_ended_at is not None:
            self._outlived(now - self._command_ended_at)
        elif (reason := self._life.hung(config.rules, now)) is not None:
            self.take_evidence(reason)
            if self._asked_at is None:
                self.stop("hang")
        elif self._over_after_fault(now):
            living = ", ".join(f"{p.name} ({p.pid})" for p in self.tree.alive()[:8])
            self._say(f"still running {config.after_fault:g} s after the fault: {living}")
            self.watch.event("after-fault", living=living)
            self._asked_why = "after-fault"
            kept, self.hang = self.hang, None
            self.take_evidence("the program went on after a GPU fault")
            self.hang = kept
            if self._asked_at is None:
                self.stop("after-fault")

    def _outlived(self, seconds: float) -> None:
        """The command has ended for so long and others live on: say so, and end them when their time is up."""
        linger = self.config.linger
        up = linger is not None and seconds >= linger
        if not up and (seconds < _TOLD_AFTER or "outliving" in self._told):
            return
        living = self.tree.alive()
        if not living:
            return
        if up:
            self._say(announce.outlived(living, linger))
            names = [f"{one.name} ({one.pid})" for one in living[:50]]
            self.watch.event("outlived", count=len(living), living=names, linger=linger)
            self.stop("outlived")
        else:
            self._told.add("outliving")
            self._say(announce.still_running(living, None if linger is None else linger - seconds))

    def _tell_of_readers(self) -> None:
        for stream, error in self._recording.gone():
            self.watch.event("reader-gone", stream=stream, errno=error)
            if (words := announce.nobody_reads(stream, error)) is not None:
                self._say(words)

    def _over_after_fault(self, now: float) -> bool:
        settled = [one.changed for one in self.watch.dumps.files.values()]
        last = max([*settled, *([self._fault_at] if self._fault_at is not None else [])], default=None)
        limit = self.config.after_fault
        return limit is not None and last is not None and now - last >= limit

    def _advance(self, busy: bool, now: float) -> None:
        """Go on with an ending, and see when all is over."""
        if busy:
            return
        if self._ending is not None:
            step = self._ending.advance(self.tree, now)
            if step.asked or step.killed:
                what = "asked-to-end" if step.asked else "killed"
                self.watch.event(what, pids=list(step.asked or step.killed)[:200])
            if step.killed:
                self._killed = True
                hurried = self._ending.hurried
                self._say(announce.killed(len(step.killed), self.config.grace, hurried=hurried))
            if step.left:
                self._unreaped = step.left
                self._say(
                    f"{counted(len(step.left), 'process', 'processes')} cannot be ended (uninterruptible): "
                    f"{list(step.left)[:8]}"
                )
            self.over = step.over
        elif self._command_ended_at is not None and not self.tree.alive():
            self.over = True
        if self.over:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(0.5)
            self._see_command(now)
            self.tree.scan(now)

    def _not_started(self, why: str) -> None:
        self._writer.event("not-started", attempt=self.attempt, why=why)

    def _tell_of_limits(self) -> None:
        problem, why = self._writer.problem, self._kernel.why_not
        if not self._subreaper:
            problem("the kernel gives us no orphans (PR_SET_CHILD_SUBREAPER): daemons may get away")
        if why is not None:
            problem(f"the kernel log cannot be read ({why}): Xid lines are missing")

    def _tell_of_dump(self, busy: bool, now: float) -> None:
        if busy:
            self._say_once("a GPU dump is being written: nothing will be ended meanwhile")
        if self._patience.gave_up is not None and "gave-up" not in self._told:
            self._told.add("gave-up")
            self._writer.problem(f"a dump was not waited for any longer: {self._patience.gave_up}")
            self._say(f"not waiting any longer: {self._patience.gave_up}")
            if self._ending is None:
                self.stop("dump-limit")

    def _say_once(self, text: str) -> None:
        if text not in self._told and len(self._told) < 200:
            self._told.add(text)
            self._say(text)

    def _result(self) -> AttemptResult:
        code = self.process.returncode
        number = -code if code is not None and code < 0 else None
        findings = tuple(f"{one.kind}: {one.text}" for one in self.watch.live.findings)
        dumps = tuple(one.path for one in self.watch.dumps.settled)
        ended_by = self._ended_by
        if number in self._handed_on or (code or 0) - 128 in self._handed_on:
            ended_by = "user"  # it ended by what the user sent, not by itself
        # What outlived the command was ended by us, the command was not.
        ours = ended_by not in (None, "outlived")
        # Evidence that somebody wanted of a program that then went on to its own end tells of no hang.
        hang = self.hang if not self._asked_for or ours or number is not None else None
        suspicious = bool(dumps or findings or hang or self.watch.xids or self.watch.kernel_killed)
        suspicious = suspicious or (number is not None and not ours)
        return AttemptResult(
            attempt=self.attempt,
            exit_code=code if number is None else None,
            signal=number,
            ended_by=ended_by,
            hang=hang,
            dumps=dumps,
            findings=findings,
            interrupts=self.interrupts,
            terminations=self.terminations,
            unreaped=self._unreaped,
            suspicious=suspicious,
            killed=self._killed,
            seconds=self._clock() - self.started,
        )
