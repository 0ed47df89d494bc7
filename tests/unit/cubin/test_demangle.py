"""Readable names, held against GNU's demangler where there is one."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.cubin.demangle import demangle
from tests.support import corpus
from tests.unit.cubin.images import FOLDER, cubin, relocated

PLAIN = [
    ("_Z16oob_global_storePfxx", "oob_global_store(float*, long long, long long)"),
    ("_Z14epilogue_storeILi128EEvPfPK6float4i", "void epilogue_store<128>(float*, float4 const*, int)"),
    ("$_Z9deep_callPKfPfx$_Z5innerPKfx", "inner(float const*, long long)"),
    ("$__internal_39_$__cuda_sm20_dblrcp_rn_slowpath_v3", "__cuda_sm20_dblrcp_rn_slowpath_v3"),
    (".text._Z4spinPfx", "spin(float*, long long)"),
    ("_Z5innerPKfi$3", "inner(float const*, int) [clone $3]"),
    ("_Z5innerPKfi.clone.0", "inner(float const*, int) [clone .clone.0]"),
    ("__nv_static_28__ffd23b39_7_tmpl_cu_39773304__Z4stati", "stat(int)"),
    (
        "_ZN39_INTERNAL_e6db7df1_9_faults_cu_e08b7d199atomicAddEPii",
        "_INTERNAL_e6db7df1_9_faults_cu_e08b7d19::atomicAdd(int*, int)",
    ),
    ("_ZN2ns39_GLOBAL__N__ffd23b39_7_tmpl_cu_397733041fEv", "ns::(anonymous namespace)::f()"),
]
PLAIN += [  # newer than the libstdc++ of some systems
    ("_Z1fDF16b", "f(std::bfloat16_t)"),
    ("_Z1fDF16_", "f(_Float16)"),
    ("_Z1fIiEDTfL0p_ET_", "decltype ({parm#1}) f<int>(int)"),
    ("_ZN1AMUlvE_clEv", "A::{lambda()#1}::operator()()"),
    ("_ZNDTcl1gEE1fEv", "decltype (g())::f()"),
    ("_Z1fM1AFvvRE", "f(void (A::*)() &)"),
]
SAME = [
    "_Z1fIJicEJdEEvDp1AIT_T0_E",  # packs of different lengths where one is meant
    "_ZNEv",
    "_Z1fIXsr1A1B1CEEvv",
    "fused_silu_gate",
    "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
    "__assert_fail",
    "",
    "$",
    "$_Z1fv",
    "_Z",
    "_Z3fo",
    "_Zqq",
    "_ZTV1A",
    "_ZGVZ1fvE1x",
    "_Z1fvX",
    "_Z1fS5_",
    "_Z1fT_",
    "_Z99999999999999fv",
    "__nv_static_9_x",
    "_Z1fé",
    "_Z1f" + "P" * 4000 + "i",
    "_Z" + "1a" * 10_000,
]


@pytest.mark.parametrize(("mangled", "readable"), PLAIN)
def test_names_of_kernels_and_device_functions(mangled: str, readable: str) -> None:
    assert demangle(mangled) == readable


@pytest.mark.parametrize("name", SAME, ids=range(len(SAME)))
def test_what_is_no_mangled_name_stays_as_it_is(name: str) -> None:
    assert demangle(name) == name


GRAMMAR = (FOLDER / "names.txt").read_text().split()


@pytest.fixture(scope="module")
def gnu() -> Callable[[str], str | None]:
    """``__cxa_demangle`` of libstdc++."""
    try:
        library, libc = ctypes.CDLL("libstdc++.so.6"), ctypes.CDLL(None)
        library.__cxa_demangle.restype = ctypes.c_void_p
        libc.free.argtypes = [ctypes.c_void_p]
    except (OSError, AttributeError):
        pytest.skip("no libstdc++ here")

    def call(mangled: str) -> str | None:
        status = ctypes.c_int()
        found = library.__cxa_demangle(mangled.encode(), None, None, ctypes.byref(status))
        if not found:
            return None
        text = ctypes.string_at(found).decode()
        libc.free(found)
        return text

    return call


def test_every_rule_prints_as_gnus_demangler_does(gnu: Callable[[str], str | None]) -> None:
    for mangled in GRAMMAR:
        expected = gnu(mangled)
        if expected is not None:
            assert demangle(mangled) in (expected, mangled), mangled
    shown = [mangled for mangled in GRAMMAR if gnu(mangled) and demangle(mangled) == mangled]
    assert len(shown) <= 3, shown  # what is left out on purpose


@pytest.mark.parametrize("dump", ["torch_triton", "torch_gather", "oob_store", "shared_oob_debug"])
def test_every_name_of_real_modules_prints_as_gnus_demangler_does(
    dump: str, gnu: Callable[[str], str | None]
) -> None:
    names = {f.mangled for image in relocated(dump) for f in image.functions() if f.mangled.startswith("_Z")}
    assert len(names) > 20
    for mangled in names:
        expected = gnu(mangled)
        if expected is not None:
            assert demangle(mangled) == expected


def test_every_name_of_the_sample_of_hard_ones(gnu: Callable[[str], str | None]) -> None:
    names = [f.mangled for f in cubin("names_sm_90").functions()]
    assert len(names) >= 18
    for mangled in names:
        inner = (
            mangled[mangled.index("_Z") :] if not mangled.startswith("__nv") else mangled.split("304_")[-1]
        )
        if "__nv" in mangled:
            assert demangle(mangled) != mangled
        elif gnu(inner) is not None:
            assert demangle(mangled) == gnu(inner)


def test_short_names_that_stand_for_gigabytes_are_given_up_at_once() -> None:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    name = "_Z1f1A1BIS_S_E"
    for number in range(2, 34):
        previous = f"S{digits[number - 1]}_"
        name += f"S0_I{previous}{previous}E"
    started = time.monotonic()
    assert demangle(name) == name
    assert time.monotonic() - started < 5


def test_depth_is_bounded() -> None:
    for name in (
        "_Z1f" + "N1AI" * 3000,
        "_Z1fI" + "X" + "ng" * 3000 + "Li1EEEvv",
        "_Z" + "Z" * 3000,
        "_Z1fI" + "J" * 3000,
    ):
        assert demangle(name) == name
    chain = "_Z1f1A" + "".join(f"P{'S_' if n == 0 else f'S{n - 1}_'}" for n in range(9)) + "i"
    assert demangle(chain).startswith("f(A, A*")


MANGLED = sorted({f.mangled for f in cubin("names_sm_90").functions()} | set(GRAMMAR))


@settings(max_examples=400, deadline=2000)
@given(st.sampled_from(MANGLED), st.data())
def test_damaged_names_give_text_and_nothing_else(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(name)))
    piece = data.draw(st.text("ZNKSTIEXLJPROFADMUlt_0123456789ivcl$.", max_size=6))
    cut = data.draw(st.integers(0, 4))
    assert isinstance(demangle(name[:at] + piece + name[at + cut :]), str)


@settings(max_examples=300, deadline=2000)
@given(st.text("ZNKSTIEXLJPROFADMUltpsrfn_0123456789ivczadt", max_size=60))
def test_random_names_give_text_and_nothing_else(tail: str) -> None:
    assert isinstance(demangle("_Z" + tail), str)


def test_all_functions_of_the_dumps_have_a_readable_form() -> None:
    for name, entry in corpus.manifest().items():
        function = entry["expect"].get("function")
        if function and "_Z" in function:
            assert not demangle(function).startswith(("_Z", "$")), name
