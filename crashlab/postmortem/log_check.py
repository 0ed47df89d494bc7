"""The driver's log against the dump it speaks of: disagreement is output, never silently resolved."""

from __future__ import annotations

from collections.abc import Sequence

from crashlab import facts
from crashlab.cubin.demangle import demangle
from crashlab.logs.driver_facts import DriverDump, DriverException, DriverLog


def cross_check(
    faults: Sequence[facts.Fault], log: DriverLog, *, dump_file: str | None = None
) -> tuple[facts.Inconsistency, ...]:
    """Hold the faults read from one dump against the driver's log of the same crash.

    ``dump_file`` is the dump's name; it picks the right block when the log speaks of several dumps.
    Empty when they agree or when the log says nothing of this dump.
    """
    dump = matching_dump(faults, log, dump_file)
    if dump is None:
        return ()
    found = list(_presence(faults, dump))
    for exception in dump.exceptions:
        found.extend(_exception(faults, exception))
    if not dump.complete:
        found.append(
            facts.Inconsistency(
                "The dump could be read, but the driver's log does not say that it was finished.",
                {"native": "readable", "driver_log": f"ends at: {dump.phase}"},
                "The log may be cut; if the dump is, sections written last are missing from it.",
            )
        )
    return tuple(found)


def matching_dump(
    faults: Sequence[facts.Fault], log: DriverLog, dump_file: str | None = None
) -> DriverDump | None:
    """The block of the log that belongs to a dump: by file name, else by PC, else the only one."""
    if dump_file is not None:
        base = dump_file.rsplit("/", 1)[-1]
        named = [d for d in log.dumps if d.file is not None and d.file.rsplit("/", 1)[-1] == base]
        if named:
            return named[-1]
    pcs = {fault.pc for fault in faults if fault.pc is not None}
    for dump in log.dumps:
        if any(exception.pc in pcs for exception in dump.exceptions):
            return dump
    return log.dumps[0] if len(log.dumps) == 1 else None


def _presence(faults: Sequence[facts.Fault], dump: DriverDump) -> list[facts.Inconsistency]:
    coded = [f for f in faults if f.exception is not None and f.exception.code is not None]
    if dump.exceptions and not coded:
        first = dump.exceptions[0]
        return [
            facts.Inconsistency(
                "The driver's log names an exception, the dump holds none.",
                {"native": None, "driver_log": f"{first.name} at {first.pc}"},
                "The driver printed what it saw when it stopped the GPU; its log stands.",
            )
        ]
    if coded and dump.trigger == "none-named":
        first_fault = coded[0]
        return [
            facts.Inconsistency(
                "The dump holds an exception, the driver's log names none.",
                {"native": f"{_name(first_fault)} at {first_fault.pc}", "driver_log": None},
                "The dump's hardware records stand; lines of the log may be missing.",
            )
        ]
    return []


def _exception(faults: Sequence[facts.Fault], seen: DriverException) -> list[facts.Inconsistency]:
    coded = [f for f in faults if f.exception is not None and f.exception.code is not None]
    if not coded:
        return []
    said = f"{seen.name} ({seen.code}) at {seen.pc}"
    same_pc = [f for f in coded if f.pc is not None and f.pc == seen.pc]
    if seen.pc is not None and not same_pc:
        known = ", ".join(f"{_name(f)} at {f.pc}" for f in coded[:4])
        return [
            facts.Inconsistency(
                "The driver's log names a PC at which the dump has no fault.",
                {"native": known, "driver_log": said},
                "The dump's hardware records stand; check that the log belongs to this dump.",
            )
        ]
    found = []
    judged = same_pc or coded
    if seen.code is not None and all(f.exception and f.exception.code != seen.code for f in judged):
        found.append(
            facts.Inconsistency(
                "The driver's log and the dump name different exceptions.",
                {"native": f"{_name(judged[0])} at {judged[0].pc}", "driver_log": said},
                "The dump's hardware records stand.",
            )
        )
    found.extend(_place(judged, seen))
    found.extend(_kernel(judged, seen))
    return found


def _place(judged: Sequence[facts.Fault], seen: DriverException) -> list[facts.Inconsistency]:
    places = [f.where for f in judged if f.where is not None and f.where.sms]
    if seen.sm is None or not places:
        return []
    if any(seen.sm in w.sms and seen.device in (None, w.device) for w in places if w.device is not None):
        return []
    if any(seen.sm in w.sms for w in places if w.device is None):
        return []
    return [
        facts.Inconsistency(
            "The driver's log and the dump name different SMs.",
            {
                "native": f"device {places[0].device}, SMs {', '.join(map(str, places[0].sms[:8]))}",
                "driver_log": f"device {seen.device}, SM {seen.sm}",
            },
            "The dump's hardware records stand.",
        )
    ]


def _kernel(judged: Sequence[facts.Fault], seen: DriverException) -> list[facts.Inconsistency]:
    """The kernel of the driver's stack against the one that the PC names."""
    frames = seen.stacks[0].frames if seen.stacks else ()
    names = [frame.name for frame in frames if frame.name is not None]
    kernels = [f.kernel for f in judged if f.kernel is not None]
    if not names or not kernels:
        return []
    shown = names[-1]
    if any(_same_kernel(shown, kernel) for kernel in kernels):
        return []
    return [
        facts.Inconsistency(
            f"The driver's stack shows {demangle(shown)}, the dump's PC lies in {kernels[0].name}.",
            {
                "native": f"{kernels[0].name} at PC {judged[0].pc}",
                "driver_log": f"frame 0 at {frames[0].pc} in {shown}; PC {seen.pc}",
            },
            "The PC names the culprit. The driver's frame 0 is where the slot's lanes stand, and the "
            "slot may run the next kernel already.",
        )
    ]


def _same_kernel(shown: str, kernel: facts.Kernel) -> bool:
    if shown in (kernel.mangled, kernel.name):
        return True
    if kernel.name is None or shown.startswith("_Z"):
        return False
    # A -G build prints the name without return type and arguments.
    return shown.replace(" ", "") in kernel.name.replace(" ", "")


def _name(fault: facts.Fault) -> str:
    if fault.exception is None:
        return "no exception"
    return f"{fault.exception.name} ({fault.exception.code})"
