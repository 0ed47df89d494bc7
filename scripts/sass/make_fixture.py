"""Writes the sample of proven instructions that tests/unit/sass_decode reads without nvdisasm.

    make_fixture.py SAMPLES OUT.xz [--nvdisasm PATH] [--count N] [--arch sm_70 ...]

Lines ``ARCH WORD PC TEXT`` (hexadecimal), text from nvdisasm, spread over opcodes and text shapes. Lines of
architectures that are not asked for, or that this nvdisasm does not know, stay as they are.
``SAMPLES`` is the folder that ``derive_tables.py collect`` wrote.
"""

from __future__ import annotations

import argparse
import lzma
import random
import re
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from derive_tables import load_samples
from oracle import CONTROL_MASK, NEUTRAL_CONTROL, Oracle, OracleError

from crashlab.sass.decode.tables import FAMILIES

_BASE = 0x7F4B2C000000


def chosen_lines(family: str, oracle: Oracle, samples: dict[int, list[int]], count: int) -> list[str]:
    """Returns about ``count`` lines: one of every text shape first, rare opcodes before frequent ones."""
    rng = random.Random(family)
    words = [
        w & ~CONTROL_MASK | NEUTRAL_CONTROL
        for mine in samples.values()
        for w in rng.sample(mine, min(60, len(mine)))
    ]
    shapes: dict[str, list[str]] = defaultdict(list)
    for at, (word, text) in enumerate(zip(words, oracle.ask(words, _BASE), strict=True)):
        if text is not None:
            shape = re.sub(r"\d+", "#", text)
            shapes[shape].append(f"{family} {word:032x} {_BASE + 16 * at:x} {text}")
    picks = [rng.choice(lines) for lines in shapes.values()]
    rng.shuffle(picks)
    return sorted(picks[:count])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("samples", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--arch", nargs="*", default=list(FAMILIES))
    options = parser.parse_args()
    old = lzma.decompress(options.out.read_bytes()).decode().splitlines() if options.out.exists() else []
    lines: list[str] = []
    for family, (_, sm, name, _) in FAMILIES.items():
        kept = [line for line in old if line.startswith(f"{family} ")]
        if family in options.arch:
            try:
                samples = load_samples(options.samples, sm)
                kept = chosen_lines(family, Oracle(options.nvdisasm, name), samples, options.count)
            except OracleError as problem:
                print(f"{family}: {problem}")
        lines += kept
    options.out.write_bytes(lzma.compress(("\n".join(lines) + "\n").encode(), preset=9))
    print(f"{len(lines)} lines, {options.out.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
