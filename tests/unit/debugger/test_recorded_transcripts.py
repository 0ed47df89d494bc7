"""Every recorded transcript: its facts are golden, and true of the dump it was recorded from."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crashlab.debugger import flags
from crashlab.debugger.transcript import Transcript, parse
from crashlab.facts import Dim3
from crashlab.postmortem.from_transcript import from_transcript
from crashlab.postmortem.samename import same_function
from tests.support import golden
from tests.unit.debugger import recorded

BLIND = {"graph", "many", "oob_store", "oob_store_nolineinfo", "two_devices"}
"""Dumps whose faulting warps had exited: 12.4 sees nothing, 13.0 dies after naming the fault."""


def _plain(value: Any) -> Any:
    if isinstance(value, Dim3):
        return str(value)
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        if hasattr(value, "_asdict"):
            return {k: _plain(v) for k, v in value._asdict().items() if v is not None}
        return [_plain(item) for item in value]
    return str(value) if type(value).__name__ == "Hex" else value


def _condensed(transcript: Transcript) -> dict[str, Any]:
    """The facts, with long tables as their length and first row."""
    out = {k: _plain(v) for k, v in transcript._asdict().items() if v not in (None, (), frozenset(), 0)}
    for table in ("lanes", "warps", "window"):
        if table in out:
            out[table] = {"rows": len(out[table]), "first": out[table][0]}
    if "registers" in out:
        out["registers"] = {"count": len(out["registers"]), "R0": out["registers"].get("R0")}
    return out


@pytest.mark.parametrize("name", recorded.SETS)
def test_the_facts_of_each_set_are_golden(name: str, update_golden: bool) -> None:
    facts = {dump: _condensed(parse(text)) for dump, text in sorted(recorded.transcripts(name).items())}
    golden.check(f"debugger/{name}.json", json.dumps(facts, indent=1) + "\n", update=update_golden)


@pytest.mark.parametrize(("name", "dump"), recorded.cases())
def test_what_a_transcript_says_is_true_of_the_dump(name: str, dump: str) -> None:
    transcript = parse(recorded.transcripts(name)[dump])
    known = recorded.expected()[dump]
    verdict = from_transcript(transcript).verdict
    if dump == "seed_sm120" and name == "cuda-gdb-13.0":
        assert (verdict.kind, transcript.aborted) == ("unreadable", True)
        return
    if dump in BLIND and "12.4" in name:
        assert flags.NO_EXCEPTION in transcript.flags
        assert verdict.kind in ("hang", "no-fault")
        assert verdict.confidence is not None
        assert verdict.confidence.level == "low"
        assert any("exited" in line for line in verdict.does_not_mean)
        return
    assert verdict.kind == known["kind"]
    assert (verdict.exception.code if verdict.exception else None) == known.get("exception_code")
    if verdict.kind != "hang":
        assert str(verdict.pc) == known.get("pc", "None")
    elif "pcs" in known:
        assert str(verdict.pc) in known["pcs"]
    _check_names(verdict, known)


def _check_names(verdict: Any, known: dict[str, Any]) -> None:
    if verdict.kernel is not None and "kernel" in known:
        assert same_function(verdict.kernel.mangled or verdict.kernel.name, known["kernel"])
    if verdict.function is not None and "function" in known and verdict.kind != "hang":
        assert same_function(verdict.function.mangled or verdict.function.name, known["function"])
        if verdict.function.offset is not None and "function_offset" in known:
            assert verdict.function.offset == known["function_offset"]
    if verdict.source is not None and "source" in known:
        file, line = known["source"]
        assert (verdict.source.file.rpartition("/")[2], verdict.source.line) == (
            file.rpartition("/")[2],
            line,
        )


@pytest.mark.parametrize("dump", sorted(BLIND))
def test_an_aborted_debugger_leaves_exception_pc_function_and_line(dump: str) -> None:
    transcript = parse(recorded.transcripts("cuda-gdb-13.0")[dump])
    assert transcript.aborted
    assert transcript.abort_reason is not None
    assert "out_of_range" in transcript.abort_reason
    assert "what():" in transcript.abort_reason
    assert str(transcript.errorpc) == recorded.expected()[dump]["pc"]
    assert transcript.function is not None
    assert transcript.focus is None


def test_both_orders_of_focus_and_exception_are_noticed() -> None:
    assert parse(recorded.transcripts("cuda-gdb-12.4")["deep"]).focus_first is False
    assert parse(recorded.transcripts("cuda-gdb-13.0")["deep"]).focus_first is True
    assert parse(recorded.transcripts("cuda-gdb-13.0")["hang"]).focus_first is None


def test_instructions_come_from_either_version() -> None:
    for name in ("cuda-gdb-12.4", "cuda-gdb-13.0"):
        transcript = parse(recorded.transcripts(name)["shared_oob"])
        verdict = from_transcript(transcript).verdict
        assert verdict.instruction is not None
        assert verdict.instruction.text == "STS.128 [R0], R4"
        assert (verdict.instruction.space, verdict.instruction.width_bytes) == ("shared", 16)
        assert [line.fault for line in verdict.instruction.window].count(True) == 1


def test_a_debugger_without_cuobjdump_still_gives_names_and_offsets() -> None:
    transcript = parse(recorded.transcripts("cuda-gdb-12.4-no-disassembler")["deep"])
    assert flags.CANNOT_DISASSEMBLE in transcript.flags
    assert transcript.errorpc_symbol is not None
    assert transcript.errorpc_symbol.name == "$_Z9deep_callPKfPfx$_Z5innerPKfx"
    assert transcript.errorpc_symbol.offset == 48
    assert from_transcript(transcript).verdict.instruction is None


def test_graph_full_is_not_fooled_by_the_frame() -> None:
    for name in ("cuda-gdb-12.4", "cuda-gdb-13.0", "cuda-gdb-13.0-by-hand"):
        found = from_transcript(parse(recorded.transcripts(name)["graph_full"]))
        assert found.verdict.kernel is not None
        assert found.verdict.kernel.mangled == "_Z16oob_global_storePfxx"
        assert found.verdict.kernel.launch is None
        assert [b.kernel for b in found.bystanders] == ["benign_scale"]


def test_recorded_lane_tables_name_the_exception_of_every_lane() -> None:
    lanes = parse(recorded.transcripts("cuda-gdb-13.0")["shared_oob"]).lanes
    assert len(lanes) == 32
    assert {lane.exception for lane in lanes} == {"Warp Out-of-range Address"}
    assert [lane.lane for lane in lanes if lane.focus] == [0]
    assert (lanes[0].device, lanes[0].sm, lanes[0].warp) == (0, 125, 1)
