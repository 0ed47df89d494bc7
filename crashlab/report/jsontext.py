"""JSON as text for files and terminals: readable as UTF-8, but nothing in it acts on a terminal."""

from __future__ import annotations

from typing import Any

# DEL and C1 (some terminals take U+009B for an escape code), direction marks, invisible characters, line
# separators, lone surrogates (no UTF-8 has them) and tags. JSON escapes only what is below U+0020 by itself.
_ACTING = "[\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\U000e0000-\U000e007f]"


def written(value: Any, *, allow_nan: bool = True) -> str:
    """Plain JSON values as indented text, without a line break at the end; equal to what went in when read back."""
    import json

    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=allow_nan)
    if text.isascii() and "\x7f" not in text:  # nearly always, and found out a hundred times faster
        return text
    import re

    return re.sub(_ACTING, _escaped, text)


def _escaped(found: Any) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
