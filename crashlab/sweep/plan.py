"""A sweep's plan: what is run, which levers are turned, how much exposure is spent. Read from TOML."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from crashlab.errors import UsageError
from crashlab.sweep.catalogue import find, levers_of, merged
from crashlab.sweep.facts import EVENTS, HOURS, STEPS, UNITS, Arm, Setting
from crashlab.sweep.lever import UNSET, Lever
from crashlab.sweep.tomltext import Table, parse

ONE_FACTOR, MATRIX, LIST, BISECT = "one-factor", "matrix", "list", "bisect"
KINDS = (ONE_FACTOR, MATRIX, LIST, BISECT)
BASELINE = "baseline"
SCHEMA = "crashlab.sweep-plan/1"
SOAK, RUN = "soak", "run"
_MOST_ARMS = 500
LOAD_OPTIONS = (
    "shape",
    "clients",
    "input-tokens",
    "output-tokens",
    "ignore-eos",
    "temperature",
    "prompts",
    "load-cmd",
    "model",
    "extra",
    "stall-after",
    "prefill-limit",
    "ready-within",
    "canary-every",
    "dump",
    "no-hang-dumps",
    "fast",
    "url",
    "replay",
    "linger",
    "grace",
)
"""Options of ``crashlab soak`` (or ``run``) that a plan may give in [load]; the budget has its own table."""

RUN_OPTIONS = ("dump", "no-hang-dumps", "fast", "stall-after", "linger", "grace")
"""Those of them that a program without load has."""
_RUN_ONLY = ("linger", "grace")
_ELSEWHERE = {
    "for": "How long one run takes at most is run-for in [budget].",
    "steps": "How much one run does at most is run-exposure in [budget], counted in its unit.",
    "requests": 'How much one run does at most is run-exposure in [budget], with unit = "requests".',
    "seed": "The seed stands at the top of the plan: seed = 7.",
    "repeat": "How many runs an arm has at most is max-runs in [budget].",
    "out": "The folder is given on the command line: crashlab sweep --out DIR PLAN.",
}
"""Options of ``crashlab soak`` that a plan says in another place."""


class Budget(NamedTuple):
    """How much is spent. ``unit``: what exposure is counted in. Times in seconds.

    ``baseline_faults``: collected before any lever is judged. ``run_exposure``: most of one run, in
    ``unit``. ``run_for``: longest run. ``max_runs``: of one arm; ``max_baseline_runs``. ``arm_faults``: so many
    faults of the key and an arm is called unchanged. ``total_for``: of all runs together. ``fold``: by
    how much a lever must lower the rate to be worth finding, for stopping early.
    """

    unit: str = STEPS
    level: float = 0.05
    baseline_faults: int = 5
    arm_faults: int = 3
    run_exposure: float | None = None
    run_for: float = 7200.0
    max_runs: int = 12
    max_baseline_runs: int = 60
    total_for: float | None = None
    interleave: int = 1
    fold: float = 8.0


class Remote(NamedTuple):
    """What one run needs of a machine, for Ray and Slurm."""

    gpus: float = 1.0
    cpus: float = 1.0
    memory_gb: float | None = None
    parallel: int | None = None
    max_artifacts_mb: int = 1024
    sbatch: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    rounds: int = 3


class Plan(NamedTuple):
    """``sha256`` is that of the text, by which a sweep's folder knows its plan again.

    ``target``: which outcome counts (fault, stall, garbage). ``key``: the signature key that counts,
    None: the one that the baseline shows most. ``load``: options of soak. ``arms`` hold the baseline first.
    """

    name: str
    kind: str
    command: tuple[str, ...]
    levers: Mapping[str, Lever]
    arms: tuple[Arm, ...]
    budget: Budget
    load: Mapping[str, str]
    environment: Mapping[str, str]
    seed: int
    mode: str
    target: str
    key: str | None
    replay_first: bool
    server_info: bool
    server_version: str | None
    server_help: bool
    prepare: Mapping[str, tuple[tuple[str, ...], ...]]
    remote: Remote
    sha256: str
    text: str
    params_text: str | None = None

    @property
    def turned(self) -> tuple[str, ...]:
        """Ids of the levers that any arm names."""
        return tuple(dict.fromkeys(s.lever for arm in self.arms for s in arm.levers))

    def arm(self, name: str) -> Arm:
        """An arm by its name."""
        return next(arm for arm in self.arms if arm.name == name)


def read_plan(
    text: str,
    where: str,
    *,
    command: Sequence[str] = (),
    prepare: Sequence[Sequence[str]] = (),
    read_file: Callable[[str], str] | None = None,
) -> Plan:
    """A plan from its text. ``command`` and ``prepare`` replace those of the text; ``read_file`` gives the
    parameter JSON of ``vllm bench sweep`` that the plan names. Raises UsageError that names table and key."""
    table = parse(text, where)
    params, params_text = _params(table, read_file)
    levers = dict(merged(levers_of(table.tables("lever"))))
    kind = _choice(table, "kind", KINDS, LIST if params is not None else ONE_FACTOR)
    arms, more = _arms(table, kind, levers, params)
    words = tuple(command) or table.command("command")
    table.take("command")
    if not words:
        raise UsageError(
            f"{where}: nothing is to be run.",
            hint='Give command = ["vllm", "serve", …] in the plan, or the command after \'--\'.',
        )
    mode = _choice(table, "mode", (SOAK, RUN), SOAK)
    load, replay_first = _load(table.table("load"), mode)
    server = table.table("server")
    commands = _prepares(table, levers, prepare)
    plan = Plan(
        name=table.text("name") or _stem(where),
        kind=kind,
        command=words,
        levers={**levers, **{lever.id: lever for lever in more}},
        arms=arms,
        budget=_budget(table.table("budget"), kind, mode),
        load=load,
        environment=table.text_map("environment"),
        seed=table.whole("seed", 0, 2**31) or 0,
        mode=mode,
        target=_choice(table, "target", EVENTS, EVENTS[0]),
        key=table.text("key"),
        replay_first=replay_first,
        server_info=server.flag("info") or False,
        server_version=server.text("version"),
        server_help=server.flag("help") is not False,
        prepare=commands,
        remote=_remote(table.table("remote")),
        sha256=_digest(text, params_text, words, commands),
        text=text,
        params_text=params_text,
    )
    server.done()
    _choice(table, "schema", (SCHEMA,), SCHEMA)
    table.done()
    check_arms(plan)
    return plan


def _choice(table: Table, key: str, known: Sequence[str], default: str) -> str:
    word = table.text(key) or default
    if word not in known:
        raise table.wrong(key, f"one of {', '.join(known)}")
    return word


def _digest(text: str, params: str | None, words: Sequence[str], prepare: Mapping[str, object]) -> str:
    """By this a folder knows its plan again: whatever changes what is run changes it."""
    parts = (text, params or "", *words, *(repr(item) for item in sorted(prepare.items())))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _params(
    table: Table, read_file: Callable[[str], str] | None
) -> tuple[list[tuple[str, Mapping[str, object]]] | None, str | None]:
    name = table.text("params")
    if name is None:
        return None, None
    if read_file is None:
        raise table.wrong("params", "left out: no file can be read here")
    from crashlab.sweep.arms import read_params

    text = read_file(name)
    return read_params(text, name), text


def check_arms(plan: Plan) -> None:
    """Raises UsageError for an arm that contradicts itself or asks for a value that its lever lacks."""
    names = [arm.name for arm in plan.arms]
    if len(plan.arms) > _MOST_ARMS:
        raise UsageError(
            f"{plan.name}: {len(plan.arms)} arms are more than {_MOST_ARMS}.",
            hint='A matrix multiplies: take fewer levers, or kind = "one-factor".',
        )
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"{plan.name}: two arms are called {twice!r}.", hint="Give each arm its own name.")
    for arm in plan.arms:
        turned = {setting.lever: setting.value for setting in arm.levers}
        for setting in arm.levers:
            lever = plan.levers[setting.lever]
            if setting.value is not None and lever.values and setting.value not in lever.values:
                raise UsageError(
                    f"Arm {arm.name!r}: {lever.id} cannot be {setting.value!r}.",
                    hint=f"It can be {', '.join(lever.values)}, or 'unset'.",
                )
            for other in lever.excludes:
                if turned.get(other) is not None and setting.value is not None:
                    raise UsageError(
                        f"Arm {arm.name!r} turns {lever.id} and {other} at once; they act on the same thing.",
                        hint=f'Leave one of the two out of this arm, or write {other} = "unset".',
                    )


def _arms(
    table: Table,
    kind: str,
    levers: dict[str, Lever],
    params: Sequence[tuple[str, Mapping[str, object]]] | None,
) -> tuple[tuple[Arm, ...], tuple[Lever, ...]]:
    """(arms with the baseline first, levers that only the parameter file knows)."""
    base = table.table("baseline")
    baseline = tuple(_setting(levers, name, base.word(name)) for name in base.names())
    base.done()
    first = Arm(BASELINE, baseline, True)
    from crashlab.sweep import arms

    choices = table.table("levers")
    wanted = [(find(levers, name), choices.words(name)) for name in choices.names()]
    choices.done()
    listed = table.tables("arm")
    order = table.table("bisect")
    if kind == BISECT:
        name = order.text("lever")
        if name is None:
            raise order.wrong("lever", "the lever whose values are bisected")
        found = arms.bisect(first, find(levers, name), order.texts("values"), order)
        order.done()
        return found, ()
    order.done()
    if params is not None:
        return arms.from_params(first, params, levers)
    if kind == LIST:
        return (first, *arms.listed(listed, levers)), ()
    if listed:
        raise table.wrong("arm", f'left out with kind = {kind!r}; kind = "list" takes [[arm]] tables')
    if not wanted:
        raise table.wrong("levers", 'a table with at least one lever, such as cudagraph-mode = ["NONE"]')
    if kind == MATRIX:
        return arms.matrix(first, wanted), ()
    return arms.one_factor(first, wanted), ()


def _setting(levers: Mapping[str, Lever], name: str, word: str | None) -> Setting:
    return Setting(find(levers, name).id, None if word in (None, UNSET) else word)


def _load(table: Table, mode: str) -> tuple[dict[str, str], bool]:
    known = RUN_OPTIONS if mode == RUN else tuple(key for key in LOAD_OPTIONS if key not in _RUN_ONLY)
    for key in table.names():
        if key in _ELSEWHERE:
            raise UsageError(f"{table.where}: {key!r} is no key here.", hint=_ELSEWHERE[key])
    words = {key: table.word(key) for key in known}
    table.done()
    out = {key: word for key in table.names() if (word := words[key]) is not None}
    first = out.get("replay") == BASELINE
    if first:
        del out["replay"]
    return out, first


def _budget(table: Table, kind: str, mode: str) -> Budget:
    default = Budget()
    unit = table.text("unit") or (STEPS if mode == SOAK else HOURS)
    if unit not in UNITS:
        raise table.wrong("unit", f"one of {', '.join(UNITS)}")
    if mode == RUN and unit != HOURS:
        raise table.wrong("unit", f'{HOURS!r} with mode = "run": a program without load has no steps')

    level, fold = table.number("level"), table.number("fold", 1.0)
    if level is not None and level >= 0.5:
        raise table.wrong("level", "a probability below 0.5")
    run_for = table.duration("run-for")
    budget = Budget(
        unit,
        level or default.level,
        table.whole("baseline-faults", 1, 1000) or default.baseline_faults,
        table.whole("arm-faults", 1, 1000) or (1 if kind == BISECT else default.arm_faults),
        table.number("run-exposure"),
        default.run_for if run_for is None else run_for,
        table.whole("max-runs", 1) or default.max_runs,
        table.whole("max-baseline-runs", 1) or default.max_baseline_runs,
        table.duration("total-for"),
        default.interleave if (every := table.whole("interleave")) is None else every,
        fold or default.fold,
    )
    table.done()
    return budget


def _remote(table: Table) -> Remote:
    default = Remote()
    gpus = table.take("gpus")
    if gpus is not None and (isinstance(gpus, bool) or not isinstance(gpus, (int, float)) or gpus < 0):
        raise table.wrong("gpus", "a number")
    remote = Remote(
        default.gpus if gpus is None else float(gpus),
        table.number("cpus") or default.cpus,
        table.number("memory-gb"),
        table.whole("parallel", 1, 10_000),
        table.whole("max-artifacts-mb", 1) or default.max_artifacts_mb,
        table.texts("sbatch"),
        table.texts("setup"),
        table.whole("rounds", 1, 1000) or default.rounds,
    )
    table.done()
    return remote


def _prepares(
    table: Table, levers: Mapping[str, Lever], given: Sequence[Sequence[str]]
) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Commands that fill an overlay, by lever; ``"*"``: for every arm."""
    own = table.table("prepare")
    out = {name if name == "*" else find(levers, name).id: own.commands(name) for name in own.names()}
    own.done()
    if given:
        out["*"] = tuple(tuple(words) for words in given)
    return out


def _stem(where: str) -> str:
    return where.rpartition("/")[2].rpartition(".")[0] or "sweep"
