"""Sentences of a verdict: the headline a person can paste, and what the verdict does not mean."""

from __future__ import annotations

from collections.abc import Sequence

from crashlab import facts
from crashlab.postmortem.words import counted

_NAME_LIMIT = 120


def short_name(name: str | None, limit: int = _NAME_LIMIT) -> str | None:
    """A kernel name for a sentence: without argument list, cut in the middle when it is very long."""
    if not name:
        return None
    plain = _without_arguments(name)
    if len(plain) <= limit:
        return plain
    half = (limit - 1) // 2
    return f"{plain[:half]}…{plain[-half:]}"


def _without_arguments(name: str) -> str:
    """``void f<128>(float*, int)`` → ``f<128>``; names without balanced brackets stay as they are."""
    text = name.removeprefix("void ")
    if not text.endswith(")"):
        return text
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        if text[at] == ")":
            depth += 1
        elif text[at] == "(":
            depth -= 1
            if depth == 0:
                return text[:at] or text
    return text


def file_line(source: facts.Source | None) -> str | None:
    """``faults.cu:16``."""
    if source is None:
        return None
    return f"{source.file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{source.line}"


def subject(kernel: facts.Kernel | None, function: facts.Function | None) -> str:
    """Who did it: the kernel, and the device function when that is another one."""
    in_kernel = short_name(kernel.name if kernel else None)
    in_function = short_name(function.name if function else None)
    if in_kernel is None:
        return in_function or "code that no module of the dump holds"
    if in_function is None or (kernel and function and kernel.mangled == function.mangled):
        return in_kernel
    return f"{in_function} (called by kernel {in_kernel})"


def place(verdict: facts.Verdict) -> str:
    """``at STS.128 [R0], R4 (faults.cu:16)`` or what of it is known."""
    text = ""
    if verdict.instruction:
        text = f" at {verdict.instruction.text}"
    elif verdict.pc is not None:
        offset = verdict.function.offset if verdict.function else None
        text = f" at +{hex(offset)}" if offset is not None else f" at PC {verdict.pc}"
    line = file_line(verdict.source)
    return f"{text} ({line})" if line else text


def fault_headline(verdict: facts.Verdict) -> str:
    """The headline of a fault, an assert or a trap."""
    who = subject(verdict.kernel, verdict.function)
    line = file_line(verdict.source)
    where = f" ({line})" if line else ""
    if verdict.kind == "device-assert":
        return f"A device-side assert failed in {who}{where}"
    if verdict.kind == "trap":
        return f"{who} executed a trap{where}"
    name = verdict.exception.name if verdict.exception else "A GPU fault"
    if verdict.kernel and verdict.function is None and verdict.pc is not None:
        return f"{name} at PC {verdict.pc}, which lies in no module: {who} jumped there"
    if verdict.pc is None:
        known = f" in a warp of {who}" if verdict.kernel else ""
        missing = (
            "the faulting instruction was not" if verdict.kernel else "neither kernel nor instruction was"
        )
        return f"{name}{known}; {missing} recorded"
    clause = address_clause(verdict.address)
    return f"{name} in {who}{place(verdict)}" + (f": {clause}" if clause else "")


def address_clause(address: facts.Address | None) -> str | None:
    """The address finding in a few words, for the headline; None when it was not recovered or judged."""
    if address is None or address.state != "recovered" or address.value is None:
        return None
    value, limit, width = address.value, address.limit, address.width_bytes
    if address.kind == "shared-past-end" and limit is not None:
        past = value - limit
        end = "the end of the block's shared memory"
        return f"{counted(past, 'byte')} past {end}" if past >= 0 else f"across {end}"
    if address.kind == "misaligned" and width:
        return f"address {value} is {value % width} modulo {width}"
    ended = "ended before, or was freed"
    return {
        "past-allocation": f"address {value} is past a dumped allocation",
        "before-allocation": f"address {value} is before a dumped allocation",
        "at-argument": f"address {value} lies at or behind a pointer that was passed; its buffer {ended}",
        "past-argument": f"address {value} lies behind a pointer that was passed; its buffer {ended}",
        "overflow-distance": f"address {value} is more than 2 GiB past a buffer, as a 32-bit overflow gives",
        "before-argument": f"address {value} lies before the buffer that was passed",
        "far-from-arguments": f"address {value} is far from every pointer that was passed",
        "far-from-base": f"address {value} is far from the pointer that it was computed from",
        "null-page": f"address {value}: a null pointer",
        "small-integer": f"address {value}: an integer used as a pointer",
        "not-canonical": f"address {value} is no address at all",
        "bad-descriptor": "the tensor map it was given is corrupt",
        "no-such-block": "it names a block that the cluster does not have",
        "local-out-of-range": "past the top of the thread's local memory",
        "local-stack": "the thread's stack ran out",
        "corrupt-code-pointer": "a jump through a corrupt function pointer or return address",
    }.get(address.kind or "")


_STATES = {
    "spinning": "spinning",
    "barrier": "at a barrier",
    "waiting": "waiting",
    "running": "running or waiting unseen",
    None: "in code that could not be read",
}


def hang_headline(kernel: str | None, groups: Sequence[facts.HangGroup], where: str | None) -> str:
    """The headline of a dump without any exception; ``groups`` are those of the named kernel."""
    name = short_name(kernel) or "an unnamed kernel"
    counts: dict[str | None, int] = {}
    for group in groups:
        counts[group.state] = counts.get(group.state, 0) + group.warps
    parts = [
        f"{count} {_STATES.get(state, state)}" for state, count in sorted(counts.items(), key=lambda c: -c[1])
    ]
    at = f", around {where}" if where else ""
    return f"No GPU exception: {name} was resident with {counted(sum(counts.values()), 'warp')}: {', '.join(parts)}{at}"


def fault_caveats(verdict: facts.Verdict, *, exited: bool, reused: bool, groups: int) -> tuple[str, ...]:
    """What the verdict does not mean, most important first."""
    out = [
        "It does not mean that this kernel computed the bad value: a corrupt pointer, index or size may "
        "have been handed to it."
    ]
    if verdict.kind == "device-assert":
        out = [
            "It does not mean a bug in the kernel: the assert caught bad input, most often an index out of range."
        ]
    if verdict.kind == "trap":
        out = [
            "It does not say why: __trap() carries no message, and a debugger's breakpoint looks the same."
        ]
    code = verdict.exception.code if verdict.exception else None
    if (
        code == 4
        and verdict.instruction
        and verdict.instruction.opcode
        and verdict.instruction.opcode.startswith("UTMA")
    ):
        out.append(
            "Illegal instruction at a TMA instruction does not mean wrong code: a corrupt descriptor reports so."
        )
    if exited or reused:
        out.append(
            "It does not say which thread or block: the faulting warp had exited before the GPU stopped."
        )
    elif verdict.exception and verdict.exception.precision == "warp":
        judged = verdict.address and any(lane.bad is not None for lane in verdict.address.per_lane)
        if not judged:
            out.append(
                "It does not mean that all lanes of the warp were wrong: exceptions are reported for whole warps."
            )
    if groups > 1:
        out.append(
            f"It does not mean a single faulting instruction: {groups} distinct (exception, PC) pairs were recorded; "
            "the one that most SMs report is named."
        )
    return tuple(out)


HANG_CAVEATS = (
    "It does not mean that this kernel is wrong: a dump without an exception shows where the GPU stood, and "
    "a slow kernel looks like a stuck one. Two dumps some seconds apart with the same PCs are much stronger.",
    "It does not mean that the wait ends here: a kernel that waits for another GPU or for the host stands "
    "in its own wait loop.",
)
