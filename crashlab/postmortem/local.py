"""Local memory: a thread's stack, and the calls that used it up."""

from __future__ import annotations

from crashlab.errors import MalformedCubin
from crashlab.gpucore.dump import CoreDump
from crashlab.postmortem.accesses import Access
from crashlab.postmortem.attribute import Attribution
from crashlab.postmortem.codemap import CodeMap
from crashlab.postmortem.judge import WINDOW, Judgement
from crashlab.postmortem.wording import short_name


def judge_local(
    dump: CoreDump, codemap: CodeMap, attribution: Attribution, found: tuple[Access, ...]
) -> Judgement | None:
    """Local addresses against the thread's stack, which grows down from the top of its 16 MiB window."""
    known = [i for i, a in enumerate(found) if a.address is not None]
    if not known:
        return None
    above = [i for i in known if (found[i].address or 0) >= WINDOW]
    if above:
        past = (found[above[0]].address or 0) - WINDOW
        text = (
            f"{past:,} bytes past the top of the thread's local memory, which is a window of {WINDOW:,} bytes"
        )
        return Judgement(frozenset(above), "local-out-of-range", text, WINDOW)
    first = found[known[0]]
    depth = WINDOW - (first.address or 0)
    text = f"{depth:,} bytes below the top of the thread's local memory"
    size = _local_size(dump, first)
    if size is not None:
        text += f", of which {size:,} bytes are allocated"
    stack = stack_finding(dump, codemap, attribution, first)
    if stack:
        text += f"; {stack}"
    return Judgement(frozenset(known), "local-stack", text, size)


def stack_finding(dump: CoreDump, codemap: CodeMap, attribution: Attribution, access: Access) -> str | None:
    """The device call stack in a clause, with recursion named; None when the thread is in no call."""
    calls = call_chain(dump, codemap, attribution, access)
    if not calls:
        return None
    text = f"call stack: {' <- '.join(calls[:8])}{' <- …' if len(calls) > 8 else ''}"
    repeated = next((name for name in calls if calls.count(name) > 1), None)
    return f"{text} ({repeated} calls itself)" if repeated else text


def call_chain(dump: CoreDump, codemap: CodeMap, attribution: Attribution, access: Access) -> list[str]:
    """Function names from the faulting one outwards, as the thread's backtrace gives them."""
    names = []
    if attribution.fault.function:
        names.append(short_name(attribution.fault.function.name, 60) or "?")
    for level in dump.backtrace(access.row) or ():
        try:
            hit = codemap.at(level.virtual_return_address or level.return_address, access.grid)
        except MalformedCubin:
            hit = None
        function = hit.function if hit else None
        names.append(short_name(function.name, 60) or "?" if function else "?")
    return names if len(names) > 1 else []


def _local_size(dump: CoreDump, access: Access) -> int | None:
    section = dump.local_memory(access.row)
    return section.size if section is not None and section.size else None
