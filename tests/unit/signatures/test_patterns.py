from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.errors import CrashlabError
from crashlab.signatures import catalogue
from crashlab.signatures.logtext import MAX_LINE, LogText
from crashlab.signatures.patterns import MAX_SUBJECT, Pattern, exact, folded
from tests.unit.signatures.material import SEED_KERNEL


def test_a_gap_means_later_in_the_same_text() -> None:
    pattern = exact(r"cudnn_generated_fort_native_sm12\d_matMul.*knob_\d+_")
    assert pattern.search(SEED_KERNEL)
    assert not pattern.search("knob_3_ cudnn_generated_fort_native_sm120_matMul_")


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("^STS", "STS.128", True),
        ("^STS", "LDSTS", False),
        (r"^LD\b", "LD.E", True),
        (r"^LD\b", "LDG.E", False),
        ("abc|def", "xdefx", True),
        (r"a(b|c)?d", "ad", True),
        (r"a(b|c)?d", "abcd", False),
        (r"x\[\d+\]", "x[12]", True),
        (r"[^]a]x", "bx", True),
        (r"[^]a]x", "]x", False),
        (r"[\[\]]b", "[b", True),
        (r"a{2,3}b", "aab", True),
        (r"a{2,3}b", "ab", False),
        (r"a{,2}b$", "b", True),
        (r"a{2,}b", "aaab", True),
        (r"foo.*?bar", "foo bar", True),
        ("a.c", "abc", True),
        (r"mul_mat_q<\(ggml_type\)8, ?128", "void mul_mat_q<(ggml_type)8, 128, false>(x)", True),
    ],
)
def test_the_subset_reads_like_regular_expressions(pattern: str, text: str, expected: bool) -> None:
    assert exact(pattern).search(text) is expected


def test_case_is_ignored_only_when_asked() -> None:
    assert folded("NVRM: Xid").search("nvrm: xid")
    assert not exact("NVRM: Xid").search("nvrm: xid")
    assert folded(r"\S+ERR").search("an_error")  # \S keeps its meaning


@pytest.mark.parametrize(
    "bad",
    [
        "(a+)+",
        "(ab)*",
        "(a|b){3}",
        r"(a)\1",
        "(?=x)y",
        "(?P<n>x)",
        "(?i)x",
        "a**",
        "a+?",
        "x{3,2}",
        "x{1,900}",
        "a{x",
        "[abc",
        "(abc",
        "abc)",
        "((((((a))))))",
        r"\d+\w+\s*x",
        "*a",
        ".*",
        ".*.*",
        "",
        "x" * 500,
        r"\x41",
        "\\",
        "^+a",
        "a|",
        r"[\d",
        "[z-a]",
    ],
)
def test_everything_that_could_blow_up_or_match_anything_is_refused(bad: str) -> None:
    with pytest.raises(CrashlabError):
        exact(bad)


@settings(max_examples=300)
@given(
    st.text(alphabet=r"ab1_.*+?{}[]()|\dws^$,-:<> ", max_size=40), st.text(alphabet="ab1_ :<", max_size=60)
)
def test_any_pattern_is_refused_or_matches_in_bounded_time(pattern: str, subject: str) -> None:
    try:
        made = exact(pattern)
    except CrashlabError:
        return
    assert made.search(subject) in (True, False)
    for branch in made.branches:
        for piece in branch.pieces:
            assert not re.search(r"(?<!\\)[*+](?![^\[]*\])", re.sub(r"\\.", "", piece)), "an unbounded repeat"


@given(st.text(alphabet="abcXYZ_09", min_size=3, max_size=20), st.text(max_size=30), st.text(max_size=30))
def test_a_literal_is_found_wherever_it_stands(literal: str, before: str, after: str) -> None:
    assert exact(literal).search(before + literal + after)


def _catalogue_patterns() -> list[Pattern]:
    found = []
    for entry in catalogue.bundled():
        criteria = [criterion for picture in entry.pictures for criterion in picture.criteria] + [
            criterion
            for theory in entry.theories
            for clause in (*theory.supporting, *theory.against)
            for criterion in (*clause.when, *clause.unless)
        ]
        for criterion in criteria:
            if criterion.key in ("kernel", "function", "family", "opcode"):
                found += [exact(want) for want in criterion.want]
            elif criterion.key in ("log", "log_all", "run"):
                found += [folded(want) for want in criterion.want]
    return found


def test_no_catalogue_pattern_is_slow_on_text_made_to_hurt_it() -> None:
    patterns = _catalogue_patterns()
    assert len(patterns) > 200
    slow = []
    for pattern in patterns:
        for branch in pattern.branches:
            literals = "".join(branch.literals)
            for filler in ("1", "a", "a1_", "0x1", " ", "(", "".join(branch.literals) or "x"):
                subject = literals + (filler * MAX_SUBJECT)[:MAX_SUBJECT]
                start = time.perf_counter()
                pattern.search(subject)
                if time.perf_counter() - start > 0.25:
                    slow.append(pattern.text)
    assert not slow


def test_a_log_is_bounded_and_keeps_its_ends() -> None:
    log = LogText([f"line {number} " + "x" * 3000 for number in range(4000)])
    assert len(log.lines[0]) == MAX_LINE
    assert sum(map(len, log.lines)) <= 4 << 20
    assert log.lines[0].startswith("line 0 ")
    assert log.lines[-1].startswith("line 3999 ")


def test_a_line_is_found_as_it_was_written() -> None:
    log = LogText(["first", "", "CUDA Error HERE", "CUDA Error HERE", "last"])
    assert log.lines == ("first", "CUDA Error HERE", "last")
    assert log.find(folded("cuda error")) == "CUDA Error HERE"
    assert log.find(folded("cuda fault")) is None
    assert list(log.lines_with("last")) == ["last"]
    assert not LogText([])


def test_lines_that_grow_in_lower_case_do_not_shift_the_others() -> None:
    log = LogText(["İİİİİ some text", "the Needle line"])
    assert log.find(folded("needle line")) == "the Needle line"


@given(st.lists(st.text(max_size=40), max_size=20))
def test_any_lines_make_a_log(lines: list[str]) -> None:
    log = LogText(lines)
    assert log.find(folded("needle in here")) is None or any("needle" in line.lower() for line in lines)
