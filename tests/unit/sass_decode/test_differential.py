"""The decoder against nvdisasm, where one is installed."""

from __future__ import annotations

import random

import pytest

from crashlab.sass.decode import decode
from crashlab.sass.decode.tables import FAMILIES
from tests.unit.sass_decode.conftest import Sample

_BASE = 0x7F0000100000
_CONTROLS = [(stall << 105) | (1 << 109) | (0x3F << 110) for stall in (1, 4, 11)]


def _variation(word: int, rng: random.Random) -> int:
    """Flips up to three bits outside the control fields."""
    word = word & ~(((1 << 17) - 1) << 105) | rng.choice(_CONTROLS)
    for _ in range(rng.randint(0, 3)):
        word ^= 1 << rng.choice([*range(12, 105), 122, 123])
    return word


@pytest.mark.integration
@pytest.mark.parametrize("family", FAMILIES)
def test_nvdisasm_agrees_about_real_words_and_random_variations(
    family: str, nvdisasm: str, samples: dict[str, list[Sample]]
) -> None:
    from oracle import Oracle, OracleError

    rng = random.Random(family)
    words = [sample.word for sample in samples[family]]
    words += [_variation(rng.choice(words), rng) for _ in range(4000)]
    try:
        texts = Oracle(nvdisasm, FAMILIES[family][2]).ask(words, _BASE)
    except OracleError as problem:
        pytest.skip(f"this nvdisasm does not know the architecture: {problem}")
    wrong = []
    known = 0
    for at, (word, text) in enumerate(zip(words, texts, strict=True)):
        if text is None or "???" in text or "INVALID" in text:
            continue
        found = decode(word, _BASE + 16 * at, family)
        known += found.known
        if found.known and found.text != text:
            wrong.append((hex(word), found.text, text))
    assert not wrong
    assert known > len(samples[family])
