"""A sweep's result for people, programs and test dashboards: one result, five forms."""

from __future__ import annotations

from crashlab.errors import UsageError
from crashlab.report.sweep.jsonform import from_json
from crashlab.report.sweep.redacted import redacted
from crashlab.sweep.facts import SweepResult

__all__ = ["FORMATS", "from_json", "redacted", "render"]

FORMATS = ("text", "json", "html", "md", "junit")


def render(result: SweepResult, form: str, *, width: int | None = None) -> str:
    """The result in one of :data:`FORMATS`; UsageError for another.

    A result without findings is judged first. ``width``: columns of the text form, 110 if not given.
    Whoever publishes it passes it through :func:`redacted` first.
    """
    from crashlab.sweep.verdict import judged

    if result.findings is None:
        result = judged(result)
    if form == "json":
        from crashlab.report.sweep import jsonform

        return jsonform.dumps(result)
    if form == "html":
        from crashlab.report.sweep import page

        return page.render(result)
    if form == "md":
        from crashlab.report.sweep import markdown

        return markdown.render(result)
    if form == "junit":
        from crashlab.report.sweep import junit

        return junit.render(result)
    if form == "text":
        from crashlab.report.sweep import text

        return text.render(result, width=width)
    raise UsageError(f"There is no format {form!r} for a sweep.", hint=f"Use one of {', '.join(FORMATS)}.")
