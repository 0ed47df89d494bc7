"""The faulting address: rebuilt from operands and registers, judged, and put into a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from crashlab import facts
from crashlab.errors import CrashlabError
from crashlab.gpucore.dump import CoreDump
from crashlab.postmortem import finding
from crashlab.postmortem.accesses import Access, Question, accesses
from crashlab.postmortem.annotate import window_notes
from crashlab.postmortem.arguments import PointerArgument, pointer_arguments
from crashlab.postmortem.attribute import Attribution, slot_was_reused
from crashlab.postmortem.base import named_argument
from crashlab.postmortem.codemap import CodeMap
from crashlab.postmortem.judge import (
    Judgement,
    bit_flip_hint,
    cluster_shared,
    global_memory,
    misaligned,
    shared,
)
from crashlab.postmortem.jumptarget import jump_target
from crashlab.postmortem.local import judge_local, stack_finding
from crashlab.postmortem.looks import host_pointer, packed
from crashlab.postmortem.matrixdesc import matrix_address
from crashlab.postmortem.space import Placed, place
from crashlab.postmortem.tma_finding import tma_address
from crashlab.sass.address import AddressExpr
from crashlab.sass.line import SassLine
from crashlab.sass.operands import ParsedInstruction, parse
from crashlab.sass.slice import SliceStep, backward_slice

_LANE_LIMIT = 1024
_MISALIGNED, _OUT_OF_RANGE = 6, 5
_JUMPS = ("branch", "call", "return")
_NO_ADDRESS = (*_JUMPS, "exit", "barrier", "trap")
_JUMP_CODES = (4, 8, 23, 24)
_COORDINATES = ("surface", "texture")


class Rebuilt(NamedTuple):
    """The address as a fact, and notes for the instruction window by PC."""

    fact: facts.Address
    notes: dict[int, str]

    def annotate(self, instruction: facts.Instruction | None) -> facts.Instruction | None:
        """The instruction with the notes in its window."""
        if instruction is None or not self.notes:
            return instruction
        window = tuple(line._replace(note=self.notes.get(line.pc, line.note)) for line in instruction.window)
        return instruction._replace(window=window)


def rebuild(
    dump: CoreDump,
    codemap: CodeMap,
    attribution: Attribution,
    lines: Sequence[SassLine],
    instruction: facts.Instruction | None,
) -> Rebuilt:
    """The address of a fault; its state says whether it was recovered, and if not, why."""
    pc, code = attribution.fault.pc, attribution.group.code
    if instruction is None or pc is None:
        return _without("the instruction was not disassembled")
    try:
        parsed = parse(instruction.text)
    except CrashlabError as error:
        return _without(f"the instruction could not be parsed: {error}")
    lost = _registers_lost(attribution)
    if not parsed.addresses:
        if code in _JUMP_CODES and parsed.access in _JUMPS and lost is None:
            jump = jump_target(dump, attribution, lines, parsed)
            if jump is not None:
                return Rebuilt(jump, {})
        if parsed.access in (None, *_NO_ADDRESS) and parsed.known:
            return Rebuilt(facts.Address("not-applicable", why=f"{parsed.opcode} accesses no memory"), {})
        return _without(f"the operands of {parsed.opcode} are not understood")
    if parsed.space in _COORDINATES:
        why = f"the operands of {parsed.opcode} are coordinates, not addresses"
        return Rebuilt(facts.Address("not-applicable", space=parsed.space, why=why), {})
    operands = _operands(parsed, code)
    if lost is not None:
        return _without(lost, operands[0] if operands else None)
    if parsed.addresses[0].form == "gdesc":
        return Rebuilt(matrix_address(dump, attribution, lines, parsed), {})
    best: Rebuilt | None = None
    for expr in operands:
        found = _memory(dump, codemap, attribution, lines, parsed, expr)
        if found.fact.kind is not None and found.fact.state == "recovered":
            return found
        best = best or found
    if any(e.role == "descriptor" for e in parsed.addresses):
        return Rebuilt(*tma_address(dump, codemap, attribution, lines, parsed))
    return best or _without(f"the operands of {parsed.opcode} are not understood")


def _registers_lost(attribution: Attribution) -> str | None:
    if attribution.group.exited:
        return "the faulting warp had exited, and its registers went with it"
    if slot_was_reused(attribution):
        return "the faulting warp had exited and its slot runs another kernel, whose registers these are"
    return None


def _without(why: str, expr: AddressExpr | None = None) -> Rebuilt:
    return Rebuilt(facts.Address("not-recoverable", why=why, space=expr.space if expr else None), {})


def _operands(parsed: ParsedInstruction, code: int | None) -> list[AddressExpr]:
    """The operands to try, in the order in which the exception suggests them; descriptors have their own reader.

    An asynchronous copy has two addresses, of which the exception means one: out of range is about
    shared memory, an unmapped address about global memory, misalignment about either.
    """
    candidates = [e for e in parsed.addresses if e.role != "descriptor"]
    if code == _OUT_OF_RANGE:
        candidates.sort(key=lambda e: e.space != "shared")
    elif code != _MISALIGNED:
        candidates.sort(key=lambda e: e.space != "global")
        if any(e.role == "descriptor" for e in parsed.addresses):
            return []
    return candidates or list(parsed.addresses[:1])


def alignment(parsed: ParsedInstruction, expr: AddressExpr) -> int:
    """Bytes that an operand must be aligned to.

    Bulk copies want 16 bytes, the shared side of a tensor copy 128, mbarriers 8 (PTX ISA,
    cp.async.bulk and cp.async.bulk.tensor); everything else its own width.
    """
    if expr.role == "barrier":
        return 8
    if parsed.opcode.startswith("UBLK"):
        return 16
    if parsed.opcode.startswith("UTMA"):
        return 128
    return parsed.width_bytes or 1


class _Source(NamedTuple):
    """Where an address comes from: the code before it, the pointers passed, and the one it is computed from."""

    codemap: CodeMap
    steps: tuple[SliceStep, ...]
    arguments: tuple[PointerArgument, ...]
    base: PointerArgument | None


def _source(
    dump: CoreDump,
    codemap: CodeMap,
    attribution: Attribution,
    lines: Sequence[SassLine],
    expr: AddressExpr,
) -> _Source:
    grid = next((report.grid for report in attribution.group.warps), None)
    needed = expr.address_registers()
    steps = backward_slice(lines, attribution.fault.pc or 0, needed)
    arguments = pointer_arguments(dump, codemap, grid)
    first_byte = grid.params_offset if grid is not None else None
    return _Source(codemap, steps, arguments, named_argument(steps, needed, arguments, first_byte))


_JUDGED_BY_DISTANCE = ("unmapped", "at-argument", "past-argument", "before-argument", "overflow-distance")
_FAR = ("far-from-arguments", "far-from-base")


def _with_looks(
    judgement: Judgement | None, found: Sequence[Access], base: PointerArgument | None
) -> Judgement | None:
    """What the digits of a bad global address look like, as a further clause; a possibility, no finding."""
    if judgement is None or not judgement.bad:
        return judgement
    address = found[min(judgement.bad)].address or 0
    looks = None
    if judgement.kind in (*_JUDGED_BY_DISTANCE, *_FAR):
        looks = host_pointer(address, base.value if base is not None else None)
    if looks is None and base is None and judgement.kind in (*_FAR, "small-integer", "not-canonical"):
        looks = packed(address)
    return judgement if looks is None else judgement._replace(sentence=f"{judgement.sentence}; {looks}")


def _memory(
    dump: CoreDump,
    codemap: CodeMap,
    attribution: Attribution,
    lines: Sequence[SassLine],
    parsed: ParsedInstruction,
    expr: AddressExpr,
) -> Rebuilt:
    pc = attribution.fault.pc or 0
    wide = expr.space not in ("shared", "local", "constant")
    found = accesses(dump, attribution.group.warps, Question(lines, pc, parsed, expr, wide))
    read = found
    source = _source(dump, codemap, attribution, lines, expr)
    judgement, placed = None, Placed(found, expr.space or "generic")
    width = alignment(parsed, expr) if attribution.group.code == _MISALIGNED else parsed.width_bytes or 1
    if any(a.address is not None for a in found):
        placed = place(dump, attribution, found, expr.space)
        found = placed.accesses
        judgement = _judge(dump, attribution, placed, width, source)
        if any(a.tentative for a in found) and not _confirms(judgement):
            found = tuple(a._replace(address=None) if a.tentative else a for a in found)
            placed = placed._replace(accesses=found)
            judgement = _judge(dump, attribution, placed, width, source)
    judgement = _with_looks(judgement, found, source.base)
    first = min(judgement.bad) if judgement and judgement.bad else None
    shown = read[first] if first is not None else next((a for a in found if a.address is not None), None)
    notes = window_notes(dump, attribution.code, source.steps, pc, expr, shown)
    if all(a.address is None for a in found):
        fact = _lost(dump, codemap, attribution, found, expr)
    else:
        fact = _fact(placed, width, parsed, judgement)
        if fact.kind in _FAR and fact.value is not None:
            fact = fact._replace(hint=bit_flip_hint(fact.value, source.arguments))
    return Rebuilt(fact._replace(origin=notes.origin), notes.by_pc)


def _lost(
    dump: CoreDump, codemap: CodeMap, attribution: Attribution, found: Sequence[Access], expr: AddressExpr
) -> facts.Address:
    why = next((a.why for a in found if a.why and not a.off), None)
    if why is None and any(a.tentative for a in found):
        why = "the lane may have gone round a loop after the fault, and its registers with it"
    why = why or "no lane of the faulting warps executed it"
    finding = stack_finding(dump, codemap, attribution, found[0]) if found and expr.space == "local" else None
    kind = "local-stack" if finding else None
    return facts.Address("not-recoverable", why=why, space=expr.space, finding=finding, kind=kind)


_CONFIRMING = (
    "misaligned",
    "shared-past-end",
    "no-such-block",
    "local-out-of-range",
    "past-allocation",
    "before-allocation",
    "null-page",
    "not-canonical",
)


def _confirms(judgement: Judgement | None) -> bool:
    """A rebuilt address that breaks a hard rule shows by itself that its lane came straight from the fault."""
    return judgement is not None and judgement.kind in _CONFIRMING


def _judge(
    dump: CoreDump, attribution: Attribution, placed: Placed, width: int, source: _Source
) -> Judgement | None:
    found = placed.accesses
    if attribution.group.code == _MISALIGNED:
        return misaligned(found, width)
    first = attribution.group.warps[0]
    limit = first.warp.shared_mem_size if first.warp else None
    if placed.space == "shared":
        return shared(found, width, limit, reserved=_reserves(attribution))
    if placed.space == "shared::cluster":
        return cluster_shared(found, width, limit, placed.ranks, placed.blocks)
    if placed.space == "local":
        return judge_local(dump, source.codemap, attribution, found)
    if placed.space == "global":
        return global_memory(dump, found, width, source.arguments, source.base)
    return None


def _reserves(attribution: Attribution) -> bool:
    """Whether the system keeps 1 KiB of the block's shared window: on sm_80 and later."""
    arch = attribution.fault.where.sm_arch if attribution.fault.where else None
    digits = "".join(c for c in arch or "" if "0" <= c <= "9")  # a dump may hold digits of other scripts
    return int(digits[:4] or 0) >= 80


def _fact(
    placed: Placed, width: int, parsed: ParsedInstruction, judgement: Judgement | None
) -> facts.Address:
    found, space, base = placed.accesses, placed.space, placed.base
    decided = judgement is not None and not judgement.undecided
    lanes = []
    for i, access in enumerate(found[:_LANE_LIMIT]):
        bad: bool | None = None
        if access.off:
            bad = False
        elif judgement is not None and access.address is not None:
            bad = i in judgement.bad if decided else None if i in judgement.bad else False
        lanes.append(
            facts.LaneAddress(
                access.lane,
                access.thread,
                None if access.address is None else facts.Hex(access.address),
                bad,
                access.off,
                access.why,
                access.block,
                access.sm,
                access.warp.warp_id,
            )
        )
    first = min(judgement.bad) if judgement and judgement.bad else None
    value = (
        found[first].address if first is not None else next(a.address for a in found if a.address is not None)
    )
    return facts.Address(
        state="recovered",
        value=facts.Hex(value or 0),
        per_lane=tuple(lanes),
        space=space,
        why=_how(found, space, base),
        finding=finding.sentence(found, space, width, parsed, judgement),
        kind=judgement.kind if judgement else None,
        limit=judgement.limit if judgement else None,
        width_bytes=width,
    )


def _how(found: Sequence[Access], space: str, base: int) -> str | None:
    """How the address was come by, when it was not simply read from its registers."""
    parts = []
    if base:
        parts.append(f"generic address, taken relative to the {space} window at {hex(base)}")
    again = next((a.how for a in found if a.how and a.address is not None), None)
    if again:
        parts.append(again)
    return "; ".join(parts) or None
