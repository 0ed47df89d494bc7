"""The quality report in all its forms: golden files, the schema, hostile text."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from html import unescape
from importlib import resources
from itertools import pairwise
from typing import Any

import jsonschema
import pytest

from crashlab import __version__
from crashlab.demo.answers import Flaws
from crashlab.errors import UsageError
from crashlab.facts import EnvFact
from crashlab.quality.answered import Answered
from crashlab.quality.build import Heard, build_report
from crashlab.quality.facts import QualityReport
from crashlab.quality.generate import build_suite
from crashlab.quality.logprobs import Distance, Fall
from crashlab.quality.onset import Onset
from crashlab.quality.settings import Arm, Settings
from crashlab.quality.talk import Talk
from crashlab.report.html import assets
from crashlab.report.quality import FORMATS, render, rows
from crashlab.report.quality.pictures import arms_picture
from tests.support import golden, recorded
from tests.unit.quality.simulated import talk_of
from tests.unit.report.test_html import parse

SCHEMA = json.loads((resources.files("crashlab") / "report" / "quality" / "quality.schema.json").read_text())
GOOD = Flaws(accuracy=0.8, noise=0.02)
SCENES: dict[str, tuple[Flaws, Flaws | None]] = {
    "token0": (GOOD, GOOD._replace(degrade="token0")),
    "from-length": (GOOD, GOOD._replace(degrade="wrong", from_tokens=700)),
    "dropped": (GOOD, GOOD._replace(drop=0.2)),
    "alone": (GOOD, None),
}
HOSTILE = '</td><script>alert(1)</script>|`x`\x1b[31m\u202e & "quoted"'


def scene(name: str) -> QualityReport:
    first, second = SCENES[name]
    settings = Settings(build_suite(1, 70), 1, alone=second is None)
    command = ("vllm", "serve", "MODEL", "--kv-cache-dtype", "nvfp4", "--port", "8000")
    a = talk_of("A", settings, first)._replace(seconds=1.0)
    heard = [Heard(Arm("A", "http://127.0.0.1:8000", argv=(*command[:4], "fp8", *command[5:])), a)]
    if second is not None:
        b = talk_of("B", settings, second, a, seed=2)._replace(seconds=1.0)
        heard.append(
            Heard(Arm("B", "http://127.0.0.1:8000", argv=command), b, env={"arch": EnvFact("sm_120", "user")})
        )
    return build_report(settings, heard, created="2026-11-30T00:00:00Z")


REPORTS = {name: scene(name) for name in SCENES}


def stable(text: str) -> str:
    """Without the version of the tool."""
    return text.replace(f"crashlab {__version__}", "crashlab <version>")


def rounded(value: Any) -> Any:
    """The last digits of a float are the C library's own."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("form", ["text", "md", "junit", "html"])
def test_reports_read_as_recorded(name: str, form: str, update_golden: bool) -> None:
    suffix = {"text": "txt", "junit": "xml"}.get(form, form)
    text = recorded.without_assets(render(REPORTS[name], form))
    golden.check(f"quality/{name}.{suffix}", stable(text), update=update_golden)


def test_the_long_text_reads_as_recorded(update_golden: bool) -> None:
    golden.check(
        "quality/token0.verbose.txt", render(REPORTS["token0"], "text", verbose=True), update=update_golden
    )


@pytest.mark.parametrize("name", SCENES)
def test_the_json_obeys_its_schema_and_is_the_recorded_one(name: str, update_golden: bool) -> None:
    text = render(REPORTS[name], "json")
    jsonschema.validate(json.loads(text), SCHEMA)
    golden.check(
        f"quality/{name}.json",
        golden.stable_json(json.dumps(rounded(json.loads(text)))),
        update=update_golden,
    )


def test_numbers_that_json_cannot_spell_are_absent() -> None:
    report = REPORTS["token0"]
    assert report.pair is not None
    odd = report._replace(pair=report.pair._replace(distance=Distance(3, float("nan"), float("inf"), 1)))
    distance = json.loads(render(odd, "json"))["pair"]["distance"]
    assert distance == {"tokens": 3, "mean": None, "largest": None, "not_finite": 1}


def test_an_unknown_form_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no format 'pdf'"):
        render(REPORTS["alone"], "pdf")


def test_the_text_of_no_difference_never_says_equal_or_fine() -> None:
    words = render(REPORTS["dropped"], "text", verbose=True).lower()
    assert "no difference" in words
    assert "errors (not wrong answers)" in words or "reset" in words
    for claim in (" are equal:", "same quality", "is fine", "correct server", "fixed"):
        assert claim not in words.replace("it does not mean that the arms are equal:", "")


def hostile() -> QualityReport:
    """Everything that a server or a file can choose, chosen badly."""
    suite = build_suite(1, 30)
    bad = tuple(
        Answered(task.id, HOSTILE, "invalid", HOSTILE, kinds=("loop",), finish=HOSTILE)
        for task in suite.tasks
    )
    good = tuple(Answered(task.id, HOSTILE, "correct", task.answer) for task in suite.tasks)
    failed = (*good[:25], *(one._replace(outcome="error", error="http", detail=HOSTILE) for one in good[25:]))
    a = Talk("A", HOSTILE, passes=(good, failed), notes=(HOSTILE,), problem=HOSTILE)
    b = Talk("B", HOSTILE, passes=(bad,))
    heard = [Heard(Arm("A", HOSTILE), a), Heard(Arm("B", "http://b", argv=("srv", HOSTILE)), b, (HOSTILE,))]
    tasks = tuple(task._replace(question=HOSTILE, level=HOSTILE) for task in suite.tasks)
    return build_report(Settings(suite._replace(name=HOSTILE, source=HOSTILE, tasks=tasks)), heard)


def test_hostile_text_does_nothing_in_any_form() -> None:
    report = hostile()
    for form in FORMATS:
        text = render(report, form, verbose=True)
        if form != "json":
            assert "\x1b" not in text
            assert "\u202e" not in text
    tags = [tag for tag, _ in parse(render(report, "html")).elements]
    assert tags.count("script") == tags.count("style") == tags.count("html") == 1
    ElementTree.fromstring(render(report, "junit"))
    jsonschema.validate(json.loads(render(report, "json")), SCHEMA)
    for line in render(report, "md").splitlines():
        assert "<script>" not in line.replace("`", "") or "`" in line


def test_every_row_of_a_markdown_table_has_as_many_cells_as_its_head() -> None:
    lines = render(hostile(), "md").splitlines()
    width = 0
    for line in lines:
        bars = line.replace("\\|", "").count("|")
        if not line.startswith("|"):
            width = 0
        elif width:
            assert bars == width, line
        else:
            width = bars


def test_the_policy_names_the_very_style_and_script_of_the_page() -> None:
    page = render(REPORTS["token0"], "html")
    for mark in ("http-equiv", "src=", "@import", "url("):
        assert page.count(mark) == (1 if mark == "http-equiv" else 0)
    said = unescape(page)
    assert "default-src 'none'" in said
    for tag in ("style", "script"):
        (block,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
        assert f"{tag}-src {assets.digest(block)}" in said


@pytest.mark.parametrize("name", SCENES)
def test_the_page_can_be_read_without_a_mouse_or_eyes(name: str) -> None:
    found = parse(render(REPORTS[name], "html"))
    scrolled = [a for t, a in found.elements if a.get("class") == "scroll"]
    assert scrolled
    assert all(a.get("tabindex") == "0" and a.get("aria-label") for a in scrolled)
    assert all(a.get("scope") for t, a in found.elements if t == "th")
    levels = [int(t[1]) for t, _ in found.elements if re.fullmatch(r"h[1-6]", t)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [a["id"] for _, a in found.elements if "id" in a]
    assert len(ids) == len(set(ids))
    links = [a["href"] for t, a in found.elements if t == "a"]
    assert {link[1:] for link in links if link and link.startswith("#")} <= set(ids)
    sections = [a["id"] for t, a in found.elements if t == "section"]
    assert [link[1:] for link in links[1 : 1 + len(sections)] if link] == sections


def test_the_picture_shows_each_pass_on_one_scale_with_words_for_screen_readers() -> None:
    picture = str(arms_picture(REPORTS["dropped"]))
    assert picture.count('class="whisker"') == 9
    assert "B1: " in picture
    assert "error of transport" in picture
    assert arms_picture(REPORTS["alone"]._replace(arms=())) is None


def test_words_of_differences() -> None:
    assert rows.points(0.0) == "as many right answers as"
    assert rows.points(0.031) == "3.1 points fewer right answers than"
    assert rows.points(-0.5) == "50.0 points more right answers than"
    assert rows.share(None) == "-"


def test_log_probabilities_are_told_in_words() -> None:
    pair = REPORTS["token0"].pair
    assert pair is not None
    told = pair._replace(distance=Distance(669, 1.1, 6.94, 2), fall=Fall(32, 0.475, 30, 2))
    words = rows.comparison(told)
    assert (
        "log-probability of 669 fixed tokens: mean distance 1.1, largest 6.94; 2 are NaN or infinite"
        in words[-2]
    )
    assert words[-1] == (
        "32 right answers: B1 thinks 30 less likely and 2 more likely than A2, on average 0.475 nats a token less"
    )
    assert rows.comparison(pair._replace(fall=Fall(32, 0.0, 0, 0)))[-1] == rows.comparison(pair)[-1]


def test_a_border_without_a_good_side_is_told() -> None:
    assert (
        rows.onset("B", Onset("concurrency", None, 4))
        == "Arm B is bad from the smallest step on: 4 at a time."
    )
