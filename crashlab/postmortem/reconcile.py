"""cuda-gdb's word against our own reading of the same dump: agreement is evidence, difference is output.

Sources rank as hardware records in the dump > driver log > debugger > symbols. A difference is never
resolved silently: each becomes an :class:`~crashlab.facts.Inconsistency` with both values and the
reason why one of them stands. The driver's log is held against the dump in
:mod:`crashlab.postmortem.log_check`; here it is a second witness for what the debugger says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from crashlab import facts
from crashlab.debugger.transcript import Transcript
from crashlab.logs.driver_facts import DriverException
from crashlab.postmortem.debugger_fate import fate_of, unheard, version_trouble
from crashlab.postmortem.from_transcript import exception_of, fault_of, kind_of, launch_frame
from crashlab.postmortem.samename import same_function

_CLUSTER_CODES = {17, 18}
_JUDGED = ("gpu-fault", "device-assert", "trap", "hang", "no-fault")
_FAULTS = _JUDGED[:3]
_Found = Iterator["facts.Inconsistency | str"]


class Reconciliation(NamedTuple):
    """What the witnesses say together.

    ``agreements`` are reasons to trust the verdict more, ``doubts`` reasons to trust it less, both as
    clauses for ``confidence.reasons``. ``notes`` are sentences for the provenance.
    """

    inconsistencies: tuple[facts.Inconsistency, ...] = ()
    agreements: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class _Case(NamedTuple):
    """All that the checks look at."""

    native: tuple[facts.Fault, ...]
    verdict: facts.Verdict
    transcript: Transcript
    said: facts.Fault
    kind: str
    log: tuple[DriverException, ...]

    @property
    def same_fault(self) -> facts.Fault | None:
        """The native fault that cuda-gdb shows: the one at its PC."""
        if self.transcript.errorpc is None:
            return None
        return next((fault for fault in self.native if fault.pc == self.transcript.errorpc), None)


def reconcile(
    native: Sequence[facts.Fault],
    verdict: facts.Verdict,
    transcript: Transcript | None,
    session: facts.ReaderStatus | None = None,
    log: Sequence[DriverException] = (),
    misfits: Sequence[str] = (),
) -> Reconciliation:
    """Hold a debugger session against the native reading.

    ``native`` are all distinct faults of the dump, ``verdict`` the native verdict; ``session`` how the
    debugger fared and ``misfits`` why it may not understand this dump (both from the debugger room).
    Without a transcript only the session's own failure is told.
    """
    found: list[facts.Inconsistency | str] = []
    doubts: list[str] = []
    if session is not None:
        found += fate_of(session, verdict, transcript)
    if transcript is not None:
        found += version_trouble(misfits, transcript, session)
        said = fault_of(transcript)
        case = _Case(tuple(native), verdict, transcript, said, kind_of(transcript), tuple(log))
        for check in _CHECKS:
            found += check(case)
        if case.kind == "gpu-fault" and verdict.kind in ("hang", "no-fault"):
            doubts.append("cuda-gdb reports an exception that the native reading does not see")
    return Reconciliation(
        tuple(item for item in found if isinstance(item, facts.Inconsistency)),
        tuple(item for item in found if isinstance(item, str)),
        tuple(doubts),
        unheard(session),
    )


def _presence(case: _Case) -> _Found:
    """Whether there was a fault at all."""
    faulted = case.verdict.kind in _FAULTS
    if case.kind == "unreadable" or case.verdict.kind not in _JUDGED:
        return
    seen = case.kind not in ("hang", "no-fault")
    if seen and faulted:
        if case.kind == case.verdict.kind:
            return
        yield facts.Inconsistency(
            "cuda-gdb and the dump tell different kinds of stop.",
            {"native": case.verdict.kind, "cuda_gdb": case.kind},
            "The dump's exception codes and warp flags stand; cuda-gdb derives its words from them.",
        )
    elif seen:
        yield facts.Inconsistency(
            "cuda-gdb shows an exception, the native reading none.",
            {"native": case.verdict.kind, "cuda_gdb": _spell(case.said)},
            "Unresolved: cuda-gdb reads the same records, so one of the two misreads the dump. "
            "Please report this dump.",
        )
    elif faulted:
        yield facts.Inconsistency(
            "The dump holds a fault, cuda-gdb shows none.",
            {"native": _spell_verdict(case.verdict), "cuda_gdb": "no exception found"},
            _why_unseen(case),
        )
    else:
        yield "cuda-gdb shows no exception either"


def _why_unseen(case: _Case) -> str:
    if case.verdict.pc_source == "sm-errorpc":
        return (
            "The faulting warps had exited before the GPU stopped. The SM's own record keeps exception and "
            "PC; cuda-gdb 12 looks at resident warps only."
        )
    return "The dump's hardware records stand; this cuda-gdb does not understand them."


def _exception(case: _Case) -> _Found:
    """The exception code."""
    if case.kind not in ("gpu-fault", "device-assert") or case.verdict.exception is None:
        return
    said = exception_of(case.transcript)
    against = case.same_fault or case.verdict
    native = against.exception
    if said is None or native is None:
        return
    if said.code is None:
        yield facts.Inconsistency(
            "cuda-gdb gives the exception no name that is known.",
            {"native": _name(native), "cuda_gdb": said.name},
            "The dump's code stands; the debugger is older or newer than the list of names.",
        )
    elif native.code == said.code:
        yield f"cuda-gdb reports the same exception, {native.name}"
    else:
        why = "The dump's code stands: cuda-gdb derives its name from it."
        if {native.code, said.code} == _CLUSTER_CODES:
            why = "NVIDIA's manual and debugger swap 17 and 18; the dump's code stands."
        yield facts.Inconsistency(
            "cuda-gdb and the dump name different exceptions.",
            {"native": _name(native), "cuda_gdb": _name(said)},
            why,
        )


def _pc(case: _Case) -> _Found:
    """The faulting PC; a thread's own PC runs past it and is no difference."""
    said, native = case.said.pc, case.verdict.pc
    if case.verdict.kind not in _FAULTS or case.kind != case.verdict.kind:
        return
    if said is None or native is None:
        return
    if said == native:
        yield f"cuda-gdb gives the same PC, {native}"
        return
    others = [fault.pc for fault in case.native]
    logged = sum(1 for one in case.log if one.pc == native)
    if said in others:
        why = (
            f"Both are in the dump, which records {len(others)} distinct faults. cuda-gdb shows the one with "
            "the lowest coordinates, the verdict is the one that most SMs report."
        )
    elif case.verdict.pc_source == "backtrace":
        why = "The thread stands in the assert's own code; the verdict is the innermost caller outside it."
    elif logged:
        why = "The driver's log gives the same PC as the dump, so these two outweigh the debugger."
    else:
        why = "The dump's hardware record stands."
    yield facts.Inconsistency(
        "cuda-gdb and the dump give different PCs of the fault.",
        {"native": str(native), "cuda_gdb": str(said), "driver_log": _log_pcs(case.log)},
        why,
    )


def _function(case: _Case) -> _Found:
    """The function that holds the PC, and how far into it."""
    native = (case.same_fault or case.verdict).function
    said = case.said.function
    if native is None or said is None or not _comparable(case):
        return
    names = [name for name in (native.mangled, native.name) if name]
    same = any(same_function(one, other) for one in names for other in (said.mangled, said.name) if other)
    if not same:
        yield facts.Inconsistency(
            "cuda-gdb and the native reading name different functions at the same PC.",
            {"native": native.name, "cuda_gdb": said.name},
            "Symbols overlap; the native reading takes the innermost one that holds the PC.",
        )
    elif None not in (native.offset, said.offset) and native.offset != said.offset:
        yield facts.Inconsistency(
            "cuda-gdb and the native reading count different offsets into the same function.",
            {"native": _offset(native), "cuda_gdb": _offset(said)},
            "One of them counts from another symbol of the same name; the PC itself is the same.",
        )
    elif native.offset is not None and said.offset is not None:
        yield f"cuda-gdb names the same function and offset, {_offset(native)}"
    else:
        yield f"cuda-gdb names the same function, {said.name}"


def _frame(case: _Case) -> _Found:
    """The kernel that the backtrace shows against the kernel that faulted."""
    frame = launch_frame(case.transcript)
    kernel = (case.same_fault or case.verdict).kernel
    if frame is None or frame.function is None or kernel is None:
        return
    names = [name for name in (kernel.mangled, kernel.name) if name]
    same = any(same_function(frame.function, name) for name in names)
    if same:
        yield f"cuda-gdb's backtrace shows the same kernel, {frame.function}"
    if same or not names or not _comparable(case):
        return
    yield facts.Inconsistency(
        f"cuda-gdb's backtrace shows {frame.function}, the fault is in {kernel.name}.",
        {
            "native": f"{kernel.name}, PC {case.verdict.pc}",
            "cuda_gdb": f"frame #0 {frame.function}; triggered at PC {case.transcript.errorpc}",
        },
        "The faulting warp had exited and its slot already runs the next kernel. The recorded PC, which "
        "cuda-gdb prints too, names the culprit; the frame is of an innocent kernel.",
    )


def _launch(case: _Case) -> _Found:
    """Grid and block of the launch, when both speak of the same kernel."""
    kernel, said = (case.same_fault or case.verdict).kernel, case.said.kernel
    if kernel is None or said is None:
        return
    if not same_function(kernel.mangled or kernel.name, said.mangled or said.name):
        return
    if kernel.launch is None or said.launch is None:
        return
    ours, theirs = kernel.launch, said.launch
    for what, native, heard in (("grid", ours.grid, theirs.grid), ("block", ours.block, theirs.block)):
        if native is not None and heard is not None and native != heard:
            yield facts.Inconsistency(
                f"cuda-gdb and the dump give different {what} dimensions.",
                {"native": str(native), "cuda_gdb": str(heard)},
                "The dump's grid table stands; another launch of the same kernel may be in focus.",
            )


def _source(case: _Case) -> _Found:
    """File and line."""
    native, said = (case.same_fault or case.verdict).source, case.said.source
    if native is None or said is None or not _comparable(case):
        return
    if (_base(native.file), native.line) == (_base(said.file), said.line):
        yield f"cuda-gdb gives the same source line, {_base(native.file)}:{native.line}"
        return
    callers = {(_base(at.file or ""), at.line) for at in native.inlined}
    inlined = {(_base(at.file or ""), at.line) for at in said.inlined}
    if (_base(said.file), said.line) in callers or (_base(native.file), native.line) in inlined:
        why = "The code is inlined: one names the line itself, the other the place it was inlined into."
    else:
        why = "They read the line table differently; the instruction and its PC are the same."
    yield facts.Inconsistency(
        "cuda-gdb and the native reading give different source lines.",
        {"native": f"{native.file}:{native.line}", "cuda_gdb": f"{said.file}:{said.line}"},
        why,
    )


def _place(case: _Case) -> _Found:
    """Device and SM of the focus against the SMs that report the fault."""
    said = case.said.where
    if said is None or not said.sms or case.transcript.errorpc is None or not _comparable(case):
        return
    known = (*(fault.where for fault in case.native), case.verdict.where)
    places = [where for where in known if where is not None and where.sms]
    if not places or any(said.sms[0] in w.sms and said.device == w.device for w in places):
        return
    yield facts.Inconsistency(
        "cuda-gdb looks at an SM that reports no fault in the dump.",
        {
            "native": f"device {places[0].device}, SMs {', '.join(map(str, places[0].sms[:8]))}",
            "cuda_gdb": f"device {said.device}, SM {said.sms[0]}",
        },
        "The dump's SM records stand; the debugger may number its devices differently.",
    )


def _instruction(case: _Case) -> _Found:
    """The opcode; operands are spelled and ordered differently by the two disassemblers."""
    native, said = case.verdict.instruction, case.said.instruction
    if native is None or said is None or case.said.pc != case.verdict.pc:
        return
    if native.opcode == said.opcode:
        return
    yield facts.Inconsistency(
        "Two disassemblers read different instructions at the PC of the fault.",
        {"native": native.text, "cuda_gdb": said.text},
        "The disassembler that knows the chip's full name (sm_90a) is right; the bytes are the same.",
    )


_CHECKS: tuple[Callable[[_Case], _Found], ...] = (
    _presence,
    _exception,
    _pc,
    _function,
    _frame,
    _launch,
    _source,
    _place,
    _instruction,
)


def _comparable(case: _Case) -> bool:
    """Names and lines can differ only if both speak of the same PC; otherwise the PC is the difference."""
    if case.transcript.errorpc is not None:
        return case.same_fault is not None or case.transcript.errorpc == case.verdict.pc
    return case.kind == case.verdict.kind and case.said.pc == case.verdict.pc


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _name(exception: facts.GpuException) -> str:
    return f"{exception.name} ({exception.code})" if exception.code is not None else exception.name


def _offset(function: facts.Function) -> str:
    return f"{function.name}+{function.offset:#x}" if function.offset is not None else f"{function.name}"


def _spell(fault: facts.Fault) -> str:
    name = _name(fault.exception) if fault.exception else "an exception"
    return f"{name} at {fault.pc}" if fault.pc is not None else name


def _spell_verdict(verdict: facts.Verdict) -> str:
    name = _name(verdict.exception) if verdict.exception else verdict.kind
    return f"{name} at {verdict.pc}" if verdict.pc is not None else name


def _log_pcs(log: Sequence[DriverException]) -> str | None:
    return ", ".join(str(one.pc) for one in log if one.pc is not None) or None
