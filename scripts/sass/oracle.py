"""nvdisasm as an oracle: many instruction words in one process, rejected ones told apart."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

_LINE = re.compile(r"^\s+/\*([0-9a-f]+)\*/\s+(.*?)\s*;\s*$")
_BAD = re.compile(r"at address 0x([0-9a-f]+)")
NOP = 0x000FC000000000000000000000007918
_NOP = NOP.to_bytes(16, "little")
# Stall 5, yield off, no barrier: legal with every instruction and every reuse flag.
NEUTRAL_CONTROL = (5 << 105) | (1 << 109) | (0x3F << 110)
YIELDING_CONTROL = (11 << 105) | (0x3F << 110)
CONTROL_MASK = ((1 << 17) - 1) << 105
_VERSION = re.compile(r"release (\d+)\.")
# Releases before 13 add a column for scheduling bits ("?trans5", "?PM1"), and call signalling NaNs of
# half precision quiet ones: what names a NaN is taken as no answer.
_COLUMN = re.compile(r"\s{2,}\?\w.*")


class OracleError(Exception):
    """nvdisasm failed in a way that names no instruction."""


class Oracle:
    """Asks one nvdisasm about raw words of one architecture (``SM90a``)."""

    def __init__(self, nvdisasm: str, arch: str) -> None:
        self.nvdisasm, self.arch = nvdisasm, arch
        shown = subprocess.run([nvdisasm, "--version"], capture_output=True, text=True, timeout=60).stdout
        release = _VERSION.search(shown)
        self._old = release is not None and int(release.group(1)) < 13

    def ask(self, words: Sequence[int], base: int = 0) -> list[str | None]:
        """Returns the text of each word, placed one after the other from ``base`` on; None: rejected."""
        return self.ask_bytes(b"".join(word.to_bytes(16, "little") for word in words), base)

    def ask_bytes(self, code: bytes, base: int = 0) -> list[str | None]:
        """Like :meth:`ask` for code as it lies in memory."""
        image = bytearray(code)
        count = len(image) // 16
        bad: set[int] = set()
        while True:
            done = self._run(image, base)
            if done.returncode == 0:
                break
            new = {(int(found, 16) - base) // 16 for found in _BAD.findall(done.stderr)} - bad
            new = {index for index in new if 0 <= index < count}
            if not new:
                return self._halves(bytes(image), base, bad, done.stderr)
            for index in new:
                image[16 * index : 16 * index + 16] = _NOP
            bad |= new
        texts: list[str | None] = [None] * count
        for line in done.stdout.splitlines():
            match = _LINE.match(line)
            if match:
                index = (int(match.group(1), 16) - base) // 16
                if index not in bad:
                    texts[index] = self._spelling(match.group(2))
        return texts

    def _spelling(self, text: str) -> str | None:
        """Returns the text as release 13 spells it, or None where an older one cannot tell."""
        if not self._old:
            return text
        return None if "NAN" in text else _COLUMN.sub("", text)

    def _run(self, image: bytearray, base: int) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "code.bin"
            path.write_bytes(image)
            argv = [self.nvdisasm, "-b", self.arch, "-base", str(base), str(path)]
            return subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=600)

    def _halves(self, code: bytes, base: int, bad: set[int], complaint: str) -> list[str | None]:
        """Some fatal errors ("more than one pattern matched") name no address: asks for each half."""
        count = len(code) // 16
        if count <= 1:
            if not complaint.startswith("nvdisasm fatal   : More than one pattern"):
                raise OracleError(f"{self.arch}: {complaint[-400:]}")
            return [None] * count
        middle = count // 2 * 16
        texts = self.ask_bytes(code[:middle], base) + self.ask_bytes(code[middle:], base + middle)
        return [None if index in bad else text for index, text in enumerate(texts)]
