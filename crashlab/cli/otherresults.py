"""Results that are no post-mortem: a sweep's and a quality run's JSON, rendered again like any report."""

from __future__ import annotations

import os
from collections.abc import Callable

from crashlab.errors import UnreadableInput, UsageError
from crashlab.inputfile import open_regular

_LIMIT = 256 << 20
_HEAD = 4096
_NAMES = ("report.json", "quality.json")

Render = Callable[[str, bool, "int | None"], str]
"""(format, verbose, columns of the text form) -> text."""


def other_result(path: str) -> Render | None:
    """How to render what ``path`` holds, if it is a sweep or a quality run; None for anything else.

    ``path`` is the JSON file or the folder that holds it. Raises UnreadableInput for one that is damaged.
    """
    for place in _places(path):
        head = _head(place)
        if b'"crashlab.sweep/' in head:
            return _sweep(place)
        if b'"crashlab.quality/' in head:
            return _quality(place)
    return None


def _places(path: str) -> list[str]:
    return [os.path.join(path, name) for name in _NAMES] if os.path.isdir(path) else [path]


def _head(place: str) -> bytes:
    """The beginning of a JSON file, where its schema stands."""
    try:
        with open_regular(place, "report") as file:
            head = file.read(_HEAD)
    except UnreadableInput:
        return b""
    return head if head.lstrip()[:1] == b"{" else b""


def _text(place: str) -> str:
    with open_regular(place, "report") as file:
        raw = file.read(_LIMIT + 1)
    if len(raw) > _LIMIT:
        raise UnreadableInput(
            f"{os.path.basename(place)} is larger than {_LIMIT:,} bytes.", hint="This is no report."
        )
    return raw.decode("utf-8", "replace")


def _sweep(place: str) -> Render:
    from crashlab.report import sweep

    result = sweep.from_json(_text(place))
    return lambda form, verbose, width: sweep.render(result, _known(form, sweep.FORMATS), width=width)


def _quality(place: str) -> Render:
    from crashlab.report import quality

    result = quality.from_json(_text(place))

    def render(form: str, verbose: bool, width: int | None) -> str:
        return quality.render(result, _known(form, quality.FORMATS), verbose=verbose, width=width)

    return render


def _known(form: str, formats: tuple[str, ...]) -> str:
    if form not in formats:
        raise UsageError(f"There is no format {form!r} here.", hint=f"Use one of {', '.join(formats)}.")
    return form
