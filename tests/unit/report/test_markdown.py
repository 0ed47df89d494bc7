"""Issue texts: in the order of each form, below GitHub's limit, with nothing live in them."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab import facts
from crashlab.report import markdown
from crashlab.report.markdown.escape import bullets, code, fenced, prose
from crashlab.report.markdown.render import LIMIT
from tests.support import hostile

FORM_NAMES = sorted(markdown.FORMS)


def outside_code(text: str) -> str:
    """What is left when fenced blocks, code spans and our own comments are removed, as CommonMark reads them."""
    out, fence = [], ""
    for line in text.split("\n"):
        ticks = re.match(r"`{3,}", line)
        if fence:
            if line.rstrip() == fence:
                fence = ""
            continue
        if ticks and "`" not in line[ticks.end() :]:
            fence = ticks.group()
            continue
        out.append(_without_spans(line))
    assert not fence, "a code block was left open"
    return re.sub(r"<!--.*?-->", "", "\n".join(out), flags=re.S)


def _without_spans(line: str) -> str:
    out, at = [], 0
    while at < len(line):
        run = re.compile(r"`+").search(line, at)
        if run is None:
            out.append(line[at:])
            break
        out.append(line[at : run.start()])
        close = next(
            (m for m in re.finditer(r"`+", line[run.end() :]) if len(m.group()) == len(run.group())), None
        )
        if close is None:
            out.append(run.group())
            at = run.end()
        else:
            at = run.end() + close.end()
    return "".join(out)


LIVE = re.compile(
    r"(?<![\w\\])@\w|#\d|\bGH-\d|://|\bwww\.|<[a-zA-Z/!]|!\[|\]\(|:\w+:|(?<![0-9a-zA-Z])[0-9a-f]{7,40}(?![0-9a-zA-Z])"
)


@pytest.mark.parametrize("name", FORM_NAMES)
@pytest.mark.parametrize("number", range(len(hostile.TEXTS)))
def test_nothing_of_hostile_text_is_live_outside_code(name: str, number: int) -> None:
    text = markdown.render(hostile.report(hostile.TEXTS[number]), markdown.FORMS[name])
    loose = outside_code(text)
    assert not LIVE.findall(loose)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b]", text)
    assert len(text) <= LIMIT
    assert hostile.MARK in text
    headings = [line for line in loose.split("\n") if line.startswith("### ")]
    assert headings == [f"### {field.label}" for field in markdown.FORMS[name].fields]


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_prose_shows_every_word_and_lets_none_act(text: str) -> None:
    shown = prose(text)
    assert "\n" not in shown
    assert not LIVE.findall(_without_spans(shown))


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="`a b\n", max_size=60))
def test_code_spans_and_blocks_cannot_be_ended_by_their_content(text: str) -> None:
    assert _without_spans(code(text)).strip("(empty)") == ""
    assert outside_code(fenced(text.split("\n"))).strip() == ""


def test_plain_words_stay_plain_and_names_become_code() -> None:
    assert prose("Warp Illegal Address in f<1, 2>(int) at 0x10: 4 bytes past.") == (
        "Warp Illegal Address in `f<1, 2>(int)` at 0x10: 4 bytes past."
    )
    assert prose("1. not a list") == "1\\. not a list"
    assert prose("- not a list") == "\\- not a list"
    assert bullets(["one", "two"]) == "- one\n- two"


def test_a_giant_report_is_cut_in_a_fixed_order_and_says_where() -> None:
    report = hostile.report("kernel_name_" + "x" * 400)
    lane = facts.LaneAddress(1, facts.Dim3(1, 0, 0), facts.Hex(99), True)
    line = facts.WindowLine(facts.Hex(1), "NOP " + "n" * 300, False, "note " + "n" * 300)
    instruction = facts.Instruction("NOP", window=(line,) * 120)
    verdict = report.verdict._replace(
        address=report.verdict.address._replace(per_lane=(lane,) * 64) if report.verdict.address else None,
        instruction=instruction,
    )
    big = report._replace(verdict=verdict, provenance=("why " * 100,) * 60, faults=report.faults * 8)
    text = markdown.render(big, markdown.FORMS["vllm"])
    assert len(text) <= LIMIT
    cuts = re.findall(r"_Cut here to keep this text short enough: [\d,]+ characters of ([^.]+)\.", text)
    assert cuts[:1] != []
    assert "what was inferred" in cuts
    shorter = markdown.render(big, markdown.FORMS["vllm"], limit=20_000)
    assert len(shorter) <= 20_000
    more = re.findall(r"_Cut here to keep this text short enough: [\d,]+ characters of ([^.]+)\.", shorter)
    assert set(cuts) <= set(more)
    tiny = markdown.render(big, markdown.FORMS["vllm"], limit=3_000)
    assert len(tiny) <= 3_000
    outside_code(tiny)


def test_the_title_names_exception_function_opcode_and_architecture() -> None:
    report = hostile.report("word")
    assert markdown.title(report, markdown.FORMS["vllm"]) == "[Bug]: word in word at word (word)"
    assert len(markdown.title(hostile.report("long " * 100))) < 300


@pytest.mark.parametrize("name", FORM_NAMES)
def test_the_prefilled_address_opens_the_form_and_fits(name: str) -> None:
    for text in ("word", *hostile.TEXTS):
        url = markdown.prefilled_url(hostile.report(text), markdown.FORMS[name])
        assert url is not None
        assert len(url) <= 7000
        parts = urlsplit(url)
        assert parts.scheme == "https"
        assert url.isascii()
        query = parse_qs(parts.query)
        assert "title" in query
        allowed = {"title", "template", *(f.id for f in markdown.FORMS[name].fields if f.id)}
        assert set(query) <= allowed
    assert markdown.prefilled_url(hostile.report("word"), markdown.PLAIN) is None


def test_what_a_person_must_add_is_said() -> None:
    text = markdown.render(hostile.report("word"), markdown.FORMS["llama.cpp"])
    assert "To be added by a person" in text
    assert "nothing was sent anywhere" in text
