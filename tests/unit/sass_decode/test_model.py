"""A class of instructions, read from its block of lines."""

from __future__ import annotations

from crashlab.sass.decode.model import ClassModel

_TOY = """@ 981 LDG P 0 0
s a R 16:8:0 255
s b R 24:8:0 255
s d shex 40:24:0 0
g a
/0\t$a
/1\tRZ
g b d
/0/0\t$b.64+$d
/0/1\t$b.64
/1/0\t$d
g 73:3
0\t.U8
4\t
5\t.64
g 90:2
3
t LDG.E<2.0> <0.0>, [<1.0>]"""
TOY = _TOY.split("\n")

_POWERS = """@ 824 IMAD - 0 0
s a shex 32:32:0 0 65536 pow2
g a
/0\t $a
/1\t.MOV
/2\t.U32 $a
/3\t.SHL $a
t IMAD<0.0>"""
POWERS = _POWERS.split("\n")


def word(*, size: int = 4, rd: int = 2, ra: int = 4, offset: int = 0, guard: int = 7, top: int = 3) -> int:
    low = 0x981 | guard << 12 | rd << 16 | ra << 24 | (offset & 0xFFFFFF) << 40
    return low | size << 73 | top << 90


def test_groups_choose_words_and_slots_fill_in_numbers() -> None:
    model = ClassModel(TOY)
    assert model.guarded_text(word(), 0) == "LDG.E R2, [R4.64]"
    assert model.guarded_text(word(size=5, offset=-16), 0) == "LDG.E.64 R2, [R4.64+-0x10]"
    assert model.guarded_text(word(rd=255, size=0), 0) == "LDG.E.U8 RZ, [R4.64]"


def test_the_guard_predicate_is_printed_unless_it_is_always_true() -> None:
    model = ClassModel(TOY)
    assert model.guarded_text(word(guard=2), 0) == "@P2 LDG.E R2, [R4.64]"
    assert model.guarded_text(word(guard=0xF), 0) == "@!PT LDG.E R2, [R4.64]"


def test_a_value_without_a_row_is_unknown() -> None:
    model = ClassModel(TOY)
    assert model.guarded_text(word(size=6), 0) is None
    assert model.guarded_text(word(top=1), 0) is None


def test_a_combination_of_categories_without_a_row_is_unknown() -> None:
    assert ClassModel(TOY).guarded_text(word(ra=255, offset=0), 0) is None


def test_numbers_of_an_instruction_are_available_by_slot() -> None:
    assert ClassModel(TOY).values(word(rd=7, ra=9, offset=3)) == {"a": 7, "b": 9, "d": 3}


def test_powers_of_two_can_be_a_category_and_exact_values_come_first() -> None:
    model = ClassModel(POWERS)
    assert model.text(0x824 | 3 << 32, 0) == "IMAD 0x3"
    assert model.text(0x824 | 8 << 32, 0) == "IMAD.SHL 0x8"
    assert model.text(0x824 | 65536 << 32, 0) == "IMAD.U32 0x10000"
    assert model.text(0x824, 0) == "IMAD.MOV"
