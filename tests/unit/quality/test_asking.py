"""The line, the ladder, the search for the border, the whole interview: over a server without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.demo.answers import Flaws
from crashlab.quality import ladder
from crashlab.quality.answered import Answered, count
from crashlab.quality.generate import build_suite
from crashlab.quality.line import How, Line, judge
from crashlab.quality.onset import CONCURRENCY, LENGTH, Onset, Probe, find_onset
from crashlab.quality.prose import build_prose
from crashlab.quality.settings import Settings
from crashlab.soak import classes
from crashlab.soak.ask import Ask
from crashlab.soak.client import Reply
from crashlab.soak.record import begin
from tests.unit.quality.simulated import Simulated, talk_of

SUITE = build_suite(1, 60)
SIXTEEN = How()


def ask(flaws: Flaws, how: How = SIXTEEN) -> tuple[Simulated, tuple[Answered, ...], list[dict[str, Any]]]:
    server = Simulated(SUITE, flaws)
    kept: list[dict[str, Any]] = []
    found = asyncio.run(Line(server.ask_one, kept.append).ask_suite(SUITE, how, "A1"))
    return server, found, kept


def test_every_question_is_asked_once_greedily_and_answers_come_in_their_order() -> None:
    server, found, kept = ask(Flaws(), How(concurrency=7))
    assert [one.task for one in found] == [task.id for task in SUITE.tasks]
    assert all(one.right for one in found)
    assert server.most == 7
    assert all(request.temperature == 0.0 and not request.ignore_eos for request, _ in server.asked)
    assert all(extra == {"stop": ["\n\n", "Question:"]} for _, extra in server.asked)
    assert len(kept) == 60
    assert {row["pass"] for row in kept} == {"A1"}
    assert {row["task"] for row in kept} == {task.id for task in SUITE.tasks}


def test_dropped_requests_are_errors_and_no_wrong_answers() -> None:
    _, found, _ = ask(Flaws(drop=0.3))
    counts = count(found)
    assert counts.error > 5
    assert counts.wrong == counts.invalid == 0
    assert counts.correct + counts.error == 60
    assert {one.error for one in found if one.outcome == "error"} == {classes.RESET}


def test_an_empty_answer_is_invalid_and_no_error() -> None:
    _, found, _ = ask(Flaws(degrade="empty"))
    assert count(found).invalid == 60
    assert all("invisible-tokens" in one.kinds for one in found)


def test_a_dead_server_is_not_asked_for_ever() -> None:
    asked = 0

    async def refuse(one: Ask, extra: Mapping[str, Any]) -> Reply:
        nonlocal asked
        asked += 1
        return Reply(begin(one, 0.0, "")._replace(error=classes.REFUSED, detail="no connection"), "")

    found = asyncio.run(Line(refuse, lambda row: None).ask_suite(SUITE, How(concurrency=1), "A1"))
    assert asked == 30
    assert count(found).error == 60
    assert found[-1].detail == "not asked: the server refuses connections"


def test_a_stopped_line_counts_the_rest_as_errors() -> None:
    server = Simulated(SUITE, Flaws())
    line = Line(server.ask_one, lambda row: None)
    line.stopping = True
    found = asyncio.run(line.ask_suite(SUITE, How(), "A1"))
    assert not server.asked
    assert count(found).error == 60


def test_an_http_error_keeps_its_status() -> None:
    task = SUITE.tasks[0]
    record = begin(Ask(0, 0, "quality", "completions", ("x",), 8), 0.0, "")
    found = judge(SUITE, task, Reply(record._replace(error=classes.HTTP, status=500), ""))
    assert (found.outcome, found.error, found.detail) == ("error", "http", "HTTP 500")


def test_prose_is_kept_and_not_scored() -> None:
    server = Simulated(SUITE, Flaws())
    found = asyncio.run(Line(server.ask_one, lambda row: None).ask_suite(build_prose(), How(), "A1-prose"))
    assert all(one.outcome is None and one.text for one in found)
    assert count(found).asked == 0


@pytest.mark.parametrize(
    ("context", "most", "expected"),
    [
        (None, 4096, (256, 1024, 4096)),
        (1024, 4096, (256, 878)),
        (4096, 4096, (256, 1024, 3643)),
        (128, 4096, ()),
        (None, 100_000, (256, 1024, 4096, 16384, 65536, 100_000)),
    ],
)
def test_lengths_fit_the_context(context: int | None, most: int, expected: tuple[int, ...]) -> None:
    assert ladder.lengths_within(context, most, 48) == expected


def test_easy_questions_were_right_each_time() -> None:
    first = [Answered(task.id, "l", "correct") for task in SUITE.tasks]
    second = [one._replace(outcome="wrong") if i % 2 else one for i, one in enumerate(first)]
    chosen = ladder.easy(SUITE, [first, second], 10)
    assert [task.id for task in chosen.tasks] == [task.id for task in SUITE.tasks[::2]][:10]
    assert ladder.easy(SUITE, []).tasks == ()


def test_padding_is_seeded_and_about_as_long_as_asked() -> None:
    long = ladder.padded(SUITE, 500, 3, 1.0)
    assert long == ladder.padded(SUITE, 500, 3, 1.0)
    assert long != ladder.padded(SUITE, 500, 4, 1.0)
    for task, plain in zip(long.tasks, SUITE.tasks, strict=True):
        assert 480 <= len(task.prompt.split()) <= 510
        assert task.prompt.endswith(plain.prompt)
    assert ladder.padded(SUITE, 5, 3, 1.0).tasks == SUITE.tasks


def test_copies_of_a_question_count_once_by_majority() -> None:
    rows = [Answered("a", "l", outcome) for outcome in ("correct", "correct", "wrong")]
    rows += [Answered("b", "l", outcome, kinds=("loop",)) for outcome in ("correct", "invalid", "error")]
    assert ladder.came(rows) == ladder.Came(1, 2, 1)


def search(border: int, known: list[int], tries: int = 8) -> tuple[Onset | None, list[int]]:
    looks: list[int] = []

    async def look(at: int) -> Probe:
        looks.append(at)
        return Probe(at, 0 if at >= border else 9, 9, at >= border)

    probes = [Probe(at, 0 if at >= border else 9, 9, at >= border) for at in known]
    return asyncio.run(find_onset(LENGTH, probes, look, tries)), looks


@given(st.integers(2, 5000))
def test_the_border_is_found_between_its_neighbours(border: int) -> None:
    found, looks = search(border, [1, 5000], 20)
    assert found is not None
    assert found.good is not None
    assert found.good < border <= found.bad
    assert found.bad <= max(found.good * 1.15, found.good + 1)
    assert len(looks) <= 14


def test_nothing_bad_is_no_border_and_bad_at_once_needs_no_search() -> None:
    assert search(9000, [1, 5000]) == (None, [])
    found, looks = search(1, [1, 5000])
    assert found is not None
    assert (found.good, found.bad, looks) == (None, 1, [])


def test_a_look_without_answers_ends_the_search() -> None:
    async def look(at: int) -> Probe:
        return Probe(at, 0, 0, False)

    known = [Probe(1, 5, 5, False), Probe(100, 0, 5, True)]
    found = asyncio.run(find_onset(CONCURRENCY, known, look))
    assert found is not None
    assert (found.good, found.bad) == (1, 100)


def test_the_second_arm_repeats_the_first_arm_s_steps_and_finds_where_garbage_begins() -> None:
    settings = Settings(build_suite(2, 100), 2, prose=False)
    a = talk_of("A", settings, Flaws())
    assert len(a.passes) == 2
    assert {(cell.dimension, cell.at) for cell in a.cells} == {
        (LENGTH, 256), (LENGTH, 1024), (LENGTH, 4096), (CONCURRENCY, 1), (CONCURRENCY, 4), (CONCURRENCY, 64),
    }  # fmt: skip
    assert a.onsets == ()
    b = talk_of("B", settings, Flaws(degrade="loop", from_tokens=700), a)
    assert len(b.passes) == 1
    assert [onset.dimension for onset in b.onsets] == [LENGTH]
    good, bad = b.onsets[0].good, b.onsets[0].bad
    assert good is not None
    assert good < 760
    assert bad > 620
    c = talk_of("B", settings, Flaws(degrade="wrong", from_batch=30), a)
    assert [onset.dimension for onset in c.onsets] == [CONCURRENCY]
    assert c.onsets[0].good is not None
    assert c.onsets[0].good <= 34
    assert 30 <= c.onsets[0].bad <= 48


def test_what_the_first_arm_cannot_do_itself_is_no_finding_about_the_second() -> None:
    settings = Settings(build_suite(2, 100), 2, prose=False)
    same = Flaws(degrade="loop", from_tokens=700)
    a = talk_of("A", settings, same)
    b = talk_of("B", settings, same, a)
    assert b.onsets == ()


def test_one_server_alone_is_searched_for_its_own_border() -> None:
    settings = Settings(build_suite(2, 100), 2, prose=False)
    flaws = Flaws(degrade="loop", from_tokens=700)
    assert talk_of("A", settings, flaws).onsets == ()
    alone = talk_of("A", settings._replace(alone=True), flaws)
    assert [onset.dimension for onset in alone.onsets] == [LENGTH]


def test_with_too_few_right_answers_there_is_no_ladder() -> None:
    talk = talk_of("A", Settings(build_suite(2, 100), 2), Flaws(accuracy=0.02))
    assert talk.cells == ()
    assert "too few" in talk.notes[0]
