"""Instructions around a PC, from our own decoder or from nvdisasm, each function read once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crashlab.errors import CrashlabError, MalformedCubin
from crashlab.postmortem.codemap import CodeHit
from crashlab.sass.line import SassLine

if TYPE_CHECKING:
    from crashlab.sass.disassembler import PendingDisassembly

_INSTRUCTION = 16
_CODE_LIMIT = 256 << 10
"""Bytes of code read around a PC at most: 16,384 instructions."""

_NEAR_LIMIT = 4 << 10
"""The same for an answer in a hurry: 256 instructions."""
_UNKNOWN = "unknown "
"""How our decoder shows a word that it does not know."""

AUTO, NATIVE, NVDISASM, BOTH = "auto", "native", "nvdisasm", "both"
"""Who reads SASS: auto is our own decoder, and nvdisasm for a function that holds something it does not know."""


class Disassembly:
    """Reads the function around a PC.

    ``missing`` says why there are no instructions, when there are none; ``used`` who read them;
    ``differences`` where the two readers disagree (``sass_by`` both): (pc, ours, nvdisasm's).
    ``external`` False never starts a process.
    """

    def __init__(
        self,
        *,
        sass_by: str = AUTO,
        external: bool = True,
        tool_path: str | None = None,
        timeout: float = 30.0,
    ) -> None:
        self._native = sass_by in (AUTO, NATIVE, BOTH)
        self._external = external and sass_by != NATIVE
        self._hurried = not external
        self._whole = external
        self._both = sass_by == BOTH
        self._tool_path = tool_path
        self._timeout = timeout
        self._pending: dict[int, PendingDisassembly] = {}
        self._own: dict[int, tuple[SassLine, ...] | None] = {}
        self._done: dict[int, tuple[SassLine, ...] | None] = {}
        self.missing: str | None = None
        self.used: str | None = None
        self.differences: list[tuple[int, str, str]] = []

    def prefetch(self, hit: CodeHit | None) -> None:
        """Start nvdisasm now when it will be needed, so that its answer is there when asked for."""
        if hit is None or not self._external:
            return
        base, code = self._code(hit)
        if (
            code
            and base not in self._pending
            and base not in self._done
            and not self._suffices(base, code, hit)
        ):
            self._start(base, code, hit)

    def lines(self, hit: CodeHit | None) -> Sequence[SassLine] | None:
        """All instructions of the code section (at most 256 KiB around the PC) that holds the PC."""
        if hit is None:
            return None
        base, code = self._code(hit)
        if not code:
            return None
        if base not in self._done:
            self._done[base] = self._read(base, code, hit)
        return self._done[base]

    def around(self, hit: CodeHit | None, before: int, after: int) -> Sequence[SassLine] | None:
        """At least the instruction at the PC and so many before and behind it, where there are any.

        Enough to show the place. Where no process is to be started, only these are decoded: each kind of
        instruction that is seen first costs a hurried answer a tenth of a millisecond.
        """
        if hit is None or self._external:
            return self.lines(hit)
        base, code = self._code(hit)
        at = (hit.pc - base) // _INSTRUCTION
        start = max(0, at - before) * _INSTRUCTION
        own = self._native_reading(base + start, code[start : (at + after + 1) * _INSTRUCTION], hit)
        if not own:
            return self.lines(hit)
        self.used = NATIVE
        return own

    def close(self) -> None:
        """End whatever was started and not collected."""
        for pending in self._pending.values():
            pending.kill()
        self._pending.clear()

    def next_step(self) -> str:
        """What to do about an instruction that our own tables do not know, as the end of a sentence."""
        if self._hurried:
            return "without --fast, nvdisasm is asked"
        if not self._external:
            return "with --sass-by auto, nvdisasm is asked"
        return f"nvdisasm may know it, but {self.missing or 'gave no answer'}"

    def _code(self, hit: CodeHit) -> tuple[int, bytes]:
        try:
            window = hit.cubin.code_window(hit.pc)
        except MalformedCubin:
            return 0, b""
        if window is None:
            return 0, b""
        base, code = window
        limit = _CODE_LIMIT if self._whole else _NEAR_LIMIT
        if len(code) > limit:
            start = max(0, (hit.pc - base - limit // 2) // _INSTRUCTION * _INSTRUCTION)
            base, code = base + start, code[start : start + limit]
        return base, bytes(code[: len(code) // _INSTRUCTION * _INSTRUCTION])

    def _suffices(self, base: int, code: bytes, hit: CodeHit) -> bool:
        own = self._decoded(base, code, hit)
        return not self._both and own is not None and not any(is_unknown(line.text) for line in own)

    def _decoded(self, base: int, code: bytes, hit: CodeHit) -> tuple[SassLine, ...] | None:
        """Our own reading; None where there are no tables for the architecture."""
        if base not in self._own:
            self._own[base] = self._native_reading(base, code, hit)
        return self._own[base]

    def _native_reading(self, base: int, code: bytes, hit: CodeHit) -> tuple[SassLine, ...] | None:
        arch = hit.cubin.arch
        if not self._native or arch is None:
            return None
        from crashlab.sass import decode

        try:
            if decode.is_known_arch(arch):
                return tuple(
                    SassLine(pc, text if text is not None else decode.raw_text(_word(code, pc - base)))
                    for pc, text in decode.decode_range(code, base, arch)
                )
        except CrashlabError as error:
            self.missing = str(error)
        return None

    def _read(self, base: int, code: bytes, hit: CodeHit) -> tuple[SassLine, ...] | None:
        own = self._decoded(base, code, hit)
        if self._suffices(base, code, hit) or (own is not None and not self._external):
            self.used = NATIVE
            return own
        theirs = self._collect(base, code, hit)
        if theirs is None:
            self.used = NATIVE if own is not None else self.used
            return own
        if own is not None and self._both:
            self._compare(own, theirs)
        self.used = NVDISASM
        return theirs

    def _compare(self, own: tuple[SassLine, ...], theirs: tuple[SassLine, ...]) -> None:
        texts = dict(theirs)
        for line in own:
            other = texts.get(line.pc)
            if other is not None and other != line.text:
                self.differences.append((line.pc, line.text, other))

    def _start(self, base: int, code: bytes, hit: CodeHit) -> None:
        if not self._external:
            self.missing = self.missing or "no external program was to be started"
            return
        from crashlab.sass import disassembler

        arch = hit.cubin.arch
        tool = disassembler.find_nvdisasm(self._tool_path, arch)
        if tool is None or arch is None:
            self.missing = (
                "nvdisasm was not found (pip install nvidia-cuda-nvdisasm)"
                if tool is None
                else "the module does not say its architecture"
            )
            return
        try:
            self._pending[base] = disassembler.start(code, base, arch, tool)
        except CrashlabError as error:
            self.missing = str(error)

    def _collect(self, base: int, code: bytes, hit: CodeHit) -> tuple[SassLine, ...] | None:
        if base not in self._pending:
            self._start(base, code, hit)
        pending = self._pending.pop(base, None)
        if pending is None:
            return None
        try:
            return pending.result(self._timeout)
        except CrashlabError as error:
            self.missing = str(error)
            return None


def is_unknown(text: str) -> bool:
    """Whether a line is a word that our decoder does not know."""
    return text.startswith(_UNKNOWN)


def _word(code: bytes, at: int) -> int:
    return int.from_bytes(code[at : at + _INSTRUCTION], "little")
