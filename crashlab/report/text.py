"""The report on one terminal screen: what failed, what was blamed, how sure, what next."""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from crashlab import facts
from crashlab.cubin.demangle import demangle
from crashlab.postmortem.wording import file_line, short_name
from crashlab.postmortem.words import counted, joined
from crashlab.report.safe import one_line

if TYPE_CHECKING:
    from crashlab.report.columns import Columns

WIDTH = 110
"""Columns of a page where no terminal says otherwise."""
UNBROKEN = 1 << 20
"""For a page whose paragraphs stay on one line each."""

_LABEL = 13
_NARROW = 60
_WINDOW_BEFORE, _WINDOW_AFTER = 3, 2
_ORIGIN = 4
_NOTE = 8
"""A note below its instruction stands this much further in: under the instruction's address and beyond its mark."""


class Paragraph(NamedTuple):
    """Text that is broken into lines where the page is known to end; ``first`` and ``rest`` stand before them."""

    text: str
    first: str = ""
    rest: str = ""


class Noted(NamedTuple):
    """A line of code with a note behind it, or below it where both are wider than the page."""

    text: str
    note: str

    def lines(self, width: int) -> Iterator[str]:
        """The line, or the code and then its note, which is broken like a paragraph."""
        whole = f"{self.text}   {self.note}"
        if len(whole) <= width:
            yield whole
            return
        lead = " " * (len(self.text) - len(self.text.lstrip()) + _NOTE)
        yield from _code_lines(self.text, width)
        yield from _wrapped(Paragraph(self.note, lead, f"{lead}  "), width)


Piece: TypeAlias = "str | Paragraph | Noted | Columns"
"""A line of code or the like, which is broken only on a screen narrower than 60 columns; a paragraph; code with a
note; a table."""


def render(report: facts.Report, *, verbose: bool = False, width: int = WIDTH) -> str:
    """The text form; ``verbose`` adds the whole window, every fault and all readers."""
    return page(_lines(report, verbose), width)


def page(pieces: Iterable[Piece], width: int) -> str:
    """Lines, paragraphs and tables as one text of at most ``width`` columns."""
    lines: list[str] = []
    for piece in pieces:
        if isinstance(piece, Paragraph):
            lines += _wrapped(piece, width)
        elif not isinstance(piece, str):
            lines += piece.lines(width)
        else:
            lines += _code_lines(piece, width)
    return "\n".join(lines) + "\n"


def _code_lines(text: str, width: int) -> Iterator[str]:
    if len(text) <= width or width >= _NARROW:
        yield text
    else:
        lead = text[: len(text) - len(text.lstrip())]
        yield from _wrapped(Paragraph(text.lstrip(), lead, f"{lead}    "), width)


def _row(label: str, value: str | None) -> Iterator[Paragraph]:
    """A label and its value, wrapped under itself."""
    if value:
        yield Paragraph(one_line(value), f"{label:<{_LABEL}}", " " * _LABEL)


def _wrapped(paragraph: Paragraph, width: int) -> Iterator[str]:
    """Lines of at most ``width`` columns, broken at blanks (in a word only where it alone is longer)."""
    text, indent, rest = paragraph
    room = max(1, width - len(indent))
    while len(text) > room:
        at = text.rfind(" ", 0, room + 1)
        if at <= room // 2 and (at <= 0 or len(text[at + 1 :].split(" ", 1)[0]) > width - len(rest)):
            from crashlab.report.columns import in_word  # few reports have so long a word

            at = in_word(text, room)
        yield f"{indent}{text[:at].rstrip()}"
        text, indent, room = text[at:].lstrip(), rest, max(1, width - len(rest))
    yield f"{indent}{text}"


def _lines(report: facts.Report, verbose: bool) -> Iterator[Piece]:
    verdict = report.verdict
    yield Paragraph(one_line(verdict.headline))
    yield ""
    yield from _row("input", _inputs(report))
    yield from _code(verdict)
    yield from _window(verdict, verbose)
    yield from _place(verdict)
    yield from _address(verdict, verbose)
    yield from _hang(verdict, verbose)
    yield from _cases(report)
    yield from _others(report, verbose)
    yield from _blame(report)
    yield from _kernel_log(report, verbose)
    yield from _signature(report)
    yield from _inconsistencies(report)
    if verdict.confidence:
        reasons = joined(verdict.confidence.reasons)
        yield from _row("confidence", f"{verdict.confidence.level}: {reasons}")
    for sentence in verdict.does_not_mean:
        yield from _row("but", sentence)
    if verdict.kind == "unreadable":
        for note in report.provenance[:2]:
            yield from _row("next", note)
    yield from _readers(report, verbose)
    for note in report.provenance[: _notes(report, verbose)]:
        yield from _row("note", note)
    for command in report.commands:
        yield from _row("check", command)


def _notes(report: facts.Report, verbose: bool) -> int:
    """How many notes are shown: where nothing but logs was read, they tell the story."""
    if verbose:
        return len(report.provenance)
    only_logs = not {"native", "cuda_gdb"} & set(report.readers or {})
    return 12 if only_logs and report.verdict.kind != "unreadable" else 0


def _inputs(report: facts.Report) -> str:
    out = []
    for item in report.inputs:
        size = f", {item.bytes:,} bytes" if item.bytes is not None else ""
        cut = ", incomplete" if item.complete is False else ""
        out.append(f"{item.path}{size}{cut}")
    return "; ".join(out[:4]) + (f"; and {len(out) - 4} more" if len(out) > 4 else "")


def _code(verdict: facts.Verdict) -> Iterator[Paragraph]:
    if verdict.exception:
        code = f" ({verdict.exception.code})" if verdict.exception.code is not None else ""
        scope = f", reported for the {verdict.exception.precision}" if verdict.exception.precision else ""
        yield from _row("exception", f"{verdict.exception.name}{code}{scope}")
    kernel = verdict.kernel
    if kernel:
        inferred = " [inferred]" if kernel.launch_source == "inferred" else ""
        yield from _row("kernel", f"{kernel.name}{launch_text(kernel.launch)}{inferred}")
    function = verdict.function
    if function and (kernel is None or function.mangled != kernel.mangled):
        yield from _row("function", function.name)
    offset = (
        f" = {short_name(function.name, 60)}+{hex(function.offset)}"
        if function and function.offset is not None
        else ""
    )
    if verdict.pc is not None:
        yield from _row("PC", f"{verdict.pc}{offset} [{verdict.pc_source}]")
    if verdict.instruction:
        yield from _row("instruction", verdict.instruction.text)
    if verdict.source:
        yield from _row("source", source_text(verdict.source))
    if verdict.library and verdict.library.name:
        sure = f" ({verdict.library.confidence} confidence)" if verdict.library.confidence else ""
        yield from _row("library", f"{verdict.library.name}{sure}")


def launch_text(launch: facts.Launch | None) -> str:
    """`` <<<(4,1,1),(256,1,1)>>>``, empty when unknown."""
    if launch is None or launch.grid is None or launch.block is None:
        return ""
    cluster = f",cluster {launch.cluster}" if launch.cluster else ""
    return f" <<<{launch.grid},{launch.block}{cluster}>>>"


def source_text(source: facts.Source) -> str:
    """``/src/faults.cu:27 in inlined_store, inlined at faults.cu:31``."""
    text = f"{source.file}:{source.line}"
    for frame in source.inlined:
        name = f" in {short_name(demangle(frame.function), 60)}," if frame.function else ","
        text += f"{name} inlined at {frame.file}:{frame.line}"
    return text


def _window(verdict: facts.Verdict, verbose: bool) -> Iterator[Piece]:
    if not verdict.instruction or verdict.kind == "hang":
        return
    window = verdict.instruction.window
    at = next((i for i, line in enumerate(window) if line.fault), None)
    if at is None:
        return
    chosen = window if verbose else window[max(0, at - _WINDOW_BEFORE) : at + _WINDOW_AFTER + 1]
    for line in chosen:
        mark = "=>" if line.fault else "  "
        code = f"  {mark} {line.pc}  {one_line(line.text)}"
        yield Noted(code, one_line(f"; {line.note}")) if line.note else code


def _place(verdict: facts.Verdict) -> Iterator[Paragraph]:
    where = verdict.where
    if where is None:
        return
    parts = []
    if where.device is not None:
        parts.append(
            f"device {where.device}"
            + (f" ({where.device_name}, {where.sm_arch})" if where.device_name else "")
        )
    if where.sms:
        shown = ", ".join(str(sm) for sm in where.sms[:6])
        parts.append(
            f"{'SM' if len(where.sms) == 1 else f'{len(where.sms)} SMs:'} {shown}{', …' if len(where.sms) > 6 else ''}"
        )
    if where.block:
        parts.append(f"block {where.block}")
    if where.warp is not None:
        parts.append(f"warp {where.warp}")
    if where.threads:
        parts.append(threads_text(where.threads))
    yield from _row("where", ", ".join(parts))


def threads_text(threads: tuple[facts.Dim3, ...]) -> str:
    """``thread (5,0,0)`` or ``32 threads (0,0,0) to (31,0,0)``."""
    if len(threads) == 1:
        return f"thread {threads[0]}"
    return f"{len(threads)} threads from {threads[0]} to {threads[-1]}"


def _address(verdict: facts.Verdict, verbose: bool) -> Iterator[Paragraph]:
    address = verdict.address
    if address is None:
        return
    if address.state == "recovered":
        yield from _row(
            "address", address.finding or (str(address.value) if address.value is not None else None)
        )
    elif address.state == "not-recoverable":
        yield from _row("address", f"not recoverable: {address.why}")
        yield from _row("", address.finding)
    if verbose:
        yield from _row("hint only", address.hint)
    for step in address.origin[:_ORIGIN]:
        line = f" (line {step.line})" if step.line is not None else ""
        yield from _row("made by", f"{step.pc}  {step.text}{line}")


def _hang(verdict: facts.Verdict, verbose: bool) -> Iterator[Piece]:
    hang = verdict.hang
    if hang is None:
        return
    yield ""
    limit = len(hang.groups) if verbose else 8
    for group in hang.groups[:limit]:
        noun = "warp" if group.warps == 1 else "warps"
        text = f"{group.warps:5} {noun}, {counted(group.blocks, 'block')} at {group.pc}"
        if group.instruction:
            text += f"  {group.instruction}"
        line = file_line(group.source)
        text += f"  ({line})" if line else ""
        name = short_name(group.function or group.kernel, 70)
        yield Paragraph(one_line(f"{text}  in {name}"), "  ", " " * 10)
        detail = f": {group.detail}" if group.detail else ""
        yield Paragraph(one_line(f"{group.state or 'state unknown'}{detail}"), " " * 8, " " * 10)
    if len(hang.groups) > limit:
        yield f"  … and {counted(len(hang.groups) - limit, 'more group')} (-v shows them)"
    for sentence in hang.waits:
        yield from _row("waits", sentence)
    yield ""


def _cases(report: facts.Report) -> Iterator[Paragraph]:
    for case in report.cases:
        yield from _row(case.role, f"{case.input}: {case.headline}")


def _others(report: facts.Report, verbose: bool) -> Iterator[Paragraph]:
    rest = report.faults[1:]
    limit = len(rest) if verbose else 3
    for fault in rest[:limit]:
        name = fault.exception.name if fault.exception else "fault"
        sms = f", {len(fault.where.sms)} SMs" if fault.where and fault.where.sms else ""
        who = short_name(fault.kernel.name if fault.kernel else None, 60) or "unknown code"
        yield from _row("also", f"{name} in {who} at {fault.pc}{sms}")
    if len(rest) > limit:
        yield from _row("also", f"{counted(len(rest) - limit, 'more distinct fault')} (-v shows them)")


def _kernel_log(report: facts.Report, verbose: bool) -> Iterator[Paragraph]:
    if not report.xid:
        return
    from crashlab.report import xidgroups  # most reports have no kernel log

    ours = xidgroups.own(report.xid)
    limit = 12 if verbose else 3
    for group in ours[:limit]:
        event, count = group.event, group.number
        whose = "" if event.relevant else " (whether of this crash is not known)"
        process = f", process {event.pid}" if event.pid is not None and (event.relevant or count == 1) else ""
        times = f", {count} times" if count > 1 else ""
        when = f", at {group.span}" if group.span and count == 1 else f", {group.span}" if group.span else ""
        yield from _row(
            "kernel log", f"Xid {event.code}: {event.meaning or 'unknown'}{process}{times}{when}{whose}"
        )
    rest = sum(group.number for group in ours[limit:])
    if rest:
        yield from _row("", f"{counted(rest, 'more Xid event')}{'' if verbose else ' (-v shows them)'}")
    if (others := xidgroups.others(report.xid)) is not None:
        yield from _row("kernel log", others)


def _blame(report: facts.Report) -> Iterator[Paragraph]:
    if report.host and report.host.reported:
        reported = report.host.reported
        site = reported.kernel_blamed or reported.where
        relation = f" ({report.host.relation})" if report.host.relation else ""
        yield from _row("host blamed", f"{site or reported.text}{relation}")
    for bystander in report.bystanders[:3]:
        yield from _row("innocent", f"{short_name(bystander.kernel, 70)}: {bystander.why}")


def _signature(report: facts.Report) -> Iterator[Paragraph]:
    open_ones = [s for s in report.signatures if s.status != "contradicted"]
    best = next((s for s in open_ones if s.kind in ("cause", None)), None)
    if best is not None and best.status == "match":
        yield from _row(
            "known bug", f"consistent with {best.id} ({best.status}, score {best.score:.2f}): {best.title}"
        )
        for fix in best.fix[:2]:
            yield from _row("fix", fix)
    elif best is not None:  # a fix for what is only possible would be tried before the test that decides
        rather = best.hypotheses[0] if any(one.against for one in best.hypotheses[1:]) else None
        but = f"; rather {rather.cause}: {'; '.join(rather.supporting[:2])}" if rather is not None else ""
        yield from _row("perhaps", f"{best.id} ({best.status}, score {best.score:.2f}): {best.title}{but}")
        for test in best.discriminating_tests[:1]:
            yield from _row("to decide", test)
    reading = next((s for s in open_ones if s.reads_as and s.status == "match"), None)
    if reading is not None:
        yield from _row("reading", f"{reading.id}: {reading.reads_as}")


def _inconsistencies(report: facts.Report) -> Iterator[Paragraph]:
    for item in report.inconsistencies[:3]:
        yield from _row("disagreement", f"{item.what} {item.resolution}")


def _readers(report: facts.Report, verbose: bool) -> Iterator[Paragraph]:
    """All readers; without ``verbose`` those that were asked and could not answer."""
    for name, status in (report.readers or {}).items():
        if not verbose and (status.status in ("ok", "skipped") or name == "native"):
            continue
        ms = f", {status.ms:.0f} ms" if status.ms is not None else ""
        version = f" {status.version}" if status.version else ""
        detail = f": {status.detail}" if status.detail else ""
        yield from _row("reader", f"{name}{version}: {status.status}{ms}{detail}")
