"""The closed loop with answers made in the process: lanes, storms, canaries, stopping, replay."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.errors import CrashlabError, UnreadableInput
from crashlab.soak import classes
from crashlab.soak.ask import Ask
from crashlab.soak.board import Board, Flight
from crashlab.soak.canary import LANE, Canaries
from crashlab.soak.client import Reply
from crashlab.soak.garbagewatch import GarbageWatch
from crashlab.soak.load import Load
from crashlab.soak.prompts import Source
from crashlab.soak.record import Record, begin, from_json
from crashlab.soak.replay import header_of, load_replay, sizes_of
from crashlab.soak.shapes import Lane, Sizes

SIZES = Sizes((4, 20), (4, 8), context=200)
SOURCE = Source(tokens_a_word=1.0)


class Server:
    """Answers every request; remembers what was asked, and when how many were under way."""

    def __init__(self, answer: Callable[[Ask], tuple[str, str | None]] | None = None) -> None:
        self.asked: list[Ask] = []
        self.board = Board()
        self.most = 0
        self._answer = answer or (lambda ask: ("fine words of many kinds", None))

    async def ask(self, ask: Ask) -> Reply:
        self.asked.append(ask)
        number = len(self.asked)
        flight = Flight(ask, float(number), asyncio.current_task())
        self.board.flights[number] = flight
        self.most = max(self.most, len(self.board.flights))
        error: str | None = None
        try:
            await asyncio.sleep(0.001)
            text, error = self._answer(ask)
        except asyncio.CancelledError:
            if flight.doom is None:
                raise
            text, error = "", flight.doom
        finally:
            del self.board.flights[number]
        return Reply(begin(ask, float(number), "t")._replace(tokens=20, error=error), text)


def run(
    server: Server, lanes: list[Any], *, most: int | None = None, every: int | None = None
) -> tuple[Load, list[Record]]:
    records: list[Record] = []

    async def main() -> Load:
        load = Load(
            server.ask,
            server.board,
            records.append,
            GarbageWatch(),
            Canaries(),
            canary_every=every,
            most=most,
        )
        await asyncio.wait_for(load.run(lanes), 20)
        return load

    return asyncio.run(main()), records


def lanes(shape: str, count: int) -> list[Lane]:
    return [Lane(shape, 1, n, SIZES, SOURCE) for n in range(count)]


def test_every_lane_has_one_request_at_a_time_and_each_gets_a_record() -> None:
    server = Server()
    _, records = run(server, lanes("fresh", 4), most=60)
    assert len(records) == len(server.asked) == server.board.finished == 60
    assert server.most <= 4
    numbers = [r.number for r in records if r.lane == 2]
    assert numbers == list(range(len(numbers)))


def test_a_storm_sends_from_all_lanes_at_the_same_moment() -> None:
    server = Server()
    run(server, lanes("prefill-storm", 6), most=60)
    assert server.most == 6
    batches = [sorted(a.lane for a in server.asked[i : i + 6]) for i in range(0, 60, 6)]
    assert batches == [[0, 1, 2, 3, 4, 5]] * 10


def test_a_storm_does_not_wait_for_lanes_that_have_ended() -> None:
    server = Server()
    _, records = run(server, lanes("prefill-storm", 4), most=10)
    assert len(records) == 10


def test_canaries_are_asked_twice_first_then_every_so_often_and_once_more_at_the_end() -> None:
    server = Server()
    _, _records = run(server, lanes("fresh", 2), most=20, every=10)
    rounds = [i for i, ask in enumerate(server.asked) if ask.lane == LANE and ask.number % 4 == 0]
    assert rounds[:2] == [0, 4]
    assert len(rounds) == 5
    assert all(ask.temperature == 0 for ask in server.asked if ask.lane == LANE)
    assert server.board.finished == 20


def test_canaries_that_collapse_are_told() -> None:
    seen = []

    def answer(ask: Ask) -> tuple[str, str | None]:
        seen.append(ask)
        return ("fine words of many kinds" if len(seen) < 15 else "!" * 80), None

    load, _ = run(Server(answer), lanes("fresh", 1), most=20, every=5)
    assert load.garbage is not None


def test_odd_answers_are_marked_in_their_records() -> None:
    _, records = run(Server(lambda ask: ("!" * 80, None)), lanes("fresh", 1), most=3)
    assert all(record.garbage == ("one-token",) for record in records)
    assert records[0].to_json()["garbage"] == ["one-token"]


def test_a_failing_server_is_asked_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def note(self: Load, seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(Load, "_pause", note)
    server = Server(lambda ask: ("", classes.RESET if len(server.asked) <= 7 else None))
    run(server, lanes("fresh", 1), most=1)
    assert pauses == [0.1, 0.2, 0.5, 1.0, 2.0, 2.0, 2.0]


def test_requests_that_failed_do_not_use_up_the_number_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_pause(self: Load, seconds: float) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(Load, "_pause", no_pause)
    server = Server(lambda ask: ("fine", classes.HTTP if len(server.asked) % 2 else None))
    _, records = run(server, lanes("fresh", 3), most=20)
    assert sum(record.error is None for record in records) == 20
    assert len(records) > 30


def test_stopping_hangs_up_and_leaves_a_record_of_what_was_under_way() -> None:
    class Slow(Server):
        async def ask(self, ask: Ask) -> Reply:
            self.asked.append(ask)
            flight = Flight(ask, 0.0, asyncio.current_task())
            self.board.flights[len(self.asked)] = flight
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                assert flight.doom == classes.STOPPED
            return Reply(begin(ask, 0.0, "t")._replace(error=flight.doom), "")

    server, records = Slow(), []

    async def main() -> None:
        load = Load(server.ask, server.board, records.append, GarbageWatch(), Canaries(), canary_every=None)
        task = asyncio.ensure_future(load.run(lanes("fresh", 3)))
        await asyncio.sleep(0.1)
        load.stop()
        await asyncio.wait_for(task, 5)

    asyncio.run(main())
    assert [r.error for r in records] == [classes.STOPPED] * 3


def test_stopping_in_a_storm_wakes_those_who_wait() -> None:
    server = Server()

    async def main() -> None:
        load = Load(server.ask, server.board, lambda r: None, GarbageWatch(), Canaries(), canary_every=None)
        task = asyncio.ensure_future(load.run(lanes("prefill-storm", 3)))
        await asyncio.sleep(0.05)
        load.stop()
        await asyncio.wait_for(task, 5)

    asyncio.run(main())


def write_log(path: Path, records: list[Record], shape: str) -> None:
    rows = [header_of(shape, 1, SIZES, SOURCE), *(r.to_json() for r in records)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("shape", ["fresh", "mixed", "growing", "cancel-churn", "json"])
def test_a_recorded_load_is_sent_again_request_by_request(tmp_path: Path, shape: str) -> None:
    first = Server()
    _, records = run(first, lanes(shape, 3), most=40, every=10)
    write_log(tmp_path / "requests.jsonl", records, shape)
    header, again = load_replay(str(tmp_path), Source())
    second = Server()
    _, repeated = run(second, list(again))
    assert header["shape"] == shape

    def by_lane(server: Server) -> list[list[Ask]]:
        return [[a for a in server.asked if a.lane == n] for n in range(3)]

    assert by_lane(second) == by_lane(first)
    assert len(repeated) == 40


def test_the_end_of_a_log_can_be_sent_alone(tmp_path: Path) -> None:
    first = Server()
    _, records = run(first, lanes("fresh", 2), most=30)
    write_log(tmp_path / "requests.jsonl", records[-10:], "fresh")
    _, again = load_replay(str(tmp_path / "requests.jsonl"), Source())
    second = Server()
    run(second, list(again))
    assert {(a.lane, a.number) for a in second.asked} == {(r.lane, r.number) for r in records[-10:]}


@pytest.mark.parametrize(
    "content", ["", "rubbish\n", '{"record": "load", "shape": "fresh"}\n', '{"lane": 1}\n']
)
def test_what_is_no_request_log_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(content)
    with pytest.raises(UnreadableInput):
        load_replay(str(path), Source())


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_no_log_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "log"
    path.write_bytes(b'{"record": "load", "shape": "fresh", "seed": 1}\n' + content)
    with contextlib.suppress(CrashlabError):
        load_replay(str(path), Source())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*Sizes._fields]), json_values))
def test_odd_headers_give_usable_sizes(header: dict[str, Any]) -> None:
    sizes = sizes_of(header)
    Lane("fresh", 1, 0, sizes._replace(context=100), SOURCE).next()


def test_a_record_leaves_out_what_is_absent_and_reads_back() -> None:
    record = begin(lanes("fresh", 1)[0].next(), 12.5, "2026-01-01T00:00:00.000Z")
    line = record.to_json()
    assert "error" not in line
    assert "first" not in line
    found = from_json(json.loads(json.dumps(line)))
    assert found is not None
    assert (found.lane, found.number, found.shape, found.sent) == (0, 0, "fresh", 12.5)
    assert from_json({"lane": "x"}) is None
