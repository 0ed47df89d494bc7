"""Logs that go on for days keep their size, their beginning, their end, and what surrounds a fault."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.rundir import boundedlog, layout
from crashlab.rundir.boundedlog import BoundedLog
from crashlab.rundir.parts import gaps, part_lines, part_name, parts_of
from crashlab.rundir.reader import open_run
from crashlab.rundir.writer import RunWriter
from crashlab.soak.loadlogs import LoadLogs
from crashlab.soak.prompts import Source
from crashlab.soak.replay import header_of, load_replay
from crashlab.soak.shapes import Sizes

NAME = "requests.jsonl"
PART, CAP = 16 << 10, 256 << 10


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("requests*.jsonl"))


def row(number: int) -> dict[str, Any]:
    return {"lane": number % 16, "number": number, "shape": "fresh", "sent": number / 20, "tokens": 100}


def numbers(folder: Path) -> list[int]:
    return [line["number"] for line in part_lines(str(folder), NAME) if "number" in line]


def test_a_log_below_its_part_size_is_one_plain_file(tmp_path: Path) -> None:
    log = BoundedLog(str(tmp_path), NAME, part=PART, cap=CAP)
    for number in range(50):
        assert log.append(row(number))
    log.close()
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert [json.loads(line) for line in (tmp_path / NAME).read_text().splitlines()] == [
        row(n) for n in range(50)
    ]
    assert (log.lost, log.dropped, gaps(str(tmp_path), NAME)) == (0, 0, ())


def test_a_day_under_load_stays_within_the_cap_at_every_moment(tmp_path: Path) -> None:
    log = BoundedLog(str(tmp_path), NAME, part=PART, cap=CAP)
    largest = 0
    for number in range(60_000):
        log.append(row(number))
        if number % 100 == 0:
            largest = max(largest, size_of(tmp_path))
    log.close()
    assert largest <= CAP + PART
    kept = numbers(tmp_path)
    assert kept[:100] == list(range(100)), "the beginning stays"
    assert kept[-1000:] == list(range(59_000, 60_000)), "the newest stays"
    assert kept == sorted(set(kept))
    (told,) = gaps(str(tmp_path), NAME)
    assert told.startswith(f"{log.dropped:,} bytes of {NAME} from byte ")


def test_what_was_written_around_marked_moments_is_never_dropped(tmp_path: Path) -> None:
    log = BoundedLog(str(tmp_path), NAME, part=PART, cap=CAP)
    faults = [7_000, 7_010, 23_456, 41_000]
    for number in range(60_000):
        if number in faults:
            log.mark()
        log.append(row(number))
    log.close()
    kept = set(numbers(tmp_path))
    for fault in faults:
        assert set(range(fault - 150, fault + 150)) <= kept
    assert size_of(tmp_path) <= CAP + PART + 3 * len(faults) * (PART + 200)
    assert len(gaps(str(tmp_path), NAME)) == 4, "before, between and after the three groups"


def test_very_many_marks_are_bounded_too_first_and_newest_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boundedlog, "MOST_PINNED", 12)
    log = BoundedLog(str(tmp_path), NAME, part=PART, cap=CAP)
    for number in range(80_000):
        if number % 1000 == 500:
            log.mark()
        log.append(row(number))
    log.close()
    kept = set(numbers(tmp_path))
    assert set(range(400, 600)) <= kept
    assert set(range(79_400, 79_600)) <= kept
    assert size_of(tmp_path) <= CAP + PART + 16 * (PART + 200)


def test_every_part_names_the_load_and_can_be_read_alone(tmp_path: Path) -> None:
    log = BoundedLog(str(tmp_path), NAME, part=PART, cap=CAP)
    heading = header_of("fresh", 3, Sizes(), Source())
    log.heading = heading
    log.append(heading)
    for number in range(20_000):
        log.append(row(number))
    log.close()
    parts = parts_of(str(tmp_path), NAME)
    assert len(parts) > 5
    for part in parts[1:]:
        first = json.loads(Path(part.path).read_text().splitlines()[0])
        assert (first["record"], first["seed"], first["continued"]) == ("load", 3, True)
    header, lanes = load_replay(str(tmp_path), Source())
    assert header["seed"] == 3
    assert sum(1 for lane in lanes for _ in iter(lane.next, None)) == len(numbers(tmp_path))


def test_only_the_last_attempt_is_replayed_though_its_heading_is_repeated(tmp_path: Path) -> None:
    log = BoundedLog(str(tmp_path), NAME, part=PART, cap=CAP)
    for attempt in (1, 2):
        log.heading = {**header_of("fresh", attempt, Sizes(), Source()), "attempt": attempt}
        log.append(log.heading)
        for number in range(600):
            log.append(row(number))
    log.close()
    assert len(parts_of(str(tmp_path), NAME)) > 2
    header, lanes = load_replay(str(tmp_path), Source())
    assert header["seed"] == 2
    assert sum(1 for lane in lanes for _ in iter(lane.next, None)) == 600


def test_records_that_find_no_disk_are_counted(tmp_path: Path) -> None:
    log = BoundedLog(str(tmp_path / "gone"), NAME, part=PART, cap=CAP)
    for number in range(2500):
        assert not log.append(row(number))
    log.close()
    assert log.lost == 2500
    assert not log.append(row(1))


def test_the_run_says_what_was_dropped_at_its_end_and_when_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boundedlog, "PART_BYTES", PART)
    writer = RunWriter.create(str(tmp_path / "run"), ("x",))
    writer.start({})
    log = writer._logs[layout.GPU_SAMPLES] = BoundedLog(writer.path, layout.GPU_SAMPLES, cap=CAP, part=PART)
    for number in range(20_000):
        writer.gpu_sample({"gpu": 0, "n": number})
    writer.finish()
    assert log.dropped
    (told,) = writer.problems
    assert "in the middle of gpu.jsonl were dropped to bound its size" in told
    assert any("gpu.jsonl from byte" in problem for problem in open_run(writer.path).problems)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("soak-state", {"from": "PROGRESSING", "to": "DUMPING"}),
        ("soak-state", {"from": "PROGRESSING", "to": "DEAD"}),
        ("soak-stall", {"why": "silence", "health": 200}),
        ("soak-ending", {"outcome": "fault", "why": "x"}),
    ],
)
def test_a_soak_keeps_the_requests_around_what_it_saw(
    tmp_path: Path, kind: str, fields: dict[str, Any]
) -> None:
    writer = RunWriter.create(str(tmp_path / "run"), ("x",))
    writer._logs[layout.REQUESTS] = BoundedLog(writer.path, layout.REQUESTS, cap=CAP, part=PART)
    logs = LoadLogs(writer, 1)
    logs.request(header_of("fresh", 1, Sizes(), Source()))
    for number in range(40_000):
        if number == 10_000:
            logs.event(kind, fields)
        logs.request(row(number))
    logs.sample({"health": 200})
    writer.finish()
    kept = set(numbers(tmp_path / "run"))
    assert set(range(9_850, 10_150)) <= kept
    assert 20_000 not in kept
    (sample,) = part_lines(writer.path, layout.METRICS)
    assert sample["health"] == 200


def test_a_second_attempt_marks_its_rows(tmp_path: Path) -> None:
    writer = RunWriter.create(str(tmp_path / "run"), ("x",))
    for attempt in (1, 2):
        logs = LoadLogs(writer, attempt)
        logs.request({"record": "load"})
        logs.request(row(attempt))
    writer.finish()
    rows = list(part_lines(writer.path, layout.REQUESTS))
    assert [one.get("attempt") for one in rows] == [None, None, 2, 2]


@settings(deadline=None)
@given(start=st.integers(0, 10**17))
def test_a_parts_name_says_where_it_begins(start: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp() / "names"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    (folder / part_name(NAME, start)).write_bytes(b"{}\n")
    assert [part.start for part in parts_of(str(folder), NAME)] == [start]


def test_names_that_only_look_alike_are_no_parts(tmp_path: Path) -> None:
    for name in ("requests.+x.jsonl", "requests.+1.json", "requests2.jsonl", f"requests.+{'9' * 40}.jsonl"):
        (tmp_path / name).write_bytes(b"{}\n")
    os.mkfifo(tmp_path / part_name(NAME, 7))
    (tmp_path / part_name(NAME, 8)).symlink_to("/etc/passwd")
    (tmp_path / part_name(NAME, 9)).mkdir()
    assert parts_of(str(tmp_path), NAME) == []
    assert parts_of("/nonexistent", NAME) == []


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_whatever_the_sizes_and_marks_order_and_bound_hold(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    chance = random.Random(seed)
    folder = tmp_path_factory.mktemp("any")
    part = chance.choice((200, 1000, 5000))
    log = BoundedLog(str(folder), NAME, part=part, cap=part * chance.randint(4, 20))
    marks = 0
    for number in range(chance.randint(1, 3000)):
        if chance.random() < 0.003:
            log.mark()
            marks += 1
        log.append({"number": number, "x": "y" * chance.randint(0, 50)})
    log.close()
    kept = numbers(folder)
    assert kept == sorted(set(kept))
    assert kept[0] == 0
    assert kept[-1] == number
    assert size_of(folder) <= log.cap + (min(3 * marks, boundedlog.MOST_PINNED) + 2) * (part + 100)
