"""Links of a page: to its own sections, and to references (only https, only when the text is unmistakably one)."""

from __future__ import annotations

import re
from typing import NamedTuple

_ISSUE = re.compile(r"^([A-Za-z0-9_.-]{1,60})/([A-Za-z0-9_.-]{1,100})#(\d{1,9})\b")
_URL = re.compile(r"https://[A-Za-z0-9.-]{1,200}(?::\d{1,5})?(?:/[A-Za-z0-9._~/?#=&%+-]{0,500})?")


class Anchor(NamedTuple):
    """An entry of the navigation: the section's ``id`` and what the reader sees."""

    id: str
    label: str


class Reference(NamedTuple):
    """Text with the address it leads to; None when it leads nowhere."""

    text: str
    href: str | None


def reference(text: str) -> Reference:
    """``owner/name#123`` and https addresses become links, whatever else stands in the text."""
    issue = _ISSUE.match(text)
    if issue:
        return Reference(text, f"https://github.com/{issue[1]}/{issue[2]}/issues/{issue[3]}")
    url = _URL.search(text[:2000])
    return Reference(text, url.group().rstrip(".") if url else None)
