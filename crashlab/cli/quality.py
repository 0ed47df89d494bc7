"""``crashlab quality``: does it talk sense, and which of two servers does?"""

from __future__ import annotations

from typing import Any

import click

from crashlab.cli.given import Given
from crashlab.cli.qualityargs import pairs, split_groups, targets
from crashlab.cli.qualityquestions import settings_of, suite_of, write_tasks
from crashlab.cli.qualityview import FORMATS, check_options, show
from crashlab.cli.recordingoptions import evidence_options, report_options
from crashlab.cli.spelled import JSON_OBJECT, TIME, FiniteRange

# Spelled out: importing the rooms would cost every --help their packages.
_LEVELS = ("digits", "sums", "tables", "stories", "chains", "long-stories", "large")
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
@click.option("--extra", type=JSON_OBJECT, metavar="JSON", help="More fields for every request.")
@click.option(
    "--ready-within", type=TIME, default="30m", show_default=True, metavar="TIME", help="For a first answer."
)
@click.option(
    "--answer-within", type=TIME, default="15m", show_default=True, metavar="TIME", help="For each answer."
)
@click.option(
    "--write-tasks", type=click.Path(), metavar="FILE", help="Write the questions as JSONL, ask none."
)
@evidence_options
@click.option(
    "--format",
    "shape",
    type=click.Choice(FORMATS),
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
      crashlab quality --a -- vllm serve MODEL --linear-backend marlin \\
        --b -- vllm serve MODEL
      crashlab quality --a 'vllm serve MODEL --kv-cache-dtype fp8' \\
        --b 'vllm serve MODEL'
      crashlab quality --a-url http://host:8000 --expect 0.88 \\
        --tasks gsm8k_test.jsonl
      crashlab quality --questions 1000 --seed 7 --write-tasks questions.jsonl

    Exit code: 0 no difference shown (or nothing found), 13 garbage or degraded, 14 a server never
    became ready, 15 inconclusive, 10, 11 and 16 a server that was started here died, 130 interrupted.
    """
    context = click.get_current_context()
    check_options(Given(context), options)
    suite = suite_of(options)
    if options["write_tasks"]:
        return write_tasks(suite, options["write_tasks"])
    arms = targets(context.meta[_COMMANDS], options)
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
