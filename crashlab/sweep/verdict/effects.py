"""Which lever separates the faulting from the clean arms, and with what probability by chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crashlab.stats import multiple, poisson, ranks
from crashlab.sweep import facts
from crashlab.sweep.verdict import words
from crashlab.sweep.verdict.compare import base_of
from crashlab.sweep.verdict.tally import Tally, spans

Assignment = Mapping[str, str | None]


class _Side(NamedTuple):
    """The arms with one value of a lever, where the other value was run as well: events and exposure."""

    setting: facts.Setting
    events: int
    exposure: float


class _Question(NamedTuple):
    """One value of a lever against its reference value, with all other levers the same.

    ``tails``: the chances of so few and of so many events ``here`` if the lever made no difference.
    """

    here: _Side
    reference: _Side
    tails: tuple[float, float] | None

    @property
    def p(self) -> float | None:
        """Two-sided."""
        return None if self.tails is None else ranks.two_sided(self.tails)

    @property
    def worse(self) -> bool:
        """Whether the events speak against ``here`` rather than against the reference."""
        if self.tails is None or self.tails[0] == self.tails[1]:
            return self.here.events * self.reference.exposure >= self.reference.events * self.here.exposure
        return self.tails[1] < self.tails[0]


def assignments(arms: Sequence[facts.Arm]) -> dict[str, Assignment]:
    """Every lever's value in every arm: the arm's own on top of the baseline's; None is unset."""
    names = {item.lever for arm in arms for item in arm.levers}
    base = next((arm for arm in arms if arm.is_baseline), None)
    common = {item.lever: item.value for item in base.levers} if base else {}
    return {
        arm.name: {name: {**common, **dict(arm.levers)}.get(name) for name in sorted(names)} for arm in arms
    }


def is_matrix(arms: Sequence[facts.Arm]) -> bool:
    """Whether levers were turned in combination, so that each can be judged over several arms.

    True when two arms differ in one lever only and one of them differs from the baseline in two or more.
    Without a baseline the first arm takes its place.
    """
    values = assignments(arms)
    if not arms:
        return False
    base = next((arm for arm in arms if arm.is_baseline), arms[0])
    changed = {name: _difference(value, values[base.name]) for name, value in values.items()}
    names = list(values)
    several = [name for name in names if len(changed[name]) >= 2]
    seen = {tuple(value.items()) for value in values.values()}
    return any(
        _turned(values[name], lever, other) in seen
        for name in several
        for lever in changed[name]
        for other in {v[lever] for v in values.values()} - {values[name][lever]}
    )


def _turned(value: Assignment, lever: str, other: str | None) -> tuple[tuple[str, str | None], ...]:
    return tuple({**value, lever: other}.items())


def _difference(a: Assignment, b: Assignment) -> list[str]:
    return [lever for lever in a if a[lever] != b[lever]]


def effects(
    found: Tally,
    arms: Sequence[facts.Arm],
    key: str,
    level: float,
    compared: Sequence[facts.Comparison],
    *,
    matrix: bool,
) -> tuple[facts.LeverEffect, ...]:
    """Levers alone, most telling first, then those that were all set whenever the event came."""
    made = _of_matrix(found, arms, key, level) if matrix else _of_arms(found, arms, key, compared)
    made = [effect for effect in made if effect.events_with or effect.events_without]
    made.sort(key=lambda e: (2.0 if e.p is None else e.p, words.settings(e.levers)))
    together = _together(found, arms, key, [e for e in made if e.reading == "evidence"])
    return (*made, *together)


def _of_arms(
    found: Tally, arms: Sequence[facts.Arm], key: str, compared: Sequence[facts.Comparison]
) -> list[facts.LeverEffect]:
    """One-factor plans: the comparison of an arm is the question about the levers it changes."""
    values = assignments(arms)
    base = base_of(found, key)
    out = []
    for item in compared:
        changed = _difference(values[item.arm], values[base.arms[0]])
        if not changed:
            continue
        own = settings_of(changed, values[item.arm])
        theirs = settings_of(changed, values[base.arms[0]])
        here = (own, found.events_of((item.arm,), key), found.exposure[item.arm])
        there = (theirs, base.events, base.exposure)
        low, high = (there, here) if item.reading == "more" else (here, there)
        reading = "not-yet" if item.reading == "more" else item.reading
        out.append(
            _effect(
                key,
                high,
                low,
                item.p if item.reading != "more" else None,
                item.p_adjusted,
                item.tried,
                reading,
            )
        )
    return out


def settings_of(levers: Sequence[str], value: Assignment) -> tuple[facts.Setting, ...]:
    """These levers as settings."""
    return tuple(facts.Setting(lever, value[lever]) for lever in levers)


def _of_matrix(found: Tally, arms: Sequence[facts.Arm], key: str, level: float) -> list[facts.LeverEffect]:
    """Matrix plans: each value against the reference value by ranks, within every setting of the others."""
    asked = _questions(found, arms, key)
    tested = [q.p for q in asked if q.p is not None]
    adjusted = iter(multiple.holm(tested))
    out = []
    for question in asked:
        p_adjusted = next(adjusted) if question.p is not None else None
        high, low = question.here, question.reference
        if not question.worse:
            high, low = low, high
        out.append(
            _effect(
                key,
                ((high.setting,), high.events, high.exposure),
                ((low.setting,), low.events, low.exposure),
                question.p,
                p_adjusted,
                len(tested),
                _reading(question.p, p_adjusted, level),
            )
        )
    return out


def _reading(p: float | None, adjusted: float | None, level: float) -> str:
    if p is None or adjusted is None:
        return "untested"
    return words.reading(p, adjusted, level)


def _questions(found: Tally, arms: Sequence[facts.Arm], key: str) -> list[_Question]:
    values = {name: value for name, value in assignments(arms).items() if name in found.exposure}
    counted = [arm for arm in arms if arm.name in values]
    if not counted:
        return []
    first = next((arm for arm in counted if arm.is_baseline), counted[0]).name
    out = []
    for lever in values[first]:
        reference = values[first][lever]
        others = {value[lever] for value in values.values()} - {reference}
        for other in sorted(others, key=lambda v: (v is not None, v or "")):
            out.append(_question(found, values, key, lever, other, reference))
    return out


def _question(
    found: Tally,
    values: Mapping[str, Assignment],
    key: str,
    lever: str,
    other: str | None,
    reference: str | None,
) -> _Question:
    strata: dict[tuple[tuple[str, str | None], ...], tuple[list[str], list[str]]] = {}
    for name, value in values.items():
        if value[lever] in (other, reference):
            rest = tuple((k, v) for k, v in value.items() if k != lever)
            strata.setdefault(rest, ([], []))[value[lever] == reference].append(name)
    both = [pair for pair in strata.values() if all(pair)]
    here, there = ([name for pair in both for name in pair[side]] for side in (0, 1))
    return _Question(
        _Side(facts.Setting(lever, other), found.events_of(here, key), found.total(here)),
        _Side(facts.Setting(lever, reference), found.events_of(there, key), found.total(there)),
        ranks.rank_tails((spans(found, pair[0], key), spans(found, pair[1], key)) for pair in both),
    )


def _effect(
    key: str,
    high: tuple[tuple[facts.Setting, ...], int, float],
    low: tuple[tuple[facts.Setting, ...], int, float],
    p: float | None,
    p_adjusted: float | None,
    tried: int,
    reading: str,
) -> facts.LeverEffect:
    levers, events_with, exposure_with = high
    return facts.LeverEffect(
        key=key,
        levers=levers,
        kind="alone",
        events_with=events_with,
        exposure_with=exposure_with,
        events_without=low[1],
        exposure_without=low[2],
        p=p,
        p_adjusted=p_adjusted if p is not None else None,
        tried=tried,
        reading=reading,
        separates=events_with > 0 and low[1] == 0,
        words="",
        against=low[0],
    )


def _together(
    found: Tally, arms: Sequence[facts.Arm], key: str, named: Sequence[facts.LeverEffect]
) -> list[facts.LeverEffect]:
    """The named settings that stood in every arm with an event: each was needed, as far as was seen.

    No further question is tested: that each matters while the other is set is what named them, so the
    larger of their probabilities holds for both (an intersection-union test; Berger, Technometrics 24, 1982).
    """
    values = {name: value for name, value in assignments(arms).items() if name in found.exposure}
    faulting = [name for name in values if found.events_of((name,), key)]
    common = [
        effect
        for effect in named
        if all(values[name].get(s.lever) == s.value for name in faulting for s in effect.levers)
    ]
    settings = tuple(dict.fromkeys(s for effect in common for s in effect.levers))
    if len(settings) < 2 or len({s.lever for s in settings}) < len(settings):
        return []
    inside = [n for n, value in values.items() if all(value[s.lever] == s.value for s in settings)]
    outside = [n for n in values if n not in inside]
    return [
        facts.LeverEffect(
            key=key,
            levers=settings,
            kind="together",
            events_with=found.events_of(inside, key),
            exposure_with=found.total(inside),
            events_without=found.events_of(outside, key),
            exposure_without=found.total(outside),
            p=max(effect.p or 0.0 for effect in common),
            p_adjusted=max(effect.p_adjusted or 0.0 for effect in common),
            tried=max(effect.tried for effect in common),
            reading="evidence",
            separates=True,
            words="",
        )
    ]


def worded(effect: facts.LeverEffect, found: Tally, *, matrix: bool) -> facts.LeverEffect:
    """The same with its sentence."""
    unit = found.unit
    counts = (
        f"{words.events(effect.events_with, effect.key)} in {words.amount(effect.exposure_with, unit)} with it, "
        f"{effect.events_without} in {words.amount(effect.exposure_without, unit)} without"
    )
    if effect.kind == "together":
        bound = poisson.zero_bound(effect.exposure_without, words.LIMITS)
        limit = f" (rate below {words.rate(bound, unit)})" if bound is not None else ""
        said = (
            f"Every event came with {words.settings(effect.levers)} together: {effect.events_with} in "
            f"{words.amount(effect.exposure_with, unit)}; none in "
            f"{words.amount(effect.exposure_without, unit)} where at least one of them was different{limit}. "
            f"Each is needed as far as was seen (larger of their probabilities after Holm: "
            f"{words.probability(effect.p_adjusted or 0.0)})."
        )
        return effect._replace(words=said)
    same = ", all other levers the same" if matrix else ""
    said = f"{words.settings(effect.levers)}{words.against(effect.against)}: {counts}{same}"
    if effect.p is None:
        why = "no run to compare by" if matrix else "more events than the baseline, not tested"
        return effect._replace(words=f"{said}: {why}.")
    holm = words.holm(effect.p_adjusted, effect.tried, "levers" if matrix else "arms")
    verdict = {
        "evidence": "evidence that it matters",
        "weak": "weak, so many having been tried",
    }.get(effect.reading, "not yet evidence")
    chance = "an order at least so uneven by chance" if matrix else "so few without it by chance"
    return effect._replace(words=f"{said}; {chance}: {words.probability(effect.p)}{holm}: {verdict}.")
