"""The debugger's word against our own: agreement, difference, and the reason why one stands."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import pytest

from crashlab import facts
from crashlab.debugger.transcript import Transcript, parse
from crashlab.facts import Dim3, Hex, InlineFrame
from crashlab.gpucore.dump import CoreDump
from crashlab.logs.driver_facts import DriverException
from crashlab.postmortem.attribute import attribute
from crashlab.postmortem.codemap import CodeMap
from crashlab.postmortem.evidence import collect
from crashlab.postmortem.reconcile import Reconciliation, reconcile
from tests.support import corpus
from tests.unit.debugger import recorded

TEXT = """
    [Current focus set to CUDA kernel 0, grid 7, block (5,0,0), thread (0,0,0), device 0, sm 9, warp 2, lane 0]

    CUDA Exception: Warp Illegal Address
    The exception was triggered at PC 0x7f10  scale(float*, int)  (scale.cu:41)
    #0  0x0000000000007f30 in scale<<<(8,1,1),(64,1,1)>>> () at scale.cu:41
    ==window
    *> 0x7f10 <_Z5scalePfi+32>:\tSTG.E desc[UR4][R2.64],R5
"""


def _verdict(**changes: object) -> facts.Verdict:
    verdict = facts.Verdict(
        kind="gpu-fault",
        headline="Warp Illegal Address in scale",
        exception=facts.GpuException(14, "Warp Illegal Address"),
        kernel=facts.Kernel(
            "scale(float*, int)", "_Z5scalePfi", facts.Launch(Dim3(8, 1, 1), Dim3(64, 1, 1)), "grid"
        ),
        function=facts.Function("scale(float*, int)", "_Z5scalePfi", 32),
        pc=Hex(0x7F10),
        pc_source="errorpc",
        instruction=facts.Instruction("STG.E desc[UR4][R2.64], R5", "STG.E"),
        source=facts.Source("/src/scale.cu", 41),
        where=facts.Where(device=0, sms=(9, 12)),
    )
    return verdict._replace(**changes)


def _fault(verdict: facts.Verdict) -> facts.Fault:
    return facts.Fault(
        verdict.exception,
        verdict.pc,
        verdict.pc_source,
        verdict.kernel,
        verdict.function,
        verdict.source,
        None,
        verdict.where,
    )


def _reconcile(
    verdict: facts.Verdict,
    text: str = TEXT,
    *,
    others: Sequence[facts.Fault] = (),
    **kwargs: object,
) -> Reconciliation:
    native = (_fault(verdict), *others) if verdict.kind in ("gpu-fault", "device-assert", "trap") else ()
    return reconcile(native, verdict, parse(textwrap.dedent(text)), **kwargs)  # type: ignore[arg-type]


def _only(found: Reconciliation) -> facts.Inconsistency:
    (one,) = found.inconsistencies
    return one


def test_full_agreement_gives_reasons_and_no_inconsistency() -> None:
    found = _reconcile(_verdict())
    assert found.inconsistencies == found.doubts == found.notes == ()
    assert found.agreements == (
        "cuda-gdb reports the same exception, Warp Illegal Address",
        "cuda-gdb gives the same PC, 0x7f10",
        "cuda-gdb names the same function and offset, scale(float*, int)+0x20",
        "cuda-gdb's backtrace shows the same kernel, scale",
        "cuda-gdb gives the same source line, scale.cu:41",
    )


def test_a_frame_in_another_kernel_than_the_errorpc_is_explained() -> None:
    one = _only(_reconcile(_verdict(), TEXT.replace("in scale<<<", "in innocent<<<")))
    assert one.what == "cuda-gdb's backtrace shows innocent, the fault is in scale(float*, int)."
    assert one.sources["cuda_gdb"] == "frame #0 innocent; triggered at PC 0x7f10"
    assert "slot already runs the next kernel" in one.resolution


def test_no_exception_against_the_record_of_a_warp_that_has_exited() -> None:
    text = "warning: No exception was found on any device\nNo CUDA kernels.\n"
    one = _only(_reconcile(_verdict(pc_source="sm-errorpc"), text))
    assert one.what == "The dump holds a fault, cuda-gdb shows none."
    assert one.sources["native"] == "Warp Illegal Address (14) at 0x7f10"
    assert "had exited" in one.resolution
    assert "does not understand them" in _only(_reconcile(_verdict(), text)).resolution


def test_an_exception_that_only_cuda_gdb_sees_is_a_doubt_and_not_resolved() -> None:
    found = _reconcile(facts.Verdict("hang", "No GPU exception"))
    assert found.inconsistencies[0].sources["cuda_gdb"] == "Warp Illegal Address (14) at 0x7f10"
    assert found.inconsistencies[0].resolution.startswith("Unresolved")
    assert found.doubts == ("cuda-gdb reports an exception that the native reading does not see",)


def test_two_hangs_agree() -> None:
    text = "#0  0x0000000000007f30 in spin<<<(8,1,1),(64,1,1)>>> () at spin.cu:4\n"
    verdict = facts.Verdict("hang", "No GPU exception", kernel=facts.Kernel("spin(int*)", "_Z4spinPi"))
    assert _reconcile(verdict, text).agreements == (
        "cuda-gdb shows no exception either",
        "cuda-gdb's backtrace shows the same kernel, spin",
    )
    elsewhere = verdict._replace(kernel=facts.Kernel("other()", "_Z5otherv"))
    assert _reconcile(elsewhere, text).inconsistencies == ()  # several kernels may be resident


def test_kinds_of_stop_can_differ() -> None:
    one = _reconcile(_verdict(kind="trap", exception=None)).inconsistencies[0]
    assert one.sources == {"native": "trap", "cuda_gdb": "gpu-fault"}


def test_another_exception_code_is_told() -> None:
    verdict = _verdict(exception=facts.GpuException(5, "Warp Out-of-range Address"))
    one = _only(_reconcile(verdict))
    assert one.sources == {"native": "Warp Out-of-range Address (5)", "cuda_gdb": "Warp Illegal Address (14)"}
    assert one.resolution.startswith("The dump's code stands")


def test_the_swapped_cluster_numbers_are_explained() -> None:
    verdict = _verdict(exception=facts.GpuException(17, "Cluster Out-of-range Address"))
    text = TEXT.replace("Warp Illegal Address", "Cluster target block not present")
    assert "swap 17 and 18" in _only(_reconcile(verdict, text)).resolution


def test_an_exception_without_a_known_name_is_told() -> None:
    one = _only(_reconcile(_verdict(), TEXT.replace("Warp Illegal Address", "Warp Of A New Kind")))
    assert one.sources["cuda_gdb"] == "Warp Of A New Kind"


def test_another_of_several_faults_is_no_contradiction() -> None:
    other = _fault(_verdict())._replace(pc=Hex(0x7F10))
    verdict = _verdict(pc=Hex(0x7F90), source=facts.Source("scale.cu", 50))
    found = _reconcile(verdict, others=(other,))
    one = _only(found)
    assert one.sources["native"] == "0x7f90"
    assert "records 2 distinct faults" in one.resolution
    assert any("source line, scale.cu:41" in reason for reason in found.agreements)  # of the fault it shows


@pytest.mark.parametrize(
    ("log", "why"),
    [
        ((), "The dump's hardware record stands."),
        (
            (DriverException(14, "CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS", pc=Hex(0x7F90)),),
            "The driver's log gives the same PC as the dump, so these two outweigh the debugger.",
        ),
        (
            (DriverException(14, "CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS"),),
            "The dump's hardware record stands.",
        ),
    ],
)
def test_another_pc_is_told_with_what_the_driver_says(log: tuple[DriverException, ...], why: str) -> None:
    one = _only(_reconcile(_verdict(pc=Hex(0x7F90)), log=log))
    assert (one.sources["native"], one.sources["cuda_gdb"], one.resolution) == ("0x7f90", "0x7f10", why)


def test_an_assert_seen_from_its_caller_is_explained() -> None:
    text = "Assertion failed.\n#0  0x0000000000007f30 in __assertfail () at a.cu:1\n"
    verdict = _verdict(
        kind="device-assert", exception=facts.GpuException(12, "Warp Assert"), pc_source="backtrace"
    )
    assert "innermost caller" in _only(_reconcile(verdict, text)).resolution


def test_another_function_or_offset_at_the_same_pc_is_told() -> None:
    other = _verdict(function=facts.Function("inner(int)", "_Z5inneri", 16))
    assert _only(_reconcile(other)).sources == {"native": "inner(int)", "cuda_gdb": "scale(float*, int)"}
    shifted = _verdict(function=facts.Function("scale(float*, int)", "_Z5scalePfi", 48))
    assert _only(_reconcile(shifted)).sources == {
        "native": "scale(float*, int)+0x30",
        "cuda_gdb": "scale(float*, int)+0x20",
    }


def test_names_that_differ_only_by_demangling_agree() -> None:
    bare = _verdict(
        function=facts.Function("scale", None, None), kernel=facts.Kernel("void scale(float*, int)", None)
    )
    assert _reconcile(bare).inconsistencies == ()


def test_another_launch_of_the_kernel_is_told() -> None:
    kernel = facts.Kernel(
        "scale(float*, int)", "_Z5scalePfi", facts.Launch(Dim3(9, 1, 1), Dim3(64, 1, 1)), "grid"
    )
    one = _only(_reconcile(_verdict(kernel=kernel)))
    assert one.what == "cuda-gdb and the dump give different grid dimensions."


def test_source_lines_may_differ_by_inlining_or_by_reading() -> None:
    inlined = facts.Source("vec.h", 9, (InlineFrame("/src/scale.cu", 41),))
    assert "inlined" in _only(_reconcile(_verdict(source=inlined))).resolution
    text = TEXT.replace("(scale.cu:41)", "(vec.h:9 in _Z4loadPKi inlined from scale.cu:41)")
    assert "inlined" in _only(_reconcile(_verdict(), text)).resolution
    assert (
        "read the line table differently"
        in _only(_reconcile(_verdict(source=facts.Source("scale.cu", 44)))).resolution
    )


def test_a_focus_on_an_sm_without_a_fault_is_told() -> None:
    one = _only(_reconcile(_verdict(where=facts.Where(device=1, sms=(9,)))))
    assert one.sources == {"native": "device 1, SMs 9", "cuda_gdb": "device 0, SM 9"}


def test_another_opcode_is_told_but_other_operand_order_is_not() -> None:
    ordered = facts.Instruction("STG.E R5, desc[UR4][R2.64]", "STG.E")
    assert _reconcile(_verdict(instruction=ordered)).inconsistencies == ()
    other = facts.Instruction("LDG.E R5, [R2.64]", "LDG.E")
    assert _only(_reconcile(_verdict(instruction=other))).sources["native"] == "LDG.E R5, [R2.64]"


def test_an_aborted_debugger_is_one_line_and_its_words_still_count() -> None:
    detail = "terminate called after throwing an instance of 'std::out_of_range'"
    session = facts.ReaderStatus("aborted", version="13.0", detail=detail)
    found = _reconcile(_verdict(), session=session)
    one = _only(found)
    assert one.what == "cuda-gdb 13.0 aborted on this dump."
    assert (one.sources["cuda_gdb"], one.sources["native"]) == (detail, "Warp Illegal Address in scale")
    assert "warp had exited" in one.resolution
    assert one.resolution.endswith("compared with the dump like that of a session that ended well.")
    assert found.agreements


@pytest.mark.parametrize(("status", "words"), [("timed-out", "did not finish in time"), ("failed", "failed")])
def test_a_debugger_that_said_nothing_costs_one_line(status: str, words: str) -> None:
    found = reconcile((), _verdict(), None, facts.ReaderStatus(status, detail="x"))
    one = _only(found)
    assert one.what == f"cuda-gdb {words} on this dump."
    assert "rests on the dump alone" in one.resolution


def test_a_dump_that_nobody_can_read_is_not_the_debuggers_fault() -> None:
    verdict = facts.Verdict("unreadable", "cut short")
    one = _only(reconcile((), verdict, None, facts.ReaderStatus("aborted", version="12.4")))
    assert one.resolution.startswith("The dump itself cannot be read")


@pytest.mark.parametrize("status", ["missing", "refused", "skipped"])
def test_a_debugger_that_never_ran_is_a_note(status: str) -> None:
    found = reconcile((), _verdict(), None, facts.ReaderStatus(status, detail="none found"))
    assert (found.inconsistencies, found.notes) == ((), (f"cuda-gdb was not heard ({status}): none found.",))
    assert reconcile((), _verdict(), None).notes == ()


def test_a_debugger_older_than_the_driver_is_told() -> None:
    misfits = ("the dump's driver 580.159 belongs to CUDA 13.0",)
    one = _only(_reconcile(_verdict(), session=facts.ReaderStatus("ok", version="12.4"), misfits=misfits))
    assert one.sources == {"native": misfits[0], "cuda_gdb": "version 12.4"}
    text = "warning: Encountered unhandled device exception (20)\nCUDA Exception: Device Unknown Exception\n"
    verdict = _verdict(exception=facts.GpuException(20, "Warp Tensor Memory Access Check"))
    unhandled = _only(_reconcile(verdict, text))
    assert unhandled.sources["native"] == "it knows no name for exception 20"


def test_an_empty_transcript_is_compared_with_nothing() -> None:
    assert reconcile((), _verdict(), Transcript()).inconsistencies == ()


RECORDED = [case for case in recorded.cases("cuda-gdb-12.4", "cuda-gdb-13.0") if case[1] in corpus.manifest()]


@pytest.mark.parametrize(("name", "dump"), RECORDED)
def test_every_recorded_session_agrees_with_the_dump_or_is_explained(name: str, dump: str) -> None:
    if dump == "cut_short":
        pytest.skip("no reader can open it")
    core = CoreDump.open(corpus.path(dump))
    codemap = CodeMap(core)
    faults = [attribute(core, codemap, group).fault for group in collect(core)]
    transcript = parse(recorded.transcripts(name)[dump])
    if not faults:
        found = reconcile((), facts.Verdict("hang", "No GPU exception"), transcript)
        assert found.inconsistencies == ()
        assert found.agreements[0] == "cuda-gdb shows no exception either"
        return
    lead = faults[0]
    code = lead.exception.code if lead.exception else None
    kind = "trap" if code is None else "device-assert" if code == 12 else "gpu-fault"
    verdict = facts.Verdict(
        kind,
        "fault",
        lead.exception,
        lead.kernel,
        lead.function,
        lead.pc,
        lead.pc_source,
        source=lead.source,
        where=lead.where,
    )
    found = reconcile(faults, verdict, transcript)
    what = [one.what for one in found.inconsistencies]
    if lead.pc_source == "sm-errorpc" and "12.4" in name:
        assert what == ["The dump holds a fault, cuda-gdb shows none."]
    elif dump == "graph_full":
        assert len(what) == 1
        assert "backtrace shows benign_scale" in what[0]
    elif dump == "seed_sm120" and "13.0" in name:
        assert (what, found.agreements) == ([], ())
    else:
        assert what == []
        assert any("same PC" in reason for reason in found.agreements)
