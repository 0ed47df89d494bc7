"""Two crashes: the same bug, probably, different, or not to be told."""

from __future__ import annotations

import pytest

from crashlab import facts
from crashlab.report.compare import compare, render
from tests.support import hostile


def base() -> facts.Report:
    report = hostile.report("x")
    return report._replace(signature_key=facts.SignatureKey("coarse-1", "fine-1"))


def changed(**fields: object) -> facts.Report:
    report = base()
    verdict = report.verdict._replace(**fields)
    return report._replace(verdict=verdict, signature_key=facts.SignatureKey("coarse-2", "fine-2"))


def test_equal_fine_keys_are_the_same_bug() -> None:
    assert compare(base(), base()).answer == "same"


def test_equal_coarse_keys_are_probably_the_same() -> None:
    other = base()._replace(signature_key=facts.SignatureKey("coarse-1", "fine-2"))
    assert compare(base(), other).answer == "probably-same"


def test_equal_coarse_keys_with_another_address_pattern_cannot_be_told() -> None:
    address = facts.Address("recovered", facts.Hex(1), kind="misaligned", space="global")
    other = base()._replace(
        verdict=base().verdict._replace(address=address),
        signature_key=facts.SignatureKey("coarse-1", "fine-2"),
    )
    assert compare(base(), other).answer == "cannot-tell"


def test_a_name_alone_is_no_cause() -> None:
    other = changed(
        instruction=facts.Instruction("STG.E [R2], R4", access="store", space="global"), source=None
    )
    comparison = compare(base(), other)
    assert comparison.answer == "cannot-tell"
    assert "a name alone is no cause" in comparison.reasons[0]


def test_the_same_line_and_address_pattern_in_another_build_is_probably_the_same() -> None:
    assert compare(base(), changed(instruction=facts.Instruction("ST.E [R2], R4"))).answer == "probably-same"


@pytest.mark.parametrize("kind", ["hang", "device-assert"])
def test_other_kinds_are_other_bugs(kind: str) -> None:
    assert compare(base(), changed(kind=kind)).answer == "different"


def test_other_kernels_are_other_bugs() -> None:
    comparison = compare(base(), changed(kernel=facts.Kernel("other", "other")))
    assert comparison.answer == "different"
    assert "kernel" in comparison.reasons[0]


@pytest.mark.parametrize("kind", ["unreadable", "no-fault", "inconclusive"])
def test_a_report_without_a_failure_cannot_be_compared(kind: str) -> None:
    assert compare(changed(kind=kind), base()).answer == "cannot-tell"


def test_unnamed_code_cannot_be_compared() -> None:
    assert compare(base(), changed(kernel=None, function=None)).answer == "cannot-tell"


def test_only_differences_of_the_environment_are_shown() -> None:
    known = {"torch": "2.10", "driver": "580", "dump_time": "1"}
    a = base()._replace(environment={name: facts.EnvFact(value, "s") for name, value in known.items()})
    b = base()._replace(
        environment={"torch": facts.EnvFact("2.11", "s"), "driver": facts.EnvFact("580", "s")}
    )
    assert [p.what for p in compare(a, b).environment] == ["torch"]
    shown = render(compare(a, b), "a.json", "b.json")
    assert "≠ torch: A 2.10" in shown


@pytest.mark.parametrize("number", range(len(hostile.TEXTS)))
def test_nothing_acts_on_the_terminal(number: int) -> None:
    report = hostile.report(hostile.TEXTS[number])
    shown = render(compare(report, base()), hostile.TEXTS[number], "b")
    assert all(char == "\n" or char.isprintable() for char in shown)
