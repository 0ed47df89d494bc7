"""The page's own files: templates, style and script, and the policy that allows exactly these."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup, escape

from crashlab.report.safe import one_line


@lru_cache(maxsize=16)
def source(name: str) -> str:
    """One file of the package's ``templates`` folder."""
    return (resources.files("crashlab") / "templates" / name).read_text(encoding="utf-8")


def digest(content: str) -> str:
    """What a Content-Security-Policy calls an inline block: ``'sha256-…'``."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def policy(style: str, script: str) -> str:
    """Nothing is loaded, sent or framed; only this style and this script apply."""
    return (
        f"default-src 'none'; style-src {digest(style)}; script-src {digest(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _finalize(value: Any) -> Any:
    """Every value on its way into the page: no control characters, no direction marks, bounded."""
    return value if isinstance(value, Markup) else one_line(str(value))


def breakable(name: str | None) -> Markup:
    """A long name that may be broken where its parts meet, instead of anywhere; copying it gives the name."""
    text = escape(one_line(name or ""))
    return Markup(str(text).replace("_", "_<wbr>").replace("::", "::<wbr>").replace("&lt;", "&lt;<wbr>"))


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """Escapes everything, and fails on a name that the page's data does not have."""
    found = jinja2.Environment(
        loader=jinja2.FunctionLoader(source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["breakable"] = breakable
    return found


def filled(template: str, styles: str, **data: Any) -> str:
    """A page of that template, ending in a newline: ``styles`` is its CSS, the script is the report's own.

    The page's policy allows exactly these two, so nothing in ``data`` can bring its own.
    """
    script = source("report.js")
    allowed = {"style": Markup(styles), "script": Markup(script), "policy": Markup(policy(styles, script))}
    return environment().get_template(template).render(**allowed, **data) + "\n"
