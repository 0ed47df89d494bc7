"""Which instruction can follow which: control flow over the instructions of one code section.

Built from opcodes alone, so that a function of ten thousand instructions costs milliseconds. What the
text does not tell (an indirect branch, a target outside the section) is kept as *unknown*, and the
callers must then not claim anything about paths that touch it.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from crashlab.errors import CrashlabError
from crashlab.sass.line import SassLine
from crashlab.sass.operands import ParsedInstruction, parse

if TYPE_CHECKING:
    from crashlab.sass.path import Path

_CONTROL = re.compile(
    r"(?P<guard>@!?U?P\d )?(?P<opcode>BRA|BRX|BRXU|JMP|JMX|JMXU|CALL|RET|EXIT|KILL|BSSY|BSYNC|WARPSYNC|ILLEGAL)\b"
    r"(?P<rest>[^\n]*)"
)
_HEX = re.compile(r"0x([0-9a-fA-F]{1,16})")
_BARRIER = re.compile(r"\bB(\d{1,2})\b")
_PREDICATE = re.compile(r"\bU?P\d\b")
_INDIRECT = frozenset({"BRX", "BRXU", "JMX", "JMXU"})
_BARRIER_SEARCH = 4096


class Edge(NamedTuple):
    """Successors of one control instruction. ``unknown``: it may also go where the text does not say."""

    targets: tuple[int, ...]
    unknown: bool = False


class Flow:
    """Successors and predecessors by instruction index."""

    def __init__(self, lines: Sequence[SassLine]) -> None:
        self.lines = lines
        self.paths: dict[tuple[int, int], Path] = {}
        self.bypasses: dict[tuple[int | None, ...], int | None] = {}
        self.index = {line.pc: i for i, line in enumerate(lines)}
        self.edges: dict[int, Edge] = {}
        self.calls: dict[int, int | None] = {}
        self._incoming: dict[int, list[int]] = {}
        self._regions: dict[int, tuple[str, int | None]] = {}
        self._parsed: dict[int, ParsedInstruction | None] = {}
        self._read()

    def parsed(self, at: int) -> ParsedInstruction | None:
        """The instruction at an index, parsed once; None when its text is none."""
        if at not in self._parsed:
            try:
                self._parsed[at] = parse(self.lines[at].text)
            except CrashlabError:
                self._parsed[at] = None
        return self._parsed[at]

    def defines(self, at: int) -> tuple[str, ...] | None:
        """Registers that the instruction writes, None when that is not known.

        A call with a known callee writes nothing itself: what the callee writes is on the path.
        """
        if self.calls.get(at) is not None:
            return ()
        parsed = self.parsed(at)
        return None if parsed is None else parsed.defines

    def successors(self, at: int) -> tuple[int, ...]:
        edge = self.edges.get(at)
        if edge is not None:
            return edge.targets
        return (at + 1,) if at + 1 < len(self.lines) else ()

    def predecessors(self, at: int) -> tuple[int, ...]:
        found = list(self._incoming.get(at, ()))
        if at > 0 and at - 1 not in self.edges:
            found.append(at - 1)
        return tuple(found)

    def is_unknown(self, at: int) -> bool:
        """The instruction may continue outside of what is known."""
        edge = self.edges.get(at)
        return edge.unknown if edge is not None else at + 1 >= len(self.lines)

    def is_join(self, at: int) -> bool:
        """More than the preceding instruction leads here, or nothing does."""
        return self.predecessors(at) != (at - 1,)

    def forward(self, starts: Iterable[int], blocked: int | None = None) -> set[int]:
        """Everything that can be executed from ``starts`` on without passing ``blocked``."""
        return self._reach(starts, self.successors, blocked)

    def backward(self, starts: Iterable[int], blocked: int | None = None) -> set[int]:
        """Everything from which ``starts`` can be reached without passing ``blocked``."""
        return self._reach(starts, self.predecessors, blocked)

    @staticmethod
    def _reach(starts: Iterable[int], step: object, blocked: int | None) -> set[int]:
        assert callable(step)
        seen = {start for start in starts if start != blocked}
        todo = list(seen)
        while todo:
            for following in step(todo.pop()):
                if following not in seen and following != blocked:
                    seen.add(following)
                    todo.append(following)
        return seen

    def _read(self) -> None:
        returns: list[int] = []
        for at, line in enumerate(self.lines):
            found = _CONTROL.match(line.text)
            if found is None:
                continue
            opcode, guard, rest = found["opcode"], found["guard"] is not None, found["rest"]
            if opcode == "RET":
                returns.append(at)
            elif opcode in ("BSSY", "BSYNC"):
                barrier = _BARRIER.search(rest)
                self._regions[at] = (barrier[0] if barrier else "", self._target(rest))
            else:
                self._branch(at, opcode, guard, rest)
        self._resolve_returns(returns)
        for at, edge in self.edges.items():
            self._enter(at, edge.targets)
        self._resolve_regions()

    def _branch(self, at: int, opcode: str, guarded: bool, rest: str) -> None:
        after = (at + 1,) if at + 1 < len(self.lines) else ()
        if opcode == "WARPSYNC" and ".COLLECTIVE" not in rest:
            return
        if opcode == "ILLEGAL":
            self.edges[at] = Edge((), True)
        elif opcode in ("EXIT", "KILL"):
            self.edges[at] = Edge(after if guarded or _PREDICATE.search(rest) else ())
        elif opcode in _INDIRECT:
            self.edges[at] = Edge(after if guarded else (), True)
        elif opcode == "CALL":
            target = None if ".REL" not in rest else self._target(rest)
            self.calls[at] = target
            # What comes behind a call is reached through the callee's RET; an unknown callee may do anything.
            skip = after if guarded or target is None else ()
            self.edges[at] = Edge((*skip, *(() if target is None else (target,))), target is None)
        else:
            target = self._target(rest)
            always = not guarded and opcode in ("BRA", "JMP") and not self._conditional(rest)
            targets = ((target,) if target is not None else ()) + (() if always else after)
            self.edges[at] = Edge(tuple(dict.fromkeys(targets)), target is None)

    @staticmethod
    def _conditional(rest: str) -> bool:
        """``BRA.U !UP0, T``, ``BRA.DIV UR4, T``: a condition stands before the target."""
        return "," in rest or ".ANY" in rest or ".ALL" in rest or ".DIV" in rest or ".CONV" in rest

    def _target(self, rest: str) -> int | None:
        numbers = _HEX.findall(rest)
        return self.index.get(int(numbers[-1], 16)) if numbers else None

    def _resolve_returns(self, returns: Iterable[int]) -> None:
        """A return may go behind every call of the section; without one, to a caller that is not seen."""
        behind = tuple(at + 1 for at in self.calls if at + 1 < len(self.lines))
        for at in returns:
            guarded = self.lines[at].text.startswith("@")
            own = (at + 1,) if guarded and at + 1 < len(self.lines) else ()
            self.edges[at] = Edge(tuple(dict.fromkeys(own + behind)), not behind)

    def _enter(self, at: int, targets: Iterable[int]) -> None:
        for target in targets:
            self._incoming.setdefault(target, []).append(at)

    def _resolve_regions(self) -> None:
        """``BSYNC Bn`` continues at the target of the ``BSSY Bn`` that opened the region."""
        opened = {at: region for at, region in self._regions.items() if region[1] is not None}
        by_barrier: dict[str, set[int]] = {}
        for barrier, target in opened.values():
            if target is not None:
                by_barrier.setdefault(barrier, set()).add(target)
        resolved = []
        for at, (barrier, target) in self._regions.items():
            if target is not None or self.lines[at].text.find("BSYNC") < 0:
                continue
            targets = self._opening(at, barrier, opened) or by_barrier.get(barrier, set())
            after = {at + 1} if at + 1 < len(self.lines) else set()
            if not targets:
                resolved.append((at, Edge(tuple(after), True)))
            elif targets != after:
                resolved.append((at, Edge(tuple(sorted(targets | after)))))
        for at, edge in resolved:
            self.edges[at] = edge
            self._enter(at, edge.targets)

    def _opening(self, at: int, barrier: str, opened: dict[int, tuple[str, int | None]]) -> set[int] | None:
        """Targets of the nearest openings backwards; None when the search leaves what is known."""
        seen, todo, targets = {at}, list(self.predecessors(at)), set()
        while todo:
            here = todo.pop()
            if here in seen:
                continue
            seen.add(here)
            region = opened.get(here)
            if region is not None and region[0] == barrier:
                targets.add(region[1] or 0)
                continue
            before = self.predecessors(here)
            if not before or len(seen) > _BARRIER_SEARCH:
                return None
            todo.extend(before)
        return targets


_latest: Flow | None = None


def flow_of(lines: Sequence[SassLine]) -> Flow:
    """The flow of ``lines``, kept for the next call with the same sequence: it is asked once a lane."""
    global _latest
    found = _latest
    if found is None or found.lines is not lines:
        found = _latest = Flow(lines)
    return found
