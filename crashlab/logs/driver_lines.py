"""Cut the driver's ``coredump:`` messages out of a line and name each: text in, events out.

The message may stand behind another program's half-written line, and in pasted issues several stand
on one line. Source of the shapes: driver 580.159 logs; older drivers print no time stamp.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from crashlab.logs.lazy import Lazy

MARK = "coredump: "

# With a time stamp it may be glued to other text; without one, `systemd-coredump: ` must not match.
_START = Lazy(r"(?:\[(\d\d:\d\d:\d\d(?:\.\d{1,9})?)\] ?|(?<![\w-]))coredump: ")
_NUMBER = r"(\d{1,9})"
_HEX = r"0x([0-9a-fA-F]{1,16})"

# (kind, how the message starts, pattern of the whole or None): the first that fits wins.
_SHAPES: tuple[tuple[str, str, Lazy | None], ...] = tuple(
    (kind, start, Lazy(pattern) if pattern else None)
    for kind, start, pattern in (
        ("sm", "SM ", rf"SM {_NUMBER}/{_NUMBER} (has finished|is not used)"),
        ("device", "- Device", rf"- Device:? {_NUMBER}"),
        ("on-sm", "- SM", rf"- SM:? {_NUMBER}"),
        ("warp", "- Warp", rf"- Warp:? {_NUMBER}"),
        ("warp-exited", "- Warp", r"- Warp:? .{0,200}exited"),
        ("pc", "- PC", rf"- PC:? {_HEX}"),
        ("stack", "Stack trace", rf"Stack trace(?:.{{0,200}}active {_HEX}, valid {_HEX})?"),
        ("frame", "#", rf"#{_NUMBER}\s{{1,64}}{_HEX}\s{{0,64}}(.{{0,8192}})"),
        ("exception", "Detected", rf"Detected an exception of type (\w{{1,200}})(?: \({_NUMBER}\))?"),
        ("start", "Starting GPU coredump", None),
        ("device-done", "Device ", rf"Device {_NUMBER}/{_NUMBER} (?:has finished|is not used)"),
        ("layout", "Calculating ELF file layout", None),
        ("layout-done", "ELF file layout calculated", None),
        ("file-opened", "Writing ELF file to ", r"Writing ELF file to (.{1,4096})"),
        ("working-directory", "Current working", r"Current working directory is (.{1,4096})"),
        ("global-memory", "Writing out global", r"Writing out global memory(?: \((\d{1,20}) bytes\))?"),
        ("device-table", "Writing out device table", None),
        ("metadata", "Writing out metadata", None),
        ("finalizing", "Finalizing", None),
        ("written", "Writing done", None),
        ("done", "All done", r"All done(?: \(took (\d{1,9})s\))?"),
        ("percent", "", rf"{_NUMBER}%"),
    )
)
_PROBLEM = ("ERROR", "WARNING", "FATAL", "Error", "Warning", "Failed", "Could not", "Cannot", "Unable")
# Printed without the `coredump:` mark when the driver reads its flags (580.159).
_FLAG_WARNING = Lazy(r"WARNING: Ignoring unknown coredump flag '.{0,256}")


class DriverEvent(NamedTuple):
    """One message. ``kind`` is a phase, a detail of an exception, ``problem`` or ``other``."""

    kind: str
    time: str | None
    groups: tuple[str | None, ...]
    text: str


def events(text: str) -> Iterator[DriverEvent]:
    """The driver's messages in one line, usually none or one."""
    if MARK not in text:
        if "unknown coredump flag" in text and (found := _FLAG_WARNING.search(text)):
            yield DriverEvent("problem", None, (), found.group().strip())
        return
    starts = list(_START.finditer(text))
    for index, start in enumerate(starts):
        end = starts[index + 1].start() if index + 1 < len(starts) else len(text)
        yield _event(text[start.end() : end].strip(), start.group(1))


def _event(message: str, time: str | None) -> DriverEvent:
    for kind, start, pattern in _SHAPES:
        if message.startswith(start):
            if pattern is None:
                return DriverEvent(kind, time, (), message)
            if found := pattern.match(message):
                return DriverEvent(kind, time, found.groups(), message)
    kind = "problem" if message.startswith(_PROBLEM) else "other"
    return DriverEvent(kind, time, (), message[:4096])
