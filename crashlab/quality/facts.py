"""What a quality run found: the types of ``crashlab.quality/1``. Every renderer reads only these."""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from collections.abc import Mapping
from typing import NamedTuple

from crashlab.facts import EnvFact, SignatureMatch, Tool
from crashlab.postmortem.words import counted
from crashlab.quality.answered import Counts, Share
from crashlab.quality.degenerate import Example
from crashlab.quality.divergence import Divergence, Said
from crashlab.quality.logprobs import Distance, Fall
from crashlab.quality.onset import Onset
from crashlab.quality.talk import Cell
from crashlab.stats.paired import Pairs

SCHEMA = "crashlab.quality/1"
GARBAGE, DEGRADED = "garbage", "degraded"
NO_DIFFERENCE, NOTHING_FOUND = "no-difference-shown", "nothing-found"
INCONCLUSIVE = "inconclusive"


class Verdict(NamedTuple):
    """``kind``: garbage, degraded, no-difference-shown, nothing-found (one arm alone) or inconclusive.

    ``worse_arm`` is the arm it speaks of; ``garbage`` holds the signature catalogue's words for it.
    """

    kind: str
    headline: str
    worse_arm: str | None = None
    garbage: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    does_not_mean: tuple[str, ...] = ()


class SuiteFacts(NamedTuple):
    """What was asked. ``sha256`` is of all prompts and answers: equal digests mean the same questions."""

    name: str
    questions: int
    sha256: str
    shots: int = 0
    levels: Mapping[str, int] = {}
    source: str | None = None


class Seed(NamedTuple):
    """One random choice and the seed that makes it again."""

    what: str
    seed: str


class LevelRow(NamedTuple):
    """The four counts of one level in one pass."""

    level: str
    counts: Counts


class PassFacts(NamedTuple):
    """One asking of one arm. ``errors`` and ``finishes`` count classes and finish reasons, ``odd`` answers
    that look degenerate by kind; ``odd_answers`` counts those answers among ``looked_at``."""

    name: str
    counts: Counts
    share: Share
    strict_share: Share | None = None
    levels: tuple[LevelRow, ...] = ()
    errors: Mapping[str, int] = {}
    finishes: Mapping[str, int] = {}
    odd: Mapping[str, int] = {}
    odd_answers: int = 0
    looked_at: int = 0
    examples: tuple[Example, ...] = ()
    error_example: str | None = None


class ArmFacts(NamedTuple):
    """One server. ``argv`` is empty for one that ran already; ``problem`` says what was cut short.

    ``corrupted``: requests with NaN logits by the server's own count; None: it does not count them.
    """

    name: str
    url: str | None = None
    model: str | None = None
    argv: tuple[str, ...] = ()
    settings: Mapping[str, EnvFact] = {}
    passes: tuple[PassFacts, ...] = ()
    cells: tuple[Cell, ...] = ()
    onsets: tuple[Onset, ...] = ()
    corrupted: float | None = None
    seconds: float | None = None
    problem: str | None = None


class Differs(NamedTuple):
    """A question that the first arm answered right and the second did not (``lost``), or the other way."""

    task: str
    level: str
    question: str
    answer: str
    first: Said
    second: Said
    lost: bool


class Comparison(NamedTuple):
    """Two passes over the same questions. ``p`` is McNemar's; ``left_out`` pairs have an error in either.

    ``drop``: how much less of the questions the second answers right, with 95 % limits.
    """

    first: str
    second: str
    pairs: Pairs
    left_out: int = 0
    p: float = 1.0
    drop: float | None = None
    drop_low: float | None = None
    drop_high: float | None = None
    divergence: Divergence | None = None
    distance: Distance | None = None
    fall: Fall | None = None
    differing: tuple[Differs, ...] = ()


class Collapse(NamedTuple):
    """Degenerate answers of the arm ``worse`` against the other: ``p`` is Fisher's, one-sided."""

    worse: str
    odd: int
    of: int
    other_odd: int
    other_of: int
    p: float


class StepTest(NamedTuple):
    """The easy questions at one prompt length or concurrency: right answers of both arms, and how often the
    one with fewer (``worse``) would have so few by chance (Fisher, one-sided)."""

    dimension: str
    at: int
    a_right: int
    a_of: int
    b_right: int
    b_of: int
    worse: str
    p: float


class Power(NamedTuple):
    """What the run could see. ``noise``: share of questions that flip by themselves; ``drop``: smallest fall
    that is shown four times in five."""

    questions: int
    noise: float
    drop: float | None
    words: str


class Control(NamedTuple):
    """An arm that would tell causes apart: one change to the worse arm, and what each outcome would mean."""

    change: str
    tells: str
    argv: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}


class QualityReport(NamedTuple):
    """The whole. ``floor`` is the first arm against itself, ``pair`` against the second arm."""

    schema: str
    tool: Tool
    created: str
    verdict: Verdict
    suite: SuiteFacts
    alpha: float
    concurrency: int
    endpoint: str
    seed: int
    seeds: tuple[Seed, ...] = ()
    arms: tuple[ArmFacts, ...] = ()
    floor: Comparison | None = None
    pair: Comparison | None = None
    collapse: Collapse | None = None
    steps: tuple[StepTest, ...] = ()
    power: Power | None = None
    signatures: tuple[SignatureMatch, ...] = ()
    controls: tuple[Control, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def asked(self) -> str:
        """``200 questions``, ``none of 200 questions`` where no arm ever took one."""
        questions = counted(self.suite.questions, "question")
        return questions if any(arm.passes for arm in self.arms) else f"none of {questions}"
