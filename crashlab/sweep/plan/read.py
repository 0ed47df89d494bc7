"""A plan from its text, TOML."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

from crashlab.errors import UsageError
from crashlab.sweep.catalogue import find, levers_of, merged
from crashlab.sweep.facts import EVENTS
from crashlab.sweep.lever import Lever
from crashlab.sweep.plan.arms import arms_of, check_arms
from crashlab.sweep.plan.budget import read_budget
from crashlab.sweep.plan.load import read_load
from crashlab.sweep.plan.model import About, Plan
from crashlab.sweep.plan.remote import read_remote
from crashlab.sweep.plan.words import KINDS, LIST, ONE_FACTOR, RUN, SCHEMA, SOAK
from crashlab.sweep.tomltext import Table, parse


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
    arms, more = arms_of(table, kind, levers, params)
    words = _command(table, command, where)
    mode = _choice(table, "mode", (SOAK, RUN), SOAK)
    load, replay_first = read_load(table.table("load"), mode)
    commands = _prepares(table, levers, prepare)
    plan = Plan(
        name=table.text("name") or _stem(where),
        kind=kind,
        command=words,
        levers={**levers, **{lever.id: lever for lever in more}},
        arms=arms,
        budget=read_budget(table.table("budget"), kind, mode),
        load=load,
        environment=table.text_map("environment"),
        seed=table.whole("seed", 0, 2**31) or 0,
        mode=mode,
        target=_choice(table, "target", EVENTS, EVENTS[0]),
        key=table.text("key"),
        replay_first=replay_first,
        server=_server(table.table("server")),
        prepare=commands,
        remote=read_remote(table.table("remote")),
        sha256=_digest(text, params_text, words, commands),
        text=text,
        params_text=params_text,
    )
    _choice(table, "schema", (SCHEMA,), SCHEMA)
    table.done()
    check_arms(plan)
    return plan


def _command(table: Table, given: Sequence[str], where: str) -> tuple[str, ...]:
    words = tuple(given) or table.command("command")
    table.take("command")
    if not words:
        raise UsageError(
            f"{where}: nothing is to be run.",
            hint='Give command = ["vllm", "serve", …] in the plan, or the command after \'--\'.',
        )
    return words


def _server(table: Table) -> About:
    server = About(table.flag("info") or False, table.text("version"), table.flag("help") is not False)
    table.done()
    return server


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
