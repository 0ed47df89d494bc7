"""What a sweep is made of: arms, runs of arms, exposure, and the findings drawn from them.

Absent is None, never 0 and never an empty string. Exposure counts only what was served under load,
from the moment the server was ready to the event or to the end of the run.
"""

# No "from __future__ import annotations" here: typing.NamedTuple would compile every annotation string at
# import, which doubles the cost of these classes (docs/adr/0001-named-tuples.md).

from collections.abc import Mapping
from typing import NamedTuple

from crashlab.facts import EnvFact

FAULT, STALL, GARBAGE, CLEAN = "fault", "stall", "garbage", "clean"
NEVER_READY, NOT_APPLIED = "never-ready", "not_applied"
HOST_DEATH, INCONCLUSIVE = "host-death", "inconclusive"
OUTCOMES = (FAULT, STALL, GARBAGE, CLEAN, NEVER_READY, NOT_APPLIED, HOST_DEATH, INCONCLUSIVE)
"""How a run of an arm can end."""
EVENTS = (FAULT, STALL, GARBAGE)
"""The outcomes that are an event of some key; a run without a key is counted under its outcome's name."""
COUNTED = (FAULT, STALL, GARBAGE, CLEAN, HOST_DEATH)
"""The outcomes whose exposure counts. A host-side death ends the exposure without an event (censored)."""
STEPS, HOURS, REQUESTS = "steps", "hours", "requests"
UNITS = (STEPS, HOURS, REQUESTS)
"""Units of exposure in the order in which they are preferred: arms differ in speed, so steps come first."""


class Exposure(NamedTuple):
    """What a run served under load: engine steps, hours, completed requests, generated tokens."""

    steps: int | None = None
    hours: float | None = None
    requests: int | None = None
    tokens: int | None = None


class Setting(NamedTuple):
    """One lever and the value an arm asks for; ``value`` None means: left unset, which is a value of its own."""

    lever: str
    value: str | None = None


class Effective(NamedTuple):
    """What a lever really was. ``took``: True or False when a source shows it, None when nothing shows it.

    ``source`` names where ``value`` was read (log line, /server_info, loaded libraries, …).
    """

    lever: str
    value: str | None = None
    source: str | None = None
    took: bool | None = None


class Arm(NamedTuple):
    """One configuration under test. ``levers``: what it sets; a lever it does not name is as in the baseline."""

    name: str
    levers: tuple[Setting, ...] = ()
    is_baseline: bool = False


class ArmRun(NamedTuple):
    """One run of one arm. ``number`` counts from 0 within the arm; ``outcome`` is one of :data:`OUTCOMES`.

    ``key``: the signature key of the event. ``time_to_event_hours``: hours under load until the event,
    None when there was none (the run is then censored at ``exposure.hours``). ``at_startup``: the event came
    before the server was ready, so it has no exposure and is counted apart. ``rundir``: relative to the
    sweep's own directory. ``started_utc``: ISO 8601. ``machine``: the ``Machine.name`` it ran on.
    """

    arm: str
    number: int
    outcome: str
    exposure: Exposure = Exposure()
    key: str | None = None
    time_to_event_hours: float | None = None
    at_startup: bool = False
    requested: tuple[Setting, ...] = ()
    effective: tuple[Effective, ...] = ()
    rundir: str | None = None
    note: str | None = None
    started_utc: str | None = None
    machine: str | None = None


class Machine(NamedTuple):
    """A machine that ran arms, and what was read about it (GPU, driver, library versions)."""

    name: str
    facts: Mapping[str, EnvFact]


class Count(NamedTuple):
    """Events of one key in one arm. ``exposure`` in ``unit``; ``rate`` and its limits are per unit.

    ``low`` and ``high`` are exact 95 % limits (Garwood); with no event ``low`` is None and ``high`` is the
    one-sided bound. All three are None without exposure.
    """

    arm: str
    key: str
    events: int
    exposure: float
    unit: str
    rate: float | None = None
    low: float | None = None
    high: float | None = None


class Comparison(NamedTuple):
    """One arm held against the baseline for one key.

    ``test``: ``clean-arm`` or ``two-rates``. ``p``: probability of so few events here, given all events of
    both, if the rate were the baseline's (one-sided); ``p_adjusted`` after Holm over ``tried`` arms. ``ratio``:
    the arm's rate over the baseline's, exact limits ``ratio_low`` and ``ratio_high`` (None: no upper limit).
    ``needed``: clean exposure at which ``p`` would fall to the level; ``needed_hours`` the same in hours at
    the arm's own speed. ``reading``: ``evidence`` (of a lower rate), ``weak`` (only before Holm),
    ``not-yet``, ``more`` (more events than the baseline), ``untested``; ``described`` in a matrix plan, whose
    levers are tested over all arms together; ``not-constant``: evidence under a constant rate only, which
    this is not. ``outlived``: runs of a clean arm that
    lasted longer than every run of the baseline, ``outlived_p`` the chance of that by ranks alone,
    ``outlasting_p`` that of its longest run if times to the event were log-normal.
    """

    arm: str
    key: str
    test: str | None
    reading: str
    words: str
    p: float | None = None
    p_adjusted: float | None = None
    tried: int = 0
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    needed: float | None = None
    needed_hours: float | None = None
    outlived: int | None = None
    outlived_p: float | None = None
    outlasting_p: float | None = None


class LeverEffect(NamedTuple):
    """Whether a lever, or two levers together, separate the faulting from the clean arms, for one key.

    ``levers``: the settings with the higher rate; ``against``: what they were held against. ``kind``: ``alone``
    or ``together``. Counts are with and without exactly these settings, where all other levers are the same.
    ``p``: in a one-factor plan that of the comparison, in a matrix the two-sided chance, by ranks within arms
    that differ in nothing else, of so uneven an order if the lever made no difference; ``p_adjusted`` after Holm over
    ``tried``. ``separates``: every event was with them and none without. ``reading``: ``evidence``, ``weak``,
    ``not-yet``, ``untested``, ``not-constant``.
    """

    key: str
    levers: tuple[Setting, ...]
    kind: str
    events_with: int
    exposure_with: float
    events_without: int
    exposure_without: float
    p: float | None
    p_adjusted: float | None
    tried: int
    reading: str
    separates: bool
    words: str
    against: tuple[Setting, ...] = ()


class Course(NamedTuple):
    """Whether events of a key come at a constant rate. Times are hours under load.

    ``laplace``: the trend statistic (standard normal if the rate is constant). ``shape``: Weibull shape
    with approximate 95 % limits (likelihood ratio); below 1 early failures, 1 constant, above 1 the events
    bunch at a time. ``bunching_p``: chance of event times so close together under a constant rate.
    ``last_hours``: the latest event. ``source``: whose runs these are, ``baseline`` or in words.
    ``reading``: ``too-few``, ``constant-not-contradicted``, ``bunched``, ``early``.
    """

    key: str
    events: int
    reading: str
    words: str
    laplace: float | None = None
    laplace_p: float | None = None
    shape: float | None = None
    shape_low: float | None = None
    shape_high: float | None = None
    scale_hours: float | None = None
    bunching_p: float | None = None
    last_hours: float | None = None
    source: str | None = None


class SurvivalStep(NamedTuple):
    """From ``hours`` on, this share of runs is still without the event (Kaplan-Meier), with 95 % limits."""

    hours: float
    survival: float
    low: float | None
    high: float | None
    at_risk: int


class Survival(NamedTuple):
    """One arm's Kaplan-Meier curve for one key; ``censored`` are the hours at which runs ended without it."""

    arm: str
    key: str
    steps: tuple[SurvivalStep, ...]
    censored: tuple[float, ...] = ()


class NextStep(NamedTuple):
    """What to run next: ``exposure`` in ``unit`` and, where the speed is known, ``hours``."""

    arm: str | None
    words: str
    exposure: float | None = None
    unit: str | None = None
    hours: float | None = None


class KeyFindings(NamedTuple):
    """Everything said about one key. ``unit``: what its exposure is counted in."""

    key: str
    unit: str
    counts: tuple[Count, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    effects: tuple[LeverEffect, ...] = ()
    course: Course | None = None
    survival: tuple[Survival, ...] = ()
    next_steps: tuple[NextStep, ...] = ()


class Findings(NamedTuple):
    """What the runs say, key by key. ``headline`` is one sentence a person can paste.

    ``arms_tried``: arms held against the baseline. ``interleaved``: whether baseline runs stand between
    the others in time; None when the order is not known. ``asides``: counts that belong to no key
    (start-up failures, not_applied arms, host deaths). ``caveats`` hold for every number here.
    """

    headline: str
    level: float
    arms_tried: int
    keys: tuple[KeyFindings, ...] = ()
    interleaved: bool | None = None
    asides: tuple[str, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    caveats: tuple[str, ...] = ()


class SweepResult(NamedTuple):
    """A sweep so far: what was planned, what ran, what it says. ``created``: ISO 8601 UTC.

    ``seeds``: one a replay; every arm saw the same. ``findings`` None: not judged yet. ``problems``: what of
    the sweep's record could not be read.
    """

    plan: str
    arms: tuple[Arm, ...]
    runs: tuple[ArmRun, ...]
    seeds: tuple[int, ...] = ()
    machines: tuple[Machine, ...] = ()
    created: str | None = None
    finished: bool | None = None
    findings: Findings | None = None
    problems: tuple[str, ...] = ()
