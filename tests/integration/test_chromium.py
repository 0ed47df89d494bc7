"""The HTML report in a real browser: nothing fails, nothing leaves, nothing overflows, all is reachable."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from crashlab import facts
from crashlab.report import html
from crashlab.report.timeline import Event, Sample, Timeline
from tests.support import browser, hostile, recorded

PROGRAM = browser.find()
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium here: install chromium or set CRASHLAB_CHROMIUM"),
]

DUMPS = ("shared_oob", "torch_triton", "seed_sm120", "barrier_hang", "graph_full", "misaligned", "cut_short")
SIZES = (360, 1440)
TIMELINE = Timeline(
    tuple(
        Sample(float(t), 900.0 if t < 600 else 0.0, 32, t / 900, "PROGRESSING" if t < 600 else "STALLED")
        for t in range(900)
    ),
    (Event(600.0, "no progress", "fault"),),
)

PROBES = (Path(__file__).resolve().parents[1] / "data" / "html" / "probes.js").read_text()


def probe(running: browser.Browser, name: str) -> Any:
    return running.evaluate(f"(() => {{ {PROBES}\n return {name}(); }})()")


@pytest.fixture(scope="module")
def chromium() -> Iterator[browser.Browser]:
    assert PROGRAM is not None
    with browser.Browser(PROGRAM) as running:
        yield running


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    reports: dict[str, facts.Report] = {name: recorded.report(name) for name in DUMPS}
    reports["every section"] = hostile.report("word")
    reports["long names"] = hostile.report("a_very_long_name_without_any_blank_" * 20)
    out = {}
    for name, report in reports.items():
        out[name] = folder / f"{name}.html"
        out[name].write_text(html.render(report, TIMELINE if " " in name else None), encoding="utf-8")
    for number, text in enumerate(hostile.TEXTS):
        out[f"hostile {number}"] = folder / f"hostile-{number}.html"
        out[f"hostile {number}"].write_text(html.render(hostile.report(text), TIMELINE), encoding="utf-8")
    return out


@pytest.mark.parametrize("name", [*DUMPS, "every section", "long names"])
@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_fails_leaves_or_overflows(
    chromium: browser.Browser, pages: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    chromium.open(pages[name], width=width, dark=dark)
    assert probe(chromium, "overflowing") == []
    assert probe(chromium, "faint") == []
    if name != "long names":
        assert probe(chromium, "overlapping") == []
    assert chromium.problems() == []


@pytest.mark.parametrize("number", range(len(hostile.TEXTS)))
def test_hostile_text_runs_nothing_and_loads_nothing(
    chromium: browser.Browser, pages: dict[str, Path], number: int
) -> None:
    chromium.open(pages[f"hostile {number}"], width=360)
    assert chromium.evaluate("document.scripts.length") == 1
    assert chromium.evaluate("document.images.length") == 0
    assert probe(chromium, "overflowing") == []
    assert chromium.problems() == []


def test_the_policy_stops_a_script_that_is_not_ours(
    chromium: browser.Browser, pages: dict[str, Path]
) -> None:
    chromium.open(pages["every section"])
    chromium.evaluate(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.owned = 1';"
        " document.body.append(s); })()"
    )
    assert chromium.evaluate("window.owned === undefined")
    blocked = "new Promise(done => fetch('https://example.org/').then(() => done(false), () => done(true)))"
    assert chromium.evaluate(blocked)


def test_tab_walks_through_the_page_in_reading_order(
    chromium: browser.Browser, pages: dict[str, Path]
) -> None:
    chromium.open(pages["every section"], height=20_000)
    chromium.press("Tab")
    assert probe(chromium, "focused")["skip"]
    tops = []
    for _ in range(200):
        chromium.press("Tab")
        found = probe(chromium, "focused")
        if found["nothing"]:
            break
        assert found["outline"] != "none", found
        if found["inMain"]:
            tops.append(found["top"])
    assert len(tops) > 15
    # within a line the order is left to right: a button may stand a little higher than the text before it
    assert all(after >= before - 40 for before, after in pairwise(tops))


def test_a_screen_reader_hears_names_of_pictures_tables_and_regions(
    chromium: browser.Browser, pages: dict[str, Path]
) -> None:
    chromium.open(pages["every section"])
    nodes = chromium.call("Accessibility.getFullAXTree")["nodes"]
    seen: dict[str, list[str]] = {}
    for node in nodes:
        if not node.get("ignored"):
            role = str(node["role"]["value"])
            seen.setdefault(role, []).append(str(node.get("name", {}).get("value", "")))
    for role in ("image", "img"):
        assert all(seen.get(role, ["named"]))
    assert len(seen.get("image", []) + seen.get("img", [])) >= 4
    assert all(seen["region"])
    assert all(seen["button"])
    assert all(seen["link"])
    assert {"main", "navigation", "banner", "contentinfo"} <= set(seen)


def test_the_timeline_zooms_and_comes_back(chromium: browser.Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["every section"])
    box = "document.querySelector('.plot').getAttribute('viewBox')"
    first = chromium.evaluate(box)
    chromium.evaluate("document.querySelector('[data-zoom=in]').click()")
    zoomed = chromium.evaluate(box)
    assert float(zoomed.split()[2]) == float(first.split()[2]) / 2
    chromium.evaluate("document.querySelector('[data-zoom=right]').click()")
    assert float(chromium.evaluate(box).split()[0]) > float(zoomed.split()[0])
    assert chromium.evaluate("document.querySelectorAll('.tick')[0].textContent") != "0:00:00"
    chromium.evaluate("document.querySelector('[data-zoom=all]').click()")
    assert [float(v) for v in chromium.evaluate(box).split()] == [float(v) for v in first.split()]


def test_dark_and_light_can_be_chosen(chromium: browser.Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["every section"], dark=False)
    colour = "getComputedStyle(document.body).backgroundColor"
    light = chromium.evaluate(colour)
    chromium.evaluate("document.getElementById('theme').click()")
    assert chromium.evaluate(colour) != light
    assert probe(chromium, "faint") == []


def test_commands_have_a_copy_button(chromium: browser.Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["shared_oob"])
    assert chromium.evaluate("document.querySelectorAll('.commands button').length") >= 3


def test_it_prints_with_everything_unfolded(chromium: browser.Browser, pages: dict[str, Path]) -> None:
    chromium.open(pages["every section"])
    assert chromium.pdf().startswith(b"%PDF")
    chromium.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert chromium.evaluate("document.querySelectorAll('details:not([open])').length") == 0
