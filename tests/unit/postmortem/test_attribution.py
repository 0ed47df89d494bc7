"""Who faulted, on every real dump and on artificial ones for what the real ones lack."""

from __future__ import annotations

import pytest

from crashlab.gpucore.dump import CoreDump
from crashlab.postmortem.attribute import attribute, slot_was_reused
from crashlab.postmortem.codemap import CodeMap
from crashlab.postmortem.evidence import collect
from tests.support import corpus
from tests.support.core_writer import CoreWriter
from tests.support.scene import simple_scene

QUIET = ("hang", "no-fault")
FAULTING = [n for n in corpus.names() if corpus.manifest()[n]["expect"]["kind"] not in QUIET]


@pytest.mark.parametrize("name", FAULTING)
def test_kernel_function_offset_and_source_are_those_that_failed(name: str) -> None:
    expect = corpus.manifest()[name]["expect"]
    dump = CoreDump.open(corpus.path(name))
    groups = collect(dump)
    found = attribute(dump, CodeMap(dump), groups[0]).fault
    assert (found.exception.code if found.exception else None) == expect["exception_code"]
    assert (None if found.pc is None else hex(found.pc)) in (expect["pcs"] or [None])
    assert (found.function.mangled if found.function else None) == expect["function"]
    if expect["kernel"] is not None:
        assert found.kernel is not None
        assert found.kernel.mangled == expect["kernel"]
    if expect["function_offset"] is not None and len(expect["pcs"]) == 1:
        assert found.function is not None
        assert found.function.offset == expect["function_offset"]
    source = [found.source.file, found.source.line] if found.source else None
    assert source == expect["source"]
    assert sum(g.lanes for g in groups) == expect["lanes_with_exception"]


@pytest.mark.parametrize("name", [n for n in corpus.names() if n not in FAULTING])
def test_a_dump_without_an_exception_accuses_nobody(name: str) -> None:
    assert collect(CoreDump.open(corpus.path(name))) == ()


def test_the_recorded_pc_overrules_the_kernel_that_reuses_the_slot() -> None:
    dump = CoreDump.open(corpus.path("graph_full"))
    found = attribute(dump, CodeMap(dump), collect(dump)[0])
    assert found.fault.kernel is not None
    assert found.fault.kernel.name == "oob_global_store(float*, long long, long long)"
    assert found.fault.kernel.launch is None
    assert slot_was_reused(found)
    (mismatch,) = found.inconsistencies
    assert "oob_global_store" in mismatch.what
    assert "benign_scale" in mismatch.what
    assert found.bystanders[0].kernel.startswith("benign_scale")


def test_a_pc_in_no_module_names_the_grids_kernel_as_inferred() -> None:
    dump = CoreDump.open(corpus.path("badpc"))
    found = attribute(dump, CodeMap(dump), collect(dump)[0])
    assert found.fault.function is None
    assert found.fault.kernel is not None
    assert found.fault.kernel.launch_source == "inferred"
    assert any("no module" in p for p in found.provenance)


def test_the_assert_names_the_one_thread_that_failed() -> None:
    dump = CoreDump.open(corpus.path("assert"))
    found = attribute(dump, CodeMap(dump), collect(dump)[0]).fault
    assert found.where is not None
    assert [str(t) for t in found.where.threads] == ["(13,0,0)"]
    assert found.exception is not None
    assert found.exception.precision == "lane"


def test_a_fault_on_the_second_device_is_placed_there() -> None:
    dump = CoreDump.open(corpus.path("two_devices"))
    found = attribute(dump, CodeMap(dump), collect(dump)[0]).fault
    assert found.where is not None
    assert found.where.device == 1
    assert found.where.sms == (124, 126)


def _dump_with(*records: tuple[int, int, int]) -> CoreDump:
    """SM records (sm, code, pc) of exited warps."""
    w = CoreWriter()
    devices = w.table("device", "devtbl")
    devices.add(numSMs=8, smMajor=9)
    sms = w.table("sm", "smtbl.dev0", devices.index, 0)
    for sm, code, pc in records:
        sms.add(smId=sm, exception=code, errorPCValid=1, errorPC=pc)
    return CoreDump(memoryview(w.build()))


def test_the_verdict_is_what_most_sms_report() -> None:
    groups = collect(_dump_with((0, 14, 0x100), (1, 14, 0x200), (2, 14, 0x200), (3, 6, 0x100)))
    assert [(g.code, g.pc, len(g.sms)) for g in groups] == [(14, 0x200, 2), (14, 0x100, 1), (6, 0x100, 1)]


def test_ties_go_to_the_lowest_sm_whatever_the_order_in_the_file() -> None:
    groups = collect(_dump_with((5, 14, 0x500), (2, 14, 0x200)))
    assert groups[0].pc == 0x200


def test_an_sm_record_with_another_pc_than_its_warp_is_a_fault_of_its_own() -> None:
    scene = simple_scene(pc=0x1000, code=14)
    data = bytearray(scene.writer.build())
    dump = CoreDump(memoryview(bytes(data)))
    sm = dump.sections[dump.sms[0].section]
    data[sm.offset + 16 : sm.offset + 24] = (0x2000).to_bytes(8, "little")
    groups = collect(CoreDump(memoryview(bytes(data))))
    assert {(g.pc, g.pc_source) for g in groups} == {(0x1000, "errorpc"), (0x2000, "sm-errorpc")}


def test_an_exception_without_an_error_pc_gives_no_pc() -> None:
    """A lane's PC has run past the fault, so it must not stand in for the missing error PC."""
    scene = simple_scene(release=470, pc=0x1000, code=14)
    data = bytearray(scene.writer.build())
    dump = CoreDump(memoryview(bytes(data)))
    warp = dump.sections[dump.warps[0].section]
    data[warp.offset + 24 : warp.offset + 28] = bytes(4)
    dump = CoreDump(memoryview(bytes(data)))
    found = attribute(dump, CodeMap(dump), collect(dump)[0]).fault
    assert found.pc is None
    assert found.exception is not None
    assert found.exception.code == 14


def test_unknown_codes_print_as_their_number() -> None:
    found = attribute((d := _dump_with((0, 77, 0x100))), CodeMap(d), collect(d)[0]).fault
    assert found.exception is not None
    assert found.exception.name == "unknown exception 77"
    assert found.exception.precision == "sm"
