"""The state of reading one transcript: takes logical lines in order and keeps what they say."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from crashlab.debugger import flags
from crashlab.debugger.exception_numbers import UNKNOWN, code_of_signal
from crashlab.debugger.focus import parse_focus
from crashlab.debugger.frame import parse_frame
from crashlab.debugger.frames import Backtraces
from crashlab.debugger.located import parse_exception_pc
from crashlab.debugger.records import Record
from crashlab.debugger.rows import SourceLine
from crashlab.debugger.subjects import Subjects
from crashlab.debugger.tablereader import TableReader
from crashlab.facts import Dim3
from crashlab.gpucore.exceptions import code_of, spelled

MAX_KEPT = 64
_TEXT = 400
_NUMBER = re.compile(r"\d{1,9}")
_TRIPLE = re.compile(r"\((\d{1,10}),(\d{1,10}),(\d{1,10})\)")
_UNHANDLED = re.compile(r"unhandled device exception \((\d{1,9})\)")
_SIGNAL = re.compile(r" signal CUDA_EXCEPTION_(\d{1,4}), ([^\n]{1,200})")
_VERSION = re.compile(r"(?:cuda-gdb |^)(\d{1,2}\.\d{1,3})")


class Reading:
    """Facts found so far. ``take`` one record after the other, then ``facts``."""

    def __init__(self) -> None:
        self.flags: set[str] = set()
        self.found: dict[str, Any] = {}
        self.warnings: list[str] = []
        self.unsupported: list[str] = []
        self.frames = Backtraces()
        self.subjects = Subjects()
        self.tables = TableReader()
        self.unhandled: int | None = None
        self.more_dumps = 0
        self.order: list[str] = []

    def take(self, record: Record) -> None:
        """Read one logical line."""
        kind, text = record
        if self.more_dumps and kind != "open":
            return
        if kind in ("text", "source", "blank") and self.tables.take(kind, text):
            return
        if kind in ("text", "blank"):
            if "<<<(" in text and "focus" in self.order and not self.frames:
                self._frame(text)
            self.subjects.take(kind, text)
            return
        self.tables.leave()
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, text.strip())
        else:
            self.subjects.take(kind, text)

    def _keep(self, name: str, value: object) -> None:
        """Remember a fact unless the text gave it before."""
        if value is not None:
            self.found.setdefault(name, value)

    def _open(self, text: str) -> None:
        if self.more_dumps or self.order or self.frames:
            self.more_dumps += 1
            return
        self._keep("dump", text.partition(":")[2].strip() or None)

    def _exception(self, text: str) -> None:
        self.order.append("exception")
        name = text.partition(":")[2].strip()
        if "exception" not in self.found:
            self._keep("exception", name)
            self._keep("exception_code", code_of(name))

    def _pc(self, text: str) -> None:
        self.order.append("exception")
        parsed = parse_exception_pc(text)
        if parsed is None or self.found.get("errorpc", parsed[0]) != parsed[0]:
            return
        for name, value in zip(("errorpc", "function", "source"), parsed, strict=True):
            self._keep(name, value)
        self.subjects.errorpc = parsed[0]

    def _device(self, text: str) -> None:
        match = _NUMBER.search(text)
        self._keep("device", int(match[0]) if match else None)

    def _cluster(self, text: str) -> None:
        match = _TRIPLE.search(text)
        self._keep("cluster_target", Dim3(int(match[1]), int(match[2]), int(match[3])) if match else None)

    def _focus(self, text: str) -> None:
        self.order.append("focus")
        if text.startswith("[Switching"):
            self.flags.add(flags.LIVE)
        self._keep("focus", parse_focus(text))

    def _signal(self, text: str) -> None:
        match = _SIGNAL.search(text)
        if "received signal" in text:
            self.flags.add(flags.LIVE)
        if match:
            name = match[2].strip().rstrip(".")
            self.order.append("exception")
            if "exception" not in self.found:
                self._keep("exception", name)
                self._keep("exception_code", code_of(name) or code_of_signal(int(match[1])))
        elif "SIGTRAP" in text:
            self.flags.add(flags.TRAP)

    def _assert(self, _text: str) -> None:
        self.order.append("exception")
        self.flags.add(flags.ASSERT)

    def _frame(self, text: str) -> None:
        frame = None if self.frames.full else parse_frame(text)
        if frame is not None:
            self.frames.add(frame)

    def _frame_plain(self, text: str) -> None:
        if "focus" in self.order and not self.frames:
            self._frame(text)

    def _warning(self, text: str) -> None:
        text = text.partition(":")[2].strip()
        match = _UNHANDLED.search(text)
        if match:
            self.unhandled = int(match[1])
            self.flags.add(flags.UNHANDLED)
        if text.startswith("No exception was found"):
            self.flags.add(flags.NO_EXCEPTION)
        elif text.startswith(("No focus could be set", "No CUDA focus could be set")):
            self.flags.add(flags.NO_FOCUS)
        elif "unknown ABI version" in text:
            self.flags.add(flags.UNKNOWN_ABI)
        _append(self.warnings, text)

    def _abort(self, text: str) -> None:
        self.flags.add(flags.ABORTED)
        self._keep("abort_reason", text[:_TEXT])

    def _abort_detail(self, text: str) -> None:
        reason = self.found.get("abort_reason")
        if reason and "what(): " not in reason:
            self.found["abort_reason"] = f"{reason} {text[:_TEXT]}"

    def _cannot_open(self, text: str) -> None:
        self.flags.add(flags.CANNOT_OPEN)
        self._keep("abort_reason", text[:_TEXT])

    def _undefined(self, text: str) -> None:
        _append(self.unsupported, text)

    def _version(self, text: str) -> None:
        match = _VERSION.search(text)
        self._keep("version", match[1] if match else None)

    def _flag(self, flag: str) -> None:
        self.flags.add(flag)

    def facts(self) -> dict[str, Any]:
        """Everything found, by the field names of ``Transcript``."""
        found = dict(self.found)
        name = found.get("exception")
        if self.unhandled is not None and (name is None or spelled(name) == UNKNOWN):
            found["exception_code"] = self.unhandled
        if flags.ASSERT in self.flags and name is None:
            found.setdefault("exception_code", code_of("Warp Assert"))
        if {"focus", "exception"} <= set(self.order):
            found["focus_first"] = self.order.index("focus") < self.order.index("exception")
        if self.subjects.cannot_disassemble:
            self.flags.add(flags.CANNOT_DISASSEMBLE)
        frames = self.frames.chosen()
        found |= self.subjects.facts(found.get("errorpc"), frames[0].pc if frames else None)
        found["source"] = _full_path(found.get("source"), self.subjects.source_of_errorpc())
        return (
            found
            | self.tables.facts()
            | {
                "frames": frames,
                "flags": frozenset(self.flags),
                "warnings": tuple(self.warnings),
                "unsupported": tuple(self.unsupported),
                "more_dumps": self.more_dumps,
            }
        )


def _full_path(printed: SourceLine | None, looked_up: SourceLine | None) -> SourceLine | None:
    """The exception line prints base names only; ``info line`` knows the whole path."""
    if printed is None or looked_up is None:
        return printed or looked_up
    if printed.line != looked_up.line or looked_up.file.rpartition("/")[2] != printed.file:
        return printed
    return printed._replace(file=looked_up.file)


def _append(kept: list[str], text: str) -> None:
    text = text[:_TEXT]
    if text and text not in kept and len(kept) < MAX_KEPT:
        kept.append(text)


_HANDLERS: dict[str, Callable[[Reading, str], None]] = {
    "open": Reading._open,
    "exception": Reading._exception,
    "pc": Reading._pc,
    "device": Reading._device,
    "cluster": Reading._cluster,
    "focus": Reading._focus,
    "focus-plain": Reading._focus,
    "signal": Reading._signal,
    "assert": Reading._assert,
    "frame": Reading._frame,
    "frame-plain": Reading._frame_plain,
    "warning": Reading._warning,
    "abort": Reading._abort,
    "abort-detail": Reading._abort_detail,
    "cannot-open": Reading._cannot_open,
    "undefined": Reading._undefined,
    "version": Reading._version,
    "no-kernels": lambda self, _: self._flag(flags.NO_KERNELS),
    "no-focus": lambda self, _: self._flag(flags.NO_FOCUS),
}
