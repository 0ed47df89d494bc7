"""report.json: the schema that ships is the one the types have; reading back loses nothing."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crashlab
from crashlab import facts
from crashlab.errors import CrashlabError, UnreadableInput
from crashlab.report import build, jsonio
from crashlab.report.options import AnalyzeOptions
from tests.support import corpus

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads((ROOT / "crashlab" / "report" / "report.schema.json").read_text())
FAST = AnalyzeOptions(fast=True)


def test_the_schema_itself_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", corpus.names(readable=False))
def test_every_report_follows_the_schema_and_reads_back_the_same(name: str) -> None:
    report = build.analyze([corpus.path(name)], FAST)
    text = jsonio.dumps(report)
    jsonschema.validate(json.loads(text), SCHEMA)
    assert jsonio.dumps(jsonio.loads(text)) == text


def test_the_schema_refuses_a_decimal_address() -> None:
    value = json.loads(jsonio.dumps(build.analyze([corpus.path("oob_load")], FAST)))
    value["verdict"]["pc"] = 12345
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, SCHEMA)


def test_absent_is_null_and_never_zero_or_empty() -> None:
    value = json.loads(jsonio.dumps(build.analyze([corpus.path("oob_store")], FAST)))
    assert value["verdict"]["where"]["warp"] is None
    assert value["verdict"]["kernel"]["launch"] is None


def test_hypotheses_use_the_words_of_the_contract() -> None:
    hypothesis = facts.Hypothesis("cause", ("a",), ("b",), ("c",))
    assert jsonio.to_json(hypothesis) == {"cause": "cause", "for": ["a"], "against": ["b"], "unknown": ["c"]}


def test_a_report_of_another_version_is_read_by_what_is_known(tmp_path: Path) -> None:
    raw = {
        "schema": "crashlab.report/1", "tool": {"name": "crashlab", "version": "9"}, "created": "2030-01-01T00:00:00Z",
        "inputs": [{"path": "x"}], "verdict": {"kind": "new-kind", "headline": "h", "pc": "0x10", "novel": [1]},
        "future": {"a": 1},
    }  # fmt: skip
    target = tmp_path / "report.json"
    target.write_text(json.dumps(raw))
    report = crashlab.load_report(target)
    assert report.verdict.kind == "new-kind"
    assert report.verdict.pc == facts.Hex(16)
    assert report.verdict.kernel is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("not json", "not JSON"),
        ("[]", "not a crashlab report"),
        ('{"schema": "other/1"}', "not a crashlab report"),
        ('{"schema": "crashlab.report/2"}', "crashlab.report/2"),
        ('{"schema": "crashlab.report/1"}', "lacks its required parts"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_report_is_refused_with_a_hint(text: str, says: str) -> None:
    with pytest.raises(UnreadableInput, match=says) as caught:
        jsonio.loads(text)
    assert caught.value.hint


def test_a_missing_report_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match=r"nothing\.json"):
        crashlab.load_report(tmp_path / "nothing.json")


_KEYS = ["kind", "pc", "kernel", "name", "window", "for", "threads", "x"]
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4),
    max_leaves=20,
)


@given(_JSON)
def test_any_json_ends_in_a_report_or_a_crashlab_error(value: object) -> None:
    tool = {"name": "c", "version": "1"}
    raw = {"schema": "crashlab.report/1", "tool": tool, "created": "x", "inputs": [], "verdict": value}
    try:
        report = jsonio.loads(json.dumps(raw))
    except CrashlabError:
        return
    assert isinstance(report.verdict.kind, str)
