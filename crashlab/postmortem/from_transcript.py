"""A verdict from a cuda-gdb transcript alone, at the lower confidence that text deserves.

What a transcript cannot tell: whether more SMs report faults, what the bad address was, and, up to
cuda-gdb 12.x, anything about a warp that had exited (those versions say that there is no exception).
"""

from __future__ import annotations

from typing import NamedTuple

from crashlab import facts
from crashlab.cubin.demangle import demangle
from crashlab.debugger import flags
from crashlab.debugger.frame import split_clone
from crashlab.debugger.rows import Frame
from crashlab.debugger.transcript import Transcript
from crashlab.errors import CrashlabError
from crashlab.gpucore import exceptions
from crashlab.postmortem import wording
from crashlab.postmortem.fromfault import verdict_of
from crashlab.postmortem.samename import same_function
from crashlab.sass.operands import parse as parse_instruction

SOURCE = "cuda-gdb"
ASSERT = 12
_SECTION = ".text."

_TEXT_ONLY = "Only a debugger's transcript was read: other SMs that fault, and the address, are not in it."
_NOTHING_SEEN = (
    "It does not mean that nothing faulted: cuda-gdb 12 does not see the fault of a warp that has exited."
)


class TranscriptFinding(NamedTuple):
    """The verdict, and the one fault that a transcript can show (none for a hang)."""

    verdict: facts.Verdict
    faults: tuple[facts.Fault, ...] = ()
    bystanders: tuple[facts.Bystander, ...] = ()


def from_transcript(transcript: Transcript) -> TranscriptFinding:
    """The verdict that a transcript supports; kind ``unreadable`` when it shows nothing of the GPU."""
    kind = kind_of(transcript)
    if kind in ("unreadable", "no-fault"):
        return TranscriptFinding(_empty(kind, transcript))
    fault = fault_of(transcript)
    verdict = verdict_of(kind, fault)._replace(address=_address(kind))
    verdict = verdict._replace(
        headline=_headline(verdict),
        confidence=_confidence(transcript, verdict),
        does_not_mean=_caveats(verdict, transcript),
    )
    if kind == "hang":
        return TranscriptFinding(verdict)
    bare = fault.instruction._replace(window=()) if fault.instruction else None
    return TranscriptFinding(verdict, (fault._replace(instruction=bare),), _bystanders(transcript, fault))


def kind_of(transcript: Transcript) -> str:
    """gpu-fault, device-assert, trap, hang, no-fault or unreadable."""
    if flags.ASSERT in transcript.flags or transcript.exception_code == ASSERT:
        return "device-assert"
    if transcript.exception or transcript.errorpc is not None or flags.UNHANDLED in transcript.flags:
        return "gpu-fault"
    seen = {exceptions.code_of(lane.exception) for lane in transcript.lanes if lane.exception}
    if seen:
        return "device-assert" if seen == {ASSERT} else "gpu-fault"
    if flags.TRAP in transcript.flags:
        return "trap"
    if transcript.focus or transcript.kernels or any(f.function or f.pc for f in transcript.frames):
        return "hang"
    return "no-fault" if flags.NO_EXCEPTION in transcript.flags else "unreadable"


def fault_of(transcript: Transcript) -> facts.Fault:
    """What the transcript says of the fault, or, without one, of the thread in focus."""
    pc = transcript.errorpc
    if pc is None and kind_of(transcript) != "gpu-fault":
        pc = transcript.pc  # where an assert, a trap or a hang stands; a fault's own thread has run past it
    function = _function(transcript, pc)
    exception = exception_of(transcript)
    return facts.Fault(
        exception=exception,
        pc=pc,
        pc_source=SOURCE if pc is not None else None,
        kernel=_kernel(transcript, function),
        function=function,
        source=_source(transcript, pc),
        where=_where(transcript, exception),
        instruction=_instruction(transcript, pc) if transcript.errorpc is not None else None,
    )


def exception_of(transcript: Transcript) -> facts.GpuException | None:
    """The exception by its code where the name is known, else as printed."""
    name, code = transcript.exception, transcript.exception_code
    if name is None and code is None:
        shown = next((lane.exception for lane in transcript.lanes if lane.exception), None)
        if shown is None:
            return None
        name, code = shown, exceptions.code_of(shown)
    title = exceptions.title(code) if code is not None else name or ""
    lanes = sum(1 for lane in transcript.lanes if lane.exception)
    precision = None
    if code is not None and (transcript.focus is not None or code == 10):
        precision = exceptions.precision(code, lanes=lanes, has_warp=True)
    return facts.GpuException(code, title, precision)


def launch_frame(transcript: Transcript) -> Frame | None:
    """The outermost frame that shows a launch."""
    return next((frame for frame in reversed(transcript.frames) if frame.is_kernel), None)


def _function(transcript: Transcript, pc: facts.Hex | None) -> facts.Function | None:
    at_error = transcript.errorpc is not None
    symbol = transcript.errorpc_symbol if at_error else transcript.pc_symbol
    printed = transcript.function if at_error else None
    mangled = symbol.name if symbol and symbol.name and _is_linkage(symbol.name) else None
    if not at_error and printed is None and transcript.frames and transcript.frames[0].pc in (None, pc):
        printed = transcript.frames[0].function
    name = demangle(mangled) if mangled else printed or (symbol.name if symbol else None)
    if name is None:
        return None
    offset = symbol.offset if symbol and symbol.name else None
    return facts.Function(split_clone(name)[0], mangled, offset)


def _is_linkage(name: str) -> bool:
    """Mangled, or a C name, which is its own."""
    return name.startswith(("_Z", "$")) or not any(mark in name for mark in "(< :")


def _kernel(transcript: Transcript, function: facts.Function | None) -> facts.Kernel | None:
    """The kernel that the faulting function belongs to; the frames' own kernel only if that agrees.

    A retired warp's slot may already run the next kernel, and then the frames show that one.
    """
    frame = launch_frame(transcript)
    home, mangled = _home(transcript, function)
    shown = frame.function if frame else None
    if frame is not None and (home is None or _belongs(transcript, frame, home, function)):
        focus = transcript.focus
        launch = facts.Launch(
            grid=frame.grid,
            block=frame.block,
            cluster=focus.cluster_dim if focus else None,
            grid_id=focus.grid if focus else None,
        )
        name, linkage = (home, mangled) if home and same_function(home, shown) else (shown, None)
        if name is None:
            row = next((row for row in transcript.kernels if row.focus), None)
            name = row.invocation.partition("(")[0] if row else None
        return facts.Kernel(name, linkage, launch, "grid" if shown else "inferred")
    if home is None:
        return None
    return facts.Kernel(home, mangled, None, "inferred")


def _home(transcript: Transcript, function: facts.Function | None) -> tuple[str | None, str | None]:
    """(name, mangled) of the kernel that the function's own name or code section gives."""
    if function is None:
        return None, None
    symbol = transcript.errorpc_symbol if transcript.errorpc is not None else transcript.pc_symbol
    section = symbol.section if symbol else None
    if section and section.startswith(_SECTION):
        mangled = section[len(_SECTION) :]
        return demangle(mangled), mangled
    if function.mangled and function.mangled.startswith("$"):
        mangled = function.mangled[1:].partition("$")[0]
        return demangle(mangled), mangled
    clone_of = split_clone(transcript.function or "")[1] if transcript.errorpc is not None else None
    if clone_of:
        return clone_of, None
    return function.name, function.mangled


def _belongs(transcript: Transcript, frame: Frame, home: str, function: facts.Function | None) -> bool:
    """Whether the backtrace is of the code that faulted: it shows the kernel, or passes the function."""
    if same_function(home, frame.function):
        return True
    return any(same_function(f.function, function.name if function else None) for f in transcript.frames)


def _source(transcript: Transcript, pc: facts.Hex | None) -> facts.Source | None:
    found = transcript.source
    if transcript.errorpc is not None and found is not None:
        at = found.inlined_at
        return facts.Source(found.file, found.line, (at,) if at else ())
    if transcript.errorpc is not None or not transcript.frames:
        return None
    frame = transcript.frames[0]
    if frame.file is None or frame.line is None or frame.pc not in (None, pc):
        return None
    return facts.Source(frame.file, frame.line)


def _where(transcript: Transcript, exception: facts.GpuException | None) -> facts.Where | None:
    focus = transcript.focus
    device = focus.device if focus and focus.device is not None else transcript.device
    row = next((row for row in transcript.devices if row.device == device), None)
    if focus is None and device is None:
        return None
    shown = [lane.thread for lane in transcript.lanes if lane.exception]
    threads = tuple(shown) if exception is not None and exception.code == ASSERT else ()
    return facts.Where(
        device=device,
        device_name=row.name if row else None,
        sm_arch=row.sm_type if row else None,
        sms=(focus.sm,) if focus and focus.sm is not None else (),
        block=focus.block if focus else None,
        warp=focus.warp if focus else None,
        threads=threads,
    )


def _instruction(transcript: Transcript, pc: facts.Hex | None) -> facts.Instruction | None:
    line = transcript.instruction_at(pc)
    if line is None or line.text is None:
        return None
    text = _spaced(line.text)
    window = tuple(
        facts.WindowLine(near.pc, _spaced(near.text), near.pc == pc)
        for near in sorted(transcript.window)
        if near.text and near.name == line.name
    )
    try:
        parsed = parse_instruction(text)
    except CrashlabError:  # a damaged line
        return facts.Instruction(text, window=window, decoded_by=SOURCE)
    predicate = parsed.predicate
    if predicate is not None and parsed.predicate_negated:
        predicate = f"!{predicate}"
    return facts.Instruction(
        text=text,
        opcode=".".join((parsed.opcode, *parsed.modifiers)) or None,
        predicate=predicate,
        access=parsed.access,
        space=parsed.space,
        width_bytes=parsed.width_bytes,
        window=window,
        decoded_by=SOURCE,
    )


def _spaced(text: str) -> str:
    """cuda-gdb's ``[R0],R4`` in nvdisasm's spelling."""
    return ", ".join(part.strip() for part in text.split(","))


def _address(kind: str) -> facts.Address | None:
    if kind != "gpu-fault":
        return None
    why = "a transcript shows the registers of one thread at most; the dump has them all"
    return facts.Address("not-recoverable", why=why)


def _headline(verdict: facts.Verdict) -> str:
    if verdict.kind != "hang":
        return f"{wording.fault_headline(verdict)} (from a cuda-gdb transcript)"
    name = wording.short_name(verdict.kernel.name if verdict.kernel else None) or "an unnamed kernel"
    line = wording.file_line(verdict.source)
    return f"cuda-gdb shows no exception: {name} was resident{f' at {line}' if line else ''}"


def _confidence(transcript: Transcript, verdict: facts.Verdict) -> facts.Confidence:
    level, reasons = "medium", ["read from text that a debugger printed, without the dump"]
    if verdict.kind == "hang":
        level = "low"
        reasons.append("a debugger that shows no exception may have missed one")
    elif verdict.kind == "gpu-fault" and transcript.errorpc is None:
        level = "low"
        reasons.append("the transcript does not give the PC of the fault")
    elif verdict.kernel is None or verdict.kernel.name is None:
        level = "low"
        reasons.append("the transcript does not name the kernel")
    if verdict.kernel is not None and verdict.kernel.launch_source == "inferred":
        reasons.append("the kernel is that of the function at the PC; no frame shows its launch")
    if transcript.aborted:
        reasons.append("the debugger died before it had shown everything")
    if flags.UNHANDLED in transcript.flags:
        reasons.append("the debugger is older than the exception and knows only its number")
    if transcript.more_dumps:
        level = "low"
        reasons.append(f"the text shows {transcript.more_dumps + 1} dumps; only the first was read")
    if transcript.version:
        reasons.append(f"cuda-gdb {transcript.version} printed it")
    return facts.Confidence(level, tuple(reasons))


def _caveats(verdict: facts.Verdict, transcript: Transcript) -> tuple[str, ...]:
    if verdict.kind == "hang":
        return (_NOTHING_SEEN, *wording.HANG_CAVEATS)
    exited = transcript.aborted and transcript.focus is None
    return (_TEXT_ONLY, *wording.fault_caveats(verdict, exited=exited, reused=False, groups=1))


def _bystanders(transcript: Transcript, fault: facts.Fault) -> tuple[facts.Bystander, ...]:
    frame = launch_frame(transcript)
    if frame is None or frame.function is None or fault.kernel is None:
        return ()
    if fault.kernel.launch is not None or same_function(frame.function, fault.kernel.name):
        return ()
    why = "Frame #0 shows it, but the faulting PC is not in its code: the slot had gone on to another kernel."
    return (facts.Bystander(frame.function, why),)


def _empty(kind: str, transcript: Transcript) -> facts.Verdict:
    if kind == "no-fault":
        return facts.Verdict(
            kind,
            "cuda-gdb found neither an exception nor a running kernel",
            confidence=facts.Confidence("low", ("a debugger that shows no exception may have missed one",)),
            does_not_mean=(_NOTHING_SEEN,),
        )
    what = "The text holds nothing of cuda-gdb"
    if transcript.abort_reason:
        what = f"The transcript shows nothing of the GPU: {transcript.abort_reason}"
    confidence = facts.Confidence("low", ("no fact could be read from the text",))
    return facts.Verdict(kind, what, confidence=confidence)
