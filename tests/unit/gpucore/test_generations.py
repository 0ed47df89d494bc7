"""Every driver generation writes its own row strides; fields it did not write yet are absent, not 0."""

from __future__ import annotations

import pytest

from crashlab.gpucore import layout, table
from crashlab.gpucore.dump import CoreDump
from crashlab.postmortem.evidence import collect
from tests.support.core_writer import KINDS, OFFSETS, STRIDES, stride_of
from tests.support.scene import simple_scene

RELEASES = (346, 390, 400, 470, 525, 535, 550, 555, 560, 565, 570, 575, 580, 590, 615)


@pytest.mark.parametrize("release", RELEASES)
def test_a_fault_is_read_from_the_warp_in_every_generation(release: int) -> None:
    dump = CoreDump(memoryview(simple_scene(release=release, pc=0x7F00_0000_1230, code=6).writer.build()))
    (group,) = collect(dump)
    assert (group.code, group.pc, group.pc_source, group.lanes) == (6, 0x7F00_0000_1230, "errorpc", 32)
    assert group.sms == ((0, 7),)
    assert dump.problems == ()


@pytest.mark.parametrize("release", [r for r in RELEASES if r >= 555])
def test_a_fault_of_an_exited_warp_is_read_from_the_sm(release: int) -> None:
    dump = CoreDump(memoryview(simple_scene(release=release, pc=0x40, code=14, exited=True).writer.build()))
    (group,) = collect(dump)
    assert (group.code, group.pc, group.pc_source) == (14, 0x40, "sm-errorpc")
    assert group.exited


@pytest.mark.parametrize("release", RELEASES)
def test_fields_of_later_generations_are_absent(release: int) -> None:
    dump = CoreDump(memoryview(simple_scene(release=release, pc=0x40).writer.build()))
    sm, warp, device = dump.sms[0], dump.warps[0], dump.devices[0]
    assert (sm.errorpc is None) == (release < 555)
    assert (sm.exception_string is None) == (release < 580)
    assert (warp.shared_mem_size is None) == (release < 570)
    assert (warp.barrier_scope is None) == (release < 590)
    assert (device.num_uniform_regs is None) == (release < 400)
    assert (dump.meta is None) == (release < 565)
    assert (dump.lanes(warp)[0].rpc_lo is None) == (release < 615)
    assert dump.grids[0].cluster_dim is None if release < 525 else dump.grids[0].cluster_dim is not None


@pytest.mark.parametrize("arch", [(7, 5), (8, 0), (8, 6), (9, 0), (10, 0), (10, 3), (12, 0), (12, 1)])
def test_the_architecture_comes_from_the_device_table(arch: tuple[int, int]) -> None:
    dump = CoreDump(memoryview(simple_scene(arch=arch, pc=0x40).writer.build()))
    assert dump.devices[0].arch == f"sm_{arch[0]}{arch[1]}"


@pytest.mark.parametrize("name", sorted(STRIDES))
def test_reader_and_writer_agree_on_every_field_of_the_newest_stride(name: str) -> None:
    kind = {"constbank": layout.CONSTANT_BANK_TABLE}.get(name, KINDS[name])
    stride = STRIDES[name][-1][1]
    unpacker, count = table.row_struct(kind, stride)
    read = {offset: code for _name, offset, code in layout.ROWS[kind][:count]}
    assert unpacker.size == stride
    for field, (offset, code) in OFFSETS[name].items():
        assert read.get(offset) == code, field


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", ["sm", "warp", "lane", "grid", "device", "cta"])
def test_a_row_is_consumed_whole_at_every_stride(name: str, release: int) -> None:
    stride = stride_of(name, release)
    assert stride is not None
    unpacker, fields = table.row_struct(KINDS[name], stride)
    assert unpacker.size == stride
    assert fields >= 1


def test_a_stride_from_the_future_is_read_by_its_known_prefix() -> None:
    unpacker, fields = table.row_struct(layout.LANE_TABLE, 128)
    assert unpacker.size == 128
    assert fields == len(layout.ROWS[layout.LANE_TABLE])
