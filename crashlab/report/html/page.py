"""The page as a whole: collects what each section shows and hands it to the template."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from crashlab import facts
from crashlab.postmortem.wording import file_line, short_name
from crashlab.report import exposure, kinds, xidgroups
from crashlab.report.html import assets, pictures
from crashlab.report.html.codewindow import code_lines
from crashlab.report.html.links import Anchor, reference
from crashlab.report.timeline import Timeline
from crashlab.report.verdictrows import Row, verdict_rows

_TONES = {
    "gpu-fault": "fault",
    "device-assert": "fault",
    "trap": "fault",
    "garbage": "fault",
    "no-fault": "fine",
}
"""Colours of verdicts; of all others: hang."""
_OTHERS, _CASES, _SIGNATURES, _NAME = 24, 64, 12, 160
_TAIL_LINES = 60


def render(report: facts.Report, timeline: Timeline | None = None) -> str:
    """The HTML text of a report, ``timeline`` being the course of the run where there was one."""
    page = _page(report, timeline)
    style = assets.source("report.css")
    return assets.filled("report.html.j2", style, report=report, page=page, newline=Markup("\n"))


def _page(report: facts.Report, timeline: Timeline | None) -> dict[str, Any]:
    verdict = report.verdict
    kind, tone = kinds.title(verdict.kind), _TONES.get(verdict.kind, "hang")
    confidence = verdict.confidence.level if verdict.confidence else ""
    page: dict[str, Any] = {
        "kind": kind,
        "tone": tone,
        "confidence_css": confidence if confidence in ("high", "medium", "low") else "other",
        "heading": verdict.exception.name if verdict.exception else verdict.headline,
        "title": f"{kind}: {title(verdict)}"[:_NAME],
        "facts": verdict_rows(verdict),
        "code": code_lines(verdict.instruction),
        "here": "→" if verdict.kind != "hang" else "·",
        "here_words": "where most warps stood" if verdict.kind == "hang" else "that faulted",
        "cases": report.cases[:_CASES],
        "environment": list((report.environment or {}).items())[:200],
        "run": _run(report.run),
        "inputs": [Row(item.path, _input(item), True) for item in report.inputs[:_CASES]],
        "readers": _readers(report),
        "xids": xidgroups.own(report.xid)[:60],
        "other_xids": xidgroups.others(report.xid),
        **_blame(report),
        **_signatures(report),
        **_others(report),
        **_hang(verdict),
        **pictures.sections(report, timeline),
    }
    page["nav"] = _nav(page, report)
    return page


def title(verdict: facts.Verdict) -> str:
    """What happened where, short enough for a window's title; the headline where there is no kernel to name."""
    who = verdict.function or verdict.kernel
    name = short_name(who.name if who else None, _NAME)
    if verdict.exception is None or name is None:
        return verdict.headline if verdict.kind != "hang" or name is None else f"{name} was still on the GPU"
    return f"{verdict.exception.name} in {name}"


def _nav(page: dict[str, Any], report: facts.Report) -> list[Anchor]:
    wanted = (
        ("verdict", "Verdict", True),
        ("blame", "Accused and blamed", page["blame"]),
        ("cases", "Dumps", page["cases"]),
        ("code", "Instruction", page["code"]),
        ("address", "Address", page["address"]),
        ("lanes", "Warps and lanes", page["lanes"]),
        ("hang", "Where warps stood", page["hang"]),
        ("gpu", "GPU", page["gpus"]),
        ("timeline", "Run", page["timeline"]),
        ("known", "Known failures", page["signatures"]),
        ("others", "Other faults", page["others"]),
        ("disagree", "Disagreements", report.inconsistencies),
        ("xid", "Kernel log", report.xid),
        ("environment", "Environment", page["environment"]),
        ("run", "Command", page["run"]),
        ("readers", "Readers", True),
        ("check", "Check by hand", report.commands),
    )
    return [Anchor(id_, label) for id_, label, there in wanted if there]


def _blame(report: facts.Report) -> dict[str, Any]:
    verdict = report.verdict
    items = []
    reported = report.host.reported if report.host else None
    if report.host is not None and reported is not None:
        site = reported.kernel_blamed or reported.where or reported.text or "nothing by name"
        items.append({
            "who": site,
            "text": reported.text if reported.text != site else None,
            "why": _host_why(report.host.relation, reported.kernel_blamed),
        })  # fmt: skip
    for bystander in report.bystanders[:8]:
        items.append(
            {"who": short_name(bystander.kernel, _NAME) or "a kernel", "text": None, "why": bystander.why}
        )
    accused = short_name(verdict.kernel.name if verdict.kernel else None, _NAME)
    function = short_name(verdict.function.name if verdict.function else None, _NAME)
    why = f"PC {verdict.pc}, from {verdict.pc_source}" if verdict.pc is not None else "no PC was recorded"
    line = file_line(verdict.source)
    return {
        "blame": items,
        "accused": accused or function or "code that no module of the dump holds",
        "accused_why": f"{why}{f', {line}' if line else ''}",
    }


def _host_why(relation: str | None, kernel: str | None) -> str:
    what = "by the host's error message"
    return f"{what}: {relation}" if relation else what if kernel else f"{what}, which names no kernel"


def _signatures(report: facts.Report) -> dict[str, Any]:
    return {
        "signatures": [
            {
                "match": match,
                "css": match.status if match.status in ("match", "possible", "contradicted") else "other",
                "score": f"{min(1.0, max(0.0, match.score)):.2f}",
                "references": [reference(text) for text in match.references[:20]],
            }
            for match in report.signatures[:_SIGNATURES]
        ]
    }


def _others(report: facts.Report) -> dict[str, Any]:
    rest = report.faults[1:]
    rows = []
    for fault in rest[:_OTHERS]:
        where = fault.where
        sms = f"on {len(where.sms)} SM{'s' if len(where.sms) != 1 else ''}" if where and where.sms else ""
        device = f"of device {where.device}" if where and where.device is not None else ""
        rows.append({
            "name": fault.exception.name if fault.exception else "Fault",
            "place": f"{sms} {device}".strip(),
            "who": short_name(fault.kernel.name if fault.kernel else None, _NAME) or "unknown code",
            "pc": str(fault.pc) if fault.pc is not None else "no PC",
            "instruction": fault.instruction.text if fault.instruction else None,
        })  # fmt: skip
    return {"others": rows, "others_left": len(rest) - len(rows)}


def _hang(verdict: facts.Verdict) -> dict[str, Any]:
    groups = verdict.hang.groups if verdict.hang else ()
    rows = []
    for group in groups[:_OTHERS]:
        name = short_name(group.function or group.kernel, _NAME) or "unknown code"
        line = file_line(group.source)
        sms = f" on {len(group.sms)} SM{'s' if len(group.sms) != 1 else ''}" if group.sms else ""
        state = group.state if group.state in ("spinning", "barrier", "waiting", "running") else "other"
        rows.append({"group": group, "css": state, "where": f"in {name}{f' ({line})' if line else ''}{sms}"})
    return {"hang": rows, "hang_total": sum(g.warps for g in groups) or 1}


def _run(run: facts.Run | None) -> list[Row]:
    if run is None:
        return []
    rows = (
        Row("Command", " ".join(run.argv), True),
        Row("Started", run.started),
        Row("Ended", run.ended),
        Row("Outcome", run.outcome),
        Row("Exposure", exposure.words(run.exposure or {})),
        Row("Exit code", None if run.exit_code is None else str(run.exit_code)),
        Row("Signal", run.signal),
    )
    return [row for row in rows if row.value]


def _input(item: facts.Input) -> str:
    parts = [
        f"{item.bytes:,} bytes" if item.bytes is not None else "",
        f"sha256 {item.sha256}" if item.sha256 else "",
        "incomplete" if item.complete is False else "",
    ]
    return ", ".join(p for p in parts if p) or "size not recorded"


def _readers(report: facts.Report) -> list[dict[str, Any]]:
    rows = []
    for name, status in list((report.readers or {}).items())[:20]:
        rows.append({
            "name": name,
            "status": status,
            "took": f"{status.ms:,.0f} ms" if status.ms is not None else None,
            "argv": " ".join(status.argv) if status.argv else None,
            "tail": (status.tail or "").splitlines()[-_TAIL_LINES:],
        })  # fmt: skip
    return rows
