"""Every format over every shipped dump against its recorded form."""

from __future__ import annotations

import pytest

from crashlab.report import compare, html, junit, markdown, text
from tests.support import corpus, golden, recorded

ALL = corpus.names(readable=False)
WHOLE = ("seed_sm120", "torch_triton", "barrier_hang")


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
