"""The report as an issue text that a person pastes: for each project in the order its form asks."""

from __future__ import annotations

from crashlab.report.markdown.forms import FORMS, PLAIN, Form
from crashlab.report.markdown.prefill import prefilled_url
from crashlab.report.markdown.render import render, title

__all__ = ["FORMS", "PLAIN", "Form", "prefilled_url", "render", "title"]
