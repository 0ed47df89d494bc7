"""Are two crashes the same bug? Keys, instruction, address pattern, and what differs in the environment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from crashlab import facts
from crashlab.postmortem.wording import file_line
from crashlab.postmortem.words import article
from crashlab.report.kinds import spoken
from crashlab.report.safe import one_line
from crashlab.report.text import UNBROKEN, Paragraph, Piece, page


class Point(NamedTuple):
    """One thing that was compared. ``same`` is None when one of the two does not tell."""

    what: str
    first: str | None
    second: str | None
    same: bool | None


class Comparison(NamedTuple):
    """``answer``: same, probably-same, different, cannot-tell. ``reasons`` say why, in sentences."""

    answer: str
    reasons: tuple[str, ...]
    points: tuple[Point, ...]
    environment: tuple[Point, ...]


_SENTENCES = {
    "same": "The same bug, as far as the two reports show.",
    "probably-same": "Probably the same bug.",
    "different": "Two different bugs.",
    "cannot-tell": "The two reports do not tell whether it is one bug.",
}
_RAN = ("gpu-fault", "device-assert", "trap", "hang", "stall", "garbage", "host-death", "never-ready")


def compare(first: facts.Report, second: facts.Report) -> Comparison:
    """Compare two reports. Nothing is decided by a name alone: code, instruction and address count."""
    points = tuple(_point(name, a, b) for name, a, b in _facts(first.verdict, second.verdict))
    fine, coarse = _keys(first, second)
    answer, reasons = _judge(first, second, {p.what: p for p in points}, fine, coarse)
    return Comparison(
        answer,
        reasons,
        (_key_point("fine key", first, second, "fine"), _key_point("coarse key", first, second, "coarse"), *points),
        tuple(_environment(first, second)),
    )  # fmt: skip


def _point(what: str, first: object, second: object) -> Point:
    a, b = (None if value is None else str(value) for value in (first, second))
    return Point(what, a, b, None if a is None or b is None else a == b)


def _facts(a: facts.Verdict, b: facts.Verdict) -> Iterator[tuple[str, object, object]]:
    yield "kind", a.kind, b.kind
    yield "exception", a.exception.name if a.exception else None, b.exception.name if b.exception else None
    for what, get in (("kernel", "kernel"), ("function", "function")):
        first, second = getattr(a, get), getattr(b, get)
        yield what, first.name if first else None, second.name if second else None
    yield (
        "offset in the function",
        hex(a.function.offset) if a.function and a.function.offset is not None else None,
        hex(b.function.offset) if b.function and b.function.offset is not None else None,
    )
    yield (
        "instruction",
        a.instruction.text if a.instruction else None,
        b.instruction.text if b.instruction else None,
    )
    yield "source line", file_line(a.source), file_line(b.source)
    yield "access", _access(a), _access(b)
    yield "address pattern", _pattern(a.address), _pattern(b.address)
    yield "library", a.library.name if a.library else None, b.library.name if b.library else None
    yield "architecture", a.where.sm_arch if a.where else None, b.where.sm_arch if b.where else None
    yield "launch", _launch(a.kernel), _launch(b.kernel)


def _access(verdict: facts.Verdict) -> str | None:
    found = verdict.instruction
    if found is None or found.access is None:
        return None
    return " ".join(
        p for p in (found.access, found.space, f"{found.width_bytes} bytes" if found.width_bytes else "") if p
    )


def _pattern(address: facts.Address | None) -> str | None:
    return f"{address.kind} ({address.space})" if address and address.kind else None


def _launch(kernel: facts.Kernel | None) -> str | None:
    launch = kernel.launch if kernel else None
    return f"{launch.grid}, {launch.block}" if launch and launch.grid and launch.block else None


def _keys(first: facts.Report, second: facts.Report) -> tuple[bool | None, bool | None]:
    a, b = first.signature_key, second.signature_key
    fine = a.fine == b.fine if a and b and a.fine and b.fine else None
    coarse = a.coarse == b.coarse if a and b and a.coarse and b.coarse else None
    return fine, coarse


def _key_point(what: str, first: facts.Report, second: facts.Report, field: str) -> Point:
    a, b = first.signature_key, second.signature_key
    return _point(what, getattr(a, field) if a else None, getattr(b, field) if b else None)


def _judge(
    first: facts.Report, second: facts.Report, by: dict[str, Point], fine: bool | None, coarse: bool | None
) -> tuple[str, tuple[str, ...]]:
    for report, which in ((first, "first"), (second, "second")):
        if report.verdict.kind not in _RAN:
            return "cannot-tell", (
                f"The {which} report's verdict is {spoken(report.verdict.kind)}: it names no failure.",
            )
    if by["kind"].same is False:
        names = [spoken(kind or "") for kind in (by["kind"].first, by["kind"].second)]
        kinds = [f"{article(name)} {name}" for name in names]
        return "different", (f"One is {kinds[0]}, the other {kinds[1]}.",)
    differing = [p.what for p in by.values() if p.same is False]
    if fine:
        return "same", ("The fine keys are equal: same code, same instruction, same kind of access.",)
    if coarse and by["address pattern"].same is not False:
        why = (
            f"The coarse keys are equal; {', '.join(differing)} differ."
            if differing
            else "The coarse keys are equal."
        )
        return "probably-same", (why, "The code may have been built differently: compare the instructions.")
    if coarse:
        return "cannot-tell", (
            "The coarse keys are equal, but the addresses went wrong in different ways: "
            f"{by['address pattern'].first} against {by['address pattern'].second}.",
        )
    if all(by[what].same for what in ("kernel", "exception", "address pattern", "source line")):
        return "probably-same", (
            "Kernel, exception, source line and the way the address went wrong are the same; the code was compiled "
            "differently.",
        )
    if by["kernel"].same and by["exception"].same:
        return "cannot-tell", (
            "Kernel and exception are the same, the instruction or the access is not: a name alone is no cause.",
        )
    if by["kernel"].same is None and by["function"].same is None:
        return "cannot-tell", ("At least one report does not name the code that failed.",)
    return "different", (f"Different in {', '.join(differing)}.",) if differing else ("The keys differ.",)


def _environment(first: facts.Report, second: facts.Report) -> Iterator[Point]:
    """Only what differs or is known of one."""
    a, b = first.environment or {}, second.environment or {}
    for name in dict.fromkeys((*a, *b)):
        if name == "dump_time":
            continue
        point = _point(name, a[name].value if name in a else None, b[name].value if name in b else None)
        if point.same is not True:
            yield point


def render(comparison: Comparison, first: str, second: str, *, width: int = UNBROKEN) -> str:
    """The comparison as text for a terminal of ``width`` columns."""
    return page(_lines(comparison, first, second), width)


def _lines(comparison: Comparison, first: str, second: str) -> Iterator[Piece]:
    yield _SENTENCES[comparison.answer]
    yield from (Paragraph(one_line(reason)) for reason in comparison.reasons)
    yield ""
    yield Paragraph(one_line(f"A = {first}, B = {second}"))
    for point in comparison.points:
        yield from _point_lines(point)
    if comparison.environment:
        yield ""
        yield "different or known of one only:"
        for point in comparison.environment[:60]:
            yield from _point_lines(point)


def _point_lines(point: Point) -> Iterator[Paragraph]:
    if point.first is None and point.second is None:
        return
    a, b = (one_line(v, 150) if v else "not known" for v in (point.first, point.second))
    what = one_line(point.what)
    if point.same:
        yield Paragraph(a, f"  = {what}: ", " " * 8)
    else:
        yield Paragraph(f"A {a}", f"  {'≠' if point.same is False else '?'} {what}: ", " " * 8)
        yield Paragraph(f"B {b}", f"    {' ' * len(what)}  ", " " * 8)
