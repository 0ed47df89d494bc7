"""Instructions around a PC, from whichever disassembler is at hand, each function read once."""

from __future__ import annotations

from collections.abc import Sequence

from crashlab.errors import CrashlabError, MalformedCubin
from crashlab.postmortem.codemap import CodeHit
from crashlab.sass.line import SassLine

_INSTRUCTION = 16
_CODE_LIMIT = 256 << 10
"""Bytes of code read around a PC at most: 16,384 instructions."""


class Disassembly:
    """Reads the function around a PC. ``missing`` says why there are no instructions, when there are none."""

    def __init__(self, *, nvdisasm: bool = True, tool_path: str | None = None, timeout: float = 30.0) -> None:
        self._use_nvdisasm = nvdisasm
        self._tool_path = tool_path
        self._timeout = timeout
        self._pending: dict[int, object] = {}
        self._done: dict[int, tuple[SassLine, ...] | None] = {}
        self.missing: str | None = None
        self.used: str | None = None

    def prefetch(self, hit: CodeHit | None) -> None:
        """Start reading a function now, so that its instructions are there when asked for."""
        if hit is None:
            return
        base, code = self._code(hit)
        if code and base not in self._pending and base not in self._done:
            self._start(base, code, hit)

    def lines(self, hit: CodeHit | None) -> Sequence[SassLine] | None:
        """All instructions of the code section (at most 256 KiB around the PC) that holds the PC."""
        if hit is None:
            return None
        base, code = self._code(hit)
        if not code:
            return None
        if base not in self._done:
            self._done[base] = self._collect(base, code, hit)
        return self._done[base]

    def close(self) -> None:
        """End whatever was started and not collected."""
        for pending in self._pending.values():
            pending.kill()  # type: ignore[attr-defined]
        self._pending.clear()

    def _code(self, hit: CodeHit) -> tuple[int, bytes]:
        try:
            window = hit.cubin.code_window(hit.pc)
        except MalformedCubin:
            return 0, b""
        if window is None:
            return 0, b""
        base, code = window
        if len(code) > _CODE_LIMIT:
            start = max(0, (hit.pc - base - _CODE_LIMIT // 2) // _INSTRUCTION * _INSTRUCTION)
            base, code = base + start, code[start : start + _CODE_LIMIT]
        return base, bytes(code[: len(code) // _INSTRUCTION * _INSTRUCTION])

    def _start(self, base: int, code: bytes, hit: CodeHit) -> None:
        if not self._use_nvdisasm:
            self.missing = self.missing or "no external program was to be started"
            return
        from crashlab.sass import disassembler

        arch = hit.cubin.arch
        tool = disassembler.find_nvdisasm(self._tool_path)
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
            lines: tuple[SassLine, ...] = pending.result(self._timeout)  # type: ignore[attr-defined]
        except CrashlabError as error:
            self.missing = str(error)
            return None
        self.used = "nvdisasm"
        return lines
