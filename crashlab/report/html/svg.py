"""SVG elements as pure functions. Every value is escaped; positions across are percentages.

Percentages let one picture serve a telephone and a wide screen: bars stretch, text keeps its size.
"""

from __future__ import annotations

from markupsafe import Markup, escape

from crashlab.report.safe import one_line

_TITLE_LIMIT = 300


def number(value: float) -> str:
    """At most three decimals, without trailing zeros."""
    return f"{value:.3f}".rstrip("0").rstrip(".") if value % 1 else str(int(value))


def percent(fraction: float) -> str:
    """A share of the picture's width, kept inside it."""
    return f"{number(100 * min(1.0, max(0.0, fraction)))}%"


def element(tag: str, *children: str, **attributes: str | float | None) -> Markup:
    """``<tag …>children</tag>``. ``class_`` is class, other underscores become hyphens; None is left out."""
    parts = [f"<{tag}"]
    for name, value in attributes.items():
        if value is None:
            continue
        text = number(value) if isinstance(value, (int, float)) else _attribute(value)
        parts.append(f' {name.rstrip("_").replace("_", "-")}="{escape(text)}"')
    body = "".join(escape(child) for child in children)
    return Markup("".join(parts) + (f">{body}</{tag}>" if body else "/>"))


def _attribute(value: str) -> str:
    """Markup (our own coordinates, of any length) as it is; everything else bounded and harmless."""
    return value if isinstance(value, Markup) else one_line(value)


def title(text: str) -> Markup:
    """The tooltip of the element it is put into."""
    return element("title", one_line(text, _TITLE_LIMIT))


def text(x: str, y: float, content: str, class_: str = "t", anchor: str | None = None) -> Markup:
    """One line of text with its base line at ``y``."""
    return element("text", one_line(content, _TITLE_LIMIT), x=x, y=y, class_=class_, text_anchor=anchor)


def rect(x: str, y: float, width: str, height: float, class_: str, tooltip: str | None = None) -> Markup:
    """A rectangle: ``x`` and ``width`` in percent, ``y`` and ``height`` in pixels."""
    children = (title(tooltip),) if tooltip else ()
    return element("rect", *children, x=x, y=y, width=width, height=height, class_=class_)


def line(x1: str, y1: float, x2: str, y2: float, class_: str) -> Markup:
    """A line: ``x1`` and ``x2`` in percent, ``y1`` and ``y2`` in pixels."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def picture(height: float, label: str, *children: str, class_: str = "pic") -> Markup:
    """The whole drawing; ``label`` is what a screen reader says instead of it."""
    return element(
        "svg", *children, class_=class_, role="img", aria_label=one_line(label), width="100%", height=height
    )


def anchored(fraction: float) -> str:
    """Where text at this share of the width must be anchored to stay inside the picture."""
    return "start" if fraction < 0.3 else "end" if fraction > 0.7 else "middle"
