#!/usr/bin/env python3
"""Hold the operand parser against nvdisasm's register life ranges, over real machine code.

Inputs are cubins, folders of cubins, wheels that contain ``.cubin`` files, and shared libraries or
wheels with them when cuobjdump is given. Prints coverage, opcodes and forms that are not known, and
every disagreement; the exit status is 1 when there is one.

usage: check_operands.py [--nvdisasm PATH] [--cuobjdump PATH] [--limit N] [--fixture OUT.xz] INPUT ...
"""

from __future__ import annotations

import argparse
import collections
import lzma
import random
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from liferanges import Row, rows

from crashlab.errors import CrashlabError
from crashlab.sass.operands import ParsedInstruction, parse

SAMPLES = 4  # of each shape that are compared


def cubins(inputs: list[Path], cuobjdump: str | None, scratch: Path) -> Iterator[Path]:
    for path in inputs:
        if path.is_dir():
            yield from sorted(path.rglob("*.cubin"))
        elif path.suffix == ".whl":
            yield from _from_wheel(path, cuobjdump, scratch)
        elif re.search(r"\.so(\.\d+)*$", path.name):
            yield from _from_library(path, cuobjdump, scratch)
        else:
            yield path


def _from_wheel(path: Path, cuobjdump: str | None, scratch: Path) -> Iterator[Path]:
    with zipfile.ZipFile(path) as wheel:
        for name in wheel.namelist():
            if name.endswith(".cubin") or (cuobjdump and re.search(r"\.so(\.\d+)*$", name)):
                target = Path(wheel.extract(name, scratch))
                yield from [target] if name.endswith(".cubin") else _from_library(target, cuobjdump, scratch)


def _from_library(path: Path, cuobjdump: str | None, scratch: Path) -> Iterator[Path]:
    if cuobjdump is None:
        raise SystemExit(f"{path} needs --cuobjdump")
    folder = Path(tempfile.mkdtemp(dir=scratch))
    subprocess.run([cuobjdump, "-xelf", "all", path.resolve()], cwd=folder, capture_output=True)
    yield from sorted(folder.glob("*.cubin"))


def listing(nvdisasm: str, cubin: Path) -> str:
    done = subprocess.run([nvdisasm, "-c", "-plr", "-lrm", "narrow", cubin], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def architecture(text: str) -> str:
    """Releases before 13 name it in the header flags only."""
    target = re.search(r"\.target\s+(\S+)", text)
    flags = re.search(r"EF_CUDA_SM(\d+)", text)
    return target[1] if target else f"sm_{flags[1]}" if flags else "sm_?"


def shape(text: str) -> str:
    """The instruction without its guard, register numbers and immediate values."""
    text = re.sub(r"\(\*[^)]*\*\)", "", re.sub(r"^@!?\S+ ", "", text))
    text = re.sub(r"`\(.*\)", "L", text)
    text = re.sub(r"\b(UR|UP|R|P|B|SB)\d+", r"\1#", text)
    return re.sub(r"(?<![\w.#])-?(0x[0-9a-f]+|\d+(\.\d+)?(e[-+]\d+)?)\b", "N", text)


# What the oracle itself leaves out or adds; everything else is a disagreement.
THROUGH_MASK = ("R2P", "P2R", "UR2UP", "UP2UR")  # predicates that a mask names
ORACLE_HIGHEST_UNIFORM = 62


def differences(parsed: ParsedInstruction, row: Row, shown: frozenset[str]) -> list[str]:
    """Words for each disagreement; empty when parser and oracle agree."""
    if parsed.access == "call":
        return []
    found = []
    if parsed.defines is not None:
        mine, theirs = _visible(parsed.defines, shown), set(row.defines)
        if parsed.opcode == "LDGSTS":  # its predicate is shown as written; it is only read
            theirs = {name for name in theirs if not name.startswith("P")}
        if parsed.space == "texture":  # all four components are claimed although fewer may be shown
            mine &= theirs
        if parsed.opcode not in THROUGH_MASK and mine != theirs:
            found.append(f"defines {sorted(mine)}, oracle {sorted(theirs)}")
    if parsed.reads is not None:
        mine, theirs = _visible(parsed.reads, shown), set(row.reads)
        hidden = theirs - mine
        if _hides_descriptor(parsed) and len(hidden) == 2 and all(name.startswith("UR") for name in hidden):
            theirs -= hidden
        if parsed.opcode not in THROUGH_MASK and mine != theirs:
            found.append(f"reads {sorted(mine)}, oracle {sorted(theirs)}")
    return found


def _hides_descriptor(parsed: ParsedInstruction) -> bool:
    """sm_80 to sm_89 have a descriptor in the encoding that nvdisasm does not print."""
    return parsed.space in ("global", "generic") and "desc" not in parsed.text


def _visible(names: tuple[str, ...], shown: frozenset[str]) -> set[str]:
    def visible(name: str) -> bool:
        if name.startswith("UR"):
            return int(name[2:]) <= ORACLE_HIGHEST_UNIFORM and name in shown
        return not name.startswith("B")

    return {name for name in names if visible(name)}


def main() -> int:
    options = _options()
    seen: collections.Counter[str] = collections.Counter()
    unknown: collections.Counter[str] = collections.Counter()
    fixture: dict[str, str] = {}
    failures: dict[str, str] = {}
    total = 0
    with tempfile.TemporaryDirectory() as scratch:
        files = list(cubins(options.inputs, options.cuobjdump, Path(scratch)))
        random.Random(options.seed).shuffle(files)
        for cubin in files[: options.limit or None]:
            text = listing(options.nvdisasm, cubin)
            arch = architecture(text)
            found = list(rows(text))
            shown = frozenset().union(*(row.defines | row.reads for row in found)) if found else frozenset()
            for row in found:
                total += 1
                key = shape(row.text)
                seen[key] += 1
                if seen[key] <= SAMPLES:
                    _compare(row, arch, key, shown, unknown, fixture, failures)
    known = total - sum(seen[key] for key in unknown)
    print(f"{total} instructions of {len(files[: options.limit or None])} cubins, {len(seen)} shapes")
    print(f"definitions known for {known} ({100 * known / max(1, total):.4f} %)")
    for key in sorted(unknown, key=lambda key: -seen[key]):
        print(f"  not known, {seen[key]} times: {key}")
    for key, words in sorted(failures.items()):
        print(f"  DISAGREES: {key}: {words}")
    if options.fixture:
        options.fixture.write_bytes(lzma.compress("\n".join(sorted(fixture.values())).encode(), preset=9))
    return 1 if failures else 0


def _compare(
    row: Row,
    arch: str,
    key: str,
    shown: frozenset[str],
    unknown: collections.Counter[str],
    fixture: dict[str, str],
    failures: dict[str, str],
) -> None:
    try:
        parsed = parse(row.text)
    except CrashlabError as error:
        failures[key] = f"{row.text}: {error}"
        return
    if parsed.defines is None and parsed.access != "call":
        unknown[key] += 1
    wrong = differences(parsed, row, shown)
    if wrong:
        failures[key] = f"{arch} {row.text}: {'; '.join(wrong)}"
    fixture.setdefault(
        key, "\t".join((arch, row.text, ",".join(sorted(row.defines)), ",".join(sorted(row.reads))))
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("inputs", nargs="+", type=Path)
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument("--cuobjdump")
    parser.add_argument("--limit", type=int, default=0, help="at most this many cubins, chosen at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--fixture", type=Path, help="write one instruction a shape, with the oracle's answer"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
