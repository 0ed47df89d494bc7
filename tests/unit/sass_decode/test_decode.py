"""Words to text, without nvdisasm."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.errors import CrashlabError
from crashlab.sass.decode import decode, decode_range, is_known_arch, mnemonic, raw_text
from crashlab.sass.decode.control import CONTROL_MASK, control_of
from crashlab.sass.decode.tables import FAMILIES
from tests.unit.sass_decode.conftest import Sample

# LDG.E R2, desc[UR4][R2.64] of an sm_90 cubin
LOAD = 0x000EA2000C1E19000000000402027981
LOAD_TEXT = "LDG.E R2, desc[UR4][R2.64]"
# BRA to itself
BRANCH = 0x000FC0000383FFFFFFFFFFFC00FC7947


@pytest.mark.parametrize("family", FAMILIES)
def test_real_instructions_read_exactly_as_nvdisasm_printed_them(
    family: str, samples: dict[str, list[Sample]]
) -> None:
    mine = samples[family]
    assert len(mine) > 80
    results = [(sample, decode(sample.word, sample.pc, family)) for sample in mine]
    wrong = [(s.text, found.text) for s, found in results if found.known and found.text != s.text]
    unknown = [s.text for s, found in results if not found.known and "???" not in s.text]
    assert not wrong
    assert len(unknown) <= len(mine) // 50, unknown[:20]


def test_an_instruction_is_decoded_from_its_bytes_or_its_number() -> None:
    found = decode(LOAD.to_bytes(16, "little"), 0x100, "sm_90a")
    assert found == decode(LOAD, 0x100, "SM90")
    assert (found.text, found.opcode, found.known, found.pc) == (LOAD_TEXT, "LDG", True, 0x100)


def test_control_fields_are_read_and_do_not_change_the_text() -> None:
    control = decode(LOAD, 0, "sm_90").control
    assert (control.stall, control.yields, control.write_barrier, control.read_barrier) == (1, False, 2, None)
    changed = LOAD & ~CONTROL_MASK | (7 << 105) | (0x3F << 110) | (0b100101 << 116)
    found = decode(changed, 0, "sm_90")
    assert found.text == LOAD_TEXT
    assert (found.control.stall, found.control.yields, found.control.wait_mask) == (7, True, 0b100101)
    assert found.control.write_barrier is None


def test_reuse_flags_are_text_and_control() -> None:
    # FADD R0, R2.reuse, R3 of an sm_90 cubin
    word = 0x040FE200000000000000000302007221
    assert decode(word, 0, "sm_90").text == "FADD R0, R2.reuse, R3"
    assert control_of(word).reuse == 1


def test_an_unknown_word_shows_its_raw_words_and_nothing_else() -> None:
    found = decode(0, 0, "sm_90")
    assert (found.known, found.opcode) == (False, None)
    assert found.text == "unknown 0x0000000000000000 0x0000000000000000" == raw_text(0)


def test_scheduling_that_no_instruction_has_is_unknown() -> None:
    assert not decode(LOAD | 0x1F << 105, 0, "sm_90").known


def test_branch_targets_follow_the_address() -> None:
    assert decode(BRANCH, 0x7F0000001000, "sm_90").text == "BRA 0x7f0000001000"
    assert decode(BRANCH, 0x2000, "sm_90").text == "BRA 0x2000"
    code = BRANCH.to_bytes(16, "little") * 2
    assert decode_range(code, 0x40, "sm_90") == ((0x40, "BRA 0x40"), (0x50, "BRA 0x50"))


def test_a_range_leaves_out_a_cut_instruction() -> None:
    code = LOAD.to_bytes(16, "little") * 2 + b"\x81\x79"
    assert decode_range(code, 0x10, "sm_90") == ((0x10, LOAD_TEXT), (0x20, LOAD_TEXT))
    assert decode_range(b"", 0, "sm_90") == ()


def test_an_architecture_newer_than_the_tables_gives_unknown_instructions() -> None:
    assert not decode(LOAD, 0, "sm_129").known
    assert decode_range(LOAD.to_bytes(16, "little"), 0, "sm_999") == ((0, None),)
    assert not is_known_arch("sm_129")


@pytest.mark.parametrize("arch", ["sm_61", "sm_52", "gfx90a", "", "sm_", "sm_90x"])
def test_an_architecture_that_cannot_be_decoded_is_an_error_with_a_hint(arch: str) -> None:
    with pytest.raises(CrashlabError) as caught:
        decode(LOAD, 0, arch)
    assert caught.value.hint
    assert not is_known_arch(arch)


@pytest.mark.parametrize("word", [-1, 1 << 128, b"", b"\0" * 15])
def test_what_is_no_instruction_word_is_an_error(word: int | bytes) -> None:
    with pytest.raises(CrashlabError):
        decode(word, 0, "sm_90")


def test_architecture_names_with_features_are_known() -> None:
    for name in ("sm_90", "sm_90a", "SM100a", "sm100f", "compute_120", " sm_121a "):
        assert is_known_arch(name)


def test_the_mnemonic_is_found_behind_a_guard() -> None:
    assert mnemonic("@!P0 LDG.E.64 R2, [R4]") == "LDG"
    assert mnemonic("EXIT") == "EXIT"
    assert mnemonic("@P0 EXIT") == "EXIT"


@settings(max_examples=300, deadline=None)
@given(st.integers(0, (1 << 128) - 1), st.integers(0, (1 << 64) - 1), st.sampled_from(sorted(FAMILIES)))
def test_no_word_makes_the_decoder_fail(word: int, pc: int, family: str) -> None:
    found = decode(word, pc, family)
    assert found.text == found.text.strip() != ""
    assert found.known == (found.opcode is not None)


def test_real_words_with_changed_bits_decode_or_are_unknown(samples: dict[str, list[Sample]]) -> None:
    everything = [sample for mine in samples.values() for sample in mine]

    @settings(max_examples=300, deadline=None)
    @given(st.integers(0, len(everything) - 1), st.lists(st.integers(0, 127), min_size=1, max_size=4))
    def changed(number: int, bits: list[int]) -> None:
        word = everything[number].word
        for bit in bits:
            word ^= 1 << bit
        text = decode(word, 0, everything[number].arch).text
        assert "$" not in text
        assert "<" not in text

    changed()


@given(st.binary(max_size=200), st.integers(0, (1 << 64) - 1))
def test_any_bytes_decode_to_one_line_for_sixteen_bytes(code: bytes, base: int) -> None:
    lines = decode_range(code, base, "sm_100")
    assert [pc for pc, _ in lines] == [base + at for at in range(0, len(code) // 16 * 16, 16)]
