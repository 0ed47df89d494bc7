"""The reader over real and artificial dumps: tables, parents, thread state, memory, damage."""

from __future__ import annotations

import gzip
import lzma
import struct
from pathlib import Path

import pytest

from crashlab.errors import UnreadableDump
from crashlab.facts import Dim3
from crashlab.gpucore import layout
from crashlab.gpucore.dump import CoreDump
from tests.support import corpus
from tests.support.core_writer import CoreWriter
from tests.support.scene import simple_scene


def test_a_real_dump_gives_its_tables() -> None:
    dump = CoreDump.open(corpus.path("shared_oob"))
    assert [dump.string(d.dev_name) for d in dump.devices] == ["NVIDIA H200"]
    assert dump.devices[0].arch == "sm_90"
    assert len(dump.sms) == 132
    assert len(dump.modules) == 10
    assert [g.grid_dim for g in dump.grids] == [Dim3(4, 1, 1), Dim3(1, 1, 1)]
    assert len(dump.ctas) == 5
    assert dump.meta is not None
    assert (dump.meta.driver_major, dump.meta.driver_minor) == (580, 159)


def test_registers_and_predicates_of_a_real_thread_are_those_cuda_gdb_prints() -> None:
    dump = CoreDump.open(corpus.path("shared_oob"))
    warp = next(w for w in dump.warps if w.errorpc_valid and w.warp_id == 1)
    lane = dump.lanes(warp)[0]
    registers, predicates, uniform = dump.registers(lane), dump.predicates(lane), dump.uniform_registers(warp)
    assert registers is not None
    assert predicates is not None
    assert uniform is not None
    assert registers[:5] == (0xF110, 0xFFFC60, 0xCBE00100, 0x7FE5, 0x3F800000)
    assert predicates[:3] == (0, 1, 0)
    assert (uniform[4], uniform[9]) == (0x400, 0xE91)
    assert lane.thread == Dim3(64, 0, 0)


def test_a_thread_of_a_light_dump_has_no_memory_and_says_so_with_none() -> None:
    dump = CoreDump.open(corpus.path("oob_load"))
    lane = dump.lanes(dump.warps[0])[0]
    cta = dump.cta_of(dump.warps[0])
    assert cta is not None
    assert dump.local_memory(lane) is None
    assert dump.shared_memory(cta) is None
    assert dump.read_memory(0x1000, 4) is None


def test_a_full_dump_gives_bytes_of_global_and_shared_memory() -> None:
    dump = CoreDump.open(corpus.path("shared_oob_full"))
    section = max(dump.memory_ranges(), key=lambda s: s.size)
    assert section.size > 1 << 20
    assert dump.read_memory(section.address + 16, 64) == bytes(dump.data(section)[16:80])
    assert dump.read_memory(section.address + section.size - 4, 8) is None
    warp = next(w for w in dump.warps if w.errorpc_valid)
    cta = dump.cta_of(warp)
    assert cta is not None
    shared = dump.shared_memory(cta)
    assert shared is not None
    assert shared.size >= 49152


def test_each_device_has_its_own_tables() -> None:
    dump = CoreDump.open(corpus.path("two_devices"))
    assert len(dump.devices) == 2
    assert len(dump.sms) == 264
    faulted = [sm for sm in dump.sms if sm.exception]
    assert {dump.device_index(dump.device_of(sm)) for sm in faulted} == {1}
    warp = dump.warps[0]
    cta = dump.cta_of(warp)
    assert cta is not None
    grid = dump.grid_of(cta)
    assert grid is not None
    assert dump.device_index(dump.device_of(grid)) == 0


def test_parents_come_from_row_numbers_and_not_from_names() -> None:
    w = CoreWriter()
    devices = w.table("device", "devtbl")
    devices.add(numSMs=2)
    sms = w.table("sm", "smtbl.dev9", devices.index, 0)
    sms.add(smId=40)
    sms.add(smId=41)
    ctas = w.table("cta", "ctatbl.dev0.sm40", sms.index, 1)  # the name lies: the row says SM 41
    ctas.add(gridId64=1)
    dump = CoreDump(memoryview(w.build()))
    sm = dump.sm_of(dump.ctas[0])
    assert sm is not None
    assert sm.sm_id == 41


def test_grid_ids_are_resolved_on_the_blocks_own_device() -> None:
    w = CoreWriter()
    devices = w.table("device", "devtbl")
    devices.add()
    devices.add()
    for number, entry in ((0, 0x111), (1, 0x222)):
        w.table("grid", f"gridtbl.dev{number}", devices.index, number).add(gridId64=3, functionEntry=entry)
    sms = w.table("sm", "smtbl.dev1", devices.index, 1)
    sms.add(smId=0)
    w.table("cta", "ctatbl", sms.index, 0).add(gridId64=3)
    dump = CoreDump(memoryview(w.build()))
    grid = dump.grid_of(dump.ctas[0])
    assert grid is not None
    assert grid.function_entry == 0x222


@pytest.mark.parametrize("forced", [False, True])
def test_more_sections_than_the_elf_header_can_count(forced: bool) -> None:
    scene = simple_scene(pc=0x40)
    if not forced:
        for number in range(66_000):
            scene.writer.section(f".cudbg.x{number % 7}", 99, b"")
    data = scene.writer.build(extended_numbering=forced)
    assert struct.unpack_from("<H", data, 0x3C)[0] == 0
    dump = CoreDump(memoryview(data))
    assert len(dump.sections) > (66_000 if not forced else 10)
    assert dump.warps[0].errorpc == 0x40
    assert dump.string(dump.devices[0].dev_name) == "Test GPU"


def test_unknown_section_types_are_kept_and_ignored() -> None:
    scene = simple_scene(pc=0x40)
    scene.writer.section(".cudbg.future", 77, b"abc")
    dump = CoreDump(memoryview(scene.writer.build()))
    assert [s.size for s in dump.sections.of_kind(77)] == [3]
    assert dump.warps[0].errorpc == 0x40


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_compressed_dump_reads_like_the_plain_one(pack: object, tmp_path: Path) -> None:
    packed = tmp_path / "core.gz"
    packed.write_bytes(pack(corpus.raw("oob_load")))  # type: ignore[operator]
    plain, other = CoreDump.open(corpus.path("oob_load")), CoreDump.open(packed)
    assert other.warps == plain.warps
    assert other.compression in ("gzip", "xz")


def test_a_compressed_dump_that_ends_early_is_cut_short(tmp_path: Path) -> None:
    packed = tmp_path / "core.gz"
    packed.write_bytes(gzip.compress(corpus.raw("oob_load"))[:-5000])
    with pytest.raises(UnreadableDump) as caught:
        CoreDump.open(packed)
    assert caught.value.reason == "cut-short"


def test_a_compression_bomb_stops_at_the_limit(tmp_path: Path) -> None:
    from crashlab.gpucore.source import open_view

    packed = tmp_path / "bomb.gz"
    packed.write_bytes(gzip.compress(bytes(50 << 20)))
    with pytest.raises(UnreadableDump) as caught:
        open_view(packed, unpack_limit=10 << 20)
    assert caught.value.reason == "too-large"


def test_a_large_compressed_dump_is_unpacked_to_disk(tmp_path: Path) -> None:
    scene = simple_scene(pc=0x40, memory=(0x7F00_0000_0000, 80 << 20))
    packed = tmp_path / "core.gz"
    packed.write_bytes(gzip.compress(scene.writer.build(), compresslevel=1))
    dump = CoreDump.open(packed)
    assert dump.warps[0].errorpc == 0x40
    assert dump.read_memory(0x7F00_0000_0000, 16) == bytes(16)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"hello world, this is a log file\n", "not-elf"),
        (b"\x7fELF\x02\x01", "cut-short"),
        (Path("/proc/self/exe").read_bytes()[:4096], "not-gpu-core"),
        (b"\x7fELF\x01\x01\x01" + bytes(100), "not-gpu-core"),
    ],
)
def test_what_is_no_dump_is_refused_with_its_reason(content: bytes, reason: str, tmp_path: Path) -> None:
    target = tmp_path / "x"
    target.write_bytes(content)
    with pytest.raises(UnreadableDump) as caught:
        CoreDump.open(target)
    assert caught.value.reason == reason
    assert str(caught.value).endswith(".")


def test_a_cubin_is_told_from_a_dump() -> None:
    dump = CoreDump.open(corpus.path("oob_load"))
    image = max((dump.image(m) for m in dump.modules), key=lambda v: len(v or b""))
    assert image is not None
    with pytest.raises(UnreadableDump, match="cubin"):
        CoreDump(memoryview(bytes(image)))


@pytest.mark.parametrize("bad", ["/nonexistent/core", "nul\0byte", "."])
def test_paths_that_cannot_be_read_are_refused(bad: str) -> None:
    with pytest.raises(UnreadableDump):
        CoreDump.open(bad)


def test_a_folder_is_called_one(tmp_path: Path) -> None:
    with pytest.raises(UnreadableDump, match="is a folder, not a file"):
        CoreDump.open(tmp_path)


def test_a_fifo_is_refused_and_does_not_block(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableDump, match="regular file"):
        CoreDump.open(tmp_path / "pipe")


def test_the_real_dump_that_was_cut_short_says_so() -> None:
    with pytest.raises(UnreadableDump, match="cut short") as caught:
        CoreDump.open(corpus.path("cut_short"))
    assert caught.value.hint is not None
    assert "--log" in caught.value.hint


def test_a_section_outside_the_file_is_empty_and_noted() -> None:
    w = CoreWriter()
    w.table("device", "devtbl").add(numSMs=1)
    data = bytearray(w.build())
    offset = struct.unpack_from("<Q", data, 0x28)[0]
    struct.pack_into("<Q", data, offset + 64 + 0x18, 1 << 40)
    dump = CoreDump(memoryview(bytes(data)))
    assert dump.devices == ()
    assert any("outside the file" in p for p in dump.problems)


def test_a_table_that_claims_absurdly_many_rows_is_cut_and_noted() -> None:
    w = CoreWriter()
    devices = w.table("device", "devtbl")
    for _ in range(layout.ROW_LIMITS[layout.DEVICE_TABLE] + 5):
        devices.add()
    dump = CoreDump(memoryview(w.build()))
    assert len(dump.devices) == layout.ROW_LIMITS[layout.DEVICE_TABLE]
    assert any("claims" in p for p in dump.problems)


def test_a_parent_that_points_at_itself_ends() -> None:
    w = CoreWriter()
    w.table("cta", "ctatbl", 1, 0).add(gridId64=1)
    dump = CoreDump(memoryview(w.build()))
    assert dump.sm_of(dump.ctas[0]) is None
    assert dump.grid_of(dump.ctas[0]) is None
