"""Logs come as they were rotated and attached: plain, gzip, xz; damaged or hostile ones cost nothing."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from crashlab.errors import UnreadableInput
from crashlab.logs import text
from crashlab.logs.detect import read_evidence_file
from crashlab.logs.text import read_file
from crashlab.report.fromtext import analyze_logs
from crashlab.report.options import AnalyzeOptions

WORDS = b"first line\nsecond line\n" * 5000


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress], ids=["plain", "gzip", "xz"])
def test_a_log_reads_the_same_however_it_is_packed(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(pack(WORDS))
    lines = [line.text for line in read_file(str(path))]
    assert (len(lines), lines[0], lines[-1]) == (10_000, "first line", "second line")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
def test_what_a_cut_off_file_still_holds_is_read(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "server.log"
    packed = pack(bytes(range(256)).hex("\n").encode() * 100)
    path.write_bytes(packed[: len(packed) // 2])
    assert sum(1 for _ in read_file(str(path))) > 0


def test_zstd_names_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "server.log.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(100))
    with pytest.raises(UnreadableInput, match="zstd") as caught:
        list(read_file(str(path)))
    assert caught.value.hint == "Unpack it first: zstd -d."


def test_a_bomb_ends_at_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_MOST_UNPACKED", 1 << 20)
    path = tmp_path / "server.log"
    path.write_bytes(gzip.compress(bytes(8 << 20)))
    with pytest.raises(UnreadableInput, match="unpacks to more than"):
        list(read_file(str(path)))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
def test_a_cut_off_file_is_never_taken_for_a_whole_one(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    whole, cut = tmp_path / "whole.log", tmp_path / "cut.log"
    packed = pack(bytes(range(256)).hex("\n").encode() * 100)
    whole.write_bytes(packed)
    cut.write_bytes(packed[: len(packed) // 2])
    assert read_evidence_file(str(whole)).damage is None
    assert "cut.log is cut short or damaged" in (read_evidence_file(str(cut)).damage or "")
    said = analyze_logs(AnalyzeOptions(logs=(str(cut),))).verdict.does_not_mean
    assert any("cut short" in sentence for sentence in said)


def test_a_dump_given_as_a_log_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "core"
    path.write_bytes(b"\x7fELF" + bytes(100))
    with pytest.raises(UnreadableInput, match="not a log"):
        read_evidence_file(str(path))
