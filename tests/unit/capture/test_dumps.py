"""Dump files as they appear, grow, pause and settle; pipes and how they are asked."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.capture.dumps import GROWING, SETTLED, DumpWatch, name_pattern
from crashlab.capture.trigger import ENOUGH, ask, pipes


def nothing() -> list[str]:
    return []


class TestWatch:
    def test_a_file_grows_and_settles_when_nobody_holds_it(self, tmp_path: Path) -> None:
        watch = DumpWatch(str(tmp_path / "%h.%p.%t.nvcudmp"), "/")
        path = tmp_path / "host.123.99.nvcudmp"
        path.write_bytes(b"x")
        (seen,) = watch.scan(0.0, nothing)
        assert (seen.state, seen.pid) == (GROWING, 123)
        assert watch.scan(1.0, nothing) == []
        (seen,) = watch.scan(2.5, nothing)
        assert seen.state == SETTLED
        assert watch.settled == (seen,)

    def test_a_writer_that_pauses_still_holds_the_file(self, tmp_path: Path) -> None:
        watch = DumpWatch(str(tmp_path / "core"), "/")
        path = tmp_path / "core"
        path.write_bytes(b"x")
        watch.scan(0.0, nothing)
        assert watch.scan(60.0, lambda: [str(path)]) == []
        assert watch.growing

    def test_a_settled_file_that_grows_again_is_growing(self, tmp_path: Path) -> None:
        watch = DumpWatch(str(tmp_path / "core"), "/")
        (tmp_path / "core").write_bytes(b"x")
        watch.scan(0.0, nothing)
        watch.scan(5.0, nothing)
        (tmp_path / "core").write_bytes(b"xy")
        assert watch.scan(6.0, nothing)[0].state == GROWING

    def test_what_was_there_before_is_ignored_until_it_is_written_anew(self, tmp_path: Path) -> None:
        (tmp_path / "core").write_bytes(b"old")
        watch = DumpWatch(str(tmp_path / "core"), "/")
        assert watch.scan(0.0, nothing) == []
        (tmp_path / "core").write_bytes(b"newer")
        assert len(watch.scan(1.0, nothing)) == 1

    def test_fifos_empty_and_foreign_files_are_not_dumps(self, tmp_path: Path) -> None:
        watch = DumpWatch(str(tmp_path / "c.%p"), "/")
        os.mkfifo(tmp_path / "c.1")
        (tmp_path / "c.2").write_bytes(b"")
        (tmp_path / "c.x").write_bytes(b"x")
        assert watch.scan(0.0, nothing) == []

    def test_a_relative_pattern_is_relative_to_the_program(self, tmp_path: Path) -> None:
        watch = DumpWatch("core.%p", str(tmp_path))
        (tmp_path / "core.7").write_bytes(b"x")
        assert watch.scan(0.0, nothing)[0].pid == 7

    def test_a_folder_with_the_host_name_is_found_and_one_with_a_pid_cannot_be_watched(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / socket.gethostname()).mkdir()
        watch = DumpWatch(str(tmp_path / "%h" / "c"), "/")
        (tmp_path / socket.gethostname() / "c").write_bytes(b"x")
        assert len(watch.scan(0.0, nothing)) == 1
        assert DumpWatch(str(tmp_path / "%p" / "c"), "/").scan(0.0, nothing) == []

    def test_no_pattern_no_files(self) -> None:
        assert DumpWatch(None, "/").scan(0.0, nothing) == []

    def test_everything_is_settled_when_nobody_is_left(self, tmp_path: Path) -> None:
        watch = DumpWatch(str(tmp_path / "core"), "/")
        (tmp_path / "core").write_bytes(b"x")
        watch.scan(0.0, nothing)
        (tmp_path / "core").write_bytes(b"xyz")
        watch.settle_all()
        assert [(one.bytes, one.state) for one in watch.settled] == [(3, SETTLED)]


@settings(deadline=None)
@given(st.text(max_size=40), st.integers(1, 99999))
def test_any_name_pattern_is_a_valid_expression(text: str, pid: int) -> None:
    name = text.replace("/", "").replace("%", "")
    found = name_pattern(f"{name}.%p").fullmatch(f"{name}.{pid}")
    assert found is not None
    assert int(found["pid"]) == pid


def test_a_pid_that_stands_twice_must_be_the_same() -> None:
    pattern = name_pattern("%p.%p")
    assert pattern.fullmatch("12.12")
    assert not pattern.fullmatch("12.13")


class TestPipes:
    def test_pipes_are_listed_with_their_owner(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "h.12")
        (tmp_path / "other").write_text("")
        assert pipes(str(tmp_path / "%h.%p"), "/") == [(str(tmp_path / "h.12"), 12)]
        assert pipes(None, "/") == []
        assert pipes("/nowhere/%p", "/") == []

    def test_a_megabyte_is_written_to_who_reads(self, tmp_path: Path) -> None:
        pipe = tmp_path / "p"
        os.mkfifo(pipe)
        got: list[int] = []

        def read() -> None:
            with open(pipe, "rb") as file:
                got.append(len(file.read()))

        thread = threading.Thread(target=read)
        thread.start()
        while not ask(str(pipe), 1, 5).ok:
            pass
        thread.join(5)
        assert got[0] >= ENOUGH

    def test_nobody_reads(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "p")
        answer = ask(str(tmp_path / "p"), 1)
        assert (answer.ok, answer.what) == (False, "nobody reads the pipe")

    def test_no_such_pipe(self) -> None:
        assert not ask("/nowhere/pipe", None).ok

    def test_a_reader_that_takes_nothing_is_not_waited_for(self, tmp_path: Path) -> None:
        pipe = tmp_path / "p"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            answer = ask(str(pipe), 1, 0.1)
            assert answer.ok  # the pipe's own buffer took some: the driver may have woken up
        finally:
            os.close(reader)
