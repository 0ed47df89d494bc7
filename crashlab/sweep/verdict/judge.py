"""All runs of a sweep to its findings."""

from __future__ import annotations

from collections.abc import Sequence

from crashlab.postmortem.words import counted
from crashlab.stats import poisson
from crashlab.sweep import facts
from crashlab.sweep.verdict import ahead, compare, timing, words
from crashlab.sweep.verdict import effects as levers
from crashlab.sweep.verdict.tally import Tally, tally

LEVEL = 0.05
_KEYS = 20
_BETWEEN = 2
"""At most so many runs of other arms may stand between two of the baseline in an interleaved sweep."""

_IN_TURNS = {
    True: "The baseline was run in turns with the other arms.",
    False: "The baseline was not run in turns with the other arms: temperature, neighbours and drivers drift, "
    "and that drift is not separated from the levers here.",
    None: "Whether the baseline was run in turns with the other arms is not known.",
}


def judged(result: facts.SweepResult, *, level: float = LEVEL) -> facts.SweepResult:
    """The result with its findings computed from its runs."""
    return result._replace(findings=judge(result.arms, result.runs, level=level))


def judge(arms: Sequence[facts.Arm], runs: Sequence[facts.ArmRun], *, level: float = LEVEL) -> facts.Findings:
    """What the runs allow to say. Pure: the same runs give the same findings, at any moment of a sweep.

    For each key: exact rates, each arm against the baseline, which levers separate, whether the rate is
    constant, survival curves, what to run next. ``level``: chance of a false claim that is accepted over all
    arms (or levers) tried for one key.
    """
    found = tally(arms, runs)
    matrix = levers.is_matrix(arms) or not any(arm.is_baseline for arm in arms)
    keys = tuple(_of_key(found, arms, key, level, matrix) for key in found.keys[:_KEYS])
    interleaved = is_interleaved(arms, runs)
    left_out = list(found.left_out)
    if len(found.keys) > _KEYS:
        left_out.append(f"{len(found.keys) - _KEYS} rarer keys are not shown")
    return facts.Findings(
        headline=_headline(found, keys, runs),
        level=level,
        arms_tried=sum(1 for arm in found.arms if not arm.is_baseline),
        keys=keys,
        interleaved=interleaved,
        asides=tuple(left_out),
        next_steps=tuple(step for entry in keys[:1] for step in entry.next_steps) or _without_event(found),
        caveats=_caveats(found, keys, interleaved, matrix),
    )


def _of_key(
    found: Tally, arms: Sequence[facts.Arm], key: str, level: float, matrix: bool
) -> facts.KeyFindings:
    course = timing.course(found, key)
    compared = compare.comparisons(found, key, level, course, described=matrix)
    effects = tuple(
        levers.worded(effect, found, matrix=matrix)
        for effect in levers.effects(found, arms, key, level, compared, matrix=matrix)
    )
    return facts.KeyFindings(
        key=key,
        unit=found.unit,
        counts=compare.counts(found, key),
        comparisons=compared,
        effects=effects,
        course=course,
        survival=timing.survival(found, key),
        next_steps=ahead.next_steps(found, arms, key, level, compared, effects, course, matrix=matrix),
    )


def is_interleaved(arms: Sequence[facts.Arm], runs: Sequence[facts.ArmRun]) -> bool | None:
    """Whether on every machine the baseline came back after at most two other runs; None: not known."""
    baseline = {arm.name for arm in arms if arm.is_baseline}
    if not baseline or len(baseline) == len(arms) or any(run.started_utc is None for run in runs):
        return None
    machines: dict[str | None, list[bool]] = {}
    for run in sorted(runs, key=lambda run: run.started_utc or ""):
        machines.setdefault(run.machine, []).append(run.arm in baseline)
    for order in machines.values():
        away = 0
        for is_base in order:
            away = 0 if is_base else away + 1
            if away > _BETWEEN or True not in order:
                return False
    return True if machines else None


def _headline(found: Tally, keys: Sequence[facts.KeyFindings], runs: Sequence[facts.ArmRun]) -> str:
    if not found.arms:
        return f"Nothing to judge: none of {counted(len(runs), 'run')} had exposure that counts."
    names = [arm.name for arm in found.arms]
    whole = words.amount(found.total(names), found.unit)
    spent = f"{counted(len(found.runs), 'run')} of {counted(len(names), 'arm')}"
    if not keys:
        bound = poisson.zero_bound(found.total(names), words.LIMITS)
        limit = f" (rate below {words.rate(bound, found.unit)})" if bound is not None else ""
        return f"No event in {spent}, {whole}{limit}: no lever can be told apart."
    main = keys[0]
    total = sum(count.events for count in main.counts)
    head = f"{words.events(total, main.key)} in {spent} ({whole})"
    together = next((effect for effect in main.effects if effect.kind == "together"), None)
    named = [e for e in main.effects if e.kind == "alone" and e.reading == "evidence"]
    if together is not None:
        return (
            f"{head}: every one came with {words.settings(together.levers)} together; by chance "
            f"{words.probability(together.p_adjusted or 0.0)} after Holm over {together.tried} tried."
        )
    if named:
        said = "; ".join(
            f"{words.settings(e.levers)} (by chance {words.probability(e.p or 0.0)}"
            f"{words.holm(e.p_adjusted, e.tried, 'tried').replace(' (', ', ').rstrip(')')})"
            for e in named[:4]
        )
        return f"{head}: evidence that the rate depends on {said}."
    best = min((e for e in main.effects if e.p is not None), key=lambda e: e.p or 0.0, default=None)
    if best is None:
        return f"{head}: nothing to compare yet."
    holm = words.holm(best.p_adjusted, best.tried, "tried")
    return (
        f"{head}: no lever is told apart from chance yet; the nearest is {words.settings(best.levers)}, "
        f"by chance {words.probability(best.p or 0.0)}{holm}."
    )


def _without_event(found: Tally) -> tuple[facts.NextStep, ...]:
    base = next((arm.name for arm in found.arms if arm.is_baseline), None)
    said = "No event yet: run the baseline until it has at least 3; until then no lever can be tested."
    return (facts.NextStep(base, said),) if found.arms else ()


def _caveats(
    found: Tally, keys: Sequence[facts.KeyFindings], interleaved: bool | None, matrix: bool
) -> tuple[str, ...]:
    out = list(words.CAVEATS)
    if found.unit != facts.STEPS:
        out.append(f"Exposure is counted in {found.unit}; engine steps were not known for every run.")
    if not matrix:
        out.append(_IN_TURNS[interleaved])
    if len(keys) > 1:
        out.append(
            f"{len(keys)} keys are judged each by itself: the chance that one of them misleads adds up."
        )
    if not any(arm.is_baseline for arm in found.arms):
        out.append("There is no baseline run that counts: arms are not compared with it.")
    return tuple(out)
