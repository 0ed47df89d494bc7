"""Issue texts: in the order of each form, below GitHub's limit, with nothing live in them."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab import facts
from crashlab.report import exposure, markdown
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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a GPU core dump (`crashlab run -- …`) and trust", "a GPU core dump (`crashlab run -- …`) and trust"),
        ("record with ``a ` b``, or not", "record with ``a ` b``, or not"),
        ("in Worker_TP…) it", "in `Worker_TP`…) it"),
        ("at STS.128 [R0], R4 (faults.cu:16)", "at `STS.128 [R0], R4` (`faults.cu:16`)"),
        ("@!P2 STG.E desc[UR6][R14.64], R11.", "`@!P2 STG.E desc[UR6][R14.64], R11`."),
        ("at CALL.REL.NOINC R6 0x7fef: a jump", "at `CALL.REL.NOINC R6 0x7fef`: a jump"),
        ("HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT, gsb0", "`HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT, gsb0`"),
        ("f<128, 8, float>(int, int) and so", "`f<128, 8, float>(int, int)` and so"),
        ("(anonymous namespace)::foo<int>(float*)", "`(anonymous namespace)::foo<int>(float*)`"),
        ("or give --env cudnn=VERSION)", "or give `--env cudnn=VERSION`)"),
        ("see 'crashlab inspect CORE params'.", "see `crashlab inspect CORE params`."),
        ("cuDNN >= 9.23.2", "cuDNN >= 9.23.2"),
        ("CUDA 13.0, SM 5, 6", "CUDA 13.0, SM 5, 6"),
    ],
)  # fmt: skip
def test_code_in_a_sentence_is_one_span(text: str, shown: str) -> None:
    assert prose(text) == shown


@pytest.mark.parametrize(
    "text", ["`a`@b", "`a``@b`c", "` @b", "STS.128 [R0]`@b`", "`@b`STS.128 [R0]", "x`` ` ``@b`"]
)
def test_backticks_in_hostile_text_let_nothing_act(text: str) -> None:
    assert "@" not in _without_spans(prose(text))


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="`@ab(#1)[R]., ST", max_size=40))
def test_no_mixture_of_backticks_and_instructions_lets_a_name_act(text: str) -> None:
    shown = prose(text)
    assert not re.search(r"[@#\[]", _without_spans(shown))
    assert shown.count("@") == text.count("@")


def test_exposure_is_told_in_units_that_people_use() -> None:
    run = facts.Run(("vllm", "serve"), exposure={"hours": 0.001349, "requests": 1, "engine_steps": 398})
    text = markdown.render(hostile.report("word")._replace(run=run))
    assert "Exposure before the failure: 5 s, 1 request, 398 engine steps." in text
    assert exposure.words({"hours": 1.04}) == "1 h 2 min"
    assert exposure.words({"hours": 0.0556, "x": 1.5}) == "3 min 20 s, 1.5 x"
    assert exposure.words({"hours": 0.0}) == "0 s"
    assert exposure.words({"hours": 1e-5}) == "0.04 s"
    assert exposure.words({"hours": 240.0}) == "240 h"
    assert exposure.words({"hours": float("nan"), "tokens": -1}) == "nan hours, -1 tokens"


def test_a_long_title_ends_at_a_word_without_a_count() -> None:
    report = hostile.report("word")
    headline = "The server stopped: " + "4 spinning, " * 30
    long = report._replace(verdict=report.verdict._replace(exception=None, headline=headline))
    title = markdown.title(long, markdown.FORMS["nvidia"])
    assert len(title) <= 200
    assert title.endswith("4 spinning…")
    assert (
        "characters"
        not in (markdown.prefilled_url(long, markdown.FORMS["nvidia"]) or "").split("title=")[1][:700]
    )
    assert len(markdown.title(long._replace(verdict=long.verdict._replace(headline="x" * 500)))) == 200


def test_reasons_that_are_sentences_have_one_stop_each() -> None:
    report = hostile.report("word")
    sure = facts.Confidence("low", ("Only a log was read.", "No dump was read.", "a clause"))
    text = markdown.render(report._replace(verdict=report.verdict._replace(confidence=sure)))
    assert "(Only a log was read; No dump was read; a clause)" in text


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
