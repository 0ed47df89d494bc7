"""How sure a verdict is, and why: reasons a person can weigh."""

from __future__ import annotations

from crashlab import facts
from crashlab.postmortem.attribute import Attribution, slot_was_reused
from crashlab.postmortem.words import counted

_SOURCE_REASONS = {
    "errorpc": "the hardware recorded the PC of the faulting instruction for the warp (errorPC)",
    "sm-errorpc": "the SM recorded exception and PC of a warp that had exited; kernel and instruction are certain, "
    "the thread is not known",
    "lane-pc": "the PC is where the thread stopped",
    "backtrace": "the PC is the innermost call outside the assert machinery, from the thread's call stack",
}


def of_fault(kind: str, attribution: Attribution, problems: tuple[str, ...]) -> facts.Confidence:
    """Level and reasons for a fault read from a dump."""
    fault = attribution.fault
    reasons, level = [], "high"
    if kind == "device-assert":
        reasons.append("the hardware recorded exception 12 (assert) for the thread")
    if fault.pc_source in _SOURCE_REASONS:
        reasons.append(_SOURCE_REASONS[fault.pc_source])
    if kind == "trap":
        level = "medium"
        reasons.append(
            "the warp is marked broken without an exception code, as __trap() and breakpoints leave it"
        )
    if fault.pc is None:
        level = "low"
        known = "the kernel is the one the warp's grid runs" if fault.kernel else "so the kernel is not known"
        reasons.append(f"no PC of the fault was recorded; {known}")
    elif attribution.code is None:
        level = "medium"
        reasons.append("the PC lies in no module of the dump, so the kernel is inferred from the warp's grid")
    elif attribution.code.symbol is None:
        level = "medium"
        reasons.append("the module that holds the PC has no symbol there")
    elif attribution.code.symbol.guessed:
        reasons.append("the module has no symbol table entry at the PC; the name is that of its code section")
    if slot_was_reused(attribution):
        reasons.append("the warp's slot already runs another kernel, which the recorded PC overrules")
    if fault.where and len(fault.where.sms) > 1:
        reasons.append(f"{len(fault.where.sms)} SMs report the same exception at the same PC")
    if problems:
        level = "medium" if level == "high" else level
        reasons.append(f"the dump contradicts itself in {counted(len(problems), 'place')}; see provenance")
    return facts.Confidence(level, tuple(reasons))


HANG = facts.Confidence(
    "medium",
    (
        "no SM, warp or thread of the dump carries an exception",
        "where the resident warps stood is certain; that they would never have moved on is not",
    ),
)
IDLE = facts.Confidence(
    "high", ("no SM, warp or thread of the dump carries an exception", "no kernel was resident on any device")
)
