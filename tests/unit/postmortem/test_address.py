"""The rebuilt address: right where the facts allow it, and an honest reason where they do not."""

from __future__ import annotations

from functools import lru_cache

import pytest

from crashlab import facts
from crashlab.report import build
from crashlab.report.options import AnalyzeOptions
from crashlab.sass.disassembler import find_nvdisasm
from tests.support import corpus

pytestmark = pytest.mark.skipif(find_nvdisasm(None) is None, reason="nvdisasm is not installed")


@lru_cache(maxsize=256)
def verdict(name: str) -> facts.Verdict:
    return build.analyze([corpus.path(name)], AnalyzeOptions(debugger="never")).verdict


def address(name: str) -> facts.Address:
    found = verdict(name).address
    assert found is not None
    return found


TRUTH = {n: e["expect"]["address"] for n, e in corpus.manifest().items() if e["expect"].get("address")}


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_state_kind_and_threads_are_what_was_planted(name: str) -> None:
    """The truth of each scene, from its program and its recording; named threads must really have been wrong."""
    truth, found = TRUTH[name], verdict(name).address
    assert (found.state if found else "not-applicable") == truth["state"], found
    if truth["kind"] is None or found is None:
        return
    assert found.kind == truth["kind"]
    guilty = {
        (tuple(entry["block"]), thread)
        for entry in truth["bad_threads"] or ()
        for thread in range(entry["threads"][0], entry["threads"][1] + 1)
    }
    named = {
        (tuple(lane.block), lane.thread.x)
        for lane in found.per_lane
        if lane.bad and lane.thread and lane.block
    }
    assert named <= guilty
    assert not named or named == guilty


RECOVERED = {
    "misaligned": "misaligned",
    "misaligned_shared": "misaligned",
    "multi": "misaligned",
    "oob_load": "far-from-arguments",
    "oob_load_debug": "far-from-arguments",
    "oob_load_nolineinfo": "far-from-arguments",
    "seed_sm120": "shared-past-end",
    "shared_oob": "shared-past-end",
    "shared_oob_debug": "shared-past-end",
    "shared_oob_full": "shared-past-end",
    "shared_oob_nolineinfo": "shared-past-end",
    "tma": "bad-descriptor",
    "torch_triton": "far-from-arguments",
    "badpc": "corrupt-code-pointer",
}
LOST = {
    "deep": "R2 is written by the faulting instruction itself",
    "graph": "had exited",
    "graph_full": "slot runs another kernel",
    "many": "had exited",
    "oob_store": "had exited",
    "oob_store_nolineinfo": "had exited",
    "stack": "loop",
    "two_devices": "had exited",
}


@pytest.mark.parametrize("name", sorted(RECOVERED))
def test_the_address_is_recovered_and_judged(name: str) -> None:
    assert (address(name).state, address(name).kind) == ("recovered", RECOVERED[name])


@pytest.mark.parametrize("name", sorted(LOST))
def test_an_address_that_is_gone_says_why(name: str) -> None:
    found = address(name)
    assert found.state == "not-recoverable"
    assert found.why is not None
    assert LOST[name] in found.why
    assert found.value is None
    assert all(lane.bad is None for lane in found.per_lane)


@pytest.mark.parametrize("name", ["assert", "torch_gather", "trap", "hang", "barrier_hang"])
def test_where_nothing_was_accessed_there_is_no_address(name: str) -> None:
    assert verdict(name).address is None


@pytest.mark.parametrize(
    "name", ["shared_oob", "shared_oob_debug", "shared_oob_full", "shared_oob_nolineinfo"]
)
def test_shared_memory_names_offsets_limit_and_threads(name: str) -> None:
    found = address(name)
    assert found.space == "shared"
    assert found.limit == 50_176
    assert found.width_bytes == 16
    assert len(found.per_lane) == 128
    for lane in found.per_lane:
        assert lane.bad is True
        assert lane.address is not None
        assert lane.thread is not None
        # The program stores to smem4[threadIdx.x + 3729] behind the 1 KiB that the system reserves.
        assert lane.address == 1024 + 16 * (lane.thread.x + 3729)
    assert found.finding is not None
    assert "50,176 bytes (49,152 + 1,024 reserved)" in found.finding


def test_the_field_case_names_the_offset_past_the_block() -> None:
    found = address("seed_sm120")
    assert found.value == 0x400 + 0xE910
    assert "10,512 bytes past its end" in (found.finding or "")


@pytest.mark.parametrize("name", ["oob_load", "oob_load_debug", "oob_load_nolineinfo"])
def test_of_thirty_two_lanes_only_thread_five_is_named(name: str) -> None:
    found = address(name)
    assert [lane.thread for lane in found.per_lane if lane.bad] == [facts.Dim3(5, 0, 0)]
    assert sum(1 for lane in found.per_lane if lane.bad is False) == 31
    where = verdict(name).where
    assert where is not None
    assert where.threads == (facts.Dim3(5, 0, 0),)


def test_alignment_names_the_modulus() -> None:
    assert "4 modulo 16" in (address("misaligned").finding or "")
    assert "8 modulo 16" in (address("misaligned_shared").finding or "")
    assert "computed again from" in (address("misaligned_shared").why or "")


def test_lanes_whose_predicate_was_off_did_not_access() -> None:
    found = address("torch_triton")
    assert [lane.thread for lane in found.per_lane if lane.bad] == [facts.Dim3(92, 0, 0)]
    text = verdict("torch_triton").instruction
    assert text is not None
    assert text.predicate == "!P2"


def test_recursion_is_named_from_the_call_stack() -> None:
    assert "recurse calls itself" in (address("stack").finding or "")


def test_a_corrupt_descriptor_is_shown_by_its_bytes() -> None:
    found = address("tma")
    assert found.space == "tma"
    assert "repeat 0x5a" in (found.finding or "")
    assert "kernel's parameters" in (found.finding or "")


def test_a_jump_outside_all_code_names_the_call_it_came_from() -> None:
    found = address("badpc")
    assert found.value == verdict("badpc").pc
    assert "illegal_insn+0x90" in (found.finding or "")
    assert "CALL" in (found.finding or "")


def test_the_instructions_that_made_the_address_are_listed() -> None:
    origin = address("shared_oob").origin
    assert origin[0].text == "LEA R0, R0, UR4, 0x4"
    assert origin[0].line == 16


def test_the_faulting_line_shows_the_values_of_a_lane_that_was_wrong() -> None:
    instruction = verdict("torch_triton").instruction
    assert instruction is not None
    (line,) = [w for w in instruction.window if w.fault]
    assert line.note is not None
    assert "lane 28" in line.note
    assert "0x7f951bfea770" in line.note


def test_a_single_flipped_bit_is_a_hint_and_nothing_more() -> None:
    assert "bit 37" in (address("oob_load").hint or "")
    assert "power of two" in (address("oob_load").hint or "")
    assert "bit" not in verdict("oob_load").headline
    assert address("shared_oob").hint is None
