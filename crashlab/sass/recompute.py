"""A register's value at the faulting instruction, computed again where it has been overwritten since.

Goes back along the only way that leads to the instruction, and evaluates what made the register from
registers that still hold their values. Nothing is guessed: one unknown input gives no value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crashlab.sass.bypass import bypass
from crashlab.sass.evaluate import evaluate
from crashlab.sass.flow import Flow, flow_of
from crashlab.sass.line import SassLine
from crashlab.sass.path import Path, path_between, waits_for_result
from crashlab.sass.regions import untouching_region

_MOST_STEPS = 64
_MOST_BACK = 1024
_DEEPEST = 24


class Step(NamedTuple):
    """``text`` at ``pc`` was evaluated; ``gave`` are the registers it defines with their values."""

    pc: int
    text: str
    gave: tuple[tuple[str, int | None], ...]


class Recomputed(NamedTuple):
    """``values`` holds every register that was asked for, or is None and ``reason`` says which is lost.

    ``steps`` are the instructions that were evaluated, in the order of the program.
    """

    values: Mapping[str, int] | None
    steps: tuple[Step, ...] = ()
    reason: str | None = None


def recompute(
    lines: Sequence[SassLine],
    errorpc: int,
    lane_pc: int | None,
    registers: Sequence[str],
    values: Mapping[str, int | None],
    *,
    straight: bool = False,
) -> Recomputed:
    """Values of ``registers`` as the instruction at ``errorpc`` read them.

    ``values`` holds the lane's registers as dumped, and may hold ``SR_TID.X``, ``SR_CTAID.X``,
    ``SR_CgaCtaId`` and constant words by the names ``c[0x0][0x210]``. ``straight`` takes for granted
    that the lane came straight from the fault (see :class:`LivenessResult`).
    """
    flow = flow_of(lines)
    start, end = flow.index.get(errorpc), None if lane_pc is None else flow.index.get(lane_pc)
    if start is None or end is None:
        return Recomputed(None, reason="the fault or the lane's PC is not in this code")
    path = path_between(flow, start, end)
    problem = _problem(flow, path, registers, values, straight)
    if problem is not None:
        return Recomputed(None, reason=problem)
    work = _Work(flow, path, values, straight)
    found: dict[str, int] = {}
    for name in registers:
        value = work.at(name, start, 0)
        if value is None:
            lost = work.lost or name
            return Recomputed(None, work.in_order(), f"{name} cannot be computed again: {lost}")
        found[name] = value
    return Recomputed(found, work.in_order())


def _problem(
    flow: Flow, path: Path, registers: Sequence[str], values: Mapping[str, int | None], straight: bool
) -> str | None:
    if not path.reached or (straight and path.straight is None):
        return "no straight way leads from the fault to the lane's PC"
    if all(name.startswith("U") for name in registers):
        return None
    around = bypass(flow, path.start, path.end, values)
    if around is not None and not straight:
        line = flow.lines[around]
        return f"the lane may not have executed the faulting instruction, see {line.pc:#x} ({line.text})"
    if path.unknown is not None and not straight and not waits_for_result(flow, path.start):
        line = flow.lines[path.unknown]
        return f"where {line.pc:#x} ({line.text}) continues is not known"
    return None


class _Work:
    """One run: which registers survive, what has been evaluated already."""

    def __init__(self, flow: Flow, path: Path, values: Mapping[str, int | None], straight: bool) -> None:
        self.flow, self.values, self.until = flow, values, path.start
        self.lost: str | None = None
        self.evaluated: dict[int, dict[str, int | None]] = {}
        self.killed: set[str] = set()
        self.all_killed = False
        on_path = path.straight if straight and path.straight is not None else path.on
        for at in (path.start, *on_path):
            defines = flow.defines(at)
            self.all_killed = self.all_killed or defines is None
            self.killed.update(defines or ())

    def at(self, name: str, before: int, depth: int) -> int | None:
        """The value of ``name`` just before the instruction at index ``before`` (not after the fault)."""
        if name.startswith(("c[", "SR_")):
            return self._given(name)
        definition = self._definition(name, before, depth)
        if definition is None:
            if self._survives(name, before):
                return self._given(name)
            self.lost = self.lost or f"{name} was overwritten and its origin is not in sight"
            return None
        if definition < 0:
            return None
        # The youngest definition before `before`; when nothing later writes the register, the dump has it.
        if self._survives(name, definition + 1) and self.values.get(name) is not None:
            return self.values[name]
        return self._evaluate(definition, depth).get(name)

    def in_order(self) -> tuple[Step, ...]:
        return tuple(
            Step(self.flow.lines[at].pc, self.flow.lines[at].text, tuple(gave.items()))
            for at, gave in sorted(self.evaluated.items())
        )

    def _given(self, name: str) -> int | None:
        value = self.values.get(name)
        if value is None:
            self.lost = self.lost or f"{name} is not known"
        return value

    def _survives(self, name: str, since: int) -> bool:
        """Nothing from index ``since`` to the lane's PC writes the register."""
        if self.all_killed or name in self.killed:
            return False
        for at in range(since, self.until):
            defines = self.flow.defines(at)
            if defines is None or name in defines:
                return False
        return True

    def _definition(self, name: str, before: int, depth: int) -> int | None:
        """Index of the instruction that gave ``name`` its value; None: not found, negative: not certain."""
        at = before
        for _ in range(_MOST_BACK):
            if self.flow.is_join(at):
                region = untouching_region(self.flow, at, (name,))
                if region is None:
                    return None
                # Earlier rounds of a loop may have run on to its end: what is read before it must
                # have survived that as well.
                self.until = max(self.until, region.last + 1)
                at = region.first
            else:
                at -= 1
            if at in self.flow.calls:
                return None
            defines = self.flow.defines(at)
            if defines is None:
                self.lost = self.lost or f"what {self._quote(at)} writes is not known"
                return -1
            if name not in defines:
                continue
            executed = self._executed(at, depth)
            if executed is None:
                self.lost = self.lost or f"whether {self._quote(at)} was executed is not known"
                return -1
            if executed:
                return at
        return None

    def _executed(self, at: int, depth: int) -> bool | None:
        parsed = self.flow.parsed(at)
        if parsed is None or parsed.predicate is None:
            return None if parsed is None else True
        if parsed.predicate in ("PT", "UPT"):
            return not parsed.predicate_negated
        value = self.at(parsed.predicate, at, depth + 1) if depth < _DEEPEST else None
        return None if value is None else bool(value) != parsed.predicate_negated

    def _evaluate(self, at: int, depth: int) -> dict[str, int | None]:
        if at in self.evaluated:
            return self.evaluated[at]
        parsed = self.flow.parsed(at)
        gave: dict[str, int | None] | None = None
        if parsed is not None and depth < _DEEPEST and len(self.evaluated) < _MOST_STEPS:
            gave = evaluate(parsed, lambda name: self.at(name, at, depth + 1))
        if gave is None:
            self.lost = self.lost or f"{self._quote(at)} cannot be evaluated"
            return {}
        self.evaluated[at] = gave
        return gave

    def _quote(self, at: int) -> str:
        return f"{self.flow.lines[at].pc:#x} ({self.flow.lines[at].text})"
