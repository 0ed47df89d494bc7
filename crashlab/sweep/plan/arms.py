"""The arms that a plan asks for, in any of its four kinds, and what they may not contradict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crashlab.errors import UsageError
from crashlab.sweep import arms
from crashlab.sweep.catalogue import find
from crashlab.sweep.facts import Arm, Setting
from crashlab.sweep.lever import UNSET, Lever
from crashlab.sweep.plan.model import Plan
from crashlab.sweep.plan.words import BASELINE, BISECT, LIST, MATRIX
from crashlab.sweep.tomltext import Table

_MOST_ARMS = 500


def arms_of(
    table: Table,
    kind: str,
    levers: Mapping[str, Lever],
    params: Sequence[tuple[str, Mapping[str, object]]] | None,
) -> tuple[tuple[Arm, ...], tuple[Lever, ...]]:
    """(arms with the baseline first, levers that only the parameter file knows). Raises UsageError."""
    first = _baseline(table.table("baseline"), levers)
    wanted = _wanted(table.table("levers"), levers)
    listed = table.tables("arm")
    order = table.table("bisect")
    if kind == BISECT:
        return _bisected(first, order, levers), ()
    order.done()
    if params is not None:
        return arms.from_params(first, params, levers)
    if kind == LIST:
        return (first, *arms.listed(listed, levers)), ()
    if listed:
        raise table.wrong("arm", f'left out with kind = {kind!r}; kind = "list" takes [[arm]] tables')
    if not wanted:
        raise table.wrong("levers", 'a table with at least one lever, such as cudagraph-mode = ["NONE"]')
    return (arms.matrix if kind == MATRIX else arms.one_factor)(first, wanted), ()


def _baseline(table: Table, levers: Mapping[str, Lever]) -> Arm:
    settings = tuple(_setting(levers, name, table.word(name)) for name in table.names())
    table.done()
    return Arm(BASELINE, settings, True)


def _setting(levers: Mapping[str, Lever], name: str, word: str | None) -> Setting:
    return Setting(find(levers, name).id, None if word in (None, UNSET) else word)


def _wanted(table: Table, levers: Mapping[str, Lever]) -> arms.Wanted:
    wanted = [(find(levers, name), table.words(name)) for name in table.names()]
    table.done()
    return wanted


def _bisected(first: Arm, table: Table, levers: Mapping[str, Lever]) -> tuple[Arm, ...]:
    name = table.text("lever")
    if name is None:
        raise table.wrong("lever", "the lever whose values are bisected")
    found = arms.bisect(first, find(levers, name), table.texts("values"), table)
    table.done()
    return found


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
        for setting in arm.levers:
            _check_setting(arm, setting, plan.levers[setting.lever])


def _check_setting(arm: Arm, setting: Setting, lever: Lever) -> None:
    if setting.value is None:
        return
    if lever.values and setting.value not in lever.values:
        raise UsageError(
            f"Arm {arm.name!r}: {lever.id} cannot be {setting.value!r}.",
            hint=f"It can be {', '.join(lever.values)}, or 'unset'.",
        )
    turned = {other.lever: other.value for other in arm.levers}
    for name in lever.excludes:
        if turned.get(name) is not None:
            raise UsageError(
                f"Arm {arm.name!r} turns {lever.id} and {name} at once; they act on the same thing.",
                hint=f'Leave one of the two out of this arm, or write {name} = "unset".',
            )
