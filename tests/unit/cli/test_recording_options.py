"""``run`` and ``soak`` record in the same way, and say so in the same words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from crashlab.cli.main import cli
from crashlab.cli.run import run
from crashlab.cli.soak import soak
from crashlab.cli.spelled import seconds, seconds_or_never, size
from crashlab.errors import UsageError
from tests.support.command import run_cli

SHARED = ("out", "dump", "no_hang_dumps", "max_dumps_bytes", "fast", "quiet", "verbose")


def options_of(command: click.Command) -> dict[str, click.Option]:
    return {str(one.name): one for one in command.params if isinstance(one, click.Option)}


@pytest.mark.parametrize("name", SHARED)
def test_an_option_of_both_commands_is_one_option(name: str) -> None:
    one, other = options_of(run)[name], options_of(soak)[name]
    assert (one.opts, one.default, one.help, one.metavar) == (
        other.opts,
        other.default,
        other.help,
        other.metavar,
    )


def test_the_options_stand_in_the_order_in_which_they_are_written() -> None:
    names = list(options_of(run))
    assert [name for name in names if name in SHARED] == list(SHARED)


def test_sizes_are_read_as_people_write_them() -> None:
    assert [size(text) for text in ("10", "4k", "1.5G", "2MiB", "3tb")] == [
        10,
        4096,
        3 << 29,
        2 << 20,
        3 << 40,
    ]


@pytest.mark.parametrize("text", ["", "x", "-1", "1e400", "nan", "inf", "5 parsecs"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no size"):
        size(text)
    done = run_cli("run", "--max-dumps-bytes", text, "--", "true")
    assert done.code == 2
    assert "Invalid value for '--max-dumps-bytes'" in done.err
    assert "Write it as 500M, 20G or a number of bytes." in done.err


def test_times_are_read_as_people_write_them() -> None:
    texts = ("30", "90s", "5m", "2h", "1h30m")
    assert [seconds(text) for text in texts] == [30, 90, 300, 7200, 5400]
    assert [seconds_or_never(text) for text in ("never", "30")] == [None, 30]


@pytest.mark.parametrize(("option", "code"), [("--linger", 0), ("--after-fault", 0), ("--grace", 2)])
def test_never_is_a_time_where_the_help_says_so(option: str, code: int, tmp_path: Path) -> None:
    # in a process of its own: --linger never waits for every child, those of other tests too
    command = [
        sys.executable,
        "-m",
        "crashlab",
        "run",
        option,
        "never",
        "--out",
        str(tmp_path / "r"),
        "--",
        "true",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr


@pytest.mark.parametrize(
    ("words", "option", "says"),
    [
        (("soak", "--for", "5X"), "--for", "'5X' is no duration. Write it as 90s"),
        (("soak", "--steps", "many"), "--steps", "'many' is no count. Write it as 5000"),
        (
            ("soak", "--input-tokens", "9:1"),
            "--input-tokens",
            "no range of token counts. Write it as 64:1024",
        ),
        (("soak", "--extra", "{"), "--extra", "'{' is no JSON object. Write it as"),
        (("quality", "--extra", "[1]"), "--extra", "'[1]' is no JSON object."),
        (("quality", "--answer-within", "soon"), "--answer-within", "'soon' is no duration."),
        (("run", "--stall-after", "1y"), "--stall-after", "'1y' is no duration."),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_under_its_options_name(
    words: tuple[str, ...], option: str, says: str
) -> None:
    done = run_cli(*words)
    said = " ".join(done.err.split())
    assert (done.code, f"Invalid value for '{option}': " in said, says in said) == (2, True, True), done.err


@pytest.mark.parametrize("words", [("-q", "-v"), ("-v", "-q"), ("--verbose", "--quiet")])
@pytest.mark.parametrize(
    "command",
    [("run", "--", "true"), ("soak", "--", "true"), ("quality", "--a-url", "http://x:1"), ("analyze", "x")],
)
def test_quiet_and_verbose_contradict_each_other(words: tuple[str, ...], command: tuple[str, ...]) -> None:
    done = run_cli(command[0], *words, *command[1:])
    assert (done.code, "contradict each other" in done.err) == (2, True), done.err


def test_every_command_that_has_both_refuses_both() -> None:
    both = [
        name
        for name in cli.list_commands(click.Context(cli))
        if (command := cli.get_command(click.Context(cli), name)) is not None
        and {"quiet", "verbose"} <= {parameter.name for parameter in command.params}
    ]
    assert sorted(both) == ["analyze", "quality", "run", "soak"]  # each has a row in the test above


@pytest.mark.parametrize("text", ["", "x", "-1", "inf", "nan", "5 parsecs"])
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="no duration"):
        seconds(text)
    done = run_cli("run", "--grace", text, "--", "true")
    assert done.code == 2
    assert "Write it as" in done.err
