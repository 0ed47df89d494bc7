"""De-duplication keys: the same text for two crashes of one bug, another text for another bug.

``coarse`` groups across builds and shapes: kind, exception, kernel family, access and space (for an assert:
the source file). ``fine`` adds the function with the offset in it (for an assert: the line), the module and
the architecture: the same instruction of the same build.

Keys hold nothing that changes between runs of one program: no absolute address when a symbol is known, no
thread, no SM, and not the hash of the module either, for relocation makes that differ in every run (0 of 88
modules of two runs of one server had the same; all 88 had the same size, so the size stands in for it). Where
no symbol covers the PC, its low 12 bits are taken: functions start on 256 bytes, and the driver's allocator
repeated the low 12 bits of 98.7 % of 4,726 functions between those two runs.

The family is computed from the symbol alone, so that a changed attribution rule never changes a key. The
first slot is the version of this format. Slots are joined by ``|``; whatever could be taken for a separator
is percent-encoded; an absent fact is ``-``.
"""

from __future__ import annotations

from collections.abc import Iterable

from crashlab import facts
from crashlab.postmortem.family import normalise

VERSION = "v1"

_ABSENT = "-"
_LOW_BITS = 0xFFF
_GROUPS = 3
_WORDS = 24
_SAFE = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:<>()[]{}$+~=-,*&@#!?;/'\"^"
)
_EXCEPTION_PREFIXES = ("CUDBG_EXCEPTION_", "CUDA_EXCEPTION_")
_WITHOUT_KEY = ("no-fault", "unreadable")


def keys(verdict: facts.Verdict) -> facts.SignatureKey:
    """The keys of a verdict; both None where there is nothing to group (no fault, unreadable input).

    GPU faults, traps and asserts are keyed by the instruction, hangs by what the warps were doing, stalls,
    garbage and host deaths by the words of the headline without its numbers (hashed: they may name a host).
    """
    if verdict.kind in _WITHOUT_KEY:
        return facts.SignatureKey()
    if verdict.exception is None and verdict.hang is not None and verdict.hang.groups:
        coarse, fine = _hang(verdict.hang)
    elif verdict.pc is not None or verdict.kernel is not None or verdict.exception is not None:
        coarse, fine = _fault(verdict)
    else:
        coarse, fine = _headline(verdict)
    head = (VERSION, verdict.kind)
    return facts.SignatureKey(_join((*head, *coarse)), _join((*head, *coarse, *fine)))


def _fault(verdict: facts.Verdict) -> tuple[list[str], list[str]]:
    instruction = verdict.instruction
    family = _family(verdict.kernel) or _family(verdict.function)
    coarse = [
        _exception(verdict.exception),
        family or _module(verdict.module) or _low_bits(verdict.pc),
        _access(instruction),
        (instruction.space if instruction else None) or _ABSENT,
    ]
    where = _function(verdict.function) if _family(verdict.function) else _low_bits(verdict.pc)
    if family and not _family(verdict.function):
        where = (
            _ABSENT  # the PC lies in no function although the kernel is known: a wild jump, never the same
        )
    if verdict.kind == "device-assert" and verdict.source is not None:
        coarse[2], coarse[3] = verdict.source.file.rsplit("/", 1)[-1], _ABSENT
        where = f"line {verdict.source.line}"
    arch = verdict.where.sm_arch if verdict.where else None
    arch = arch or (verdict.module.arch if verdict.module else None)
    return coarse, [where, _module(verdict.module) or _ABSENT, arch or _ABSENT]


def _hang(hang: facts.Hang) -> tuple[list[str], list[str]]:
    """The kernels that do not get on (spinning, waiting, at a barrier), most warps first; else all."""
    stuck = [group for group in hang.groups if group.state not in (None, "running")] or list(hang.groups)
    warps: dict[str, int] = {}
    states: dict[str, set[str]] = {}
    for group in stuck:
        family = normalise(group.kernel or group.function or "") or _low_bits(group.pc)
        warps[family] = warps.get(family, 0) + group.warps
        states.setdefault(family, set()).add(group.state or _ABSENT)
    chosen = sorted(sorted(warps, key=lambda family: (-warps[family], family))[:_GROUPS])
    fine = {
        f"{normalise(group.function or '') or _low_bits(group.pc)}:{group.state or _ABSENT}:"
        f"{_opcode(group.instruction) or _ABSENT}"
        for group in stuck
    }
    return (
        ["+".join(chosen), "+".join(sorted({state for family in chosen for state in states[family]}))],
        ["+".join(sorted(fine)[: 2 * _GROUPS])],
    )


def _headline(verdict: facts.Verdict) -> tuple[list[str], list[str]]:
    """Words of the headline: those with digits, dots, slashes or @ (numbers, paths, hosts) do not count."""
    words = [word.strip(".,;:!?()\"'`").lower() for word in verdict.headline.split()]
    words = [word for word in words if word.isalpha()]
    return [_hash(words[:_WORDS])], [_hash(sorted(set(words)))]


def _hash(words: Iterable[str]) -> str:
    from zlib import crc32

    return f"h{crc32(' '.join(words).encode('utf-8', 'replace')):08x}"


def _exception(exception: facts.GpuException | None) -> str:
    """Readers spell one exception differently: hyphens, case, prefixes."""
    if exception is None:
        return _ABSENT
    name = exception.name.upper()
    for prefix in _EXCEPTION_PREFIXES:
        name = name.removeprefix(prefix)
    name = "_".join("".join(char if char.isalnum() else " " for char in name).split())
    if name and not name.isdigit() and "UNKNOWN" not in name:
        return name
    return f"CODE_{exception.code}" if exception.code is not None else name or _ABSENT


def _family(named: facts.Kernel | facts.Function | None) -> str | None:
    """Of the mangled name; the demangled one gives the same family."""
    if named is None:
        return None
    return normalise(named.mangled or named.name or "") or None


def _function(function: facts.Function | None) -> str:
    family = _family(function)
    if function is None or family is None:
        return _ABSENT
    return f"{family}+{function.offset:#x}" if function.offset is not None else family


def _access(instruction: facts.Instruction | None) -> str:
    if instruction is None:
        return _ABSENT
    return instruction.access or _opcode(instruction.opcode or instruction.text) or _ABSENT


def _opcode(text: str | None) -> str | None:
    """``@!P2 STG.E.64 …`` is STG."""
    words = [word for word in (text or "").split() if not word.startswith("@")]
    return words[0].partition(".")[0] if words else None


def _module(module: facts.Module | None) -> str | None:
    return f"{module.bytes}bytes" if module is not None and module.bytes is not None else None


def _low_bits(pc: facts.Hex | None) -> str:
    return f"~{pc & _LOW_BITS:03x}" if pc is not None else _ABSENT


def _join(slots: Iterable[str]) -> str:
    return "|".join(_escape(slot) or _ABSENT for slot in slots)


def _escape(text: str) -> str:
    if all(char in _SAFE for char in text):
        return text
    return "".join(
        char if char in _SAFE else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))
        for char in text
    )
