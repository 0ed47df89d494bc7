"""Raw bytes become clean, numbered, bounded lines, whatever the chunking."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.errors import UnreadableInput
from crashlab.logs.text import MAX_LINE, Line, LineSplitter, clean, read_file, read_lines, split_prefix


def test_colours_nul_bytes_and_broken_utf8_are_taken_out() -> None:
    raw = b"\x1b[1;31mCUDA\x1b[0m er\x00ror: \xff\xfe \x1b]0;title\x07done\x7f"
    assert clean(raw) == "CUDA error: \ufffd\ufffd done"


def test_tabs_survive_because_the_driver_separates_with_them() -> None:
    assert clean(b"#0\t0x10\tname\r\n") == "#0\t0x10\tname"


def test_an_unfinished_escape_sequence_does_not_eat_the_line() -> None:
    assert clean("\x1b[ 12 coredump: here").endswith("coredump: here")
    assert "kept" in clean("\x1b]0;never closed kept".replace("kept", "\x1b\\kept"))


def test_utf16_text_without_bom_becomes_readable() -> None:
    assert clean("CUDA error".encode("utf-16-le")) == "CUDA error"


@pytest.mark.parametrize(
    ("raw", "process", "pid", "rank", "stamp", "rest"),
    [
        ("(EngineCore pid=793) hello", "EngineCore", 793, None, None, "hello"),
        ("(EngineCore_DP0 pid=9) (EngineCore_DP0 pid=9) Process", "EngineCore_DP0", 9, None, None, "Process"),
        ("(Worker_TP0 pid=11) x", "Worker_TP0", 11, None, None, "x"),
        ("(VllmWorker rank=3 pid=12) x", "VllmWorker", 12, 3, None, "x"),
        ("(RayWorkerWrapper pid=7, ip=192.0.2.9) x", "RayWorkerWrapper", 7, None, None, "x"),
        ("[rank2]: Traceback", None, None, 2, None, "Traceback"),
        ("vllm-1  | (APIServer pid=1) up", "APIServer", 1, None, None, "up"),
        ("2026-11-29T17:11:38.5Z stderr F text", None, None, None, "2026-11-29T17:11:38.5Z", "text"),
        ("Nov 29 17:11:38 box vllm[594]: text", "vllm", 594, None, "Nov 29 17:11:38", "text"),
        (
            "2026-11-29T17:11:38+00:00 box kernel: NVRM: x",
            "kernel",
            None,
            None,
            "2026-11-29T17:11:38+00:00",
            "NVRM: x",
        ),
        (
            "2026-03-09 01:27:30.122744672 (MapWorker(Batches(Actor)) pid=12, ip=192.0.2.1) (EngineCore pid=3) t",
            "EngineCore",
            3,
            None,
            "2026-03-09 01:27:30.122744672",
            "t",
        ),
        ("no prefix at all", None, None, None, None, "no prefix at all"),
        ("(a=1 pid=x) stays", None, None, None, None, "(a=1 pid=x) stays"),
    ],
)
def test_prefixes_of_servers_containers_and_journals_are_split_off(
    raw: str, process: str | None, pid: int | None, rank: int | None, stamp: str | None, rest: str
) -> None:
    assert split_prefix(raw, 4) == Line(4, rest, process, pid, rank, stamp)


def test_progress_bar_updates_share_the_line_number() -> None:
    lines = list(read_lines(b"a\rb 50%\rc\nnext\n"))
    assert [(line.number, line.text) for line in lines] == [(1, "a"), (1, "b 50%"), (1, "c"), (2, "next")]


def test_a_line_of_megabytes_keeps_its_beginning_and_the_next_line_its_number() -> None:
    lines = list(read_lines(b"x" * (3 << 20) + b"\nafter\n"))
    assert len(lines[0].text) == MAX_LINE
    assert (lines[1].number, lines[1].text) == (2, "after")


def test_the_splitter_holds_no_more_than_one_bounded_line() -> None:
    splitter = LineSplitter()
    for _ in range(200):
        assert list(splitter.feed(b"y" * 65536)) == []
    assert len(splitter._held) <= MAX_LINE
    assert len(next(splitter.finish()).text) == MAX_LINE


def test_files_are_streamed_and_a_missing_one_is_a_readable_error(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"one\ntwo")
    assert [line.text for line in read_file(str(log))] == ["one", "two"]
    with pytest.raises(UnreadableInput):
        list(read_file(str(tmp_path / "missing.log")))
    with pytest.raises(UnreadableInput):
        list(read_file(str(tmp_path)))


@settings(deadline=None)
@given(st.binary(max_size=400), st.lists(st.integers(1, 40), max_size=30))
def test_chunking_never_changes_the_lines(data: bytes, cuts: list[int]) -> None:
    splitter, at = LineSplitter(), 0
    found: list[Line] = []
    for cut in cuts:
        found.extend(splitter.feed(data[at : at + cut]))
        at += cut
    found.extend(splitter.feed(data[at:]))
    found.extend(splitter.finish())
    assert found == list(read_lines(data))


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_accepted_and_control_characters_are_gone(raw: str) -> None:
    for line in read_lines([raw]):
        assert not any(ord(c) < 32 and c != "\t" for c in line.text)
