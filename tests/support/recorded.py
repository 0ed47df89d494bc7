"""Reports of the shipped dumps without what changes from run to run, and pages reduced to their words."""

from __future__ import annotations

import re
from functools import lru_cache
from html.parser import HTMLParser

from crashlab import facts
from crashlab.report import build
from crashlab.report.byhand import with_commands
from crashlab.report.options import AnalyzeOptions
from tests.support import corpus


@lru_cache(maxsize=256)
def report(*names: str) -> facts.Report:
    """The report of one or several dumps as one crash, read without cuda-gdb."""
    return stable(build.analyze([corpus.path(name) for name in names], AnalyzeOptions(debugger="never")))


def stable(found: facts.Report) -> facts.Report:
    """The same report without times and versions, with the commands to check it."""
    readers = {name: status._replace(ms=None, version=None) for name, status in (found.readers or {}).items()}
    found = found._replace(
        created="2026-01-01T00:00:00Z", tool=facts.Tool("crashlab", "<version>"), readers=readers
    )
    return with_commands(found, [item.path for item in found.inputs])


def without_assets(page: str) -> str:
    """The page without style, script and the policy that follows from them."""
    page = re.sub(r"<style>.*?</style>", "<style></style>", page, flags=re.S)
    page = re.sub(r"<script>.*?</script>", "<script></script>", page, flags=re.S)
    return re.sub(r"'sha256-[^']*'", "'sha256-…'", page)


class _Words(HTMLParser):
    """Headings, sentences and picture labels in reading order, without the insides of pictures.

    Of each table only the first rows are kept: the lanes of a fault are all alike.
    """

    _ROWS = 24

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self._current: list[str] = []
        self._pictures = 0
        self._skip = False
        self._rows = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "svg":
            label = dict(attrs).get("aria-label")
            if label and not self._pictures:
                self._current.append(f" [{label}] ")
            self._pictures += 1
        elif tag in ("style", "script", "title"):
            self._skip = True
        elif tag == "table":
            self._rows = 0
        elif tag == "tr":
            self._flush()
            self._rows += 1
            self._skip = self._rows > self._ROWS
        elif tag in ("td", "th", "dd"):
            self._current.append(" | ")
        elif tag not in ("b", "mark", "span", "a", "code", "br", "wbr", "meter"):
            self._flush()

    def handle_endtag(self, tag: str) -> None:
        if tag == "svg":
            self._pictures -= 1
        elif tag in ("style", "script", "title", "table"):
            self._skip = False

    def handle_data(self, data: str) -> None:
        if not self._pictures and not self._skip and data.strip():
            self._current.append(data)

    def _flush(self) -> None:
        line = " ".join("".join(self._current).split()).strip(" |")
        if line:
            self.lines.append(line)
        self._current = []

    def close(self) -> None:
        super().close()
        self._flush()


def words(page: str) -> str:
    """What a page says, one block a line."""
    found = _Words()
    found.feed(page)
    found.close()
    return "\n".join(found.lines) + "\n"
