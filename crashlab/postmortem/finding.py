"""The address finding as one sentence with numbers a person can check."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crashlab.facts import Dim3
from crashlab.postmortem.accesses import Access
from crashlab.postmortem.judge import Judgement
from crashlab.postmortem.words import counted
from crashlab.sass.operands import ParsedInstruction

_VERBS = {
    "load": "read",
    "store": "wrote",
    "atomic": "did an atomic of",
    "reduce": "reduced",
    "copy": "copied",
}
_NOUNS = {
    "shared": "shared memory",
    "local": "local memory",
    "global": "global memory",
    "constant": "constant memory",
}


def sentence(
    found: Sequence[Access], space: str, width: int, parsed: ParsedInstruction, judgement: Judgement | None
) -> str:
    """Who accessed what, and what is wrong with it, as far as it could be judged."""
    verb = _VERBS.get(parsed.access or "", "accessed")
    # A bulk copy's size is not in its text.
    bulk = parsed.width_bytes is None and parsed.access == "copy"
    unit = "a block of bytes" if bulk else counted(width, "byte")
    if judgement is None:
        executed = [a for a in found if a.address is not None]
        low, high = min(a.address or 0 for a in executed), max(a.address or 0 for a in executed)
        span = hex(low) if low == high else f"{hex(low)} to {hex(high)}"
        return (
            f"{who(executed)} {verb} {unit} of {_NOUNS.get(space, space)} at {span}; none of these addresses breaks a "
            "rule that the dump allows to check"
        )
    bad = [found[i] for i in sorted(judgement.bad)]
    subject = who(bad)
    if judgement.kind.startswith("shared") or judgement.kind == "no-such-block":
        return f"{subject} {verb} {unit} {judgement.sentence}"
    where = f"{_NOUNS.get(space, space)} address" if space != "local" else "local offset"
    text = f"{subject} {verb} {unit} at {where} {hex(bad[0].address or 0)}"
    if len({a.address for a in bad}) > 1:
        text += f" to {hex(max(a.address or 0 for a in bad))}"
    text += f": {judgement.sentence}"
    if judgement.undecided:
        text += ". Which of these threads hit unmapped memory cannot be told from the dump; at least one did"
    elif judgement.by_exclusion:
        text += " (the other lanes' addresses lie in pages that hold the kernel's own arguments)"
    return text


def who(accesses: Iterable[Access]) -> str:
    """``thread (5,0,0)``, ``threads (0,0,0) to (31,0,0) of block (2,0,0)``, and how many blocks."""
    listed = list(accesses)
    blocks = list(dict.fromkeys(a.block for a in listed))
    threads = [a.thread for a in listed if a.thread is not None and a.block == blocks[0]] if blocks else []
    if not threads:
        one = "one thread" if len(listed) == 1 else f"one thread of each of {len(listed)} warps"
        return f"{one} of block {blocks[0]}" if len(blocks) == 1 and blocks[0] is not None else one
    name = thread_range(threads)
    if len(blocks) == 1:
        return f"{name} of block {blocks[0]}" if blocks[0] is not None else name
    rest = counted(len(blocks) - 1, "more block")
    return f"{name} of block {blocks[0]} and threads of {rest} ({len(listed)} threads)"


def thread_range(threads: Sequence[Dim3]) -> str:
    """``thread (5,0,0)``, ``threads (0,0,0) to (31,0,0)`` when contiguous, else the first ones and a count."""
    ordered = sorted(set(threads), key=lambda t: (t.z, t.y, t.x))
    if len(ordered) == 1:
        return f"thread {ordered[0]}"
    first, last = ordered[0], ordered[-1]
    if (first.y, first.z) == (last.y, last.z) and last.x - first.x == len(ordered) - 1:
        return f"threads {first} to {last}"
    shown = ", ".join(str(t) for t in ordered[:3])
    return f"threads {shown}{', …' if len(ordered) > 3 else ''} ({len(ordered)} of the warp)"
