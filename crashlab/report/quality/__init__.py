"""The quality report in its forms: text, JSON, HTML, Markdown, JUnit."""

from __future__ import annotations

from crashlab.errors import UsageError
from crashlab.quality.facts import QualityReport
from crashlab.report.quality.jsonform import from_json

__all__ = ["FORMATS", "from_json", "render"]

FORMATS = ("text", "json", "html", "md", "junit")


def render(report: QualityReport, form: str, *, verbose: bool = False, width: int | None = None) -> str:
    """The report in one of :data:`FORMATS`; UsageError for another.

    ``verbose`` and ``width`` (columns, 110 if not given) are for the text form only.
    """
    if form == "json":
        from crashlab.report.quality import jsonform

        return jsonform.dumps(report)
    if form == "html":
        from crashlab.report.quality import page

        return page.render(report)
    if form == "md":
        from crashlab.report.quality import markdown

        return markdown.render(report)
    if form == "junit":
        from crashlab.report.quality import junit

        return junit.render(report)
    if form == "text":
        from crashlab.report.quality import text

        return text.render(report, verbose=verbose, width=width)
    raise UsageError(f"There is no format {form!r}.", hint=f"Formats: {', '.join(FORMATS)}.")
