"""A sweep as one HTML file that needs nothing else: no network, no folder, no server."""

from __future__ import annotations

from typing import Any

from crashlab import __version__
from crashlab.report.html import assets
from crashlab.report.html.links import Anchor
from crashlab.report.kinds import spoken
from crashlab.report.sweep import pictures, rows
from crashlab.sweep import facts

_ARMS = 200
_LEVERS = 60
_KEYS = 12


def render(result: facts.SweepResult) -> str:
    """The page; only the report's own style and script apply in it."""
    style = assets.source("report.css") + assets.source("sweep.css")
    return assets.filled(
        "sweep.html.j2", style, page=_page(result), findings=result.findings, version=__version__
    )


def _page(result: facts.SweepResult) -> dict[str, Any]:
    findings = result.findings
    baseline = [arm.name for arm in result.arms if arm.is_baseline]
    arms = rows.arm_rows(result)
    keys = findings.keys[:_KEYS] if findings else ()
    page: dict[str, Any] = {
        "title": f"Sweep {result.plan}"[:160],
        "tone": "fault" if keys else "hang",
        "pill": f"{len(keys)} key{'s' if len(keys) != 1 else ''}" if keys else "no event",
        "headline": findings.headline if findings else f"Sweep {result.plan}",
        "about": rows.about(result),
        "created": result.created or "",
        "arms": arms[:_ARMS],
        "arms_left": max(0, len(arms) - _ARMS),
        "config": [(arm.name, item) for arm in arms[:_ARMS] for item in arm.config],
        "runs": [run._replace(outcome=spoken(run.outcome)) for run in result.runs[: _ARMS * 2]],
        "runs_left": max(0, len(result.runs) - _ARMS * 2),
        "keys": [_key(entry, baseline, number) for number, entry in enumerate(keys, 1)],
    }
    page["nav"] = _nav(page, findings)
    return page


def _key(entry: facts.KeyFindings, baseline: list[str], number: int) -> dict[str, Any]:
    return {
        "id": f"key{number}",
        "key": entry.key,
        "counts": rows.count_rows(entry)[:_ARMS],
        "baseline": baseline,
        "forest": pictures.forest(entry.counts, baseline),
        "survival": pictures.survival(entry.survival, baseline),
        "compared": [item for item in entry.comparisons if item.reading != "described"][:_ARMS],
        "effects": entry.effects[:_LEVERS],
        "course": entry.course,
    }


def _nav(page: dict[str, Any], findings: facts.Findings | None) -> list[Anchor]:
    links = [Anchor("finding", "Finding"), Anchor("arms", "Arms")]
    if page["config"]:
        links.append(Anchor("config", "Configuration"))
    links += [Anchor(entry["id"], f"Key {number}") for number, entry in enumerate(page["keys"], 1)]
    if findings is not None and findings.next_steps:
        links.append(Anchor("next", "What to run next"))
    if page["runs"]:
        links.append(Anchor("runs", "Runs"))
    if findings is not None:
        links.append(Anchor("caveats", "What this does not mean"))
    return links
