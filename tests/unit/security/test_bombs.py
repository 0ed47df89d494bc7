"""Small files that unpack to large ones cost neither memory nor hours."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import struct
import tracemalloc
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from crashlab.errors import UnreadableDump, UnreadableInput
from crashlab.gpucore import source
from crashlab.logs import text as logtext
from crashlab.report import bundlecheck, bundlefiles
from tests.support.command import run_cli

MIB = 1 << 20


def zeros(count: int, last: bytes, compress: Callable[[], object]) -> bytes:
    packer = compress()
    out = b"".join(packer.compress(bytes(MIB)) for _ in range(count))  # type: ignore[attr-defined]
    return out + packer.compress(last) + packer.flush()  # type: ignore[attr-defined, no-any-return]


PACKERS = {"xz": lambda: lzma.LZMACompressor(preset=0), "gzip": lambda: zlib.compressobj(wbits=31)}


@pytest.mark.parametrize("packer", PACKERS)
def test_a_byte_behind_gigabytes_of_zeros_does_not_fill_memory(
    packer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_IN_MEMORY", 8 * MIB)
    packed = tmp_path / "bomb.core"
    packed.write_bytes(zeros(200, b"x", PACKERS[packer]))
    assert packed.stat().st_size < MIB
    tracemalloc.start()
    try:
        view, size, _ = source.open_view(packed)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (size, view[size - 1], view[size - 2]) == (200 * MIB + 1, ord("x"), 0)
    assert peak < 24 * MIB


@pytest.mark.parametrize("packer", PACKERS)
def test_what_unpacks_to_more_than_there_is_room_for_is_refused(packer: str, tmp_path: Path) -> None:
    packed = tmp_path / "bomb.core"
    packed.write_bytes(zeros(64, b"", PACKERS[packer]))
    with pytest.raises(UnreadableDump) as caught:
        source.open_view(packed, unpack_limit=32 * MIB)
    assert caught.value.reason == "too-large"


def test_a_dictionary_of_gigabytes_is_refused(tmp_path: Path) -> None:
    """The dictionary's size stands in the header of a block and is allocated before the first byte."""
    small = lzma.compress(b"x" * 100, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}])
    assert small[12:16] == b"\x02\x00\x21\x01", "block header: size, flags, filter LZMA2, one property byte"
    header = bytearray(small[12:20])
    header += small[20:24]
    header[4] = 39  # (2 | (39 & 1)) << (39 // 2 + 11): 3 GiB
    head = bytes(header[:8])
    packed = tmp_path / "bomb.core.xz"
    packed.write_bytes(small[:12] + head + struct.pack("<I", zlib.crc32(head)) + small[24:])
    with pytest.raises(UnreadableDump, match="memory") as caught:
        source.open_view(packed)
    assert caught.value.reason == "too-large"


def test_a_gzip_member_inside_another_is_only_unpacked_once(tmp_path: Path) -> None:
    packed = tmp_path / "twice.core"
    packed.write_bytes(gzip.compress(gzip.compress(bytes(1000))))
    view, _, _ = source.open_view(packed)
    assert bytes(view[:2]) == b"\x1f\x8b"


def bundle(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        archive.writestr("manifest.json", json.dumps({"schema": "crashlab.bundle/1", "files": []}))
    return out.getvalue()


def test_a_zip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundlecheck, "_TOTAL", 40 * MIB)
    path = tmp_path / "bomb.zip"
    path.write_bytes(bundle({f"{n}.bin": bytes(10 * MIB) for n in range(6)}))
    assert path.stat().st_size < MIB
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableInput, match="more than a bundle can hold"):
            bundlecheck.check(path)
        assert tracemalloc.get_traced_memory()[1] < 30 * MIB, "files are looked at one by one and not kept"
    finally:
        tracemalloc.stop()


def test_one_file_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    path.write_bytes(bundle({"x.bin": bytes(65 * MIB)}))
    with pytest.raises(UnreadableInput, match="more than a bundle can hold"):
        bundlecheck.check(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packing_that_crashlab_never_uses_is_refused(method: int, tmp_path: Path) -> None:
    path = tmp_path / "odd.zip"
    path.write_bytes(bundle({"x.log": b"hello"}, method))
    with pytest.raises(UnreadableInput, match="never packs"):
        bundlecheck.check(path)


def test_a_file_too_large_for_a_part_is_not_even_opened_as_a_zip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.zip"
    path.write_bytes(bundle({"x.log": b"hello"}))
    monkeypatch.setattr(bundlecheck, "_PART", 100)
    with pytest.raises(UnreadableInput, match="larger than a part"):
        bundlecheck.check(path)


def test_names_that_lead_out_of_a_folder_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    names = ("../../slip.txt", "/tmp/crashlab-zip-slip.txt", "..\\..\\slip.txt", "\x1b[2Jx.txt")
    path = inside / "slip.zip"
    path.write_bytes(bundle(dict.fromkeys(names, b"owned")))
    before = sorted(tmp_path.rglob("*"))
    found = run_cli("bundle", "--check", str(path))
    assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/tmp/crashlab-zip-slip.txt").exists()
    assert "\x1b" not in found.out + found.err


def test_a_bundle_takes_no_more_text_than_it_can_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundlefiles, "_ALL_TEXT", 2 * MIB)
    for number in range(4):
        (tmp_path / f"{number}.log").write_bytes(b"x\n" * (MIB // 2 + 1))
    found, texts = bundlefiles.read_all(tmp_path)
    assert sorted(texts) == ["0.log", "1.log"]
    assert {item.name: item.why for item in found if item.kind is None} == {
        "2.log": "the bundle holds 2 MiB of text already",
        "3.log": "the bundle holds 2 MiB of text already",
    }


def test_a_file_that_cannot_be_read_stays_out_of_a_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.log").write_text("hello")

    def refuse(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(bundlefiles, "raw_text", refuse)
    (item,), texts = bundlefiles.read_all(tmp_path)
    assert (item.kind, item.why, texts) == (None, "cannot be read: Permission denied", {})


def test_a_name_that_stands_twice_in_a_bundle_hides_nothing(tmp_path: Path) -> None:
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("raw/x.log", "hf_" + "a" * 30)
        archive.writestr("raw/x.log", "nothing private")
    path = tmp_path / "twice.zip"
    path.write_bytes(out.getvalue())
    with pytest.raises(UnreadableInput, match="twice"):
        bundlecheck.check(path)


@pytest.mark.parametrize("packer", PACKERS)
def test_a_log_that_unpacks_to_far_more_than_text_does_is_refused(
    packer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = PACKERS[packer]()
    monkeypatch.setattr(logtext, "_UNPACKED_ANYWAY", 2 * MIB)
    monkeypatch.setattr(logtext, "_RATIO", 5)
    log = tmp_path / "bomb.log"
    piece = b"\n" * MIB
    log.write_bytes(b"".join(pack.compress(piece) for _ in range(8)) + pack.flush())
    with pytest.raises(UnreadableInput, match="unpacks to more"):
        for _ in logtext.read_file(str(log)):
            pass
