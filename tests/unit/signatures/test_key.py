"""De-duplication keys: equal for one bug, different for another, and safe as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.facts import (
    Function,
    GpuException,
    Hang,
    HangGroup,
    Hex,
    Instruction,
    Kernel,
    Module,
    SignatureKey,
    Source,
    Verdict,
    Where,
)
from crashlab.signatures.key import VERSION, keys

CUDNN = "cudnn_generated_fort_native_sm120_matMul_pointwise_pointwise_knob_3_128x128x128"
STORE = Instruction("STS.128 [R6+0xe910], R92", "STS.128", access="store", space="shared", width_bytes=16)
FAULT = Verdict(
    kind="gpu-fault",
    headline="a store past the block",
    exception=GpuException(5, "WARP_OUT_OF_RANGE_ADDRESS", "warp"),
    kernel=Kernel(CUDNN, CUDNN),
    function=Function(CUDNN, CUDNN, 0x1A40),
    pc=Hex(0x7F7C93761D40),
    instruction=STORE,
    module=Module(3, "ab" * 32, 44464, "sm_120"),
    where=Where(0, sm_arch="sm_120", sms=(7, 12)),
)


def test_the_seed_fault_has_the_documented_form() -> None:
    family = "cudnn_generated_fort_native_sm12x_matMul_pointwise_pointwise"
    coarse = f"v1|gpu-fault|WARP_OUT_OF_RANGE_ADDRESS|{family}|store|shared"
    assert keys(FAULT) == SignatureKey(coarse, f"{coarse}|{family}+0x1a40|44464bytes|sm_120")


def test_nothing_that_differs_between_runs_is_in_a_key() -> None:
    again = FAULT._replace(
        pc=Hex(0x7FE5D3761D40),
        headline="another text",
        module=FAULT.module and FAULT.module._replace(sha256="cd" * 32, index=9),
        where=Where(5, sm_arch="sm_120", sms=(99,)),
    )
    assert keys(again) == keys(FAULT)


def test_another_tile_of_the_kernel_is_the_same_coarse_key_and_another_fine_one() -> None:
    name = CUDNN.replace("knob_3_128x128x128", "knob_7_64x128x128")
    other = FAULT._replace(kernel=Kernel(name, name), function=Function(name, name, 0x90))
    assert keys(other).coarse == keys(FAULT).coarse
    assert keys(other).fine != keys(FAULT).fine


@pytest.mark.parametrize(
    "name",
    ["WARP_OUT_OF_RANGE_ADDRESS", "Warp Out-of-range Address", "CUDBG_EXCEPTION_WARP_OUT_OF_RANGE_ADDRESS"],
)
def test_the_readers_spellings_of_an_exception_agree(name: str) -> None:
    assert keys(FAULT._replace(exception=GpuException(5, name))).coarse == keys(FAULT).coarse


@pytest.mark.parametrize(
    ("name", "slot"), [("Device Unknown Exception", "CODE_36"), ("36", "CODE_36"), ("", "CODE_36")]
)
def test_an_exception_nobody_can_name_is_its_number(name: str, slot: str) -> None:
    coarse = keys(FAULT._replace(exception=GpuException(36, name))).coarse
    assert coarse is not None
    assert coarse.split("|")[2] == slot


def test_demangled_and_mangled_names_give_one_key() -> None:
    mangled = Kernel(None, "_ZN4vllm15rms_norm_kernelIfEEvPf")
    demangled = Kernel("void vllm::rms_norm_kernel<float>(float*)", None)
    function = None
    assert keys(FAULT._replace(kernel=mangled, function=function)) == keys(
        FAULT._replace(kernel=demangled, function=function)
    )


def test_exception_access_space_and_kernel_each_make_another_bug() -> None:
    variants = [
        FAULT._replace(exception=GpuException(14, "WARP_ILLEGAL_ADDRESS")),
        FAULT._replace(instruction=STORE._replace(access="load")),
        FAULT._replace(instruction=STORE._replace(space="global")),
        FAULT._replace(kernel=Kernel("other", "other")),
    ]
    assert len({keys(verdict).coarse for verdict in [FAULT, *variants]}) == 5


def test_an_opcode_stands_in_where_the_access_is_unknown() -> None:
    coarse = keys(FAULT._replace(instruction=Instruction("@!P2 BPT.TRAP 0x1 ;"))).coarse
    assert coarse is not None
    assert coarse.split("|")[4:] == ["BPT", "-"]


def test_without_a_symbol_the_module_and_the_low_bits_of_the_pc_are_used() -> None:
    bare = FAULT._replace(kernel=None, function=None)
    elsewhere = bare._replace(pc=Hex(0x7FE500000D40))
    assert keys(bare) == keys(elsewhere)
    assert keys(bare).coarse == "v1|gpu-fault|WARP_OUT_OF_RANGE_ADDRESS|44464bytes|store|shared"
    assert (keys(bare).fine or "").endswith("|~d40|44464bytes|sm_120")
    assert (keys(bare._replace(module=None)).coarse or "").split("|")[3] == "~d40"


def test_a_jump_into_nowhere_has_no_address_in_its_key() -> None:
    wild = FAULT._replace(function=None)
    assert keys(wild) == keys(wild._replace(pc=Hex(0xDEAD000)))
    assert (keys(wild).fine or "").split("|")[6] == "-"


def test_an_assert_is_keyed_by_its_source_line() -> None:
    verdict = FAULT._replace(kind="device-assert", source=Source("/build/aten/src/IndexKernel.cu", 111))
    assert (keys(verdict).coarse or "").split("|")[4:] == ["IndexKernel.cu", "-"]
    assert (keys(verdict).fine or "").split("|")[6] == "line%20111"


def group(kernel: str, state: str, pc: int, warps: int = 4, text: str = "LDG.E R2, [R4.64]") -> HangGroup:
    return HangGroup(kernel, kernel, Hex(pc), warps, 2, (1,), text, None, state)


def test_a_hang_is_keyed_by_the_kernels_that_do_not_get_on() -> None:
    hang = Hang((group("spin_wait", "spinning", 0x1000), group("benign", "running", 0x2000, warps=900)))
    verdict = Verdict("hang", "the GPU hangs", hang=hang)
    assert keys(verdict) == SignatureKey(
        "v1|hang|spin_wait|spinning", "v1|hang|spin_wait|spinning|spin_wait:spinning:LDG"
    )
    moved = Hang(tuple(g._replace(pc=Hex(g.pc + 0x100000), warps=g.warps + 1) for g in reversed(hang.groups)))
    assert keys(verdict._replace(hang=moved)) == keys(verdict)


def test_a_fault_is_keyed_as_a_fault_although_other_warps_were_waiting() -> None:
    hang = Hang((group("spin_wait", "spinning", 0x1000),))
    assert keys(FAULT._replace(hang=hang)) == keys(FAULT)


def test_a_hang_where_all_run_is_keyed_by_all() -> None:
    hang = Hang((group("b", "running", 0x10), group("a", "running", 0x20)))
    assert keys(Verdict("hang", "", hang=hang)).coarse == "v1|hang|a+b|running"


def test_a_hang_without_symbols_falls_back_to_low_bits() -> None:
    hang = Hang((HangGroup(None, None, Hex(0x7F0000123), 1, 1),))
    assert keys(Verdict("hang", "", hang=hang)) == SignatureKey("v1|hang|~123|-", "v1|hang|~123|-|~123:-:-")


def test_stalls_and_garbage_are_keyed_by_words_not_by_numbers_or_hosts() -> None:
    one = Verdict("stall", "no token for 61.5 s on http://10.0.0.7:8000 although 3 requests run")
    two = Verdict("stall", "no token for 240 s on gpu-17.example although 12 requests run")
    assert keys(one) == keys(two)
    assert keys(one).coarse != keys(one._replace(kind="garbage")).coarse
    assert keys(one) != keys(one._replace(headline="the engine process is gone"))
    assert "10.0.0.7" not in str(keys(one))
    assert len(keys(one).coarse or "") < 40


@pytest.mark.parametrize("kind", ["no-fault", "unreadable"])
def test_nothing_to_group_has_no_key(kind: str) -> None:
    assert keys(Verdict(kind, "x")) == SignatureKey(None, None)


TEXT = st.text(max_size=30)


@given(TEXT, TEXT, TEXT, TEXT, st.booleans())
def test_no_name_can_smuggle_in_a_separator(
    kernel: str, exception: str, space: str, arch: str, hangs: bool
) -> None:
    verdict = FAULT._replace(
        kernel=Kernel(kernel, kernel),
        exception=None if hangs else GpuException(14, exception),
        instruction=STORE._replace(space=space, access=exception),
        where=Where(0, sm_arch=arch),
        hang=Hang((group(kernel, space, 1, text=arch),)) if hangs else None,
    )
    coarse, fine = keys(verdict)
    assert coarse is not None
    assert fine is not None
    slots = 4 if hangs else 6
    assert len(coarse.split("|")) == slots
    assert len(fine.split("|")) == slots + (1 if hangs else 3)
    assert fine.startswith(coarse)
    assert coarse.startswith(f"{VERSION}|gpu-fault|")
    assert fine.isprintable()
    assert fine.isascii()
    assert " " not in fine
    assert all(fine.split("|"))
