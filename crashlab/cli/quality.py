"""``crashlab quality``: does it talk sense, and which of two servers does?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from crashlab.cli.qualityargs import pairs, split_groups, targets
from crashlab.cli.recordingoptions import FiniteRange, evidence_options, report_options
from crashlab.cli.tofile import format_of, write_file
from crashlab.cli.voice import result, tell
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from crashlab.quality.facts import QualityReport
    from crashlab.quality.settings import Settings
    from crashlab.quality.task import Suite

# Spelled out: importing the rooms would cost every --help their packages.
_LEVELS = ("digits", "sums", "tables", "stories", "chains", "long-stories", "large")
_FORMATS = ("text", "json", "html", "md", "junit")
_COMMANDS = "crashlab.quality.commands"


class _TwoCommands(click.Command):
    """Takes the groups behind ``--a --`` and ``--b --`` out before click parses the rest."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        groups = split_groups(args)
        ctx.meta[_COMMANDS] = groups.commands
        return super().parse_args(ctx, groups.rest)


@click.command(cls=_TwoCommands)
@click.option("--a", metavar="CMD|URL", help="The control arm: a command to start, or a server's URL.")
@click.option("--b", metavar="CMD|URL", help="The arm to compare with it. Without it: one server alone.")
@click.option("--a-url", metavar="URL", help="Where arm A listens, if its command does not tell.")
@click.option("--b-url", metavar="URL", help="Where arm B listens, if its command does not tell.")
@click.option("--a-env", multiple=True, metavar="NAME=VALUE", help="For arm A's server only. Repeatable.")
@click.option("--b-env", multiple=True, metavar="NAME=VALUE", help="For arm B's server only. Repeatable.")
@click.option(
    "--a-log", type=click.Path(), metavar="FILE", help="Log of arm A's server, if not started here."
)
@click.option(
    "--b-log", type=click.Path(), metavar="FILE", help="Log of arm B's server, if not started here."
)
@click.option(
    "--fact", multiple=True, metavar="KEY=VALUE", help="For known failures: arch=sm_120, vllm=0.25.1."
)
@click.option("--model", default="", metavar="NAME", help="Model name; default: the first the server lists.")
@click.option(
    "--tasks", type=click.Path(), metavar="FILE", help="Own questions: GSM8K-form JSONL, JSONL, TOML."
)
@click.option(
    "--lm-eval", "lm_eval", metavar="TASKS", help="Let lm-eval ask (gsm8k,...), if it is installed."
)
@click.option(
    "--questions", type=click.IntRange(1, 100_000), default=200, show_default=True, help="How many."
)
@click.option("--level", multiple=True, type=click.Choice(_LEVELS), help="Only these levels. Repeatable.")
@click.option(
    "--shots", type=click.IntRange(0, 20), help="Examples before each question. Default: 3; GSM8K 5."
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed asks the same questions.")
@click.option(
    "--concurrency", type=click.IntRange(1, 4096), default=16, show_default=True, help="Questions at a time."
)
@click.option("--chat", is_flag=True, help="Ask over /v1/chat/completions.")
@click.option("--no-floor", is_flag=True, help="Ask arm A once only: no A/A pair, no noise floor.")
@click.option("--no-ladder", is_flag=True, help="Not at other prompt lengths and concurrencies.")
@click.option("--no-prose", is_flag=True, help="No free text beside the questions.")
@click.option(
    "--max-length", type=click.IntRange(1), default=4096, show_default=True, help="Longest prompt, in tokens."
)
@click.option(
    "--alpha",
    type=FiniteRange(0.0, 0.2, min_open=True),
    default=0.01,
    show_default=True,
    help="False alarms, all tests together.",
)
@click.option("--expect", metavar="SHARE", help="One arm alone: its known share of right answers (0.8867).")
@click.option("--extra", metavar="JSON", help="More fields for every request.")
@click.option("--ready-within", default="30m", show_default=True, metavar="TIME", help="For a first answer.")
@click.option("--answer-within", default="15m", show_default=True, metavar="TIME", help="For each answer.")
@click.option(
    "--write-tasks", type=click.Path(), metavar="FILE", help="Write the questions as JSONL, ask none."
)
@evidence_options
@click.option(
    "--format",
    "shape",
    type=click.Choice(_FORMATS),
    help="Of the result; html with -o FILE.html and so on, else text.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("-o", "--output", type=click.Path(), metavar="FILE", help="Write the result there.")
@report_options
def quality(**options: Any) -> int:
    """Ask exact questions of one server or two, and say which one talks sense.

    Arm A is the control. It is asked twice, so that what batching alone changes is known, then arm B
    gets the same questions. Four counts: correct, wrong, invalid, error; an error is never a wrong
    answer. Servers that are started here run one after the other. CRASHLAB_API_KEY is sent as key.

    \b
    Examples:
      crashlab quality --a-url http://host:8000 --b-url http://host:8001
      crashlab quality --a -- vllm serve MODEL --linear-backend marlin --b -- vllm serve MODEL
      crashlab quality --a 'vllm serve MODEL --kv-cache-dtype fp8' --b 'vllm serve MODEL'
      crashlab quality --a-url http://host:8000 --expect 0.88 --tasks gsm8k_test.jsonl
      crashlab quality --questions 1000 --seed 7 --write-tasks questions.jsonl

    Exit code: 0 no difference shown (or nothing found), 13 garbage or degraded, 14 a server never
    became ready, 15 inconclusive, 10, 11 and 16 a server that was started here died, 130 interrupted.
    """
    suite = suite_of(options)
    if options["write_tasks"]:
        return _write_tasks(suite, options["write_tasks"])
    arms = targets(click.get_current_context().meta[_COMMANDS], options)
    if not arms:
        raise click.UsageError("Which server? 'crashlab quality --a-url URL', or --a -- vllm serve MODEL.")
    from crashlab.cli.qualityrun import QualityRun, Wanted
    from crashlab.cli.soakrun import need_packages

    need_packages()
    settings = settings_of(suite, options)._replace(alone=len(arms) == 1)
    if settings.lm_eval:
        from crashlab.quality.lmeval import find_program

        find_program()
    environments = {"A": pairs("--a-env", options["a_env"]), "B": pairs("--b-env", options["b_env"])}
    logs = {"A": options["a_log"], "B": options["b_log"]}
    facts = pairs("--fact", options["fact"])
    run = QualityRun(Wanted(settings, arms, environments, logs, facts, options))
    code = run.go()
    if run.report is not None:
        show(run.report, options)
    return code


def suite_of(options: dict[str, Any]) -> Suite:
    """The questions. Raises UsageError or UnreadableInput."""
    from crashlab.quality.generate import build_suite
    from crashlab.quality.usertasks import load_tasks

    shots = options["shots"]
    if options["tasks"]:
        if options["level"]:
            raise UsageError("--level chooses among the built-in questions; --tasks brings its own.")
        return load_tasks(
            options["tasks"], options["seed"], options["questions"], 5 if shots is None else shots
        )
    return build_suite(options["seed"], options["questions"], options["level"], 3 if shots is None else shots)


def settings_of(suite: Suite, options: dict[str, Any]) -> Settings:
    """How they are asked."""
    import json

    from crashlab.quality.settings import Settings
    from crashlab.soak.ask import CHAT, COMPLETIONS
    from crashlab.soak.budget import parse_duration
    from crashlab.soak.deadlines import Deadlines

    try:
        extra = json.loads(options["extra"]) if options["extra"] else None
    except ValueError as error:
        raise UsageError(f"--extra cannot be read: {error}.") from error
    if extra is not None and not isinstance(extra, dict):
        raise UsageError("--extra takes a JSON object.", hint="For example --extra '{\"top_k\": 1}'.")
    total = parse_duration(options["answer_within"])
    return Settings(
        suite,
        options["seed"],
        options["concurrency"],
        CHAT if options["chat"] else COMPLETIONS,
        1 if options["no_floor"] else 2,
        options["alpha"],
        not options["no_ladder"],
        options["max_length"],
        not options["no_prose"],
        _share(options["expect"]),
        Deadlines(30.0, total, total, total),
        parse_duration(options["ready_within"]),
        lm_eval=tuple(one.strip() for one in (options["lm_eval"] or "").split(",") if one.strip()),
        limit=options["questions"] if options["lm_eval"] else None,
        extra=extra,
    )


def _share(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text.rstrip("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        value = -1.0
    if not 0.0 < value <= 1.0:
        raise UsageError(f"--expect takes a share like 0.8867 or 88.67%, not {text!r}.")
    return value


def _write_tasks(suite: Suite, path: str) -> int:
    import json

    lines = [
        json.dumps(
            {"id": task.id, "level": task.level, "question": task.question, "prompt": task.prompt,
             task.scoring if task.scoring != "none" else "answer": task.answer, "answer": task.answer},
            ensure_ascii=False,
        )
        for task in suite.tasks
    ]  # fmt: skip
    write_file(path, "".join(f"{line}\n" for line in lines))
    tell(f"{len(lines)} questions, sha256 {suite.sha256}")
    return 0


def show(report: QualityReport, options: dict[str, Any]) -> None:
    """The result on stdout or into a file."""
    from crashlab.report.quality import render
    from crashlab.report.safe import one_line

    form = "json" if options["as_json"] else options["shape"] or format_of(options["output"]) or "text"
    if options["quiet"] and form == "text" and not options["output"]:
        result(f"{one_line(report.verdict.headline)}\n")
        return
    content = render(report, form, verbose=options["verbose"])
    if options["output"]:
        write_file(options["output"], content)
        tell(f"written to {os.path.abspath(options['output'])}")
    else:
        result(content)
