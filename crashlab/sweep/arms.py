"""From levers and values to arms: one factor at a time, a matrix, an order to bisect, a parameter file."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence

from crashlab.errors import UsageError
from crashlab.sweep.catalogue import find
from crashlab.sweep.facts import Arm, Setting
from crashlab.sweep.lever import FLAG, LOG, SERVER_INFO, SWITCH, UNSET, Lever, Show, Way
from crashlab.sweep.tomltext import Table

_MOST = 500
NAME = "_benchmark_name"

Wanted = Sequence[tuple[Lever, Sequence[str]]]


def one_factor(baseline: Arm, wanted: Wanted) -> tuple[Arm, ...]:
    """One arm for each value; all else as in the baseline."""
    out = [baseline]
    for lever, values in wanted:
        for value in _values(lever, values):
            setting = Setting(lever.id, value)
            if setting not in baseline.levers:
                out.append(Arm(_name([setting]), _over(baseline, [setting])))
    return tuple(out)


def matrix(baseline: Arm, wanted: Wanted) -> tuple[Arm, ...]:
    """Every combination; the baseline's own value is one of each lever's."""
    before = {setting.lever: setting.value for setting in baseline.levers}
    columns = []
    size = 1
    for lever, values in wanted:
        column = list(dict.fromkeys([before.get(lever.id), *_values(lever, values)]))
        columns.append([Setting(lever.id, value) for value in column])
        size *= len(column)
        if size > _MOST:
            raise UsageError(
                f"The matrix has more than {_MOST} arms.",
                hint='Take fewer levers or values, or kind = "one-factor".',
            )
    out = [baseline]
    for row in itertools.product(*columns):
        changed = [setting for setting in row if setting.value != before.get(setting.lever)]
        if changed:
            out.append(Arm(_name(changed), _over(baseline, changed)))
    return tuple(out)


def listed(tables: Iterable[Table], levers: Mapping[str, Lever]) -> list[Arm]:
    """``[[arm]]`` tables: a name and the levers it sets."""
    out = []
    for table in tables:
        name = table.text("name")
        settings = table.table("set")
        row = []
        for key in settings.names():
            word = settings.word(key)
            row.append(Setting(find(levers, key).id, None if word in (None, UNSET) else word))
        settings.done()
        table.done()
        if not row:
            raise table.wrong("set", "a table with at least one lever")
        out.append(Arm(name or _name(row), tuple(row)))
    if not out:
        raise UsageError(
            'A plan with kind = "list" needs at least one [[arm]].',
            hint='For example [[arm]] set = { moe-backend = "marlin" }.',
        )
    return out


def bisect(baseline: Arm, lever: Lever, values: Sequence[str], where: Table) -> tuple[Arm, ...]:
    """The order as arms; the baseline becomes the end that is known to fault."""
    if len(set(values)) < 2 or len(set(values)) != len(values):
        raise where.wrong("values", "at least two different values, in their order")
    bad = where.text("bad") or "last"
    if bad not in ("first", "last"):
        raise where.wrong("bad", '"first" or "last": the end of values that is known to fault')
    order = list(values) if bad == "last" else list(reversed(values))
    arms = [Arm(_name([setting := Setting(lever.id, value)]), _over(baseline, [setting])) for value in order]
    return (arms[-1]._replace(is_baseline=True), *arms[:-1])


def from_params(
    baseline: Arm, params: Sequence[tuple[str, Mapping[str, object]]], levers: Mapping[str, Lever]
) -> tuple[tuple[Arm, ...], tuple[Lever, ...]]:
    """Arms of a parameter file of ``vllm bench sweep``; an option no lever knows becomes a lever of its own."""
    own: dict[str, Lever] = {}
    arms = [baseline]
    for name, row in params:
        settings = []
        for key, value in row.items():
            lever = _of_parameter(key, value, {**levers, **own})
            if lever.id not in levers:
                own[lever.id] = lever
            settings.append(Setting(lever.id, _spelled(value)))
        if settings:
            arms.append(Arm(name, tuple(settings)))
    if len(arms) == 1:
        raise UsageError(
            "The parameter file names no parameter.",
            hint='It is a list such as [{"max_num_seqs": 32}, {"max_num_seqs": 64}].',
        )
    return tuple(arms), tuple(own.values())


def read_params(text: str, where: str) -> list[tuple[str, Mapping[str, object]]]:
    """(name, parameters) of each record of such a file: a list of objects, or an object of named ones.

    Raises UsageError if it is neither.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is no JSON: {error}.", hint="A list of objects is expected.") from error
    if isinstance(data, dict):
        data = [{NAME: name, **row} if isinstance(row, dict) else row for name, row in data.items()]
    if not isinstance(data, list) or not data or not all(isinstance(row, dict) for row in data):
        raise UsageError(
            f"{where} is no parameter file: a list of objects, or an object of named ones, is expected.",
            hint='For example [{"max_num_seqs": 32}, {"max_num_seqs": 64}].',
        )
    out: list[tuple[str, Mapping[str, object]]] = []
    for row in data:
        rest = {key: value for key, value in row.items() if key != NAME}
        default = "-".join(f"{key}={_spelled(value)}" for key, value in rest.items())
        out.append((str(row.get(NAME) or default or "as it is")[:120], rest))
    return out


def _of_parameter(key: str, value: object, levers: Mapping[str, Lever]) -> Lever:
    """``max_num_seqs`` is ``--max-num-seqs``; what stands after a dot is not respelt."""
    head, dot, rest = key.partition(".")
    option = f"--{head.replace('_', '-')}{dot}{rest}"
    same = {
        "--compilation-config.cudagraph_mode": "cudagraph-mode",
        "--compilation-config.mode": "compile-mode",
    }
    for lever in levers.values():
        if lever.id == same.get(option) or any(way.name == option for way in lever.ways):
            return lever
    if isinstance(value, bool) and not dot:
        way = Way(SWITCH, option, off=f"--no-{option[2:]}", probe=(option, f"--no-{option[2:]}"))
    else:
        spelled = {"on": "true", "off": "false"} if isinstance(value, bool) else {}
        probe = (option, f"--{head.replace('_', '-')}")
        way = Way(FLAG, option, joined=bool(dot), means=spelled, probe=probe)
    means = {"on": "True", "off": "False"} if isinstance(value, bool) else {}
    field = (rest or head.replace("-", "_")).rpartition(".")[2]
    shows = (
        Show(LOG, read=rf"(?<![\w.])'?{_escaped(field)}'?[=:] ?'?([\w.+-]{{1,80}})", means=means),
        Show(SERVER_INFO, path=f"vllm_config.{key}", means=means),
    )
    return Lever(option.lstrip("-"), option, "parameters", (way,), shows=shows)


def _escaped(field: str) -> str:
    import re

    return re.escape(field)


def _spelled(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "on" if value else "off"
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)


def _values(lever: Lever, values: Sequence[str]) -> list[str | None]:
    """The plan's values, or with ``[]`` those that the lever suggests."""
    chosen = values or lever.suggest
    if not chosen:
        raise UsageError(
            f"The lever {lever.id!r} suggests no value.", hint=f'Name some: {lever.id} = ["…"] in [levers].'
        )
    return [None if value == UNSET else value for value in chosen]


def _over(baseline: Arm, settings: Sequence[Setting]) -> tuple[Setting, ...]:
    """The baseline's settings with some replaced or added."""
    merged = {setting.lever: setting for setting in (*baseline.levers, *settings)}
    return tuple(merged.values())


def _name(settings: Sequence[Setting]) -> str:
    return " ".join(
        f"{setting.lever}={UNSET if setting.value is None else setting.value}" for setting in settings
    )
