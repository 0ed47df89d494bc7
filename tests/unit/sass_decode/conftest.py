"""Fixtures: proven instructions of real cubins, and nvdisasm where it is installed."""

from __future__ import annotations

import glob
import lzma
import os
import shutil
import site
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "tests" / "data" / "sass_decode" / "instructions.txt.xz"
sys.path.append(str(ROOT / "scripts" / "sass"))


class Sample(NamedTuple):
    """One instruction that nvdisasm printed: architecture, word, address, text."""

    arch: str
    word: int
    pc: int
    text: str


@pytest.fixture(scope="session")
def samples() -> dict[str, list[Sample]]:
    """Real instructions by architecture, with the text that nvdisasm gave."""
    found: dict[str, list[Sample]] = defaultdict(list)
    for line in lzma.decompress(SAMPLES.read_bytes()).decode().splitlines():
        arch, word, pc, text = line.split(" ", 3)
        found[arch].append(Sample(arch, int(word, 16), int(pc, 16), text))
    return found


@pytest.fixture(scope="session")
def nvdisasm() -> str:
    """Path of an nvdisasm; skips where there is none."""
    for folder in site.getsitepackages():
        for path in glob.glob(os.path.join(folder, "nvidia", "*", "bin", "nvdisasm")):
            return path
    path = shutil.which("nvdisasm")
    if path is None:
        pytest.skip("no nvdisasm is installed")
    return path
