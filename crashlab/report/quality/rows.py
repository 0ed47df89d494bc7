"""Sentences and table rows that several forms of the quality report share."""

from __future__ import annotations

from collections.abc import Iterator

from crashlab.quality.answered import Counts, Share
from crashlab.quality.degenerate import MEANING
from crashlab.quality.facts import Comparison, Differs, PassFacts, QualityReport
from crashlab.quality.onset import CONCURRENCY, Onset
from crashlab.report.safe import one_line


def passes(report: QualityReport) -> list[PassFacts]:
    """All passes of all arms in the order they were asked."""
    return [one for arm in report.arms for one in arm.passes]


def share(one: Share | None) -> str:
    """``85.0 % (79.3 to 89.6)``."""
    if one is None or not one.of:
        return "-"
    return f"{one.hits / one.of:.1%} ({one.low:.1%} to {one.high:.1%})"


def counts(one: Counts) -> str:
    """The four counts."""
    return f"{one.correct} correct, {one.wrong} wrong, {one.invalid} invalid, {one.error} error"


def levels(report: QualityReport) -> Iterator[tuple[str, list[str]]]:
    """Each level with right answers of each pass: ``18/20``."""
    names = dict.fromkeys(row.level for one in passes(report) for row in one.levels)
    for name in names:
        cells = []
        for one in passes(report):
            found = next((row.counts for row in one.levels if row.level == name), None)
            cells.append("-" if found is None else f"{found.correct}/{found.answered}")
        yield name, cells


def cells(report: QualityReport) -> Iterator[tuple[str, list[str]]]:
    """Right answers of each arm at other prompt lengths and concurrencies."""
    steps = dict.fromkeys((cell.dimension, cell.at) for arm in report.arms for cell in arm.cells)
    for dimension, at in steps:
        row = []
        for arm in report.arms:
            found = next((c for c in arm.cells if (c.dimension, c.at) == (dimension, at)), None)
            row.append("-" if found is None else f"{found.right}/{found.of}")
        yield step(dimension, at), row


def step(dimension: str, at: int) -> str:
    """``1,024 prompt tokens``, ``64 at a time``."""
    return f"{at:,} at a time" if dimension == CONCURRENCY else f"{at:,} prompt tokens"


def onset(arm: str, one: Onset) -> str:
    """Where garbage begins."""
    bad = step(one.dimension, one.bad)
    if one.good is None:
        return f"Arm {arm} is bad from the smallest step on: {bad}."
    return (
        f"Arm {arm} is good at {step(one.dimension, one.good)} and bad at {bad} ({len(one.probes)} probes)."
    )


def errors(one: PassFacts) -> str | None:
    """Errors by class with an example, None without errors."""
    if not one.errors:
        return None
    parts = ", ".join(f"{name} {number}" for name, number in one.errors.items())
    example = f"; for example {one_line(one.error_example, 120)}" if one.error_example else ""
    return f"{one.name}: errors (not wrong answers): {parts}{example}"


def odd(one: PassFacts) -> str | None:
    """Degenerate answers by kind, None without any."""
    if not one.odd:
        return None
    parts = ", ".join(f"{MEANING.get(kind, kind)} {number}" for kind, number in one.odd.items())
    return f"{one.name}: {one.odd_answers} of {one.looked_at} answers look degenerate: {parts}"


def comparison(one: Comparison) -> list[str]:
    """A comparison in sentences."""
    pairs = one.pairs
    lines = [
        f"{pairs.total} pairs: {pairs.both} right in both, {pairs.lost} only in {one.first}, {pairs.won} only in "
        f"{one.second}, {pairs.neither} in neither; exact McNemar p = {one.p:.2g}"
    ]
    if one.left_out:
        lines.append(f"{one.left_out} pairs left out: an error in either says nothing about answers")
    if one.drop is not None and one.drop_low is not None and one.drop_high is not None:
        lines.append(
            f"{one.second} has {points(one.drop)} {one.first} "
            f"(95 % limits: {-one.drop_high * 100:+.1f} to {-one.drop_low * 100:+.1f} points)"
        )
    if one.divergence is not None and one.divergence.prompts:
        apart = one.divergence
        words = f"{apart.identical} of {apart.prompts} greedy answers are the same character by character"
        if apart.median is not None:
            words += f"; the others part after {apart.median:.0f} characters (median)"
        lines.append(words)
    if one.distance is not None:
        far = one.distance
        words = f"log-probability of {far.tokens} fixed tokens: "
        if far.mean is not None and far.largest is not None:
            words += f"mean distance {far.mean:.3g}, largest {far.largest:.3g}"
        if far.not_finite:
            words += f"; {far.not_finite} are NaN or infinite in one of them"
        lines.append(words)
    if one.fall is not None and (one.fall.lower or one.fall.higher):
        fall = one.fall
        lines.append(
            f"{fall.texts} right answers: {one.second} thinks {fall.lower} less likely and "
            f"{fall.higher} more likely than {one.first}, on average {abs(fall.mean):.3g} nats a token "
            f"{'less' if fall.mean > 0 else 'more'}"
        )
    return lines


def differing(report: QualityReport) -> list[Differs]:
    """Questions that the arms answer differently: those that the worse one lost, or all if neither is worse."""
    pair, worse = report.pair, report.verdict.worse_arm
    if pair is None:
        return []
    return [one for one in pair.differing if worse is None or one.lost == (worse == "B")]


def points(drop: float) -> str:
    """``3.0 points fewer right answers than``, ``as many right answers as``."""
    if not drop:
        return "as many right answers as"
    return f"{abs(drop) * 100:.1f} points {'fewer' if drop > 0 else 'more'} right answers than"
