"""One flat record of what was seen: the only thing that signatures are held against.

It is built from a :class:`~crashlab.facts.Report` or :class:`~crashlab.facts.Verdict`, from a parsed
``report.json``, or from the plain keys of a proof fixture. None means "not captured".
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from crashlab.facts import EnvFact
from crashlab.gpucore.exceptions import code_of
from crashlab.signatures import faultclass
from crashlab.signatures.logtext import LogText

_MAX_NAMES = 16
_FAR = 4 << 30  # bytes: no buffer boundary that a warp straddles is this wide
_FROM_DUMP = ("errorpc", "sm-errorpc", "backtrace", "lane-pc")


class Observed(NamedTuple):
    """Facts of one crash. ``names`` are kernel names (demangled and mangled), of the verdict or hang.

    ``errors`` are host error classes (:mod:`~crashlab.signatures.faultclass`); ``hang`` the states of
    the resident warps; ``xids`` is None when no kernel log was given.
    """

    kind: str | None = None
    code: int | None = None
    exception: str | None = None
    precision: str | None = None
    errors: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    library: str | None = None
    family: str | None = None
    opcode: str | None = None
    access: str | None = None
    space: str | None = None
    width: int | None = None
    finding: str | None = None
    address: int | None = None
    limit: int | None = None
    stray_lane: bool | None = None
    arch: int | None = None
    pc_in_image: bool | None = None
    xids: tuple[int, ...] | None = None
    hang: frozenset[str] | None = None
    garbage: str | None = None
    cuda_graph: bool | None = None
    log: LogText | None = None
    env: Mapping[str, EnvFact] = {}
    run: Mapping[str, EnvFact] = {}

    def version(self, key: str) -> str | None:
        """The text of environment fact ``key``, if captured."""
        fact = self.env.get(key)
        return None if fact is None else fact.value

    def lever(self, key: str) -> str | None:
        """The setting ``key`` of the run; one given as an environment fact counts as well."""
        fact = self.run.get(key) or self.env.get(key)
        return None if fact is None else fact.value


def get(source: Any, *path: str) -> Any:
    """Walk attributes (facts) or keys (report.json) and give None wherever the path ends early."""
    for step in path:
        source = source.get(step) if isinstance(source, Mapping) else getattr(source, step, None)
        if source is None:
            return None
    return source


def text(value: Any) -> str | None:
    """``value`` if it is a non-empty string."""
    return value if isinstance(value, str) and value else None


def number(value: Any) -> int | None:
    """An int, or the int that a ``0x…`` or decimal string spells; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and len(value) <= 20:
        try:
            return int(value, 0)
        except ValueError:
            return None
    return None


def arch_number(value: Any) -> int | None:
    """120 for "sm_120", "sm_120a", "120" or "12.0"; None if there is no number in it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return None
    stem = value[:20].lower().removeprefix("sm_").removeprefix("sm").removeprefix("compute_").strip()
    major, dot, minor = stem.partition(".")
    digits = major + minor if dot else stem.rstrip("af")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 4 else None


def observe(
    report: Any,
    *,
    env: Mapping[str, EnvFact],
    run: Mapping[str, EnvFact],
    log: LogText | None,
    xids: tuple[int, ...] | None = None,
) -> Observed:
    """Flatten a Report, a Verdict or a parsed report.json. Wrong types count as absent."""
    verdict = get(report, "verdict") or report
    names, functions = _names(verdict)
    name = text(get(verdict, "exception", "name"))
    code = number(get(verdict, "exception", "code"))
    if code is None and name is not None:
        code = code_of(name)
    arch = arch_number(get(verdict, "where", "sm_arch"))
    if arch is None and "arch" in env:
        arch = arch_number(env["arch"].value)
    return Observed(
        kind=text(get(verdict, "kind")),
        code=code,
        exception=name,
        precision=text(get(verdict, "exception", "precision")),
        errors=_errors(code, log),
        names=names,
        functions=functions,
        library=text(get(verdict, "library", "name")),
        family=text(get(verdict, "library", "family")),
        opcode=text(get(verdict, "instruction", "opcode")),
        access=text(get(verdict, "instruction", "access")),
        space=_space(verdict),
        width=number(get(verdict, "instruction", "width_bytes")),
        finding=text(get(verdict, "address", "kind")),
        address=number(get(verdict, "address", "value")),
        limit=number(get(verdict, "address", "limit")),
        stray_lane=_stray_lane(verdict),
        arch=arch,
        pc_in_image=_pc_in_image(verdict),
        xids=_xids(get(report, "xid")) or xids,
        hang=_hang(verdict),
        garbage=_value(run, "garbage") or _value(env, "garbage"),
        cuda_graph=_flag(_value(run, "cuda_graph") or _value(env, "cuda_graph")),
        log=log,
        env=env,
        run=run,
    )


def _space(verdict: Any) -> str | None:
    """The space that the address turned out to be in; a generic access without one is unknown."""
    space = text(get(verdict, "address", "space")) or text(get(verdict, "instruction", "space"))
    return None if space == "generic" else space


def _stray_lane(verdict: Any) -> bool | None:
    """Whether every bad lane is far away from lanes of the same access that are in place; None: cannot be told.

    Then the pointer that all of them share is good, and what differs from lane to lane is not.
    """
    bad: list[int] = []
    good: list[int] = []
    for lane in rows(get(verdict, "address", "per_lane")):
        address, judged = number(get(lane, "address")), get(lane, "bad")
        if address is not None and isinstance(judged, bool) and get(lane, "predicated_off") is not True:
            (bad if judged else good).append(address)
    if not bad or not good:
        return None
    ends = min(good), max(good)  # once: a report.json may claim any number of lanes
    return all(abs(one - other) > _FAR for one in bad for other in ends)


def _pc_in_image(verdict: Any) -> bool | None:
    """Only a dump can tell: a text source may know the PC and not the module."""
    if get(verdict, "pc") is None or get(verdict, "pc_source") not in _FROM_DUMP:
        return None
    return get(verdict, "module", "index") is not None or bool(_names(verdict)[1])


def _errors(code: int | None, log: LogText | None) -> frozenset[str]:
    """From the hardware's code where there is one: it outranks what the host said."""
    if code is not None and (named := faultclass.host_error(code)):
        return frozenset((named,))
    return faultclass.errors_in(log) if log else frozenset()


def _names(verdict: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    kernels = [get(verdict, "kernel", "name"), get(verdict, "kernel", "mangled")]
    functions = [get(verdict, "function", "name"), get(verdict, "function", "mangled")]
    for group in rows(get(verdict, "hang", "groups")):
        kernels.append(get(group, "kernel"))
        functions.append(get(group, "function"))
    return _distinct(kernels), _distinct(functions)


def _distinct(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if text(value)))[:_MAX_NAMES]


def rows(value: Any) -> tuple[Any, ...]:
    """The items of a list or tuple; nothing for anything else."""
    return tuple(value) if isinstance(value, (list, tuple)) else ()


def _hang(verdict: Any) -> frozenset[str] | None:
    groups = get(verdict, "hang", "groups")
    if groups is None:
        return None
    return frozenset(state for group in rows(groups) if (state := text(get(group, "state"))))


def _xids(events: Any) -> tuple[int, ...] | None:
    codes = [number(get(event, "code")) for event in rows(events) if get(event, "relevant") is not False]
    return tuple(code for code in codes if code is not None) or None


def _value(run: Mapping[str, EnvFact], key: str) -> str | None:
    fact = run.get(key)
    return None if fact is None else fact.value


def _flag(value: str | None) -> bool | None:
    if value is None:
        return None
    return {"true": True, "1": True, "on": True, "yes": True, "false": False, "0": False, "off": False,
            "no": False}.get(value.lower())  # fmt: skip
