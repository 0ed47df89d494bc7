"""Differential test: the decoder against nvdisasm over the code of real cubins, libraries, wheels, dumps.

    diff_nvdisasm.py --nvdisasm PATH [--limit N] [--random N] FILE...

Lists disagreements by opcode: ``wrong`` (decoder and nvdisasm print different text), ``unknown`` (the
decoder does not know the instruction). Exit code 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cubins import Code, cubin_code, images
from oracle import CONTROL_MASK, NEUTRAL_CONTROL, NOP, Oracle, OracleError

from crashlab.sass.decode import decode_range, mnemonic
from crashlab.sass.decode.tables import FAMILIES

_BATCH_BYTES = 16 * 200_000
# What the fault reader depends on: these must agree to the last character.
CRITICAL_MNEMONICS = """
    LD LDG LDL LDS LDC LDCU ULDC LDSM LDTM LDGSTS LDGMC LDGDEPBAR ST STG STL STS STSM STAS STTM
    RED REDG REDAS REDUX ATOM ATOMG ATOMS QSPC CCTL CCTLL CCTLT MEMBAR ERRBAR FENCE MATCH
    UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH UBLKCP UBLKPF UBLKRED
    UTCBAR UTCCP UTCSHIFT UTCATOMSWS UTCHMMA UTCQMMA UTCOMMA UTCIMMA SYNCS ARRIVES
    BRA BRX BRXU JMP JMX JMXU CALL RET EXIT BSSY BSYNC BREAK BAR UCGABAR_ARV UCGABAR_WAIT CGAERRBAR
    DEPBAR WARPSYNC YIELD NANOSLEEP BPT KILL RTT BMOV LEPC ELECT ENDCOLLECTIVE ACQBULK PREEXIT
    USETMAXREG SULD SUST SUATOM SURED TEX TLD TLD4 TXQ
"""
CRITICAL = frozenset(CRITICAL_MNEMONICS.split())


class Tally:
    """Counts of one architecture."""

    def __init__(self) -> None:
        self.total = self.rejected = self.critical = self.critical_bad = 0
        self.wrong: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.examples: dict[str, tuple[str, str | None, str]] = {}

    def add(self, word: bytes, ours: str | None, theirs: str | None) -> None:
        if theirs is None or "INVALID" in theirs or "???" in theirs:
            self.rejected += 1
            return
        name = mnemonic(theirs)
        self.total += 1
        self.critical += name in CRITICAL
        if ours == theirs:
            return
        self.critical_bad += name in CRITICAL
        (self.unknown if ours is None else self.wrong)[name] += 1
        self.examples.setdefault(
            f"{'unknown' if ours is None else 'WRONG'} {name}", (word[::-1].hex(), ours, theirs)
        )


def compare(oracle: Oracle, family: str, code: bytes, base: int, tally: Tally) -> None:
    """Compares one stretch of code that lies at ``base``."""
    theirs = oracle.ask_bytes(code, base)
    for at, ((_, ours), text) in enumerate(zip(decode_range(code, base, family), theirs, strict=True)):
        tally.add(code[16 * at : 16 * at + 16], ours, text)


def mutated(code: bytes, count: int, seed: int) -> bytes:
    """Returns ``count`` words of ``code`` with one to five bits flipped at random, control fields left."""
    rng = random.Random(seed)
    bits = [*range(105), 122, 123, 124]
    out = bytearray()
    for _ in range(count):
        at = 16 * rng.randrange(len(code) // 16)
        word = int.from_bytes(code[at : at + 16], "little") & ~CONTROL_MASK | NEUTRAL_CONTROL
        for bit in rng.sample(bits, rng.randint(1, 5)):
            word ^= 1 << bit
        out += word.to_bytes(16, "little")
    return bytes(out)


def batches(parts: list[Code]) -> list[bytes]:
    """Joins sections to stretches that are worth a process."""
    out, current = [], bytearray()
    for part in parts:
        current += part.code
        if len(current) >= _BATCH_BYTES:
            out.append(bytes(current))
            current = bytearray()
    return [*out, bytes(current)] if current else out


def report(tallies: dict[str, Tally]) -> bool:
    """Prints the result; returns whether nothing was wrong."""
    good = True
    for family, tally in sorted(tallies.items()):
        wrong, unknown = sum(tally.wrong.values()), sum(tally.unknown.values())
        good = good and not wrong
        share = 100 * (tally.total - wrong - unknown) / max(1, tally.total)
        print(
            f"{family}: {tally.total} instructions, {share:.4f} % agree, {wrong} wrong, {unknown} unknown; "
            f"memory, branch, barrier: {tally.critical - tally.critical_bad} of {tally.critical} agree; "
            f"{tally.rejected} rejected or marked invalid by nvdisasm"
        )
        for label, counter in (("wrong", tally.wrong), ("unknown", tally.unknown)):
            if counter:
                print(f"  {label}:", ", ".join(f"{name} {count}" for name, count in counter.most_common(40)))
        for label, (word, ours, theirs) in sorted(tally.examples.items())[:60]:
            print(f"    {label}: {word} | {ours} | {theirs}")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument("--limit", type=int, default=500_000, help="instructions an architecture and file")
    parser.add_argument("--arch", action="append", help="only this family (sm_90)")
    parser.add_argument(
        "--random", type=int, default=0, help="words with flipped bits, an architecture and file"
    )
    parser.add_argument("--seed", type=int, default=99)
    options = parser.parse_args()
    tallies: dict[str, Tally] = {}
    for path in options.files:
        chosen: dict[str, list[Code]] = defaultdict(list)
        used: Counter[str] = Counter()
        for image in images(path, options.seed):
            for part in cubin_code(image):
                family = f"sm_{part.sm}"
                if family not in FAMILIES or (options.arch and family not in options.arch):
                    continue
                if used[family] < options.limit:
                    used[family] += len(part.code) // 16
                    chosen[family].append(part)
        for family, parts in chosen.items():
            oracle = Oracle(options.nvdisasm, FAMILIES[family][2])
            try:
                oracle.ask([NOP])
            except OracleError:
                print(f"{path.name}: this nvdisasm does not know {family}", flush=True)
                continue
            tally = tallies.setdefault(family, Tally())
            for code in batches(parts):
                compare(oracle, family, code, 0x7F1200000000, tally)
            if options.random:
                sample = mutated(b"".join(part.code for part in parts), options.random, options.seed)
                changed = tallies.setdefault(f"{family} with random bits", Tally())
                compare(oracle, family, sample, 0x7F1200000000, changed)
        print(f"{path.name}: {dict(used)}", flush=True)
    return 0 if report(tallies) else 1


if __name__ == "__main__":
    sys.exit(main())
