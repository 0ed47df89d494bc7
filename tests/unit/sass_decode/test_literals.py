"""Numbers read exactly as nvdisasm spells them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.sass.decode.literals import (
    bf16_text,
    f16_text,
    f32_text,
    f64_high_text,
    formatter,
    gather,
    signed,
)
from crashlab.sass.decode.model import parse_segments, scatter, segments_mask


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        (0x00000000, "0"),
        (0x80000000, "-0.0 "),
        (0x3F800000, "1"),
        (0x3F4C422A, "0.79788458347320556641"),
        (0xCB40007F, "-12583039"),
        (0x3851B717, "4.9999998736893758178e-05"),
        (0x4E18CC1D, "640878400"),
        (0x4E81D4F0, "1.08910796800000000000e+09"),
        (0x7F800000, "+INF "),
        (0xFF800000, "-INF "),
        (0x7FC00000, "+QNAN "),
        (0xFFFFFFFF, "-QNAN "),
        (0x7F800001, "+SNAN "),
        (0x00000001, "1.4012984643248170709e-45"),
    ],
)
def test_a_float_immediate_reads_as_nvdisasm_prints_it(bits: int, text: str) -> None:
    assert f32_text(bits) == text


def test_the_other_float_formats_read_as_nvdisasm_prints_them() -> None:
    assert f16_text(0x2E66) == "0.0999755859375"
    assert f16_text(0xFBFF) == "-65504"
    assert f16_text(0x7C01) == "+SNAN "
    assert bf16_text(0x4E73) == "1.01921587200000000000e+09"
    assert f64_high_text(0x43380000) == "6.75539944105574400000e+15"
    assert f64_high_text(0x3FB99999) == "0.099999964237213134766"
    assert f64_high_text(0xFFF80000) == "-QNAN "


def test_a_branch_target_counts_from_the_next_instruction() -> None:
    show = formatter("target", ((0, 16, 0),))
    assert show(0x20, 0x1000) == "0x1030"
    assert show(0xFFF0, 0x1000) == "0x1000"
    assert show(0xFFE0, 0x0) == "-0x10"


def test_register_numbers_may_be_inverted_or_name_the_next_register() -> None:
    assert formatter("P~", ((4, 3, 0),))(0b101 << 4, 0) == "P2"
    assert formatter("UR+1", ((0, 6, 0),))(14, 0) == "UR15"
    assert formatter("R", ((0, 4, 0), (8, 8, 4)))(0x101, 0) == "R17"


def test_signed_and_unsigned_hexadecimals_differ_in_the_top_bit_only() -> None:
    assert formatter("shex", ((0, 8, 0),))(0x80, 0) == "-0x80"
    assert formatter("hex", ((0, 8, 0),))(0x80, 0) == "0x80"
    assert signed(0x7F, 8) == 127


@given(st.integers(0, (1 << 24) - 1))
def test_scattered_bits_gather_to_the_same_value(value: int) -> None:
    segments = parse_segments("16:8:0,40:10:8,80:6:18")
    word = scatter(value, segments)
    assert gather(word, segments) == value
    assert word & ~segments_mask(segments) == 0
