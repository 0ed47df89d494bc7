"""Families: what makes two spellings of a kernel one kernel."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.postmortem import kernelname
from crashlab.postmortem.family import LONGEST, normalise

DATA = Path(__file__).parents[2] / "data" / "library"


def rows(name: str) -> list[list[str]]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("# ")]


REAL_NAMES = [row[1] for row in rows("names.tsv")] + [row[0] for row in rows("near_misses.tsv")]
# Text made of the pieces that the parsers look for, so that the search reaches their branches.
PIECE_TEXT = """
_Z _ZN N E I L S_ S1_ T0_ A2_ B2v1 7cutlass 13device_kernel 2at6native Lb1E Li128E Lj0 L9ggml_type8E 99999
_GLOBAL__N__d8ceb000_21_Distr_cu_0c5b6e85 CUB_300001_SM_900 :: < > ( ) , [ ] { } at::native::reduce_kernel
(anonymous namespace):: <unnamed>:: void $ <<< . .clone _128x64 knob_3 sm_120 sm120 triton_ poi_fused_ _0d1d2
loop_ fusion_1 cupy_ __ bmm_ _t128x8x8 _s5 fmhaSm100fKernel H64 kernel_cutlass_ _object_at_ __nv_static_1__
"""
PIECES = st.sampled_from([*PIECE_TEXT.split(), "(anonymous namespace)", " ", "\n", "\x00", "é", "|", "%"])
SYMBOLS = st.one_of(
    st.text(max_size=60), st.lists(PIECES, max_size=14).map("".join), st.sampled_from(REAL_NAMES)
)


@pytest.mark.parametrize(("symbol", "family"), rows("families.tsv"))
def test_the_family_of_a_known_name_does_not_change(symbol: str, family: str) -> None:
    assert normalise(symbol) == family


@pytest.mark.parametrize(("mangled", "demangled"), rows("spellings.tsv"))
def test_both_spellings_of_a_symbol_have_one_family(mangled: str, demangled: str) -> None:
    assert normalise(mangled) == normalise(demangled)
    assert kernelname.parse(mangled).head == kernelname.parse(demangled).head


def test_the_shapes_of_one_generated_kernel_fall_together() -> None:
    for prefix, fewer in (("nvjet_", 2), ("sm80_xmma_gemm", 1.2)):
        names = {name for name in REAL_NAMES if name.startswith(prefix)}
        assert names
        assert len({normalise(name) for name in names}) <= len(names) / fewer


def test_different_kernels_of_one_library_stay_apart() -> None:
    assert normalise("step_1") != normalise("step_2")
    assert normalise("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT") != normalise(
        "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNN"
    )
    assert normalise("cutlass::device_kernel<flash::FlashAttnFwdSm90<int>>") != normalise(
        "cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<int>>"
    )


@given(SYMBOLS)
def test_normalising_twice_changes_nothing(symbol: str) -> None:
    once = normalise(symbol)
    assert normalise(once) == once


@given(SYMBOLS)
def test_a_family_is_never_empty_and_never_long(symbol: str) -> None:
    family = normalise(symbol)
    assert bool(family) == bool(symbol)
    assert len(family) <= LONGEST
    assert "\n" not in family


@pytest.mark.parametrize(
    "piece", ["a", "_1d1", "9", "f<", "1a", "x ", "(", "\n", "L", "S_", "0x1", "_sm90", "$", "7"]
)
@pytest.mark.parametrize(
    "start", ["", "_Z", "_ZN", "loop_fusion", "bmm_t128x8", "fmhaSm100fKernel_", "void f<"]
)
def test_a_name_of_a_megabyte_is_bounded_in_time(start: str, piece: str) -> None:
    symbol = start + piece * (1_000_000 // len(piece))
    began = time.process_time()
    assert normalise(symbol)
    assert time.process_time() - began < 1.0


@given(SYMBOLS)
def test_parsing_a_symbol_gives_a_head_or_keeps_the_text(symbol: str) -> None:
    name = kernelname.parse(symbol)
    assert bool(name.head) == bool(symbol.strip()) or not name.plain
    assert len(name.words) <= 2 * kernelname.LIMIT


def test_the_translation_unit_in_an_anonymous_namespace_is_found() -> None:
    symbol = "_ZN44_GLOBAL__N__50c743a2_11_Indexing_cu_89862edb24indexing_backward_kernelIfEEvv"
    assert kernelname.parse(symbol) == (
        "indexing_backward_kernel",
        "indexing_backward_kernel",
        False,
        "Indexing.cu",
    )


def test_literals_and_booleans_read_the_same_in_both_spellings() -> None:
    mangled = "_Z9mul_mat_qIL9ggml_type12ELi64ELb0EEvPKc"
    demangled = "void mul_mat_q<(ggml_type)12, 64, false>(char const*)"
    assert (
        kernelname.parse(mangled).words == kernelname.parse(demangled).words == "mul_mat_q ggml_type 12 64 0"
    )


def test_a_symbol_that_a_tool_cut_off_still_gives_its_name() -> None:
    assert (
        normalise("_ZN6cudapy8__main__13gaussian_blurB2v1B98cw51cXTLSU") == "cudapy::__main__::gaussian_blur"
    )
    assert normalise(
        "void pytorch_flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, cutlass..."
    ) == ("pytorch_flash::flash_fwd_splitkv_kernel")
