"""A sweep's result in five forms: golden, read back, and unmoved by hostile names."""

from __future__ import annotations

import json
import random
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.errors import CrashlabError, UnreadableInput, UsageError
from crashlab.facts import EnvFact
from crashlab.report.html import assets
from crashlab.report.redact import Redactor
from crashlab.report.sweep import FORMATS, from_json, redacted, render, rows
from crashlab.report.sweep.jsonform import SCHEMA
from crashlab.sweep.facts import Arm, ArmRun, Effective, Exposure, Machine, Setting, SweepResult
from crashlab.sweep.verdict import judged
from crashlab.sweep.verdict.words import events
from tests.support import golden, hostile, recorded, sweeps
from tests.unit.report.test_html import parse

ROOT = Path(__file__).resolve().parents[4]
SCHEMA_FILE = ROOT / "crashlab" / "report" / "sweep" / "sweep.schema.json"


def field() -> SweepResult:
    return SweepResult(
        "field.toml", sweeps.TWO_ARMS, tuple(sweeps.field_case(3)), created="2026-01-02T00:00:00Z"
    )


def pair() -> SweepResult:
    arms, runs = sweeps.matrix("abc", "ac", runs=3)
    return SweepResult("matrix.toml", tuple(arms), tuple(runs), (1,), finished=True)


RESULTS = {"worked": sweeps.worked, "field": field, "pair": pair}


@pytest.mark.parametrize("name", sorted(RESULTS))
@pytest.mark.parametrize("form", ["text", "md", "junit"])
def test_golden_forms(name: str, form: str, update_golden: bool) -> None:
    golden.check(f"report/sweep/{name}.{form}", render(RESULTS[name](), form), update=update_golden)


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_golden_page_in_words_and_json(name: str, update_golden: bool) -> None:
    page = render(RESULTS[name](), "html")
    golden.check(f"report/sweep/{name}.html.txt", recorded.words(page), update=update_golden)
    shown = golden.stable_json(render(RESULTS[name](), "json"))
    golden.check(f"report/sweep/{name}.json", shown, update=update_golden)


def test_golden_page_in_full(update_golden: bool) -> None:
    page = re.sub(r"crashlab \d[\w.+-]*", "crashlab <version>", render(sweeps.worked(), "html"))
    golden.check("report/sweep/worked.html", recorded.without_assets(page), update=update_golden)


def test_the_text_form_keeps_to_the_width_but_for_tables() -> None:
    for line in render(sweeps.worked(), "text", width=72).splitlines():
        assert len(line) <= 72 or line.startswith("  ")


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_json_is_valid_and_read_back_whole(name: str) -> None:
    result = judged(RESULTS[name]())
    text = render(result, "json")
    jsonschema.validate(json.loads(text), json.loads(SCHEMA_FILE.read_text()))
    assert from_json(text) == result
    for form in ("text", "md", "html", "junit"):
        assert render(from_json(text), form) == render(result, form)


def test_facts_out_of_dumps_are_kept_apart_from_those_of_the_machine() -> None:
    known = {
        "gpu": EnvFact("H200", "dump: device table"),
        "vllm": EnvFact("0.25.1", "log"),
        "driver": EnvFact("580.65", "dump: metadata"),
    }
    said = dict(rows.about(SweepResult("p", (), (), machines=(Machine("local", known),))))
    assert said["Machine local"] == "vllm 0.25.1; from its GPU dumps: gpu H200, driver 580.65"


def test_a_value_of_a_lever_that_the_arm_leaves_alone_is_read_and_not_unseen() -> None:
    seen = (
        Effective("a", "x", "log", None),
        Effective("b", None, None, None),
        Effective("c", "y", "log", None),
    )
    run = ArmRun("only", 0, "clean", effective=seen)
    (row,) = rows.arm_rows(SweepResult("p", (Arm("only", (Setting("c", "y"),), True),), (run,)))
    assert {item.lever: item.took for item in row.config} == {"a": "read", "b": "not seen", "c": "not seen"}


def test_one_arm_and_one_run_are_not_several() -> None:
    one = SweepResult("p", (Arm("only", (), True),), (ArmRun("only", 0, "clean", Exposure(5, 1.0)),))
    text = render(one, "text")
    assert "1 run of 1 arm" in text
    assert "1 arms" not in text
    assert "1 runs" not in text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "null",
        '{"schema": "crashlab.report/1"}',
        f'{{"schema": "{SCHEMA}"}}',
        f'{{"schema": "{SCHEMA}", "plan": 3}}',
    ],
)
def test_what_is_no_sweep_is_refused(text: str) -> None:
    with pytest.raises(UnreadableInput):
        from_json(text)


def test_a_format_that_does_not_exist_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no format 'pdf'"):
        render(sweeps.worked(), "pdf")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_json_is_refused_or_rendered(data: st.DataObject) -> None:
    whole = json.loads(render(sweeps.worked(), "json"))
    odd = st.one_of(st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.just(1e308), st.just(10**400),
                    st.text(max_size=5), st.just([]), st.just({}))  # fmt: skip
    place: object = whole
    for _ in range(data.draw(st.integers(1, 6))):
        if isinstance(place, dict) and place:
            key = data.draw(st.sampled_from(sorted(place)))
        elif isinstance(place, list) and place:
            key = data.draw(st.integers(0, len(place) - 1))
        else:
            break
        if data.draw(st.booleans()) or not isinstance(place[key], (dict, list)):  # type: ignore[index]
            place[key] = data.draw(odd)  # type: ignore[index]
            break
        place = place[key]  # type: ignore[index]
    with suppress(CrashlabError):
        result = from_json(json.dumps(whole))
        for form in FORMATS:
            render(result, form)
        render(result._replace(findings=None), "text")


def _with_odd_numbers(value: object, draw: Callable[[], object]) -> object:
    if isinstance(value, dict):
        return {key: _with_odd_numbers(item, draw) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_odd_numbers(item, draw) for item in value]
    return draw() if isinstance(value, (int, float)) and not isinstance(value, bool) else value


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_absurd_numbers_in_the_findings_still_render(rnd: random.Random) -> None:
    odd = (0, -1, 1, 0.5, -1e-300, 1e-300, 5e-324, 1e299, -1e299, 10**30, 1e308, None)
    whole = json.loads(render(RESULTS[rnd.choice(sorted(RESULTS))](), "json"))
    whole["findings"] = _with_odd_numbers(whole["findings"], lambda: rnd.choice(odd))
    result = from_json(json.dumps(whole))
    for form in FORMATS:
        render(result, form)


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=200))
def test_only_crashlab_errors_leave_the_reader(data: bytes) -> None:
    for content in (data, f'{{"schema":"{SCHEMA}","plan":"p","arms":'.encode() + data + b"}"):
        with suppress(CrashlabError):
            from_json(content)


# --- hostile names -----------------------------------------------------------------------------------

NUMBERS = range(len(hostile.TEXTS))


@pytest.mark.parametrize("number", NUMBERS)
def test_hostile_names_change_nothing_of_the_page_but_the_text_shown(number: int) -> None:
    soft = {"wbr"}
    plain = [t for t, _ in parse(render(sweeps.hostile("plain"), "html")).elements if t not in soft]
    page = render(sweeps.hostile(hostile.TEXTS[number]), "html")
    found = parse(page)
    assert [t for t, _ in found.elements if t not in soft] == plain
    assert hostile.MARK in "".join(found.texts)
    assert not any(name.startswith("on") for _, attrs in found.elements for name in attrs)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]", page)
    assert len(page) < 1_500_000
    page.encode("utf-8")


@pytest.mark.parametrize("number", NUMBERS)
def test_hostile_names_do_not_act_on_the_terminal(number: int) -> None:
    shown = render(sweeps.hostile(hostile.TEXTS[number]), "text")
    assert all(char == "\n" or char.isprintable() for char in shown)
    assert hostile.MARK in shown
    assert len(shown) < 100_000
    shown.encode("utf-8")


@pytest.mark.parametrize("number", NUMBERS)
def test_hostile_names_leave_junit_well_formed(number: int) -> None:
    root = ElementTree.fromstring(render(sweeps.hostile(hostile.TEXTS[number]), "junit"))
    cases = root.findall("testcase")
    assert len(cases) == int(root.get("tests") or 0) == 7
    assert root.get("failures") == "3"
    assert hostile.MARK in (cases[0].get("name") or "")


@pytest.mark.parametrize("number", NUMBERS)
def test_hostile_names_are_code_in_markdown(number: int) -> None:
    shown = render(sweeps.hostile(hostile.TEXTS[number]), "md")
    assert hostile.MARK in shown
    assert all(char == "\n" or char.isprintable() for char in shown)
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", shown, flags=re.S)
    for bad in ("<script", "<img", "<svg", "@torvalds", "javascript:", "https://", "#1 "):
        assert bad not in outside
    # a bar in a name must not begin another cell
    for table in re.findall(r"(?:^\|.*\n?)+", shown, flags=re.M):
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(cells) == 1


@pytest.mark.parametrize("number", NUMBERS)
def test_hostile_names_survive_json(number: int) -> None:
    text = render(sweeps.hostile(hostile.TEXTS[number]), "json")
    again = from_json(text)
    assert hostile.MARK in again.plan
    render(again, "json").encode("utf-8")


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=60))
def test_any_name_leaves_every_form_whole(text: str) -> None:
    result = sweeps.hostile(text)
    parse(render(result, "html"))
    ElementTree.fromstring(render(result, "junit"))
    render(result, "md")
    render(result, "text")


# --- the page ----------------------------------------------------------------------------------------


def test_the_policy_names_the_very_style_and_script_of_the_page() -> None:
    page = render(sweeps.worked(), "html")
    found = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert found is not None
    value = found.group(1).replace("&#39;", "'")
    assert value.startswith("default-src 'none'")
    for tag in ("style", "script"):
        (block,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
        assert f"{tag}-src {assets.digest(block)}" in value
    assert " style=" not in page
    assert "url(" not in assets.source("sweep.css")


def test_the_page_loads_nothing_and_can_be_read_without_a_mouse_or_eyes() -> None:
    found = parse(render(sweeps.worked(), "html"))
    assert not [t for t, a in found.elements if "src" in a or t in ("img", "iframe", "object", "embed")]
    pictures = [a for t, a in found.elements if t == "svg" and "pic" in (a.get("class") or "").split()]
    assert len(pictures) == 4
    assert all(a.get("role") == "img" and a.get("aria-label") for a in pictures)
    scrolled = [a for t, a in found.elements if a.get("class") == "scroll"]
    assert scrolled
    assert all(a.get("tabindex") == "0" and a.get("aria-label") for a in scrolled)
    levels = [int(t[1]) for t, _ in found.elements if re.fullmatch(r"h[1-6]", t)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [a["id"] for _, a in found.elements if "id" in a]
    assert len(ids) == len(set(ids))
    targets = {a["href"] for t, a in found.elements if t == "a" and (a["href"] or "").startswith("#")}
    assert {t[1:] for t in targets if t} <= set(ids)


@pytest.mark.parametrize("form", FORMATS)
def test_a_sweep_that_has_not_begun_renders(form: str) -> None:
    assert render(SweepResult("p", (), ()), form)
    assert render(SweepResult("p", (Arm("only", (Setting("x", None),), True),), ()), form)


@pytest.mark.parametrize("form", FORMATS)
def test_hundreds_of_arms_render_in_bounded_size(form: str) -> None:
    arms = tuple(Arm(f"arm{i}", (Setting("x", str(i)),), i == 0) for i in range(400))
    runs = tuple(
        ArmRun(
            a.name, 0, "fault" if i % 3 == 0 else "clean", Exposure(hours=1.0), "K" if i % 3 == 0 else None
        )
        for i, a in enumerate(arms)
    )
    assert len(render(SweepResult("p", arms, runs), form)) < 1_500_000


@pytest.mark.parametrize("form", FORMATS)
def test_caveats_and_the_number_of_arms_tried_stand_in_every_form(form: str) -> None:
    shown = " ".join(render(sweeps.worked(), form).split())
    assert "after Holm over 3 arms" in shown
    assert "A clean arm speaks for this workload, this GPU and this driver" in shown


# --- what may leave the house --------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_secrets_and_people_do_not_leave(form: str) -> None:
    secret = "Sup3rS3cretValue99"
    base = sweeps.worked()
    levers = (Setting("HF_TOKEN", secret), Setting("graphs", "FULL"))
    arms = (base.arms[0]._replace(levers=levers), *base.arms[1:])
    run = base.runs[0]._replace(
        requested=levers, note="in /home/mallory7/run on 10.1.2.3", rundir="/home/mallory7/x"
    )
    run = run._replace(machine="gpu-node-bravo")
    machines = (base.machines[0]._replace(name="gpu-node-bravo"),)
    result = judged(base._replace(arms=arms, runs=(run, *base.runs[1:]), machines=machines))
    assert secret in render(result, form) or form == "junit"
    clean = redacted(result, Redactor(users=["mallory7"]))
    assert clean.findings is not None
    shown = render(clean, form)
    for canary in (secret, "mallory7", "10.1.2.3", "bravo"):
        assert canary not in shown


def planted() -> SweepResult:
    """The sweep of a real server with a planted fault, judged anew."""
    folder = ROOT / "tests" / "data" / "sweep" / "h200"
    return judged(from_json((folder / "report.json").read_bytes())._replace(findings=None))


def test_the_headline_says_in_words_what_failed_and_the_key_stands_where_keys_are_listed() -> None:
    said = "5 faults of Warp Illegal Address in planted_epilogue_store (store, global) in 5 runs"
    key = "v1|gpu-fault|WARP_ILLEGAL_ADDRESS|planted_epilogue_store|store|global"
    result = planted()
    assert result.findings is not None
    assert result.findings.headline.startswith(said)
    page = render(result, "html").replace("<wbr>", "")
    assert re.search(f"<h1[^>]*>{re.escape(said)}", page)
    for form in ("text", "md", "json"):
        assert key in re.sub(r"\n +", "", render(result, form))


def test_at_80_columns_names_of_arms_are_broken_behind_a_sign() -> None:
    shown = render(planted(), "text", width=80)
    assert re.search(r"^  cudagraph-mode= .*\n  NONE ", shown, re.M)
    assert "NO\n" not in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("v1|gpu-fault|WARP_OUT_OF_RANGE_ADDRESS|a%7Cb|st|-", "2 faults of Warp Out-of-range Address in a|b (st)"),
        ("v1|gpu-fault|CODE_99|~0a3|-|-", "2 faults of unknown exception 99 at a PC that ends in 0a3"),
        ("v1|gpu-fault|SOME_NEW|512bytes|-|-", "2 faults of Some New in a module of 512 bytes"),
        ("v1|trap|-|-|-|-", "2 faults of trap"),
        ("v1|hang|a+b|spinning+waiting", "2 hangs in a, b (spinning, waiting)"),
        ("v1|stall|h12345678", "2 faults of key v1|stall|h12345678"),
        ("of another version", "2 faults of key of another version"),
        ("fault without a key", "2 faults without a key"),
    ],
)  # fmt: skip
def test_a_key_is_told_in_words(key: str, said: str) -> None:
    assert events(2, key) == said


@given(st.text(max_size=200))
def test_any_text_as_a_key_is_short_in_a_sentence(text: str) -> None:
    assert len(events(1, f"v1|hang|{text}")) < 220
    assert len(events(1, f"v1|gpu-fault|{text}|{text}|-|-")) < 480
