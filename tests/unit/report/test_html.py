"""The HTML report: whole, self-contained, unmoved by hostile text, and legible by its own colours."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab import facts
from crashlab.report import html, jsonio
from crashlab.report.html import assets
from crashlab.report.timeline import Event, Sample, Timeline
from tests.support import hostile

VOID = {"meta", "link", "br", "wbr", "rect", "line", "path", "polyline"}
TIMELINE = Timeline(
    tuple(Sample(t, 100.0 - t, 4, t / 100, "STALLED" if t > 60 else "PROGRESSING") for t in range(0, 100, 5)),
    (Event(60.0, "no progress", "fault"), Event(70.0, "odd", "kind-of-its-own")),
)


class _Page(HTMLParser):
    """Collects elements, attributes and text; checks that tags are balanced."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("svg", "g", "text") or tag not in VOID:
            assert self.stack, f"</{tag}> without a start"
            assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def parse(page: str) -> _Page:
    found = _Page()
    found.feed(page)
    found.close()
    assert not found.stack
    return found


def skeleton(page: str) -> list[str]:
    return [tag for tag, _ in parse(page).elements]


@pytest.mark.parametrize("number", range(len(hostile.TEXTS)))
def test_hostile_text_changes_nothing_but_the_text_shown(number: int) -> None:
    plain = skeleton(html.render(hostile.report("plain"), TIMELINE))
    page = html.render(hostile.report(hostile.TEXTS[number]), TIMELINE)
    found = parse(page)
    # marks on registers and strong opcodes depend on the instruction's text, nothing else does
    soft = {"b", "mark", "a", "p", "wbr"}
    assert [t for t, _ in found.elements if t not in soft] == [t for t in plain if t not in soft]
    assert len([t for t, _ in found.elements if t == "script"]) == 1
    assert hostile.MARK in "".join(found.texts)
    assert not any(name.startswith("on") for _, attrs in found.elements for name in attrs)
    assert len(page) < 1_500_000
    page.encode("utf-8")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]", page)


def test_links_lead_only_to_https_or_into_the_page() -> None:
    for text in hostile.TEXTS:
        for tag, attrs in parse(html.render(hostile.report(text))).elements:
            target = attrs.get("href")
            if target is not None:
                assert target.startswith(("#", "https://")) or (tag, target) == ("link", "data:,")


def test_references_become_links_when_they_are_unmistakable() -> None:
    texts = ("vllm-project/vllm#35566", "see https://docs.nvidia.com/a?b=1.", "javascript:alert(1)")
    match = facts.SignatureMatch("x", "t", 2.0, "match", references=texts)
    page = html.render(hostile.report("plain")._replace(signatures=(match,)))
    assert 'href="https://github.com/vllm-project/vllm/issues/35566"' in page
    assert 'href="https://docs.nvidia.com/a?b=1"' in page
    assert 'href="javascript' not in page
    assert "score 1.00" in page


def test_the_policy_names_the_very_style_and_script_of_the_page() -> None:
    page = html.render(hostile.report("plain"))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    value = policy.group(1).replace("&#39;", "'")
    for tag in ("style", "script"):
        blocks = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
        assert len(blocks) == 1
        assert f"{tag}-src {assets.digest(blocks[0])}" in value
    assert value.startswith("default-src 'none'")
    assert " style=" not in page


def test_nothing_is_loaded_from_anywhere() -> None:
    found = parse(html.render(hostile.report("plain"), TIMELINE))
    assert not [
        tag for tag, attrs in found.elements if "src" in attrs or tag in ("img", "iframe", "object", "embed")
    ]
    assert "url(" not in assets.source("report.css")
    assert "@import" not in assets.source("report.css")


def test_every_picture_says_in_words_what_it_shows() -> None:
    found = parse(html.render(hostile.report("plain"), TIMELINE))
    pictures = [
        attrs for tag, attrs in found.elements if tag == "svg" and "pic" in (attrs.get("class") or "").split()
    ]
    assert len(pictures) >= 4
    assert all(attrs.get("role") == "img" and attrs.get("aria-label") for attrs in pictures)


def test_headings_follow_in_order_and_ids_are_unique() -> None:
    found = parse(html.render(hostile.report("plain"), TIMELINE))
    levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [attrs["id"] for _, attrs in found.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    targets = {
        attrs["href"] for tag, attrs in found.elements if tag == "a" and (attrs["href"] or "").startswith("#")
    }
    assert {t[1:] for t in targets if t} <= set(ids)


def test_a_report_with_nothing_but_its_required_parts_renders() -> None:
    bare = facts.Report(
        "crashlab.report/1", facts.Tool("crashlab", "1"), "", (), facts.Verdict("new-kind", "Something")
    )
    page = html.render(bare, Timeline())
    assert "Something" in page
    parse(page)


def test_a_report_read_back_from_its_json_gives_the_same_page() -> None:
    report = hostile.report("plain")
    assert html.render(jsonio.loads(jsonio.dumps(report))) == html.render(report)


def test_an_old_report_without_gpus_still_shows_the_faulting_sms() -> None:
    page = html.render(hostile.report("plain")._replace(gpus=()))
    assert "2 reported the fault (SM 1, 2)" in page


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=200))
def test_any_text_leaves_the_page_balanced(text: str) -> None:
    parse(html.render(hostile.report(text)))


# --- colours ---------------------------------------------------------------------------------------


def _variables(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([a-z0-9-]+):\s*(#[0-9a-f]{3,6})", block))


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _themes() -> list[dict[str, str]]:
    css = assets.source("report.css")
    blocks = re.findall(r"(?:^|\n)[^\n{]*(?:\{[^\n{]*)?\{\s*(--bg.*?)\}", css, re.S)
    return [_variables(block) for block in blocks]


def test_light_dark_and_chosen_dark_define_the_same_colours() -> None:
    light, dark, chosen = _themes()[:3]
    assert set(light) == set(dark) == set(chosen)
    assert dark == chosen


@pytest.mark.parametrize("theme", [0, 1])
def test_text_has_the_contrast_that_wcag_aa_asks(theme: int) -> None:
    colours = _themes()[theme]
    pairs = [
        (ink, ground) for ink in ("ink", "soft", "link", "bad", "ok", "warn") for ground in ("bg", "card")
    ]
    pairs += [
        ("bad", "bad-soft"),
        ("ink", "bad-soft"),
        ("ink", "warn-soft"),
        ("mark-ink", "mark"),
        ("soft", "track"),
        ("ink", "track"),
    ]
    pairs += [("ink", f"k{i}") for i in range(6)] + [("card", "bad"), ("card", "warn"), ("ink", "idle")]
    for ink, ground in pairs:
        assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    for shape, ground in (
        ("bad", "track"),
        ("ok", "track"),
        ("warn", "track"),
        ("ink", "mem"),
        ("curve", "track"),
    ):
        assert contrast(colours[shape], colours[ground]) >= 3.0, (shape, ground)
