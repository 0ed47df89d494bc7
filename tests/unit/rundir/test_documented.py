"""The reference page of the run directory names everything that the code writes: files, events, fields."""

from __future__ import annotations

import ast
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from crashlab.capture import nvml
from crashlab.rundir import layout
from crashlab.soak import classes, metrics
from crashlab.soak import outcome as outcomes
from crashlab.soak.outcome import Outcome
from crashlab.soak.prompts import Source
from crashlab.soak.ready import Ready
from crashlab.soak.record import Record
from crashlab.soak.replay import header_of
from crashlab.soak.shapes import Sizes
from tests.unit.capture.test_machine import FakeNvml

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "reference" / "run-directory.md").read_text()
WORDS = set(re.findall(r"`([^`\s]+)`", PAGE))
SOURCES = [
    *(
        path
        for room in ("capture", "rundir", "soak")
        for path in sorted((ROOT / "crashlab" / room).rglob("*.py"))
    ),
    *(
        ROOT / "crashlab" / "cli" / f"{name}.py"
        for name in ("run", "soak", "soakrun", "demo", "qualityclose")
    ),
]
"""The code that writes a run directory of run, soak and demo."""
WRITERS = {"event", "_process_event", "_tell", "tell"}
RECORDED = sorted((ROOT / "tests" / "data" / "runs").glob("*.tar.xz"))


def rows(heading: str) -> dict[str, str]:
    """The first column's names to the second column, of the table under a heading."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    out = {}
    for line in section.splitlines():
        cells = line.split(" | ")
        if line.startswith("| `") and len(cells) == 2:
            out.update(dict.fromkeys(re.findall(r"`([^`]+)`", cells[0]), cells[1]))
    return out


EVENTS = rows("Events")


def written() -> Iterator[tuple[str, set[str], str]]:
    """(kind, names of fields, place) of every call in the code that writes an event of a known kind."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name)):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if name in WRITERS and node.args and not isinstance(node.args[0], ast.Call):
                fields = {word.arg for word in node.keywords if word.arg is not None} - {"attempt"}
                for extra in node.args[1:]:
                    if isinstance(extra, ast.Dict):
                        fields |= {k.value for k in extra.keys if isinstance(k, ast.Constant)}
                for one in ast.walk(node.args[0]):
                    if isinstance(one, ast.Constant) and isinstance(one.value, str):
                        yield one.value, fields, f"{path.name}:{node.lineno}"


def test_every_kind_of_event_that_the_code_writes_is_documented() -> None:
    missing = sorted({f"{kind} ({place})" for kind, _, place in written() if kind not in EVENTS})
    assert not missing
    assert len({kind for kind, _, _ in written()}) > 25, "the scan finds the events at all"


def test_every_documented_event_is_written_somewhere() -> None:
    texts = [path.read_text() for path in (ROOT / "crashlab").rglob("*.py")]
    assert not [kind for kind in EVENTS if not any(f'"{kind}"' in text for text in texts)]


def test_every_field_of_an_event_is_documented_in_its_row() -> None:
    missing = [
        f"{kind}.{field} ({place})"
        for kind, fields, place in written()
        for field in sorted(fields)
        if f"`{field}`" not in EVENTS[kind]
    ]
    assert not missing


def test_fields_that_come_from_types_are_documented() -> None:
    library = FakeNvml()
    for name in ("gpu", *nvml.gpu_facts(library)[0]):
        assert f"`{name}`" in EVENTS["gpu"]
    for name in Ready._fields:
        assert f"`{name}`" in EVENTS["soak-ready"]
    for name in Outcome("x", "y").to_fields():
        assert f"`{name}`" in EVENTS[outcomes.EVENT]


def test_every_outcome_of_a_soak_is_named() -> None:
    kinds = {
        value
        for name, value in vars(outcomes).items()
        if name.isupper() and isinstance(value, str) and name != "EVENT"
    }
    assert not [kind for kind in kinds if kind not in EVENTS[outcomes.EVENT]]


def test_the_request_log_the_samples_and_their_words_are_documented() -> None:
    assert set(Record._fields) <= WORDS
    assert set(header_of("fresh", 0, Sizes(), Source())) <= WORDS
    ends = {value for name, value in vars(classes).items() if name.isupper() and isinstance(value, str)}
    assert len(ends) > 10
    assert ends <= WORDS
    roles = {role for table in (metrics.PRIMARY, metrics.SECONDARY, metrics.CONTEXT) for role in table}
    assert roles | {"health", "problem"} <= WORDS
    assert set(nvml.sample(FakeNvml())[0]) <= WORDS


def test_every_file_has_its_row() -> None:
    named = " ".join(rows("Files"))
    for name, value in vars(layout).items():
        if name.isupper() and isinstance(value, str) and name != "SCHEMA":
            assert value in named, name
    for path in (
        layout.segment_name(1, "stdout", 0),
        layout.segment_name(1, "stderr", 0),
        layout.index_name(1),
        layout.metrics_name(1),
        layout.case_folder(1),
    ):
        assert path in named


def test_every_file_name_in_the_code_that_writes_is_documented() -> None:
    named, missing = " ".join(rows("Files")), []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
                if re.fullmatch(r"[a-z-]+\.(json|jsonl|txt|log)", text) and text not in named:
                    missing.append(f"{text} ({path.name}:{node.lineno})")
    assert not missing


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.removesuffix(".tar.xz"))
def test_what_recorded_runs_hold_is_documented(path: Path) -> None:
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            if not member.name.endswith("events.jsonl"):
                continue
            file = archive.extractfile(member)
            assert file is not None
            for line in file.read().splitlines():
                record = json.loads(line)
                kind = record["event"]
                assert kind in EVENTS
                undocumented = [
                    name
                    for name in record
                    if name not in ("event", "m", "t", "attempt") and f"`{name}`" not in EVENTS[kind]
                ]
                assert not undocumented, (kind, undocumented)
