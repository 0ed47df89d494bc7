"""Random programs, run by a small machine: what is claimed about a fault must be what happened."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from crashlab.sass.evaluate import evaluate
from crashlab.sass.line import SassLine
from crashlab.sass.liveness import redefinition
from crashlab.sass.operands import parse
from crashlab.sass.recompute import recompute

from .listing import BASE

REGISTERS = ("R1", "R2", "R3", "R4")
FORMS = (
    "IADD3 R{a}, R{b}, 0x{n:x}, RZ",
    "IADD3 R{a}, R{b}, -R{c}, RZ",
    "MOV R{a}, R{b}",
    "@P0 MOV R{a}, R{b}",
    "@!P1 IADD3 R{a}, R{a}, 0x{n:x}, RZ",
    "ISETP.LT.U32.AND P0, PT, R{a}, 0x{n:x}, PT",
    "ISETP.NE.AND P1, PT, R{a}, R{b}, PT",
    "SEL R{a}, R{b}, R{c}, P0",
    "@P0 BRA {t}",
    "@!P0 BRA {t}",
    "@P1 BRA {t}",
    "BRA {t}",
    "@P1 EXIT",
    "EXIT",
    "NOP",
    "BSSY B0, {t}",
    "CALL.REL.NOINC {t}",
    "RET.REL.NODEC R20 0x0",
)


class Moment(NamedTuple):
    """The machine just before it executed an instruction."""

    at: int
    values: dict[str, int]


@st.composite
def programs(draw: st.DrawFn) -> tuple[tuple[SassLine, ...], int]:
    """A program and the index of its faulting access of [R2]."""
    count = draw(st.integers(3, 12))
    number = st.integers(1, 4)
    texts = []
    for _ in range(count):
        target = hex(BASE + 16 * draw(st.integers(0, count - 1)))
        form = draw(st.sampled_from(FORMS))
        texts.append(
            form.format(a=draw(number), b=draw(number), c=draw(number), n=draw(st.integers(0, 5)), t=target)
        )
    fault = draw(st.integers(0, count - 1))
    texts[fault] = draw(st.sampled_from(("STG.E [R2.64], R1", "LDG.E R20, [R2.64]")))
    return tuple(SassLine(BASE + 16 * i, text) for i, text in enumerate(texts)), fault


def run(lines: tuple[SassLine, ...], values: dict[str, int], limit: int = 60) -> list[Moment]:
    """Every step from the entry on, until the program ends or ``limit`` steps are done."""
    at, trace, returns = 0, [], []
    state = dict(values)
    for _ in range(limit):
        if not 0 <= at < len(lines):
            break
        trace.append(Moment(at, dict(state)))
        parsed = parse(lines[at].text)
        on = parsed.predicate is None or bool(state[parsed.predicate]) != parsed.predicate_negated
        following = at + 1
        if on and parsed.opcode == "EXIT":
            break
        if on and parsed.opcode == "RET":
            if not returns:
                break
            following = returns.pop()
        elif on and parsed.opcode in ("BRA", "CALL"):
            if parsed.opcode == "CALL":
                returns.append(at + 1)
            following = ((parsed.target() or 0) - BASE) // 16
        elif on and parsed.opcode not in ("STG", "LDG", "NOP", "BSSY"):
            given_values = dict(state)
            made = evaluate(parsed, given_values.get)
            assert made is not None
            state.update({name: value for name, value in made.items() if value is not None})
        at = following
    return trace


START = st.fixed_dictionaries(
    {name: st.integers(0, 6) for name in REGISTERS} | {"P0": st.integers(0, 1), "P1": st.integers(0, 1)}
)


@settings(max_examples=150, deadline=None)
@given(programs(), START, st.integers(0, 59), st.integers(0, 59))
def test_values_claimed_for_the_fault_are_those_that_it_had(
    program: tuple[tuple[SassLine, ...], int], start: dict[str, int], which: int, later: int
) -> None:
    lines, fault = program
    trace = run(lines, start)
    times = [time for time, moment in enumerate(trace) if moment.at == fault]
    assume(times)
    time = times[which % len(times)]
    # A load that faulted never comes again: its own result is waited for.
    again = next((t for t in times if t > time), len(trace)) if "LDG" in lines[fault].text else len(trace)
    assume(time + 1 < min(again + 1, len(trace)))
    end = time + 1 + later % (min(again + 1, len(trace)) - time - 1)
    lane = trace[end]
    pcs = (lines[fault].pc, lines[lane.at].pc)
    judged = redefinition(lines, *pcs, ["R2"], lane.values)
    if judged.intact:
        assert lane.values["R2"] == trace[time].values["R2"]
    for names in (["R2"], list(REGISTERS)):
        found = recompute(lines, *pcs, names, lane.values)
        if found.values is not None:
            assert found.values == {name: trace[time].values[name] for name in names}


@settings(max_examples=150, deadline=None)
@given(programs(), START, st.integers(0, 59))
def test_a_lane_that_did_not_execute_the_fault_is_never_called_intact(
    program: tuple[tuple[SassLine, ...], int], start: dict[str, int], when: int
) -> None:
    lines, fault = program
    trace = run(lines, start)
    before = trace[: next((t for t, moment in enumerate(trace) if moment.at == fault), len(trace))]
    assume(before)
    lane = before[when % len(before)]
    assume(lane.at != fault)
    assert not redefinition(lines, lines[fault].pc, lines[lane.at].pc, ["R2"], lane.values).intact
    assert recompute(lines, lines[fault].pc, lines[lane.at].pc, ["R2"], lane.values).values is None
