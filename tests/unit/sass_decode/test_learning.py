"""The table scripts, against an oracle of our own: what they learn must be what it does."""

from __future__ import annotations

import random
from pathlib import Path

from crashlab.sass.decode.model import ClassModel
from crashlab.sass.decode.tables import load_blocks

# isort: split
# conftest.py puts scripts/sass on the import path
from checking import check, compare, compiled
from derive_tables import schedule, write_table
from learner import learn
from tokens import diff, tokenize
from verifier import describes

_SIZES = {0: ".U8", 1: ".S8", 4: "", 5: ".64", 6: ".128"}
_SCOPES = ("", ".CTA", ".GPU", ".SYS")


def _register(number: int) -> str:
    return "RZ" if number == 255 else f"R{number}"


def load_text(word: int, pc: int) -> str | None:
    """A made-up load instruction with hidden, signed and dependent fields."""
    size, scope = _SIZES.get(word >> 73 & 7), _SCOPES[word >> 77 & 3]
    if size is None or word >> 90 & 3 != 2 or (word >> 76 & 1 and not scope):
        return None
    offset = word >> 40 & 0xFFFFFF
    signed = offset - (1 << 24) if offset >> 23 else offset
    base = word >> 24 & 255
    if base == 255:
        address = hex(offset)
    else:
        address = _register(base) + (".64" if word >> 72 & 1 else "") + (f"+{hex(signed)}" if signed else "")
    number = word >> 12 & 15
    guard = "" if number == 7 else f"@{'!' * (number >> 3)}P{'T' if number & 7 == 7 else number & 7} "
    name = "LDX" + ".E" * (word >> 72 & 1) + size + ".STRONG" * (word >> 76 & 1) + scope
    return f"{guard}{name} {_register(word >> 16 & 255)}, [{address}]"


def branch_text(word: int, pc: int) -> str | None:
    """A made-up branch: relative target, optional predicate."""
    if word >> 90 & 3 != 2:
        return None
    distance = (word >> 34 & (1 << 30) - 1) << 2
    distance -= (1 << 32) if distance >> 31 else 0
    predicate = word >> 87 & 7
    return (
        f"BRX{'.U' * (word >> 32 & 1)} {'' if predicate == 7 else f'P{predicate}, '}{hex(pc + 16 + distance)}"
    )


class ToyOracle:
    """Answers like :class:`oracle.Oracle`, from a function."""

    def __init__(self, text: object) -> None:
        self.text = text

    def ask(self, words: list[int], base: int = 0) -> list[str | None]:
        return [self.text(word, base + 16 * at) for at, word in enumerate(words)]  # type: ignore[operator]


def _load_samples(count: int) -> list[int]:
    rng = random.Random(4)
    words = []
    while len(words) < count:
        word = 0x981 | 7 << 12 | rng.getrandbits(64) & ~0xFFFF | 2 << 90
        word |= rng.choice([0, 4, 5]) << 73 | rng.getrandbits(1) << 72 | rng.choice([0, 2, 3]) << 77
        word |= rng.getrandbits(1) << 76
        if load_text(word, 0):
            words.append(word)
    return words


def _learn(text: object, opcode: int, samples: list[int]) -> list[list[str]]:
    log: list[str] = []
    results = schedule(ToyOracle(text), {opcode: learn(opcode, samples, 63, log)}, log)  # type: ignore[arg-type]
    assert results[opcode], log
    return results[opcode]  # type: ignore[return-value]


def test_a_learned_class_predicts_every_word_or_calls_it_unknown() -> None:
    models = [ClassModel(block) for block in _learn(load_text, 0x981, _load_samples(300))]
    rng = random.Random(5)
    known = 0
    for _ in range(3000):
        word = 0x981 | rng.getrandbits(105) & ~0xFFF
        word = word & ~(3 << 90) | 2 << 90 if rng.random() < 0.8 else word
        model = next((m for m in models if word & m.when_mask == m.when_value), None)
        found = None if model is None else model.guarded_text(word, 0)
        truth = load_text(word, 0)
        if truth is not None and found is not None:
            assert found == truth
            known += 1
    assert known > 1000


def test_a_learned_branch_follows_its_address() -> None:
    rng = random.Random(6)
    samples = [0x947 | 7 << 12 | rng.getrandbits(31) << 34 | 7 << 87 | 2 << 90 for _ in range(100)]
    samples += [word & ~(7 << 87) | 3 << 87 for word in samples[:20]]
    (block,) = _learn(branch_text, 0x947, samples)
    model = ClassModel(block)
    assert model.relative
    for word in samples:
        assert model.guarded_text(word, 0x7F0000000100) == branch_text(word, 0x7F0000000100)


def test_a_block_is_accepted_where_the_oracle_agrees_and_refused_where_it_differs() -> None:
    samples = _load_samples(200)
    blocks = _learn(load_text, 0x981, samples)
    models = [ClassModel(block) for block in blocks]

    def verdict(text: object) -> object:
        return schedule(ToyOracle(text), {1: describes(models, samples, 1)}, [])[1]  # type: ignore[arg-type]

    assert verdict(load_text) == "yes"
    assert verdict(lambda word, pc: (load_text(word, pc) or "").replace(".CTA", ".SM") or None) == "no"
    assert verdict(lambda word, pc: None) == "absent"


def test_a_table_file_holds_what_was_learned(tmp_path: Path) -> None:
    blocks = _learn(load_text, 0x981, _load_samples(200))
    write_table(tmp_path / "sm_90.txt", "sm_90", None, {0x981: blocks}, [])
    write_table(tmp_path / "sm_80.txt", "sm_80", "sm_90", {}, [])
    assert load_blocks(tmp_path, "sm_80") == {0x981: blocks}


def test_a_check_tells_wrong_from_unknown_and_shows_an_example() -> None:
    samples = _load_samples(200)
    models = compiled({0x981: _learn(load_text, 0x981, samples)})
    good = check(ToyOracle(load_text), models, {0x981: samples, 0x982: [0x982]}, 20, 1)  # type: ignore[arg-type]
    assert good.accepted > 200
    assert not good.wrong

    def renamed(word: int, pc: int) -> str | None:
        return (load_text(word, pc) or "").replace(".CTA", ".SM") or None

    bad = check(ToyOracle(renamed), models, {0x981: samples}, 20, 1)  # type: ignore[arg-type]
    assert bad.wrong[0x981]
    word, ours, theirs = bad.examples[0x981]
    assert (ours, theirs) == (load_text(word, 0), renamed(word, 0))


def test_two_tables_are_the_same_or_what_differs_is_named() -> None:
    blocks = _learn(load_text, 0x981, _load_samples(200))
    tables = compiled({0x981: blocks})
    assert compare(tables, compiled({0x981: blocks}), 30, 1) == []
    fewer = [[line for line in block if line != "6\t.128"] for block in blocks]
    assert fewer != blocks
    (line,) = compare(tables, compiled({0x981: fewer}), 30, 1)
    assert "only the first knows" in line
    assert "differ" not in line
    assert compare(tables, {}, 30, 1) == ["981 LDX: only in the first"]


def test_tokens_join_to_the_text_and_numbers_are_told_from_words() -> None:
    text = "@!P0 LDG.E.64 R2, desc[UR4][R2.64+-0x8], P6"
    tokens = tokenize(text)
    assert "".join(token.text for token in tokens) == text
    assert [token.text for token in tokens if token.kind] == ["P0", "R2", "UR4", "R2", "-0x8", "P6"]
    floats = [
        token.text for token in tokenize("DSETP.GTU.AND P0, PT, |R2|, +INF , PT") if token.kind == "float"
    ]
    assert floats == ["+INF "]


def test_an_inserted_operand_is_one_difference_that_begins_at_its_comma() -> None:
    base, other = ["A", " ", "x", ", ", "z"], ["A", " ", "x", ", ", "y", ", ", "z"]
    (hunk,) = diff(base, other)
    assert other[hunk.low2 : hunk.high2] == [", ", "y"]
    assert (hunk.low, hunk.high) == (3, 3)
