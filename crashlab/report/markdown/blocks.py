"""The parts of an issue text. Each is a block that may be shortened or left out when space runs out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from crashlab import facts
from crashlab.postmortem.wording import file_line, short_name
from crashlab.postmortem.words import counted, joined
from crashlab.report import exposure, xidgroups
from crashlab.report.markdown.escape import bullets, code, fenced, prose
from crashlab.report.verdictrows import verdict_rows

_NAME = 200
_LANES = 16


class Block(NamedTuple):
    """``cut`` orders the cuts: the lowest goes first, 0 never goes. ``short`` replaces the text at its cut."""

    name: str
    text: str
    cut: int = 0
    short: str = ""


def what(report: facts.Report) -> Block | None:
    """Headline and the facts of the verdict."""
    verdict = report.verdict
    lines = [f"**{prose(verdict.headline, 1500)}**", ""]
    for row in verdict_rows(verdict):
        value = row.value or ""
        lines.append(f"- {row.label}: {code(value, 600) if row.mono else prose(value, 600)}")
    if verdict.confidence:
        reasons = joined(verdict.confidence.reasons[:12])
        level = verdict.confidence.level
        lines.append(f"- Confidence: {prose(f'{level} ({reasons})' if reasons else level)}")
    return Block("verdict", "\n".join(lines))


def window(report: facts.Report) -> Block | None:
    """The SASS around the fault, with notes."""
    instruction = report.verdict.instruction
    if instruction is None or not instruction.window:
        return None
    at = next((i for i, line in enumerate(instruction.window) if line.fault), 0)
    long = fenced(_window_lines(instruction.window[:120]))
    short = fenced(_window_lines(instruction.window[max(0, at - 3) : at + 3]))
    return Block("the instructions around the fault", long, 9, short)


def _window_lines(lines: tuple[facts.WindowLine, ...]) -> Iterator[str]:
    for line in lines:
        note = f"    // {line.note}" if line.note else ""
        yield f"{'=>' if line.fault else '  '} {line.pc}  {line.text}{note}"


def address(report: facts.Report) -> Block | None:
    """What the bad address is, and each lane's."""
    found = report.verdict.address
    if found is None or not (found.finding or found.why):
        return None
    lines = []
    if found.finding:
        lines.append(prose(found.finding))
    if found.why:
        lead = "Not recoverable: " if found.state == "not-recoverable" else ""
        lines.append(prose(f"{lead}{found.why}"))
    short = "\n\n".join(lines)
    bad = [lane for lane in found.per_lane if lane.bad]
    if bad:
        more = [f"… and {len(bad) - _LANES} more lanes"] if len(bad) > _LANES else []
        lines.append(fenced([*map(_lane, bad[:_LANES]), *more]))
    return Block("the addresses lane by lane", "\n\n".join(lines), 8, short)


def _lane(lane: facts.LaneAddress) -> str:
    block = f" block {lane.block}" if lane.block else ""
    return f"lane {lane.lane:2} thread {lane.thread}{block}: {lane.address}"


def blamed(report: facts.Report) -> Block | None:
    """What the host said, and kernels that are innocent."""
    lines = []
    reported = report.host.reported if report.host else None
    if report.host and reported:
        site = reported.kernel_blamed or reported.where
        if site:
            relation = f" ({prose(report.host.relation)})" if report.host.relation else ""
            lines.append(f"- The host's error message blamed {code(site)}{relation}.")
        if reported.text:
            lines.append(f"- It said: {code(reported.text)}")
    for bystander in report.bystanders[:6]:
        name = short_name(bystander.kernel, _NAME) or "a kernel"
        lines.append(f"- {code(name)}: {prose(bystander.why)}")
    return Block("what was blamed", "\n".join(lines), 11, "") if lines else None


def hang(report: facts.Report) -> Block | None:
    """Where warps stood."""
    found = report.verdict.hang
    if found is None or not found.groups:
        return None
    lines = [_group(group) for group in found.groups[:32]]
    text = fenced(lines)
    if found.waits:
        text += "\n\n" + bullets(found.waits[:12])
    return Block("where every warp stood", text, 10, fenced(lines[:4]))


def _group(group: facts.HangGroup) -> str:
    line = file_line(group.source)
    name = short_name(group.function or group.kernel, _NAME) or "unknown code"
    return (
        f"{counted(group.warps, 'warp')} of {counted(group.blocks, 'block')} at {group.pc} "
        f"{group.instruction or ''} in {name}"
        f"{f' ({line})' if line else ''}: {group.state or 'state unknown'}{f', {group.detail}' if group.detail else ''}"
    )


def known(report: facts.Report) -> Block | None:
    """Catalogue entries with their arguments."""
    matches = [m for m in report.signatures if m.status != "contradicted"][:3]
    if not matches:
        return None
    parts = []
    for match in matches:
        lines = [
            f"Consistent with {code(match.id)} ({prose(match.status)}, score {match.score:.2f}): {prose(match.title)}"
        ]
        for cause in match.hypotheses[:4]:
            lines.append(f"- {prose(cause.cause)}")
            for label, items in (
                ("for", cause.supporting),
                ("against", cause.against),
                ("not known", cause.unknown),
            ):
                lines += [f"  - {label}: {prose(item)}" for item in items[:8]]
        lines += [f"- Fix: {prose(item)}" for item in match.fix[:4]]
        lines += [f"- Next test: {prose(item)}" for item in match.discriminating_tests[:4]]
        lines += [f"- See {prose(item)}" for item in match.references[:6]]
        parts.append("\n".join(lines))
    return Block("known failures", "\n\n".join(parts), 7, parts[0].split("\n", 1)[0])  # fmt: skip


def disagreements(report: facts.Report) -> Block | None:
    """Where sources contradict each other."""
    lines = []
    for item in report.inconsistencies[:10]:
        said = "; ".join(f"{name}: {text or 'nothing'}" for name, text in list(item.sources.items())[:6])
        lines.append(f"- {prose(item.what)} {prose(said)}. {prose(item.resolution)}")
    return Block("disagreements between sources", "\n".join(lines), 6) if lines else None


def others(report: facts.Report) -> Block | None:
    """Further faults of the same dump."""
    lines = []
    for fault in report.faults[1:17]:
        name = fault.exception.name if fault.exception else "fault"
        who = short_name(fault.kernel.name if fault.kernel else None, _NAME) or "unknown code"
        lines.append(f"- {prose(name)} in {code(who)} at {code(str(fault.pc))}")
    return Block("other faults", "\n".join(lines), 4) if lines else None


def dumps(report: facts.Report) -> Block | None:
    """The dumps of a crash with several."""
    lines = [
        f"- {code(case.input)} ({prose(case.role)}): {prose(case.headline, 400)}"
        for case in report.cases[:16]
    ]
    return Block("the dumps", "\n".join(lines), 5) if lines else None


def kernel_log(report: facts.Report) -> Block | None:
    """Xid events."""
    lines = []
    for group in xidgroups.own(report.xid)[:24]:
        event = group.event
        address = f" at {event.address}" if event.address is not None else ""
        times = f" ({group.number} times)" if group.number > 1 else ""
        lines.append(f"Xid {event.code} {event.meaning or ''}{address}{times} {group.span}".rstrip())
    if (others := xidgroups.others(report.xid)) is not None:
        lines.append(others)
    return Block("kernel log", fenced(lines), 3) if lines else None


def environment(report: facts.Report) -> Block | None:
    """Versions and hardware, each with its source."""
    items = list((report.environment or {}).items())
    lines = [f"{name}: {fact.value}    ({fact.source})" for name, fact in items[:150]]
    if not lines:
        return Block("environment", "Not recorded with this crash.")
    return Block("environment", fenced(lines, limit=300), 12, fenced(lines[:25], limit=120))


def command(report: facts.Report) -> Block | None:
    """What was run, and for how long it ran before it failed."""
    run = report.run
    if run is None or not (run.argv or run.exposure):
        return Block("command", "The command is not recorded in this report: to be filled in by hand.")
    lines = [fenced([" ".join(run.argv)], "sh", 4000)] if run.argv else []
    if run.exposure:
        lines.append(prose(f"Exposure before the failure: {exposure.words(run.exposure)}."))
    if run.outcome:
        lines.append(prose(f"Outcome: {run.outcome}."))
    return Block("command", "\n\n".join(lines), 13, "")


def by_hand(report: facts.Report) -> Block | None:
    """Commands that check the claims."""
    if not report.commands:
        return None
    return Block("commands that check this by hand", fenced(report.commands[:12], "sh", 1500), 2)


def caveats(report: facts.Report) -> Block | None:
    """What the verdict does not mean."""
    return (
        Block("caveats", bullets(report.verdict.does_not_mean[:10])) if report.verdict.does_not_mean else None
    )


def inferred(report: facts.Report) -> Block | None:
    """What was inferred from what."""
    return Block("what was inferred", bullets(report.provenance[:60]), 1) if report.provenance else None


def readers(report: facts.Report) -> Block | None:
    """Who read the evidence."""
    lines = [
        f"{name} {status.version or ''}: {status.status}{f' ({status.detail})' if status.detail else ''}"
        for name, status in list((report.readers or {}).items())[:12]
    ]
    return Block("readers", fenced(lines, limit=300), 1) if lines else None


def hardware(report: facts.Report) -> Block | None:
    """GPU names."""
    names = [f"{gpu.name} ({gpu.arch})" for gpu in report.gpus if gpu.name]
    where = report.verdict.where
    if not names and where and where.device_name:
        names = [f"{where.device_name} ({where.sm_arch})"]
    return (
        Block("hardware", bullets(dict.fromkeys(names))) if names else Block("hardware", "GPU not recorded.")
    )


Builder = Callable[[facts.Report], "Block | None"]
