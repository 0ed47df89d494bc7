"""How a command ended, in words."""

from __future__ import annotations

import pytest

from crashlab.report.endedby import how
from crashlab.rundir.reader import Event


def event(kind: str, **fields: object) -> Event:
    return Event(kind, 1.0, None, fields)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"exit_code": 0}, "ended with exit code 0"),
        ({"signal": "SIGSEGV"}, "was ended by SIGSEGV"),
        ({}, "ended"),
        ({"signal": "SIGHUP", "ended_by": "user"}, "was ended on request (by SIGHUP)"),
        (
            {"signal": "SIGTERM", "ended_by": "hang"},
            "was ended by crashlab after the evidence of its hang was taken (by SIGTERM)",
        ),
        (
            {"exit_code": 0, "ended_by": "soak: garbage"},
            "was ended by the soak after bad answers (with exit code 0)",
        ),
        ({"exit_code": 0, "ended_by": "soak: unheard-of"}, "was ended by the soak (with exit code 0)"),
        ({"exit_code": 1, "ended_by": "quality"}, "was ended by the quality run (with exit code 1)"),
        ({"exit_code": 1, "ended_by": "caller"}, "was ended by crashlab (with exit code 1)"),
        (
            {"exit_code": 0, "ended_by": "outlived"},
            "ended with exit code 0; processes that it had started outlived it and were ended by crashlab (--linger)",
        ),
    ],
)
def test_how_a_command_ended_is_said_in_words(fields: dict[str, object], words: str) -> None:
    assert how(event("ended", **fields)) == words


def test_what_outlived_the_command_is_named() -> None:
    ended = event("ended", exit_code=0, ended_by="outlived")
    one = event("outlived", count=1, living=["sleep (17)"])
    assert how(ended, [one]) == (
        "ended with exit code 0; 1 process that it had started (sleep (17)) outlived it and was ended by crashlab "
        "(--linger)"
    )
    many = event("outlived", count=9, living=[f"w ({n})" for n in range(9)])
    assert (
        "9 processes that it had started (w (0), w (1), w (2), w (3), w (4), …) outlived it and were"
        in how(ended, [many])
    )
    assert "1 process that it had started outlived" in how(ended, [event("outlived", count=1, living=7)])


def test_a_kill_is_told_as_one() -> None:
    ended = event("ended", signal="SIGKILL", ended_by="user")
    assert how(ended, [event("killed", pids=[1])]) == (
        "was ended on request: it did not end when asked, and was killed (SIGKILL)"
    )
