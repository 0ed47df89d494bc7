"""From the arms' talks to the report: counts, floor, pair, verdict, known failures, control arms."""

from __future__ import annotations

import collections
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crashlab import __version__
from crashlab.facts import EnvFact, SignatureMatch, Tool
from crashlab.quality.answered import Answered, count, share
from crashlab.quality.compare import Side, collapse, compare, power_of, step_tests
from crashlab.quality.controls import controls_for
from crashlab.quality.degenerate import Example
from crashlab.quality.facts import (
    DEGRADED,
    GARBAGE,
    SCHEMA,
    ArmFacts,
    Collapse,
    Comparison,
    Control,
    LevelRow,
    PassFacts,
    Power,
    QualityReport,
    Seed,
    SuiteFacts,
    Verdict,
)
from crashlab.quality.judge import PARTS, judge_one, judge_two
from crashlab.quality.known import known_failures, settings_of
from crashlab.quality.scoring import ERROR
from crashlab.quality.settings import Arm, Settings
from crashlab.quality.talk import Talk
from crashlab.quality.task import Task
from crashlab.rundir import redact
from crashlab.stats.paired import Pairs

_EXAMPLES = 3
_SHOWN = 160


class Heard(NamedTuple):
    """One arm with what it said. ``log`` are lines of its server, ``env`` facts the caller knows of it."""

    arm: Arm
    talk: Talk
    log: tuple[str, ...] = ()
    env: Mapping[str, EnvFact] = {}


def build_report(
    settings: Settings, heard: Sequence[Heard], *, created: str | None = None, notes: Sequence[str] = ()
) -> QualityReport:
    """One or two arms, the first is the control."""
    arms = tuple(_arm(one) for one in heard)
    tasks = settings.suite.by_id()
    first = heard[0].talk
    floor = _compare_passes(first, tasks)
    pair: Comparison | None = None
    odd: Collapse | None = None
    power: Power | None = None
    if len(heard) > 1:
        second = heard[1].talk
        if first.passes and second.passes:
            pair = compare(_side(first, -1), _side(second, -1), tasks)
            odd = collapse("B", _looked_at(second, -1), "A", [_looked_at(first, i) for i in _rounds(first)])
            power = power_of(pair.pairs.total, floor, settings.alpha / PARTS)
    steps = step_tests(first.cells, heard[1].talk.cells) if len(heard) > 1 else ()
    if len(heard) == 1:
        verdict = judge_one(arms[0], floor, settings.expect, settings.alpha)
    else:
        nothing = Comparison("A", "B", Pairs())
        verdict = judge_two(arms, floor, pair or nothing, odd, power, steps, settings.alpha)
    bad = verdict.kind in (GARBAGE, DEGRADED)
    worse = next((one for one in heard if bad and one.arm.name == verdict.worse_arm), None)
    return QualityReport(
        SCHEMA,
        Tool("crashlab", __version__),
        created or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        verdict,
        _suite(settings, first),
        settings.alpha,
        settings.concurrency,
        settings.endpoint,
        settings.seed,
        _seeds(settings),
        arms,
        floor,
        pair,
        odd,
        steps,
        power,
        _signatures(verdict, worse) if worse is not None else (),
        _controls(verdict, worse) if worse is not None else (),
        (*notes, *(note for one in heard for note in _notes(one))),
    )


def _rounds(talk: Talk) -> range:
    return range(len(talk.passes))


def _looked_at(talk: Talk, number: int) -> tuple[Answered, ...]:
    """Answers of one pass, prose included."""
    prose = talk.prose[number] if len(talk.prose) == len(talk.passes) else ()
    return (*talk.passes[number], *prose)


def _side(talk: Talk, number: int) -> Side:
    number %= len(talk.passes)
    told = talk.likelihoods[number] if number < len(talk.likelihoods) else None
    prose = talk.prose[number] if number < len(talk.prose) else ()
    return Side(f"{talk.arm}{number + 1}", talk.passes[number], prose, told)


def _compare_passes(talk: Talk, tasks: Mapping[str, Task]) -> Comparison | None:
    """The first asking against the last one of the same arm."""
    if len(talk.passes) < 2:
        return None
    return compare(_side(talk, 0), _side(talk, -1), tasks)


def _arm(one: Heard) -> ArmFacts:
    arm, talk = one.arm, one.talk
    return ArmFacts(
        arm.name,
        redact.text(arm.url),
        talk.model,
        tuple(redact.command(arm.argv)),
        _settings(one),
        tuple(_pass(talk, number) for number in _rounds(talk)),
        talk.cells,
        talk.onsets,
        talk.corrupted,
        talk.seconds,
        talk.problem,
    )


def _settings(one: Heard) -> dict[str, EnvFact]:
    variables = redact.variables(dict(one.arm.environment))
    return {**settings_of(redact.command(one.arm.argv), variables, one.log), **one.env}


def _pass(talk: Talk, number: int) -> PassFacts:
    answers, seen = talk.passes[number], _looked_at(talk, number)
    counts = count(answers)
    levels: dict[str, list[Answered]] = {}
    for one in answers:
        levels.setdefault(one.level, []).append(one)
    kinds = collections.Counter(kind for one in seen for kind in one.kinds)
    odd = [one for one in seen if one.kinds]
    errors = [one for one in answers if one.outcome == ERROR]
    return PassFacts(
        f"{talk.arm}{number + 1}",
        counts,
        share(counts.correct, counts.answered),
        None if counts.strict is None else share(counts.strict, counts.answered),
        tuple(LevelRow(level, count(rows)) for level, rows in levels.items()),
        dict(collections.Counter(one.error or "error" for one in errors).most_common()),
        dict(collections.Counter(one.finish for one in seen if one.finish is not None).most_common()),
        dict(kinds.most_common()),
        len(odd),
        sum(one.outcome != ERROR for one in seen),
        tuple(Example(one.task, one.kinds, one.text[:_SHOWN]) for one in odd[:_EXAMPLES]),
        next((one.detail for one in errors if one.detail), None),
    )


def _suite(settings: Settings, first: Talk) -> SuiteFacts:
    suite = settings.suite
    if settings.lm_eval:
        # lm-eval chooses and counts its questions itself
        asked = len(first.passes[0]) if first.passes else 0
        return SuiteFacts(f"lm-eval {','.join(settings.lm_eval)}", asked, "", 0, {}, "lm-eval")
    levels = collections.Counter(task.level for task in suite.tasks)
    return SuiteFacts(suite.name, len(suite.tasks), suite.sha256, suite.shots, dict(levels), suite.source)


def _seeds(settings: Settings) -> tuple[Seed, ...]:
    seeds = [Seed(what, seed) for what, seed in settings.suite.seeds]
    if settings.lm_eval:
        seeds = [Seed("lm-eval --seed", str(settings.seed))]
    elif settings.ladder:
        seeds.append(Seed("filler of long prompts", f"{settings.seed}/filler/TASK/TOKENS"))
    return tuple(seeds)


def _signatures(verdict: Verdict, worse: Heard) -> tuple[SignatureMatch, ...]:
    env = {**{k.lower(): EnvFact(v, "environment") for k, v in worse.arm.environment}, **worse.env}
    return known_failures(verdict.garbage, worse.arm.argv, worse.log, env)


def _controls(verdict: Verdict, worse: Heard) -> tuple[Control, ...]:
    arm = worse.arm
    dimensions = [onset.dimension for onset in worse.talk.onsets]
    return controls_for(verdict.garbage, _settings(worse), dimensions, redact.command(arm.argv))


def _notes(one: Heard) -> list[str]:
    talk = one.talk
    notes = [f"Arm {talk.arm}: {note}" for note in talk.notes]
    if talk.problem:
        notes.append(f"Arm {talk.arm} was not asked to the end: {talk.problem}")
    return notes
