"""An address that opens a project's form with title and short fields filled. Nothing is sent by it."""

from __future__ import annotations

from crashlab import facts
from crashlab.report.markdown.forms import Form
from crashlab.report.markdown.render import answer, title

_URL_LIMIT = 7000
"""GitHub answers 414 to addresses of about 8 KiB; a percent-encoded text grows threefold."""
_FIELD_LIMIT = 1500
_LONG = "See the text that crashlab wrote for this field; it is too long for an address."


def prefilled_url(report: facts.Report, form: Form) -> str | None:
    """The address, at most 7,000 characters; None for a form that has none."""
    from urllib.parse import quote

    if not form.url:
        return None
    url = form.url + ("&" if "?" in form.url else "?") + f"title={quote(title(report, form), safe='')}"
    for field in form.fields:
        if field.id is None:
            continue
        text = answer(report, field)
        part = f"&{field.id}={quote(text if len(text) <= _FIELD_LIMIT else _LONG, safe='')}"
        if len(url) + len(part) <= _URL_LIMIT:
            url += part
    return url
