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
from crashlab.postmortem.arguments import pointer_arguments
from crashlab.postmortem.attribute import Attribution, slot_was_reused
from crashlab.postmortem.codemap import CodeMap
from crashlab.postmortem.judge import WINDOW, Judgement, global_memory, misaligned, shared
from crashlab.postmortem.local import judge_local, stack_finding
from crashlab.postmortem.tma_finding import tma_address
from crashlab.sass.address import AddressExpr
from crashlab.sass.line import SassLine
from crashlab.sass.operands import ParsedInstruction, parse

_LANE_LIMIT = 1024
_MISALIGNED, _OUT_OF_RANGE = 6, 5
_NO_ADDRESS = ["branch", "call", "return", "exit", "barrier", "trap"]


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
    pc = attribution.fault.pc
    if instruction is None or pc is None:
        return _without(_no_instruction(attribution))
    try:
        parsed = parse(instruction.text)
    except CrashlabError as error:
        return _without(f"the instruction could not be parsed: {error}")
    if not parsed.addresses:
        if parsed.access in (None, *_NO_ADDRESS) and parsed.known:
            return Rebuilt(facts.Address("not-applicable", why=f"{parsed.opcode} accesses no memory"), {})
        return _without(f"the operands of {parsed.opcode} are not understood")
    expr = _bad_operand(parsed, attribution.group.code)
    if attribution.group.exited:
        return _without("the faulting warp had exited, and its registers went with it", expr)
    if slot_was_reused(attribution):
        return _without(
            "the faulting warp had exited and its slot runs another kernel, whose registers these are", expr
        )
    if any(e.role == "descriptor" for e in parsed.addresses):
        return Rebuilt(*tma_address(dump, codemap, attribution, lines, parsed))
    return _memory(dump, codemap, attribution, lines, parsed, expr)


def _no_instruction(attribution: Attribution) -> str:
    if attribution.code is None:
        return "the PC lies in no module of the dump, so there is no instruction to take operands from"
    return "the instruction was not disassembled"


def _without(why: str, expr: AddressExpr | None = None) -> Rebuilt:
    return Rebuilt(facts.Address("not-recoverable", why=why, space=expr.space if expr else None), {})


def _bad_operand(parsed: ParsedInstruction, code: int | None) -> AddressExpr:
    """Of two addresses (LDGSTS, bulk copies) the one in the space that the exception is about."""
    if len(parsed.addresses) > 1 and code is not None:
        wanted = "shared" if code == _OUT_OF_RANGE else "global"
        for expr in parsed.addresses:
            if expr.space == wanted:
                return expr
    return parsed.addresses[0]


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
    judgement, space, base, width = None, expr.space or "generic", 0, parsed.width_bytes or 1
    if any(a.address is not None for a in found):
        found, space, base = _resolve_space(dump, attribution, expr, found)
        judgement = _judge(dump, codemap, attribution, space, found, width)
        if any(a.tentative for a in found) and not _confirms(judgement):
            found = tuple(a._replace(address=None) if a.tentative else a for a in found)
            judgement = _judge(dump, codemap, attribution, space, found, width)
    first = min(judgement.bad) if judgement and judgement.bad else None
    shown = read[first] if first is not None else next((a for a in found if a.address is not None), None)
    notes = window_notes(dump, attribution.code, lines, pc, expr, shown)
    if all(a.address is None for a in found):
        fact = _lost(dump, codemap, attribution, found, expr)
    else:
        fact = _fact(found, space, base, width, parsed, judgement)
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
    "past-allocation",
    "before-allocation",
    "null-page",
    "not-canonical",
)


def _confirms(judgement: Judgement | None) -> bool:
    """A rebuilt address that breaks a hard rule shows by itself that its lane came straight from the fault."""
    return judgement is not None and judgement.kind in _CONFIRMING


def _resolve_space(
    dump: CoreDump, attribution: Attribution, expr: AddressExpr, found: tuple[Access, ...]
) -> tuple[tuple[Access, ...], str, int]:
    """Generic addresses by the context's windows: offset, space and the window's base."""
    space = expr.space or "generic"
    if space != "generic":
        return found, space, 0
    context_id = attribution.group.reports[0].grid.context_id if attribution.group.reports[0].grid else None
    contexts = [c for c in dump.contexts if context_id in (None, c.context_id)]
    addresses = [a.address for a in found if a.address is not None]
    for context in contexts:
        for name, base in (("shared", context.shared_window_base), ("local", context.local_window_base)):
            if base is not None and all(base <= address < base + WINDOW for address in addresses):
                moved = tuple(
                    a._replace(address=None if a.address is None else a.address - base) for a in found
                )
                return moved, name, base
    return found, "global", 0


def _judge(
    dump: CoreDump,
    codemap: CodeMap,
    attribution: Attribution,
    space: str,
    found: tuple[Access, ...],
    width: int,
) -> Judgement | None:
    if attribution.group.code == _MISALIGNED:
        return misaligned(found, width)
    if space == "shared":
        warp = attribution.group.warps[0].warp
        arch = attribution.fault.where.sm_arch if attribution.fault.where else None
        reserved = arch is not None and int("".join(c for c in arch if c.isdigit()) or 0) >= 80
        return shared(found, width, warp.shared_mem_size if warp else None, reserved=reserved)
    if space == "local":
        return judge_local(dump, codemap, attribution, found)
    if space == "global":
        arguments = pointer_arguments(dump, codemap, attribution.group.warps[0].grid)
        return global_memory(dump, found, width, arguments)
    return None


def _fact(
    found: tuple[Access, ...],
    space: str,
    base: int,
    width: int,
    parsed: ParsedInstruction,
    judgement: Judgement | None,
) -> facts.Address:
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
