"""Derives the decoder tables of ``crashlab/sass/tables`` from nvdisasm.

    derive_tables.py collect SAMPLES FILE...          distinct instructions of cubins, libraries, wheels, dumps
    derive_tables.py derive SAMPLES OUT ARCH...       one table an architecture (parents first)
    derive_tables.py check SAMPLES TABLES ARCH...     re-verifies tables, against another nvdisasm release say
    derive_tables.py compare TABLES OTHER ARCH...     what two sets of tables say differently

``collect`` needs numpy, lz4 and zstandard.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Generator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from checking import check, compare, compiled, print_check
from learner import learn
from oracle import Oracle
from verifier import describes
from words import Answers

from crashlab.sass.decode.decoder import Decoder
from crashlab.sass.decode.model import ClassModel
from crashlab.sass.decode.tables import FAMILIES, block_texts, load_blocks, own_blocks

Blocks = dict[int, list[list[str]]]
Task = Generator[list[int], Answers, object]
_CHUNK = 150_000
_BASE = 1 << 40
_PER_CLASS = 3500
_CHECKED = 700
_SEEDS = 300
_MAX_ROUNDS = 300


def schedule(
    oracle: Oracle, tasks: dict[int, Generator[list[int], Answers, object]], log: list[str]
) -> dict[int, object]:
    """Runs all tasks side by side; each round of questions is one or few nvdisasm processes."""
    results: dict[int, object] = {}
    asking: dict[int, list[int]] = {}
    for key, task in tasks.items():
        try:
            asking[key] = next(task)
        except StopIteration as stop:
            results[key] = stop.value
    start, rounds = time.monotonic(), 0
    while asking:
        rounds += 1
        if rounds > _MAX_ROUNDS:
            log += [f"{key:03x} took too many rounds" for key in asking]
            break
        words = [word for mine in asking.values() for word in mine]
        texts: list[str | None] = []
        for at in range(0, len(words), _CHUNK):
            texts += oracle.ask(words[at : at + _CHUNK], _BASE + 16 * at)
        position, after = 0, {}
        for key, mine in asking.items():
            answers = [(_BASE + 16 * (position + i), texts[position + i]) for i in range(len(mine))]
            position += len(mine)
            try:
                after[key] = tasks[key].send(answers)
            except StopIteration as stop:
                results[key] = stop.value
            except (ArithmeticError, LookupError, ValueError) as problem:
                # one class that breaks the learner must not lose the others
                log.append(f"{key:03x} broke the learner: {problem!r}")
                results[key] = None
        asking = after
        if rounds % 20 == 0:
            print(f"  round {rounds}: {len(asking)} left, {time.monotonic() - start:.0f} s", flush=True)
    return results


def load_samples(folder: Path, sm: int) -> dict[int, list[int]]:
    """Returns up to :data:`_PER_CLASS` distinct words of each opcode.

    ``folder`` may have subfolders, each written by ``collect``. They are taken in order of their names: what
    is rare (compiled snippets) goes into one that stands before that of the libraries.
    """
    import numpy as np

    found: dict[int, list[int]] = {}
    for path in sorted(folder.rglob(f"all{sm}.npy")):
        words = np.load(path)
        opcodes = (words[:, 0] & np.uint64(0xFFF)).astype(int)
        order = np.argsort(opcodes, kind="stable")
        rng = np.random.default_rng(1)
        bounds = np.searchsorted(opcodes[order], np.arange(4097))
        for opcode in range(4096):
            rows = order[bounds[opcode] : bounds[opcode + 1]]
            mine = found.get(opcode, [])
            if len(rows) > _PER_CLASS - len(mine):
                rows = rng.choice(rows, _PER_CLASS - len(mine), replace=False)
            if len(rows):
                fresh = [int(low) | int(high) << 64 for low, high in words[rows]]
                found[opcode] = list(dict.fromkeys([*mine, *fresh]))
    return found


def unknown_opcodes(samples: dict[int, list[int]], folder: Path, family: str) -> set[int]:
    """Returns the opcodes with samples that the table does not know."""
    decoder = Decoder(block_texts(str(folder), family))
    return {op for op, words in samples.items() if any(decoder.text(word, 0) is None for word in words)}


def seeds(samples: dict[int, list[int]], folder: Path, sm: int) -> dict[int, list[int]]:
    """Returns words to try for opcodes that this architecture's code does not use.

    They are words of other architectures, and words whose form (bits 9 to 11: register, immediate,
    constant or uniform operand) is changed. nvdisasm says which of them exist; another compiler may use
    them.
    """
    found: dict[int, list[int]] = {}
    for other in (80, 75, 90, 100, 120):
        if other != sm:
            for opcode, words in load_samples(folder, other).items():
                if opcode not in samples:
                    found.setdefault(opcode, words[:_SEEDS])
    rng = random.Random(sm)
    for opcode, words in samples.items():
        for form in range(8):
            sibling = opcode & 0x1FF | form << 9
            if sibling not in samples and sibling not in found:
                chosen = rng.sample(words, min(_SEEDS, len(words)))
                found[sibling] = [word & ~0xE00 | form << 9 for word in chosen]
    return found


def derive(
    oracle: Oracle, samples: dict[int, list[int]], inherited: Blocks, urz: int, log: list[str]
) -> tuple[Blocks, list[int]]:
    """Returns the blocks that differ from ``inherited``, and the inherited opcodes that do not exist."""
    rng = random.Random(7)
    checks: dict[int, Task] = {}
    for opcode, blocks in inherited.items():
        words = samples.get(opcode, [])
        chosen = rng.sample(words, min(_CHECKED, len(words)))
        checks[opcode] = describes([ClassModel(block) for block in blocks], chosen, opcode)
    verdicts = schedule(oracle, checks, log)
    good = {opcode for opcode, verdict in verdicts.items() if verdict == "yes"}
    tasks = {
        opcode: learn(opcode, words, urz, log) for opcode, words in samples.items() if opcode not in good
    }
    print(f"  inherited {len(good)}, to learn {len(tasks)}", flush=True)
    learned = schedule(oracle, tasks, log)
    own: Blocks = {opcode: blocks for opcode, blocks in learned.items() if blocks}  # type: ignore[misc]
    dropped = [opcode for opcode in inherited if opcode not in good and opcode not in own]
    return own, dropped


def write_table(path: Path, family: str, parent: str | None, own: Blocks, dropped: list[int]) -> None:
    """Writes one table file; blocks in order of opcode."""
    lines = [f"# Instructions of {family}, learned from nvdisasm by scripts/sass/derive_tables.py."]
    if parent:
        lines.append(f"inherits {parent}")
    if dropped:
        lines.append("drop " + " ".join(f"{opcode:03x}" for opcode in sorted(dropped)))
    for opcode in sorted(own):
        for block in own[opcode]:
            lines += ["", *block]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def derive_family(family: str, oracle: Oracle, folder: Path, samples: Path, wanted: str) -> None:
    """Writes the table of one family.

    ``wanted``: "" for all opcodes of the samples, "new" for those that the table lacks, "seeds" for these
    and such as no sample has, "unknown" for those with samples that the table does not know, or a
    comma-separated list of opcodes to learn anew. Other blocks stay, and so do those that fail.
    """
    parent, sm, _, urz = FAMILIES[family]
    log: list[str] = []
    words = load_samples(samples, sm)
    inherited = load_blocks(folder, parent) if parent else {}
    target = folder / f"{family}.txt"
    kept: Blocks = {}
    gone: list[int] = []
    spare: Blocks = {}
    if wanted not in ("", "new", "unknown"):
        words |= seeds(words, samples, sm)
    if wanted:
        kept, gone = own_blocks(target.read_text(encoding="utf-8"))
    if wanted in (
        "new",
        "seeds",
        "unknown",
    ):  # what is inherited is verified again: the parent may have grown
        stale = unknown_opcodes(words, folder, family) if wanted == "unknown" else set()
        spare = {opcode: blocks for opcode, blocks in kept.items() if opcode in stale}
        kept = {opcode: blocks for opcode, blocks in kept.items() if opcode not in stale}
        gone = []
        words = {opcode: mine for opcode, mine in words.items() if opcode not in kept}
        inherited = {opcode: blocks for opcode, blocks in inherited.items() if opcode not in kept}
    elif wanted:
        only = {int(opcode, 16) for opcode in wanted.split(",")}
        spare = {opcode: blocks for opcode, blocks in kept.items() if opcode in only}
        words = {opcode: mine for opcode, mine in words.items() if opcode in only}
        inherited = {opcode: blocks for opcode, blocks in inherited.items() if opcode in only}
        kept = {opcode: blocks for opcode, blocks in kept.items() if opcode not in only}
        gone = [opcode for opcode in gone if opcode not in only]
    own, dropped = derive(oracle, words, inherited, urz, log)
    missing = sorted(set(words) - set(own) - (set(inherited) - set(dropped)))
    spare = {opcode: blocks for opcode, blocks in spare.items() if opcode in missing or opcode in dropped}
    own, dropped = kept | own | spare, [opcode for opcode in gone + dropped if opcode not in spare]
    write_table(target, family, parent, own, dropped)
    print("\n".join("  " + line for line in log if "knows none" not in line))
    names = " ".join(f"{opcode:03x}" for opcode in missing)
    print(f"  {len(own)} own, {len(dropped)} dropped, missing: {names or 'none'}", flush=True)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=["collect", "derive", "check", "compare"])
    parser.add_argument("samples", type=Path)
    parser.add_argument("rest", nargs="+")
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument(
        "--only", default="", help="opcodes to learn anew (hexadecimal, commas), or: new, seeds, unknown"
    )
    parser.add_argument("--count", type=int, default=400, help="random words a class, for check and compare")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--arch", action="append", help="collect only this architecture (sm_70)")
    options = parser.parse_args()
    if options.action == "collect":
        from cubins import collect

        only = frozenset(int(name.removeprefix("sm_")) for name in options.arch or ())
        collect(options.samples, [Path(name) for name in options.rest], only)
        return 0
    folder = Path(options.rest[0])
    good = True
    for family in options.rest[1:]:
        _, sm, name, _ = FAMILIES[family]
        print(f"{family} ({name})", flush=True)
        if options.action == "compare":
            one, two = (compiled(load_blocks(path, family)) for path in (options.samples, folder))
            found = compare(one, two, options.count, options.seed)
            print("\n".join("  " + line for line in found or ["the same"]), flush=True)
            good = good and not found
            continue
        oracle = Oracle(options.nvdisasm, name)
        if options.action == "check":
            samples = load_samples(options.samples, sm)
            chosen = {opcode: words[:_CHECKED] for opcode, words in samples.items()}
            result = check(oracle, compiled(load_blocks(folder, family)), chosen, options.count, options.seed)
            print_check(result)
            good = good and not result.wrong
        else:
            derive_family(family, oracle, folder, options.samples, options.only)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
