"""A verdict from the driver's log alone, at lower confidence than one from a dump.

What the driver's log can and cannot tell (checked against the dumps of the same crashes, 580.159):
its PC is the faulting instruction; the address of stack frame 0 is where the lanes stand, which is
past it; the frames' names are enclosing kernels; a warp that has exited has no stack, so the kernel
is not known; a dump of a ``__trap()`` and one that a user triggered both name no exception.
"""

from __future__ import annotations

from crashlab import facts
from crashlab.cubin.demangle import demangle
from crashlab.gpucore import exceptions
from crashlab.logs.asserts import DeviceAssert
from crashlab.logs.driver_facts import DriverDump, DriverException, DriverLog
from crashlab.logs.driver_log import dumps_with_exceptions
from crashlab.postmortem.fromfault import verdict_of
from crashlab.postmortem.log_finding import NO_DUMP, LogFinding

ASSERT = 12
# A lane stands at most a few instructions past the fault. A frame 0 before the PC or far behind it
# belongs to another kernel that took over the slot (seen: a graph's next kernel).
_NEAR = 64 * 1024


def from_driver_log(log: DriverLog, *, user_triggered: bool | None = None) -> LogFinding | None:
    """The verdict that the driver's log supports, or None if it holds neither dump nor assertion.

    ``user_triggered`` is what the caller knows about dumps without an exception: True when it asked
    for the dump itself, None when it cannot tell.
    """
    named = dumps_with_exceptions(log)
    if named:
        return _from_exceptions(log, named)
    if log.asserts:
        return _from_asserts(log)
    if log.dumps:
        return _without_exception(log, user_triggered)
    return None


def kernel_of(exception: DriverException) -> tuple[str | None, bool]:
    """(name of the kernel the stack shows, trusted): not trusted when frame 0 is not near the PC."""
    frames = exception.stacks[0].frames if exception.stacks else ()
    names = [frame.name for frame in frames if frame.name is not None]
    if not names:
        return None, False
    ahead = frames[0].pc - exception.pc if exception.pc is not None else 0
    return names[-1], 0 <= ahead <= _NEAR


def fault_of(exception: DriverException, count: int = 1) -> facts.Fault:
    """One exception block as a fault. The PC is the driver's; the kernel only if its stack fits it."""
    name, trusted = kernel_of(exception)
    return facts.Fault(
        exception=facts.GpuException(
            exception.code,
            exceptions.title(exception.code) if exception.code is not None else exception.name,
            "sm" if exception.warp_exited else "warp",
            exception.name,
        ),
        pc=exception.pc,
        pc_source="driver-log" if exception.pc is not None else None,
        kernel=_kernel(name) if trusted and name is not None else None,
        where=facts.Where(
            device=exception.device,
            sms=(exception.sm,) if exception.sm is not None else (),
            warp=exception.warp,
        ),
        reports=count,
    )


def _kernel(name: str) -> facts.Kernel:
    # A -G build prints the plain name, and a C name is its own: only _Z names are surely mangled.
    return facts.Kernel(demangle(name), name if name.startswith("_Z") else None)


def _faults(dumps: tuple[DriverDump, ...]) -> tuple[facts.Fault, ...]:
    """One fault for each distinct (code, PC), with all SMs that reported it."""
    grouped: dict[tuple[int | None, int | None], list[DriverException]] = {}
    for dump in dumps:
        for exception in dump.exceptions:
            grouped.setdefault((exception.code, exception.pc), []).append(exception)
    found = []
    for group in grouped.values():
        fault = fault_of(group[0], len(group))
        where = fault.where or facts.Where()
        same = [one.sm for one in group if one.device == where.device and one.sm is not None]
        found.append(fault._replace(where=where._replace(sms=tuple(dict.fromkeys(same)))))
    return tuple(found)


def _from_exceptions(log: DriverLog, named: tuple[DriverDump, ...]) -> LogFinding:
    faults = _faults(named)
    dump, fault = named[0], faults[0]
    exception = dump.exceptions[0]
    name, trusted = kernel_of(exception)
    if exception.code == ASSERT:
        fault = _with_assert(fault, log.asserts)
        faults = (fault, *faults[1:])
    kind = "device-assert" if exception.code == ASSERT else "gpu-fault"
    verdict = verdict_of(kind, fault)._replace(
        headline=_headline(fault, exception),
        address=facts.Address("not-recoverable", why="no register was read: there is no usable dump"),
        confidence=_confidence(dump, exception, fault, len(named)),
        does_not_mean=(
            "The driver's log does not name the instruction or the address; a dump would.",
            "The kernel that faulted need not be the one whose data was wrong.",
        ),
    )
    return LogFinding(
        verdict,
        faults,
        _bystanders(log, dump, name if not trusted else None),
        _mixed_up(exception, name, trusted),
        _provenance(log, dump),
    )


def _headline(fault: facts.Fault, exception: DriverException) -> str:
    what = fault.exception.name if fault.exception else exception.name
    where = fault.where or facts.Where()
    place = f" on device {where.device}" if where.device is not None else ""
    place += f", SM {where.sms[0]}" if where.sms else ""
    at = f" at PC {fault.pc}" if fault.pc is not None else ""
    if fault.kernel is not None:
        return f"{what} in {fault.kernel.name}{at}{place} (driver log only, no usable dump)"
    name = kernel_of(exception)[0]
    why = f"the printed stack is of another one, {demangle(name)}" if name else "its stack names none"
    if exception.warp_exited:
        why = "the warp had exited"
    return f"{what}{at}{place}; kernel not known, {why} (driver log only, no usable dump)"


def _confidence(
    dump: DriverDump, exception: DriverException, fault: facts.Fault, dumps: int
) -> facts.Confidence:
    reasons = ["The driver printed the exception and its PC.", NO_DUMP]
    level = "medium"
    if fault.kernel is None:
        level = "low"
        reasons.append(
            "The faulting warp had exited, so the driver printed no stack: the kernel is not known."
            if exception.warp_exited
            else "No stack that fits the PC names a kernel."
        )
    if dump.interleaved:
        level = "low"
        reasons.append("Several dumps were written into one stream at once: their lines may be mixed up.")
    if dumps > 1:
        reasons.append(f"{dumps} dumps name an exception; the first one printed is the candidate origin.")
    return facts.Confidence(level, tuple(reasons))


def _with_assert(fault: facts.Fault, asserts: tuple[DeviceAssert, ...]) -> facts.Fault:
    """Add place and threads from the assertion line, when there is exactly one that it can be."""
    plain = [one for one in asserts if one.file is not None and one.line is not None]
    if len(plain) != 1 or fault.where is None:
        return fault
    only = plain[0]
    blocks = {thread.block for thread in only.threads}
    where = fault.where._replace(
        block=only.threads[0].block if len(blocks) == 1 else None,
        threads=tuple(thread.thread for thread in only.threads) if len(blocks) == 1 else (),
    )
    return fault._replace(source=facts.Source(only.file or "", only.line or 0), where=where)


def _bystanders(log: DriverLog, origin: DriverDump, later: str | None) -> tuple[facts.Bystander, ...]:
    found = []
    if later is not None:
        found.append(
            facts.Bystander(demangle(later), "Its code is not where the PC is: it runs in the slot now.")
        )
    for dump in log.dumps:
        if dump is origin:
            continue
        who = _who(dump)
        if not dump.exceptions:
            found.append(facts.Bystander(who, "Its dump names no exception."))
        else:
            found.append(facts.Bystander(who, "Its exception was printed later: possibly a consequence."))
    return tuple(found)


def _who(dump: DriverDump) -> str:
    if dump.process is not None:
        return f"{dump.process} (pid {dump.pid})" if dump.pid is not None else dump.process
    return f"the process that wrote {dump.file.rsplit('/', 1)[-1]}" if dump.file else "another process"


def _mixed_up(exception: DriverException, name: str | None, trusted: bool) -> tuple[facts.Inconsistency, ...]:
    if name is None or trusted or exception.pc is None:
        return ()
    frame = exception.stacks[0].frames[0]
    return (
        facts.Inconsistency(
            f"The driver's stack shows {demangle(name)}, but its frame 0 is not just past the PC.",
            {"driver_log": f"PC {exception.pc}, frame 0 at {frame.pc} in {name}"},
            "The PC was recorded at the fault and stands; the slot may run a later kernel by now, "
            "so the kernel's name is not taken from the stack.",
        ),
    )


def _provenance(log: DriverLog, dump: DriverDump) -> tuple[str, ...]:
    notes = [f"Exception, PC, device and SM are from line {dump.exceptions[0].line} of the driver's log on."]
    if not dump.complete:
        notes.append(f"The driver's log does not say that the dump was finished (last: {dump.phase}).")
    notes.extend(f"The driver said: {problem}" for problem in (*dump.problems, *log.problems)[:8])
    return tuple(notes)


def _from_asserts(log: DriverLog) -> LogFinding:
    first = log.asserts[0]
    place = f"{first.file}:{first.line}" if first.file else "an unnamed place"
    threads = tuple(thread.thread for thread in first.threads)
    same_block = len({thread.block for thread in first.threads}) == 1
    where = facts.Where(
        block=first.threads[0].block if same_block else None, threads=threads if same_block else ()
    )
    source = facts.Source(first.file, first.line) if first.file and first.line is not None else None
    exception = facts.GpuException(ASSERT, exceptions.title(ASSERT), None, first.expression)
    fault = facts.Fault(exception, None, None, source=source, where=where, reports=first.times)
    verdict = verdict_of("device-assert", fault)._replace(
        headline=f"Device-side assert failed at {place}: {first.expression} ({first.times} threads reported)",
        address=facts.Address("not-applicable"),
        confidence=facts.Confidence(
            "medium", ("The CUDA runtime printed the assertion with file and line.", NO_DUMP)
        ),
        does_not_mean=("The failed check is where bad data was noticed, not where it was made.",),
    )
    return LogFinding(verdict, (fault,), provenance=(f"The assertion is line {first.first_line}.",))


def _without_exception(log: DriverLog, user_triggered: bool | None) -> LogFinding:
    dump = log.dumps[0]
    who = _who(dump) if dump.process or dump.file else "a process"
    if dump.trigger is None:
        total = f" of {dump.sms_total}" if dump.sms_total else ""
        kind = "inconclusive"
        headline = (
            f"The driver began a dump of {who} and its log ends after {dump.sms_collected}{total} SMs, "
            "before it named an exception."
        )
        reasons = ["The log was cut or the process was killed during the dump."]
    elif user_triggered:
        kind = "hang"
        headline = f"Hang: the dump of {who} was asked for, and the driver found no exception on the GPU."
        reasons = ["The driver named no exception.", NO_DUMP]
    else:
        kind = "inconclusive"
        headline = f"The driver wrote a dump of {who} without naming an exception."
        reasons = [
            "A dump that a user triggered on a hang and one of a kernel that executed __trap() look the "
            "same in the driver's log.",
            NO_DUMP,
        ]
    verdict = facts.Verdict(
        kind=kind,
        headline=headline,
        confidence=facts.Confidence("low", tuple(reasons)),
        does_not_mean=("No exception in the log does not mean that no kernel misbehaved.",),
    )
    return LogFinding(verdict, (), provenance=(f"The dump begins at line {dump.first_line} of the log.",))
