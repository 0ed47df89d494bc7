"""``run`` and ``soak`` record in the same way, and say so in the same words."""

from __future__ import annotations

import click
import pytest

from crashlab.cli.recordingoptions import seconds, size
from crashlab.cli.run import run
from crashlab.cli.soak import soak
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
    assert size(None) is None


@pytest.mark.parametrize("text", ["", "x", "-1", "1e400", "nan", "inf", "5 parsecs"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"could not convert|out of range"):
        size(text)
    assert run_cli("run", "--max-dumps-bytes", text, "--", "true").code == 2


def test_times_are_read_as_people_write_them() -> None:
    assert [seconds(text) for text in ("30", "90s", "5m", "2h", "1h30m", "never")] == [
        30,
        90,
        300,
        7200,
        5400,
        None,
    ]
    assert seconds(None) is None


@pytest.mark.parametrize("text", ["", "x", "-1", "inf", "nan", "5 parsecs"])
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="no duration"):
        seconds(text)
    done = run_cli("run", "--grace", text, "--", "true")
    assert done.code == 2
    assert "Write it as" in done.err
