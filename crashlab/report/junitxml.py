"""JUnit XML as the test dashboards read it, whatever the cases are of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from crashlab.report.safe import one_line

FAILURE, ERROR, SKIPPED = "failure", "error", "skipped"


class Case(NamedTuple):
    """One ``testcase``. ``tag`` is :data:`FAILURE`, :data:`ERROR`, :data:`SKIPPED` or None for one that passed.

    ``kind`` and ``message`` say why, ``body`` in full, line by line. ``seconds``: how long it took.
    """

    classname: str
    name: str
    tag: str | None = None
    kind: str | None = None
    message: str = ""
    body: Sequence[str] = ()
    seconds: float | None = None


def suite(
    name: str,
    cases: Sequence[Case],
    created: str | None,
    *,
    properties: Iterable[tuple[str, str]] = (),
    output: Iterable[str] = (),
    compact: bool = False,
) -> str:
    """A ``testsuite`` document ending in a newline. Everything in it is escaped and on lines of its own.

    ``created``: an ISO 8601 time. ``output``: lines of ``system-out``; it and the properties are left out if empty.
    ``compact`` closes a case that passed at once, for suites of many.
    """
    number = {tag: sum(case.tag == tag for case in cases) for tag in (FAILURE, ERROR, SKIPPED)}
    when = f" timestamp={_attribute(created)}" if created else ""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name={_attribute(name)} tests="{len(cases)}" failures="{number[FAILURE]}" '
        f'errors="{number[ERROR]}" skipped="{number[SKIPPED]}"{when}>',
    ]
    known = [f"    <property name={_attribute(k)} value={_attribute(v)}/>" for k, v in properties]
    lines += ["  <properties>", *known, "  </properties>"] if known else []
    for case in cases:
        lines += _case(case, compact)
    said = [_text(line) for line in output]
    lines += ["  <system-out>", *said, "  </system-out>"] if said else []
    return "\n".join([*lines, "</testsuite>"]) + "\n"


def _case(case: Case, compact: bool) -> Iterator[str]:
    time = f' time="{case.seconds:.3f}"' if case.seconds is not None else ""
    head = f"  <testcase classname={_attribute(case.classname)} name={_attribute(case.name)}{time}"
    if case.tag is None:
        yield from (f"{head}/>",) if compact else (f"{head}>", "  </testcase>")
        return
    kind = f" type={_attribute(case.kind)}" if case.kind is not None else ""
    what = f"    <{case.tag}{kind} message={_attribute(case.message)}"
    yield f"{head}>"
    if case.body:
        yield f"{what}>"
        yield from map(_text, case.body)
        yield f"    </{case.tag}>"
    else:
        yield f"{what}/>"
    yield "  </testcase>"


def _attribute(value: str) -> str:
    return f'"{escape(one_line(value))}"'


def _text(value: str) -> str:
    return escape(one_line(value), quote=False)
