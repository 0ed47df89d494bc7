"""The quality report in its forms: text, JSON, HTML, Markdown, JUnit."""

from __future__ import annotations

from crashlab.errors import UsageError
from crashlab.quality.facts import QualityReport
from crashlab.report.quality.jsonform import from_json

__all__ = ["FORMATS", "from_json", "render"]

FORMATS = ("text", "json", "html", "md", "junit")


def render(report: QualityReport, form: str, *, verbose: bool = False) -> str:
    """The report in one of :data:`FORMATS`. Raises UsageError for another one."""
    if form == "json":
        from crashlab.report.quality.jsonform import render as as_json

        return as_json(report)
    if form == "html":
        from crashlab.report.quality.page import render as as_page

        return as_page(report)
    if form == "md":
        from crashlab.report.quality.markdown import render as as_markdown

        return as_markdown(report)
    if form == "junit":
        from crashlab.report.quality.junit import render as as_junit

        return as_junit(report)
    if form == "text":
        from crashlab.report.quality.plaintext import render as as_text

        return as_text(report, verbose=verbose)
    raise UsageError(f"There is no format {form!r}.", hint=f"Formats: {', '.join(FORMATS)}.")
