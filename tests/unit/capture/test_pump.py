"""The pump's parts in this process, and the pump as it really runs."""

from __future__ import annotations

import errno
import itertools
import json
import os
import re
import signal
import time
from pathlib import Path

import pytest

from crashlab.capture import pump
from crashlab.capture.follow import StreamFollower
from crashlab.capture.recording import Recording
from tests.support.runs import wait_until


def config(place: Path, /, **more: object) -> dict[str, object]:
    return {
        "folder": str(place / "output"),
        "overflow": str(place / "overflow"),
        "attempt": 1,
        "segment": 1000,
        "cap": 4000,
        **more,
    }


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "output").mkdir()
    return tmp_path


def names(place: Path) -> list[str]:
    return sorted(os.listdir(place / "output"))


class TestRecorder:
    def test_bytes_go_into_segments_named_by_their_offset(self, place: Path) -> None:
        recorder = pump.Recorder("stdout", config(place))
        recorder.write(b"a" * 2500)
        assert names(place) == ["001.stdout.+1000.log", "001.stdout.+2000.log", "001.stdout.log"]
        assert recorder.offset == 2500

    def test_beyond_the_cap_the_first_and_the_newest_segments_stay(self, place: Path) -> None:
        recorder = pump.Recorder("stdout", config(place))
        recorder.write(b"a" * 10_500)
        assert names(place) == [
            "001.stdout.+10000.log",
            "001.stdout.+8000.log",
            "001.stdout.+9000.log",
            "001.stdout.log",
        ]

    def test_without_a_folder_the_overflow_takes_it(self, place: Path) -> None:
        recorder = pump.Recorder("stderr", config(place, folder="/nowhere"))
        recorder.write(b"hello")
        assert (place / "overflow" / "001.stderr.log").read_bytes() == b"hello"
        assert recorder.lost == 0

    def test_the_overflow_is_bounded_and_the_rest_is_counted(
        self, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pump, "OVERFLOW_BYTES", 1500)
        recorder = pump.Recorder("stderr", config(place, folder="/nowhere"))
        recorder.write(b"x" * 5000)
        kept = sum(path.stat().st_size for path in (place / "overflow").iterdir())
        assert kept + recorder.lost == 5000
        assert recorder.lost

    def test_with_no_place_at_all_everything_is_counted_as_lost(self, place: Path) -> None:
        recorder = pump.Recorder("stdout", config(place, folder="/nowhere", overflow="/proc/nowhere"))
        recorder.write(b"abc")
        recorder.write(b"def")
        assert (recorder.lost, recorder.offset) == (6, 6)

    def test_a_write_that_fails_in_the_middle_goes_on_elsewhere(
        self, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        recorder = pump.Recorder("stdout", config(place))
        recorder.write(b"first")
        real, failures = os.write, [OSError(28, "No space left on device")]

        def full(fd: int, data: bytes) -> int:
            if failures:
                raise failures.pop()
            return real(fd, data)

        monkeypatch.setattr(pump.os, "write", full)
        recorder.write(b"second")
        assert (place / "overflow" / "001.stdout.+5.log").read_bytes() == b"second"


class TestIndex:
    def test_pieces_of_one_moment_are_one_line(self, place: Path) -> None:
        index = pump.Index(str(place / "index"))
        index.add("stdout", 0, 10)
        index.add("stdout", 10, 5)
        index.add("stderr", 0, 1)
        index.flush()
        rows = [json.loads(line) for line in (place / "index").read_text().splitlines()]
        assert [(row["s"], row["o"], row["n"]) for row in rows] == [("stdout", 0, 15), ("stderr", 0, 1)]

    def test_past_its_fine_size_a_line_covers_a_second_of_each_stream(
        self, place: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pump, "FINE_BYTES", 4000)
        now = [100.0]
        monkeypatch.setattr(pump.time, "monotonic", lambda: now[0])
        index = pump.Index(str(place / "index"))
        offsets = {"stdout": 0, "stderr": 0}
        for _ in range(20_000):  # 400 s of two streams in turns
            for name in offsets:
                now[0] += 0.01
                index.add(name, offsets[name], 7)
                offsets[name] += 7
            index.settle()
        index.flush()
        rows = [json.loads(line) for line in (place / "index").read_text().splitlines()]
        assert (place / "index").stat().st_size < 4000 + 2 * 400 * 60
        for name, end in offsets.items():
            covered = 0
            for row in (row for row in rows if row["s"] == name):
                assert row["o"] == covered, "no byte is told twice, none is left out"
                covered += row["n"]
            assert covered == end
        times = [row["m"] for row in rows]
        assert all(later - earlier > -1.1 for earlier, later in itertools.pairwise(times))

    def test_an_index_that_cannot_be_written_is_done_without(self) -> None:
        index = pump.Index("/nowhere/index")
        index.add("stdout", 0, 1)
        index.flush()


class TestSinks:
    def test_bytes_are_passed_on(self) -> None:
        read, write = os.pipe()
        sinks = pump.Sinks({"stdout": write, "stderr": -1})
        sinks.put("stdout", b"hello")
        sinks.put("stderr", b"nobody wants this")
        sinks.close()
        assert os.read(read, 100) == b"hello"

    def test_a_reader_that_has_gone_is_forgotten(self) -> None:
        read, write = os.pipe()
        os.close(read)
        old = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        try:
            gone: list[tuple[str, int | None]] = []
            sinks = pump.Sinks({"stdout": write}, lambda name, error: gone.append((name, error)))
            sinks.put("stdout", b"hello")
            sinks.put("stdout", b"again")
            sinks.close()
            assert sinks.left_out == 0
            assert gone == [("stdout", errno.EPIPE)]
        finally:
            signal.signal(signal.SIGPIPE, old)

    def test_a_reader_that_stopped_costs_patience_once_and_then_nothing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pump, "SINK_PATIENCE", 0.2)
        monkeypatch.setattr(pump, "QUEUE_BYTES", 1000)
        read, write = os.pipe()
        sinks = pump.Sinks({"stdout": write})
        for _ in range(4):
            sinks.put("stdout", b"x" * (1 << 20))
        before = time.monotonic()
        for _ in range(50):
            sinks.put("stdout", b"x" * (1 << 20))
        assert time.monotonic() - before < 8, "50 times 0.2 s are not waited"
        assert sinks.left_out > 0
        os.close(read)

    def test_a_terminal_that_was_made_non_blocking_is_waited_for(self) -> None:
        read, write = os.pipe()
        os.set_blocking(write, False)
        sinks = pump.Sinks({"stdout": write})
        sinks.put("stdout", b"x" * 200_000)
        got = 0
        while got < 200_000:
            got += len(os.read(read, 1 << 16))
        sinks.close()
        assert got == 200_000


def test_the_whole_loop_in_this_process(place: Path) -> None:
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    note_read, note_write = os.pipe()
    os.set_blocking(note_write, False)
    os.write(out_write, b"to out\n")
    os.write(err_write, b"to err\n")
    os.close(out_write)
    os.close(err_write)
    streams = {"stdout": {"source": out_read, "sink": -1}, "stderr": {"source": err_read, "sink": -1}}
    pump.Pump(config(place, streams=streams, notify=note_write)).run()
    assert (place / "output" / "001.stdout.log").read_bytes() == b"to out\n"
    assert (place / "output" / "001.stderr.log").read_bytes() == b"to err\n"
    notes = os.read(note_read, 1 << 16)
    assert json.loads(notes.lstrip(b"\n"))["bytes"] == {"stdout": 7, "stderr": 7}


class TestRecording:
    def test_it_records_and_sums_up(self, place: Path) -> None:
        recording = Recording(str(place / "output"), str(place / "overflow"), 1, sinks=(-1, -1))
        os.write(recording.stdout, b"hello\n")
        recording.opened()
        assert recording.wait(30)
        assert recording.summary is not None
        assert recording.summary.bytes == {"stdout": 6, "stderr": 0}
        recording.close()

    def test_somebody_who_holds_the_output_open_is_not_waited_for_for_ever(self, place: Path) -> None:
        recording = Recording(str(place / "output"), str(place / "overflow"), 1, sinks=(-1, -1))
        held = os.dup(recording.stdout)
        recording.opened()
        assert not recording.wait(0.3)
        os.close(held)
        assert recording.wait(30)
        recording.close()

    def test_signals_of_the_terminal_do_not_end_the_pump(self, place: Path) -> None:
        recording = Recording(str(place / "output"), str(place / "overflow"), 1, sinks=(99999, -1))
        wait_until(lambda: ignores(recording.process.pid, signal.SIGHUP, signal.SIGTERM, signal.SIGINT))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            recording.process.send_signal(number)
        os.write(recording.stderr, b"still here\n")
        recording.opened()
        assert recording.wait(30)
        assert (place / "output" / "001.stderr.log").read_bytes() == b"still here\n"
        recording.close()


def ignores(pid: int, *numbers: int) -> bool:
    """Whether a process has come so far as to ignore these signals."""
    found = re.search(r"SigIgn:\s*([0-9a-f]+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return all(int(found[1], 16) >> (number - 1) & 1 for number in numbers)


class TestFollower:
    def read(self, follower: StreamFollower) -> bytes:
        return b"".join(follower.read(1 << 20))

    def test_new_bytes_are_read_as_they_come_over_segments_and_folders(self, place: Path) -> None:
        (place / "overflow").mkdir()
        follower = StreamFollower((str(place / "output"), str(place / "overflow")), 1, "stdout")
        assert self.read(follower) == b""
        (place / "output" / "001.stdout.log").write_bytes(b"abc")
        assert self.read(follower) == b"abc"
        assert self.read(follower) == b""
        (place / "overflow" / "001.stdout.+3.log").write_bytes(b"def")
        assert self.read(follower) == b"def"
        follower.close()

    def test_a_segment_that_was_removed_is_skipped(self, place: Path) -> None:
        follower = StreamFollower((str(place / "output"), "/nowhere"), 1, "stdout")
        (place / "output" / "001.stdout.+100.log").write_bytes(b"later")
        assert self.read(follower) == b"later"
        assert follower.offset == 105
        follower.close()

    def test_a_limit_is_kept_and_the_rest_comes_next_time(self, place: Path) -> None:
        (place / "output" / "001.stdout.log").write_bytes(b"0123456789")
        follower = StreamFollower((str(place / "output"),), 1, "stdout")
        assert b"".join(follower.read(4)) == b"0123"
        assert self.read(follower) == b"456789"
        follower.close()

    def test_the_end_can_be_skipped_to(self, place: Path) -> None:
        folder = place / "output"
        (folder / "001.stdout.log").write_bytes(b"a" * 1000)
        (folder / "001.stdout.+1000.log").write_bytes(b"b" * 500)
        follower = StreamFollower((str(folder),), 1, "stdout")
        assert b"".join(follower.read(100)) == b"a" * 100
        assert follower.skip(600) == 800
        assert b"".join(follower.read(10_000)) == b"a" * 100 + b"b" * 500
        assert follower.skip(600) == 0
        follower.close()
