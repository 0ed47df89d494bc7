"""Every format over every shipped dump against its recorded form."""

from __future__ import annotations

import pytest

from crashlab.report import build, compare, html, jsonio, junit, markdown, text
from crashlab.report.options import AnalyzeOptions
from tests.support import corpus, golden, recorded

ALL = corpus.names(readable=False)
WHOLE = ("seed_sm120", "torch_triton", "barrier_hang")


@pytest.mark.parametrize("name", ALL)
def test_terminal_text(name: str, update_golden: bool) -> None:
    """The same files that the command's own output is held against."""
    shown = text.render(recorded.report(name)._replace(commands=()))
    golden.check(f"analyze/{name}.txt", golden.stable_text(shown), update=update_golden)


@pytest.mark.parametrize("name", ALL)
def test_json(name: str, update_golden: bool) -> None:
    """Compressed, since most of it is lanes; the diff of a failure is readable."""
    shown = golden.stable_json(jsonio.dumps(recorded.report(name)))
    golden.check(f"report/json/{name}.json.xz", shown, update=update_golden)


@pytest.mark.parametrize("name", corpus.names())
def test_a_hurried_answer_has_the_same_keys(name: str) -> None:
    fast = build.analyze([corpus.path(name)], AnalyzeOptions(fast=True))
    full = recorded.report(name)
    if fast.verdict.kind == "gpu-fault" and fast.verdict.instruction is None and full.verdict.instruction:
        assert full.verdict.instruction.decoded_by == "nvdisasm"
        return
    assert fast.signature_key == full.signature_key
    if fast.verdict.instruction and full.verdict.instruction:
        one, other = (
            found._replace(window=(), width_bytes=None, decoded_by=None)
            for found in (fast.verdict.instruction, full.verdict.instruction)
        )
        assert one == other


@pytest.mark.parametrize("name", corpus.SMALL)
def test_terminal_text_in_full(name: str, update_golden: bool) -> None:
    shown = text.render(recorded.report(name), verbose=True)
    golden.check(f"report/text/{name}.txt", shown, update=update_golden)


@pytest.mark.parametrize("name", ALL)
def test_markdown(name: str, update_golden: bool) -> None:
    golden.check(f"report/md/{name}.md", markdown.render(recorded.report(name)), update=update_golden)


@pytest.mark.parametrize("name", ALL)
def test_junit(name: str, update_golden: bool) -> None:
    golden.check(f"report/junit/{name}.xml", junit.render(recorded.report(name)), update=update_golden)


@pytest.mark.parametrize("name", ALL)
def test_html_in_words(name: str, update_golden: bool) -> None:
    page = html.render(recorded.report(name))
    assert len(page) < 1_500_000
    golden.check(f"report/html/{name}.txt", recorded.words(page), update=update_golden)


@pytest.mark.parametrize("name", WHOLE)
def test_html_in_full(name: str, update_golden: bool) -> None:
    page = recorded.without_assets(html.render(recorded.report(name)))
    golden.check(f"report/html/{name}.html", page, update=update_golden)


@pytest.mark.parametrize("form", sorted(markdown.FORMS))
def test_each_issue_form(form: str, update_golden: bool) -> None:
    report = recorded.report("seed_sm120")
    issue = markdown.render(report, markdown.FORMS[form])
    golden.check(f"report/issues/{form}.md", issue, update=update_golden)
    address = f"{markdown.prefilled_url(report, markdown.FORMS[form])}\n"
    golden.check(f"report/issues/{form}.url", address, update=update_golden)


def test_two_dumps_of_one_crash(update_golden: bool) -> None:
    report = recorded.report("hang", "oob_load")
    golden.check("report/two.txt", text.render(report), update=update_golden)
    golden.check("report/two.md", markdown.render(report), update=update_golden)
    golden.check("report/two.xml", junit.render(report), update=update_golden)
    golden.check("report/two.html.txt", recorded.words(html.render(report)), update=update_golden)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("shared_oob", "shared_oob_full"),
        ("shared_oob", "shared_oob_debug"),
        ("shared_oob", "seed_sm120"),
        ("oob_load", "cut_short"),
    ],
)
def test_comparisons(first: str, second: str, update_golden: bool) -> None:
    found = compare.compare(recorded.report(first), recorded.report(second))
    shown = compare.render(found, f"{first}.core", f"{second}.core")
    golden.check(f"report/compare/{first}-{second}.txt", shown, update=update_golden)
