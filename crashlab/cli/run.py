"""``crashlab run``: wrap any CUDA program and bring the evidence home."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import click

from crashlab.cli import exitcode
from crashlab.cli.recordingoptions import evidence_options, report_options
from crashlab.cli.spelled import SECONDS, SECONDS_OR_NEVER
from crashlab.cli.unusable import warn_of_variable
from crashlab.cli.voice import line, tell
from crashlab.cli.width import page_width
from crashlab.errors import CrashlabError
from crashlab.report.safe import one_line

if TYPE_CHECKING:
    from crashlab.capture.config import AttemptResult, RunConfig
    from crashlab.capture.plan import Plan
    from crashlab.capture.signals import SignalBox
    from crashlab.facts import Report
    from crashlab.rundir.writer import RunWriter

_FORMS = ("shell", "docker", "kubernetes", "systemd")


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, metavar="-- CMD...", type=click.UNPROCESSED)
@evidence_options
@click.option(
    "--stall-after", type=SECONDS, metavar="TIME", help="Hung: no sign of progress for this long (90, 5m)."
)
@click.option("--silence", type=SECONDS, metavar="TIME", help="Hung: no output at all for this long.")
@click.option(
    "--restart",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Start again after a crash, N times.",
)
@click.option(
    "--grace", type=SECONDS, default="10", show_default=True, metavar="TIME", help="From asking to killing."
)
@click.option(
    "--linger",
    type=SECONDS_OR_NEVER,
    default="10",
    show_default=True,
    metavar="TIME|never",
    help="How long processes may outlive the command before they are ended.",
)
@click.option(
    "--after-fault",
    type=SECONDS_OR_NEVER,
    default="60",
    show_default=True,
    metavar="TIME|never",
    help="How long a program may go on that lost a process to a GPU fault.",
)
@click.option(
    "--dump-timeout",
    type=SECONDS,
    default="1h",
    show_default=True,
    metavar="TIME",
    help="Longest wait for dumps.",
)
@click.option(
    "--print-env",
    type=click.Choice(_FORMS),
    is_flag=False,
    flag_value="shell",
    help="Print the environment instead of running, for programs that cannot be wrapped.",
)
@click.option("--no-analysis", is_flag=True, help="Only record; 'crashlab analyze DIR' works at any time.")
@report_options
def run(
    command: tuple[str, ...], print_env: str | None, out: str | None, dump: str, **options: object
) -> int:
    """Run a program so that a GPU fault, a hang or a crash leaves evidence, and say what happened.

    The program's output goes where it went before and is recorded as well. Nothing is ended while a
    GPU dump is being written. Ctrl-C, SIGTERM or a closed terminal (SIGHUP; not under nohup) ends the
    program after any dump, Ctrl-C or SIGTERM twice at once; none of them is followed by a restart.
    SIGUSR1 takes evidence now: host stacks, and GPU dumps, after which the driver ends the dumped
    processes (--no-hang-dumps: the program goes on). When nobody reads its output any more
    (... | head), the program is not told: it goes on and is recorded.

    \b
    Examples:
      crashlab run -- ./my_program --size 4096
      crashlab run --stall-after 5m -- vllm serve MODEL
      crashlab run --restart 5 --max-dumps-bytes 50G --out /data/case -- \\
        python train.py
      crashlab run --print-env kubernetes --out /evidence

    Exit code: that of the program when nothing was found; else 10 fault (dump analysed), 11 fault
    without a usable dump, 12 hang, 15 inconclusive, 16 host-side death; 130 interrupted.
    """
    from crashlab.capture.plan import plan_environment

    if print_env is not None:
        from crashlab.capture.forms import FORMS

        plan = plan_environment(
            {},
            os.path.abspath(out or "crashlab-evidence"),
            dump=dump,
            hang_dumps=not options["no_hang_dumps"],
        )
        click.echo(FORMS[print_env](plan), nl=False)
        return 0
    if not command:
        raise click.UsageError("What should be run? 'crashlab run -- CMD...'.")
    from crashlab.rundir.writer import RunWriter

    writer = RunWriter.create(out, command)
    plan = plan_environment(os.environ, writer.path, dump=dump, hang_dumps=not options["no_hang_dumps"])
    return _Run(writer, plan, command, options).go()


class _Run:
    """One invocation: attempts, their post-mortems, what is said, the exit code."""

    def __init__(
        self, writer: RunWriter, plan: Plan, command: tuple[str, ...], options: dict[str, object]
    ) -> None:
        from crashlab.capture.session import describe

        self._writer = writer
        self._options = options
        self._quiet = bool(options["quiet"])
        self._reports: list[tuple[int, Report]] = []
        self._config = self._configure(plan, command)
        describe(writer, self._config, {k: v for k, v in options.items() if v is not None})
        self._say(f"evidence goes to {writer.path}")
        warn_of_variable()  # before the program starts: after the crash it would be too late to mend them
        for one in plan.confounds:
            self._say(f"note: {one.name}={one.value} {one.severity} the evidence: {one.why}")

    def go(self) -> int:
        """Run to the end; the exit code."""
        from crashlab.capture.attempts import run_attempts
        from crashlab.capture.session import run_one
        from crashlab.capture.signals import SignalBox

        restarts = self._options["restart"]
        try:
            with SignalBox() as box:
                results = run_attempts(
                    box,
                    restarts if isinstance(restarts, int) else 0,
                    lambda number: run_one(self._config, self._writer, box, number, say=self._say),
                    lambda result: self._after(result, box),
                    say=self._say,
                )
        except (
            CrashlabError
        ) as error:  # the program could not be started: the record is complete all the same
            self._writer.finish(exit_code=error.exit_code)
            raise
        code = self._exit_code(results)
        self._writer.finish(exit_code=code)
        for problem in self._writer.problems:
            self._say(f"incomplete: {problem}")
        return code

    def _configure(self, plan: Plan, command: tuple[str, ...]) -> RunConfig:
        from crashlab.capture.config import RunConfig
        from crashlab.capture.rules import HangRules

        def number(name: str) -> float | None:
            value = self._options[name]
            return float(value) if isinstance(value, (int, float)) else None

        cap = self._options["max_dumps_bytes"]
        return RunConfig(
            argv=command,
            environment=dict(os.environ),
            plan=plan,
            cwd=os.getcwd(),
            rules=HangRules(number("silence"), number("stall_after")),
            hang_dumps=not self._options["no_hang_dumps"],
            grace=number("grace") or 0.0,
            linger=number("linger"),
            after_fault=number("after_fault"),
            dump_patience=number("dump_timeout") or 3600.0,
            max_dumps_bytes=cap if isinstance(cap, int) else None,
            sinks=(1, 2),
        )

    def _after(self, result: AttemptResult, box: SignalBox) -> bool:
        """The post-mortem of one attempt; False if the user wants no more."""
        if not result.suspicious:
            if result.shell_code and not result.interrupts:
                self._say(
                    f"it {_how(result)}, and nothing tells of the GPU; "
                    f"'crashlab analyze {self._writer.path}' reads the record"
                )
            return True
        name = f"attempt {result.attempt}: " if result.attempt > 1 else ""
        if self._options["no_analysis"]:
            again = f"'crashlab analyze {self._writer.path}' examines the evidence"
            self._say(f"{name}something happened; {again} (--no-analysis)")
            return True
        self._say(f"{name}something happened; examining the evidence")
        try:
            with box.released():
                self._examine(result.attempt)
        except KeyboardInterrupt:
            self._writer.problem(f"the analysis was interrupted: crashlab analyze {self._writer.path}")
            return False
        except Exception as error:  # whatever is wrong with us, the service must go on
            if os.environ.get("CRASHLAB_TRACEBACK") and not isinstance(error, CrashlabError):
                raise
            self._writer.problem(f"the analysis failed: {type(error).__name__}: {error}")
        return True

    def _examine(self, attempt: int) -> None:
        """Analyse: to the terminal and into the case folder."""
        from crashlab.report import jsonio, text
        from crashlab.report.fromrundir import analyze_rundir
        from crashlab.report.options import AnalyzeOptions
        from crashlab.rundir import layout

        report = analyze_rundir(self._writer.path, AnalyzeOptions(fast=bool(self._options["fast"])), attempt)
        self._reports.append((attempt, report))
        places = [layout.case_folder(attempt), *([""] if len(self._reports) == 1 else [])]
        for place in places:
            self._writer.write_file(os.path.join(place, layout.REPORT), jsonio.dumps(report))
            full = text.render(report, verbose=True)
            self._writer.write_file(os.path.join(place, layout.REPORT_TEXT), full)
        verdict = report.verdict
        self._writer.event("analysed", attempt=attempt, verdict=verdict.kind, headline=verdict.headline)
        if self._quiet:
            line(one_line(verdict.headline))
        else:
            verbose = bool(self._options["verbose"])
            line(text.render(report, verbose=verbose, width=page_width()).rstrip("\n"))

    def _exit_code(self, results: list[AttemptResult]) -> int:
        """The first finding decides; without one the program's own code, or 130 after Ctrl-C."""
        for _, report in self._reports:
            code = exitcode.of_report(report)
            if code not in (0, exitcode.UNREADABLE):
                return code
        if any(report.verdict.kind == "unreadable" for _, report in self._reports):
            return exitcode.INCONCLUSIVE
        if results[-1].interrupts:
            return 130
        return results[-1].shell_code

    def _say(self, text: str) -> None:
        if not self._quiet:
            self._quiet = not tell(text)  # nobody reads stderr any more: go on recording


def _how(result: AttemptResult) -> str:
    """How the command ended, where nothing is to be examined."""
    code = f"exit code {result.shell_code}"
    if result.killed and result.signal == signal.SIGKILL:
        return f"was killed (SIGKILL) after it had been asked to end ({code})"
    if result.ended_by == "user":
        return f"was ended on request ({code})"
    return f"ended with {code}"
