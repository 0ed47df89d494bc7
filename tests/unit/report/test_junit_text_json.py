"""JUnit, terminal text and JSON under hostile input."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab import facts
from crashlab.errors import CrashlabError
from crashlab.report import jsonio, junit, text
from crashlab.report.safe import one_line
from tests.support import hostile


@pytest.mark.parametrize("number", range(len(hostile.TEXTS)))
def test_junit_stays_well_formed(number: int) -> None:
    root = ElementTree.fromstring(junit.render(hostile.report(hostile.TEXTS[number])))
    assert root.tag == "testsuite"
    assert root.get("failures") == "1"
    assert len(root.findall("testcase")) == int(root.get("tests") or 0) == 1
    assert hostile.MARK in "".join(root.itertext()) + str(root.find("testcase/failure").attrib)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kind", "tag"),
    [("gpu-fault", "failure"), ("hang", "failure"), ("unreadable", "error"), ("no-fault", None)],
)
def test_junit_tells_failures_from_errors_and_passes(kind: str, tag: str | None) -> None:
    report = hostile.report("x")._replace(cases=())
    report = report._replace(verdict=report.verdict._replace(kind=kind))
    case = ElementTree.fromstring(junit.render(report)).find("testcase")
    assert case is not None
    assert [child.tag for child in case] == ([tag] if tag else [])


def test_junit_has_one_case_for_each_dump_with_the_origin_first() -> None:
    cases = (facts.Case("a", "bystander", "hang", "h"), facts.Case("b", "origin", "gpu-fault", "g"))
    root = ElementTree.fromstring(junit.render(hostile.report("x")._replace(cases=cases)))
    assert [c.get("name") for c in root.findall("testcase")] == ["b", "a"]


@pytest.mark.parametrize("number", range(len(hostile.TEXTS)))
def test_nothing_acts_on_the_terminal(number: int) -> None:
    shown = text.render(hostile.report(hostile.TEXTS[number]), verbose=True)
    assert all(char == "\n" or char.isprintable() for char in shown)
    assert hostile.MARK in shown
    shown.encode("utf-8")


@pytest.mark.parametrize("number", range(len(hostile.TEXTS)))
def test_json_keeps_the_text_and_can_be_written(number: int) -> None:
    written = jsonio.dumps(jsonio.loads(json.dumps(jsonio.to_json(hostile.report(hostile.TEXTS[number])))))
    written.encode("utf-8")
    assert hostile.MARK in json.loads(written)["verdict"]["headline"]


def test_absurd_numbers_are_absent_not_an_error() -> None:
    raw = jsonio.dumps(hostile.report("x")).replace('"score": 0.5', '"score": 1e999')
    assert jsonio.loads(raw).signatures == ()
    assert jsonio.loads(raw.replace("1e999", "1" + "0" * 400)).signatures == ()


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=200))
def test_one_line_is_one_printable_line(value: str) -> None:
    shown = one_line(value)
    assert shown.isprintable()


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_only_crashlab_errors_leave_the_reader(data: bytes) -> None:
    for content in (data, b'{"schema":"crashlab.report/1","verdict":' + data + b"}"):
        with suppress(CrashlabError):
            jsonio.loads(content)
