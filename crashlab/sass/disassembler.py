"""nvdisasm on raw instruction bytes: started early, collected late, killed in time.

nvdisasm spends 0.3 to 0.4 s on its own start-up whatever the input, so the caller starts it as soon
as it knows the bytes and reads the rest of the dump meanwhile. The code goes in through an anonymous
file: raw mode needs a file that it can seek in (it refuses a pipe), and one without a name leaves
nothing behind.
"""

from __future__ import annotations

import re
import time

from crashlab.errors import MissingTool, ToolFailed, UsageError
from crashlab.sass.line import SassLine
from crashlab.sass.locate import HINT, Tool, find_nvdisasm
from crashlab.sass.process import Child
from crashlab.sass.toolversion import tail, version_of

__all__ = ["PendingDisassembly", "Tool", "command_line", "find_nvdisasm", "start", "version"]

INSTRUCTION_BYTES = 16  # sm_70 and later: one 128-bit word an instruction
MAX_CODE_BYTES = 64 << 20

_ARCH = re.compile(r"(?:sm_?)?(\d{2,3})([af]?)\Z", re.IGNORECASE)
_INSTRUCTION = re.compile(r"^[ \t]*/\*([0-9a-f]{1,16})\*/[ \t]*(\S[^;\n]*);", re.MULTILINE)
_ANNOTATION = re.compile(r"\(\*[^()\n]*\*\)")
_BLANKS = re.compile(r"[ \t]+")
_ILLEGAL_AT = re.compile(r"at address 0x([0-9a-fA-F]{1,16})\b")

# `NOP` of every architecture from sm_70 on: stands in for words that are no instruction, so that
# nvdisasm, which gives nothing at all for a file with one bad word, still decodes the others.
_NOP = bytes.fromhex("18790000000000000000000000c00f00")


def command_line(tool: Tool | None, arch: str, base: int, file: str) -> tuple[str, ...]:
    """The command that a person can run by hand on ``file``, which holds the raw code bytes."""
    path = "nvdisasm" if tool is None else tool.path
    return (path, "-b", _raw_arch(arch), "-base", hex(base), file)


def start(code: bytes, base: int, arch: str, tool: Tool | None) -> PendingDisassembly:
    """Start nvdisasm on ``code`` (whole 16-byte instructions) that lies at address ``base``.

    ``arch`` is ``sm_90``, ``sm_90a``, ``sm_120`` and the like; plain ``sm_90`` also decodes what was
    compiled for ``sm_90a``. Raises MissingTool without a tool, UsageError for unusable arguments,
    ToolFailed when the program cannot be started.
    """
    if tool is None:
        raise MissingTool("nvdisasm was not found: no SASS can be shown", hint=HINT)
    if not code or len(code) % INSTRUCTION_BYTES or len(code) > MAX_CODE_BYTES or base < 0:
        raise UsageError(f"cannot disassemble {len(code)} bytes at {base:#x}: not a run of instructions")
    return PendingDisassembly(code, base, arch, tool)


def version(tool: Tool, timeout: float = 10.0) -> str | None:
    """``13.5.37``; None when the program answers without a version. Raises ToolFailed."""
    return version_of(tool.path, timeout)


class PendingDisassembly:
    """A running nvdisasm. Call :meth:`result` once, or :meth:`kill` to give up."""

    def __init__(self, code: bytes, base: int, arch: str, tool: Tool) -> None:
        self._code = code
        self._base = base
        self._arch = arch
        self._tool = tool
        self._child = self._launch(code)

    def _launch(self, code: bytes) -> Child:
        def argv(path: str) -> tuple[str, ...]:
            return command_line(self._tool, self._arch, self._base, path)

        # The longest real line has under 300 bytes; errors take two lines of 100 a bad word.
        limit = (1 << 18) + 1024 * (len(code) // INSTRUCTION_BYTES)
        return Child(argv, max_output=limit, stdin_file=code)

    def result(self, timeout: float = 20.0) -> tuple[SassLine, ...]:
        """Every instruction of the code, in order; waits ``timeout`` seconds at most.

        A word that is no instruction of the architecture comes back as ``ILLEGAL 0x…`` (the word as
        a little-endian number). Raises ToolFailed (time limit, crash, garbage, too much output).
        """
        deadline = time.monotonic() + timeout
        code, out, err = self._child.collect(timeout)
        if code == 0:
            return _lines(out, self._code, self._base)
        bad = _illegal_words(err, self._code, self._base)
        if not bad:
            raise ToolFailed(f"nvdisasm ended with {code}: {tail(err or out)}", hint=_hint(err))
        self._child = self._launch(_masked(self._code, bad))
        code, out, err = self._child.collect(max(0.0, deadline - time.monotonic()))
        if code != 0:
            raise ToolFailed(f"nvdisasm ended with {code}: {tail(err or out)}", hint=_hint(err))
        lines = _lines(out, self._code, self._base)
        return tuple(_illegal(self._code, i, line) if i in bad else line for i, line in enumerate(lines))

    def kill(self) -> None:
        """End the process if it still runs; may be called at any time, more than once."""
        self._child.close()


def _raw_arch(arch: str) -> str:
    found = _ARCH.match(arch)
    if not found:
        raise UsageError(f"{arch[:40]!r} is no GPU architecture like sm_90")
    return f"SM{found[1]}{found[2].lower()}"


def _lines(out: str, code: bytes, base: int) -> tuple[SassLine, ...]:
    lines = [SassLine(int(m[1], 16), _clean(m[2])) for m in _INSTRUCTION.finditer(out)]
    expected = range(base, base + len(code), INSTRUCTION_BYTES)
    if len(lines) != len(expected) or any(line.pc != pc for line, pc in zip(lines, expected, strict=True)):
        raise ToolFailed(
            f"nvdisasm gave {len(lines)} instructions for {len(expected)}, or others than were asked for"
        )
    return tuple(lines)


def _clean(text: str) -> str:
    """Annotations such as ``(*"SpillRefill"*)`` are comments of one nvdisasm release."""
    return _BLANKS.sub(" ", _ANNOTATION.sub("", text)).strip().replace(" ,", ",")


def _illegal_words(err: str, code: bytes, base: int) -> set[int]:
    """Indices of the words that nvdisasm refused: it names some by address, all-zero words not at all."""
    if "Illegal instruction" not in err:
        return set()
    count = len(code) // INSTRUCTION_BYTES
    bad = {(address - base) // INSTRUCTION_BYTES for address in _addresses(err)}
    zero = bytes(INSTRUCTION_BYTES)
    bad |= {i for i in range(count) if _word(code, i) == zero}
    return {i for i in bad if 0 <= i < count}


def _addresses(err: str) -> list[int]:
    return [int(m[1], 16) for m in _ILLEGAL_AT.finditer(err)]


def _word(code: bytes, index: int) -> bytes:
    return code[index * INSTRUCTION_BYTES : (index + 1) * INSTRUCTION_BYTES]


def _masked(code: bytes, bad: set[int]) -> bytes:
    masked = bytearray(code)
    for index in bad:
        masked[index * INSTRUCTION_BYTES : (index + 1) * INSTRUCTION_BYTES] = _NOP
    return bytes(masked)


def _illegal(code: bytes, index: int, line: SassLine) -> SassLine:
    return SassLine(line.pc, f"ILLEGAL 0x{int.from_bytes(_word(code, index), 'little'):032x}")


def _hint(err: str) -> str | None:
    if "is not defined for option" in err:
        return (
            "this nvdisasm does not know the architecture: use another release (12.9 is the last for sm_70)"
        )
    return None
