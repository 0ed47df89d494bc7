"""One example of our own wording for every shape that transcripts of cuda-gdb 11 to 13 come in."""

# ruff: noqa: E501 (a transcript's lines are as long as the debugger prints them)
from __future__ import annotations

import textwrap

import pytest

from crashlab.debugger import flags
from crashlab.debugger.transcript import Transcript, parse
from crashlab.facts import Dim3, InlineFrame


def _parse(text: str) -> Transcript:
    return parse(textwrap.dedent(text))


def test_an_old_transcript_gives_file_and_line_but_no_function() -> None:
    t = _parse("""
        Opening GPU coredump: /data/run 7/gpu.core

        CUDA Exception: Warp Illegal Address
        The exception was triggered at PC 0x55d0a0 (scale.cu:41)
        [Current focus set to CUDA kernel 2, grid 9, block (1,0,0), thread (5,0,0), device 0, sm 3, warp 1, lane 5]
        #0  0x000000000055d0b0 in scale<<<(8,1,1),(64,1,1)>>> (x=0x7f00, n=12) at scale.cu:41
        41\t  x[i] *= 2;
    """)
    assert (t.dump, t.exception, t.exception_code) == ("/data/run 7/gpu.core", "Warp Illegal Address", 14)
    assert (t.errorpc, t.function, t.focus_first) == (0x55D0A0, None, False)
    assert t.source is not None
    assert (t.source.file, t.source.line) == ("scale.cu", 41)
    assert t.frames[0].args == "x=0x7f00, n=12"
    assert t.focus is not None
    assert (t.focus.block, t.focus.sm, t.focus.lane) == (Dim3(1, 0, 0), 3, 5)


def test_a_new_transcript_gives_function_line_and_the_place_it_was_inlined_into() -> None:
    t = _parse("""
        [Current focus set to CUDA kernel 0, grid 4, block (0,0,0), thread (0,0,0), device 1, sm 2, warp 0, lane 0]

        CUDA Exception: Warp Misaligned Address
        The exception was triggered at PC 0x7f10  outer<int, 3>(int*, std::pair<int, int>)  (vec.h:9 in _Z4loadPKi inlined from main.cu:70)
    """)
    assert t.focus_first is True
    assert t.function == "outer<int, 3>(int*, std::pair<int, int>)"
    assert t.source is not None
    assert (t.source.file, t.source.line, t.source.inlined_function) == ("vec.h", 9, "_Z4loadPKi")
    assert t.source.inlined_at == InlineFrame("main.cu", 70)


def test_a_pc_line_may_end_after_the_function_or_after_the_pc() -> None:
    assert _parse("The exception was triggered at PC 0x10  (anonymous namespace)::f(int)").function == (
        "(anonymous namespace)::f(int)"
    )
    bare = _parse("CUDA Exception: Warp Invalid PC\nThe exception was triggered at PC 0x10\n")
    assert (bare.errorpc, bare.function, bare.source) == (0x10, None, None)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Warp Out-of-range Address", 5),
        ("Warp Out of range Address", 5),
        ("warp out-of-range address", 5),
        ("CUDBG_EXCEPTION_WARP_OUT_OF_RANGE_ADDRESS", 5),
        ("Cluster target block not present", 18),
        ("Cluster out of range address", 17),
        ("Warp Tensor Memory Access Check", 20),
        ("Warp MMU Fault", 30),
        ("Something Nobody Has Seen", None),
    ],
)
def test_exception_names_vary_in_case_hyphens_and_words(name: str, code: int | None) -> None:
    t = _parse(f"CUDA Exception: {name}\n")
    assert (t.exception, t.exception_code) == (name, code)


def test_a_device_wide_exception_names_the_device_and_no_pc() -> None:
    t = _parse("""
        CUDA Exception: Device Illegal Address
        The exception was triggered in device 3.
    """)
    assert (t.exception_code, t.device, t.errorpc) == (10, 3, None)


def test_a_cluster_exception_names_the_block_it_wanted() -> None:
    t = _parse("""
        CUDA Exception: Cluster target block not present
        The imprecise exception was triggered by a thread in cluster for access to shared memory for target blockIdx(2,0,1)
    """)
    assert (t.exception_code, t.cluster_target) == (18, Dim3(2, 0, 1))


def test_focus_may_name_cluster_and_cluster_dimension() -> None:
    t = _parse(
        "[Current focus set to CUDA kernel 1, grid 88, cluster (2,0,0), cluster dim (4,1,1), "
        "block (9,0,0), thread (96,0,0), device 0, sm 17, warp 3, lane 0]"
    )
    assert t.focus is not None
    assert (t.focus.cluster, t.focus.cluster_dim) == (Dim3(2, 0, 0), Dim3(4, 1, 1))
    assert (t.focus.block, t.focus.thread) == (Dim3(9, 0, 0), Dim3(96, 0, 0))


def test_grids_that_a_kernel_launched_have_negative_numbers() -> None:
    t = _parse("[Current focus set to CUDA kernel 5, grid -3, block (0,0,0), thread (0,0,0), device 0, sm 1]")
    assert t.focus is not None
    assert (t.focus.grid, t.focus.warp) == (-3, None)


def test_coordinates_that_are_no_numbers_stay_absent() -> None:
    t = _parse("[Current focus set to CUDA kernel 5, grid 3, block (*,*,*), device 0, sm invalid, warp *]")
    assert t.focus is not None
    assert (t.focus.block, t.focus.sm, t.focus.warp, t.focus.device) == (None, None, None, 0)


def test_an_assert_has_no_exception_line() -> None:
    t = _parse("""
        [Current focus set to CUDA kernel 0, grid 1, block (0,0,0), thread (4,0,0), device 0, sm 0, warp 0, lane 4]

        Assertion failed.
        #0  0x0000000000000b10 in lookup<<<(1,1,1),(32,1,1)>>> () at lookup.cu:7
    """)
    assert (t.exception, t.exception_code, t.flags) == (None, 12, {flags.ASSERT})


def test_a_trap_shows_a_signal_only() -> None:
    t = _parse("""
        Program terminated with signal SIGTRAP, Trace/breakpoint trap.
        #0  0x0000000000000b10 in stop<<<(1,1,1),(32,1,1)>>> () at stop.cu:7
    """)
    assert (t.exception_code, t.flags) == (None, {flags.TRAP})


def test_an_exception_that_the_debugger_does_not_know_keeps_its_number() -> None:
    for text in (
        "warning: Encountered unhandled device exception (20)\n\nCUDA Exception: Device Unknown Exception\n",
        "CUDA Exception: Device Unknown Exception\nwarning: Encountered unhandled device exception (20)\n",
    ):
        t = parse(text)
        assert (t.exception, t.exception_code) == ("Device Unknown Exception", 20)
        assert flags.UNHANDLED in t.flags


def test_no_exception_and_no_kernels_are_said_in_words() -> None:
    t = _parse("""
        Opening GPU coredump: g.core
        warning: No exception was found on any device
        warning: No focus could be set on any device
        No CUDA kernels.
        #0  <unavailable> in ?? ()
        Focus is not set on any active CUDA kernel.
    """)
    assert t.flags == {flags.NO_EXCEPTION, flags.NO_FOCUS, flags.NO_KERNELS}
    assert (t.exception, t.errorpc, t.pc) == (None, None, None)


def test_a_live_session_says_switching_and_received_signal() -> None:
    t = _parse("""
        Thread 5 "VLLM::Worker" received signal CUDA_EXCEPTION_14, Warp Illegal Address.
        [Switching focus to CUDA kernel 3, grid 561, block (0,0,0), thread (192,0,0), device 1, sm 0, warp 5, lane 0]
        0x00007ff35529d000 in void convert<float, __half>(void const*, __half*, long)<<<(32,1,1),(256,1,1)>>> ()
    """)
    assert (t.exception, t.exception_code) == ("Warp Illegal Address", 14)
    assert flags.LIVE in t.flags
    assert t.frames[0].function == "void convert<float, __half>(void const*, __half*, long)"
    assert (t.frames[0].grid, t.pc) == (Dim3(32, 1, 1), 0x7FF35529D000)


def test_the_name_wins_over_the_signals_own_number() -> None:
    t = _parse('Thread 1 "x" received signal CUDA_EXCEPTION_17, Cluster target block not present.\n')
    assert t.exception_code == 18
    assert _parse('Thread 1 "x" received signal CUDA_EXCEPTION_18, Some New Words.\n').exception_code == 17


def test_a_frame_at_the_start_of_a_line_has_no_address() -> None:
    t = _parse("#0  relu<8, true><<<(4,2,1),(256,1,1)>>> () at nn/relu.cuh:30\n")
    frame = t.frames[0]
    assert (frame.level, frame.pc, frame.function) == (0, None, "relu<8, true>")
    assert (frame.grid, frame.block, frame.file, frame.line) == (
        Dim3(4, 2, 1),
        Dim3(256, 1, 1),
        "nn/relu.cuh",
        30,
    )


def test_a_live_session_prints_its_frame_without_a_number() -> None:
    t = _parse("""
        [Switching focus to CUDA kernel 3, grid 5, block (0,0,0), thread (1,0,0), device 1, sm 0, warp 5, lane 0]
        relu<8, true><<<(4,2,1),(256,1,1)>>> () at nn/relu.cuh:30
    """)
    assert [(f.level, f.function, f.line) for f in t.frames] == [(None, "relu<8, true>", 30)]


def test_the_first_of_two_exceptions_counts() -> None:
    t = _parse("""
        CUDA Exception: Warp Illegal Address
        The exception was triggered at PC 0x7f10  first(int)
        (cuda-gdb) continue
        CUDA Exception: Warp Misaligned Address
        The exception was triggered at PC 0x7f90  second(int)  (b.cu:4)
    """)
    assert (t.exception_code, t.errorpc, t.function, t.source) == (14, 0x7F10, "first(int)", None)


def test_frames_of_device_functions_name_the_kernel_they_were_cloned_for() -> None:
    t = _parse("""
        #0  0x0000000000000130 in leaf(float const*, long) [clone root(float const*, float*)] () at a b.cu:28
        #1  0x00000000000001d0 in ncclDevFunc_Sum() ()
        #2  0x0000000000000090 in root(Args<4096ul>)<<<(1,1,1),(64,1,1)>>> ()
    """)
    assert [f.function for f in t.frames] == [
        "leaf(float const*, long)",
        "ncclDevFunc_Sum()",
        "root(Args<4096ul>)",
    ]
    assert t.frames[0].clone_of == "root(float const*, float*)"
    assert (t.frames[0].file, t.frames[0].line) == ("a b.cu", 28)
    assert [f.is_kernel for f in t.frames] == [False, False, True]


def test_a_frame_may_say_where_its_function_was_inlined() -> None:
    t = _parse(
        "#0  0x0000000000000130 in k<<<(1,1,1),(64,1,1)>>> () at v.h:9 in _Z4loadPKi inlined from m.cu:70\n"
    )
    assert (t.frames[0].file, t.frames[0].line) == ("v.h", 9)
    assert t.frames[0].inlined == InlineFrame("m.cu", 70, "_Z4loadPKi")


def test_host_frames_and_unknown_functions_are_frames_too() -> None:
    t = _parse("""
        #0  0x00007ffff7 in ?? ()
        #1  0x00007ffff8 in cuLaunchKernel () from /usr/lib/libcuda.so.1
        #2  0x00007ffff9 in main (argc=1, argv=0x7ffe) at main.cpp:12
    """)
    assert [f.function for f in t.frames] == [None, "cuLaunchKernel", "main"]
    assert t.frames[2].args == "argc=1, argv=0x7ffe"


def test_the_longer_backtrace_of_the_same_frame_is_kept_and_others_are_not() -> None:
    t = _parse("""
        #0  0x0000000000000130 in leaf(int) () at a.cu:1
        #0  0x0000000000000130 in leaf(int) () at a.cu:1
        #1  0x0000000000000200 in root<<<(1,1,1),(64,1,1)>>> () at a.cu:9
        #3  0x0000000000000999 in stray () at b.cu:1
        [Switching focus to CUDA kernel 1, grid 2, block (0,0,0), thread (0,0,0), device 0, sm 0, warp 0, lane 0]
        #0  0x0000000000000500 in other<<<(1,1,1),(64,1,1)>>> () at a.cu:50
        #1  0x0000000000000600 in more () at a.cu:51
        #2  0x0000000000000700 in evenmore () at a.cu:52
    """)
    assert [f.function for f in t.frames] == ["leaf(int)", "root"]


def test_prose_with_a_number_sign_is_no_frame() -> None:
    assert _parse("#709 is the same as this one (see above)\n#0 priority\n").frames == ()


def test_marks_of_instructions_tell_pc_and_errorpc() -> None:
    t = _parse("""
           0x7f00 <_Z1kPf+16>:\tMOV R1,c[0x0][0x28]
        *> 0x7f10 <_Z1kPf+32>:\tSTG.E desc[UR4][R2.64],R5
        => 0x7f20 <_Z1kPf+48>:\tEXIT
           0x7f30 <_Z2ks>:\tNOP
    """)
    assert [(w.is_errorpc, w.is_pc) for w in t.window] == [
        (False, False),
        (True, False),
        (False, True),
        (False, False),
    ]
    assert (t.errorpc, t.pc) == (0x7F10, 0x7F20)
    assert t.errorpc_symbol is not None
    assert (t.errorpc_symbol.name, t.errorpc_symbol.offset) == ("_Z1kPf", 32)
    assert (t.window[3].name, t.window[3].offset) == ("_Z2ks", 0)


def test_pc_and_errorpc_can_be_one_instruction() -> None:
    t = _parse("*=> 0x7f10 <_Z1kPf+32>:\tBPT.TRAP 0x1\n")
    assert (t.errorpc, t.pc) == (0x7F10, 0x7F10)


def test_disassemble_prints_offsets_below_a_heading() -> None:
    t = _parse("""
        Dump of assembler code for function _Z3addPi:
           0x0000000202156680 <+0>:\tMOV R9, 0x0
        *> 0x0000000202156690 <+16>:\tLDG.E R2, [R2.64]
        End of assembler dump.
    """)
    assert t.errorpc_symbol is not None
    assert (t.errorpc_symbol.name, t.errorpc_symbol.offset, t.errorpc) == ("_Z3addPi", 16, 0x202156690)
    line = t.instruction_at(0x202156690)
    assert line is not None
    assert line.text == "LDG.E R2, [R2.64]"


def test_demangled_symbols_with_colons_do_not_end_the_name() -> None:
    t = _parse("=> 0x10 <ns::f<int, 2>::operator()(std::pair<int, int>) const+64>:\tEXIT\n")
    assert t.window[0].name == "ns::f<int, 2>::operator()(std::pair<int, int>) const"
    assert t.window[0].offset == 64


def test_a_missing_disassembler_is_noticed() -> None:
    t = _parse("*> 0x10 <_Z1kv+16>:\tCannot disassemble instruction at pc 0x10\n")
    assert flags.CANNOT_DISASSEMBLE in t.flags
    assert (t.window[0].text, t.errorpc) == (None, 0x10)
    assert t.instruction_at(0x10) is None


def test_kernel_rows_hold_wide_masks_and_names_with_commas() -> None:
    mask = "0x" + "f" * 48
    t = _parse(f"""
          Kernel Parent Dev Grid Status {" " * 20} SMs Mask GridDim BlockDim Invocation
        *      0      -   0   -4 Active {mask} (4,1,1) (256,1,1) ns::gemm<float, Tile<64, 64>>(a=0x10, b={{x = 1, y = 2}})
               1      0   0    9 Undetermined 0x01 (1,1,1) (32,1,1) spin()
    """)
    first, second = t.kernels
    assert (first.focus, first.parent, first.grid, first.sms) == (True, None, -4, int(mask, 16))
    assert first.invocation == "ns::gemm<float, Tile<64, 64>>(a=0x10, b={x = 1, y = 2})"
    assert (second.focus, second.parent, second.status) == (False, 0, "Undetermined")


def test_device_rows_hold_names_with_blanks() -> None:
    t = _parse("""
          Dev PCI Bus/Dev ID                 Name Description SM Type SMs Warps/SM Lanes/Warp Max Regs/Lane Active SMs Mask
        *   0        00:06.0 NVIDIA RTX PRO 6000 GB202-870-A1  sm_120 188       48         32           255 0x3
            1        00:07.0         NVIDIA H200    GH100GL-A   sm_90 132       64         32           255 0x0
        broken sm_90 row
    """)
    assert [(d.name, d.chip, d.sm_type, d.sm_count) for d in t.devices] == [
        ("NVIDIA RTX PRO 6000", "GB202-870-A1", "sm_120", 188),
        ("NVIDIA H200", "GH100GL-A", "sm_90", 132),
    ]


def test_warp_and_lane_rows_belong_to_the_place_above_them() -> None:
    t = _parse("""
          Wp Active Lanes Mask Divergent Lanes Mask Active Physical PC Kernel BlockIdx First Active ThreadIdx
        Device 1 SM 7
        *  2 0x00000001 0xfffffffe 0x00000000000012a0 0 (3,0,0) (64,0,0)
           3 0x00000000 0x00000000 n/a n/a n/a n/a

          Ln  State  Physical PC ThreadIdx Exception
        Device 1 SM 7 Warp 2
        *  0 active 0x00000000000012a0 (64,0,0) Warp Illegal Address
           1 divergent 0x00000000000012b0 (65,0,0) None
    """)
    assert [(w.device, w.sm, w.warp, w.active, w.block) for w in t.warps] == [(1, 7, 2, 1, Dim3(3, 0, 0))]
    assert [(n.warp, n.lane, n.state, n.exception) for n in t.lanes] == [
        (2, 0, "active", "Warp Illegal Address"),
        (2, 1, "divergent", None),
    ]


def test_the_first_of_two_equal_tables_counts() -> None:
    row = "   1 active 0x00000000000012b0 (65,0,0) None\n"
    t = parse("Ln State PC ThreadIdx Exception\n" + row + "\nLn State PC ThreadIdx Exception\n" + row + row)
    assert len(t.lanes) == 1


def test_registers_are_read_and_unavailable_ones_left_out() -> None:
    t = _parse("""
        R0             0xf110              61712
        UR4            0x400               1024
        R255           <unavailable>
        pc             0x7f20      0x7f20 <k(int)+48>
        errorpc        0x7f10      0x7f10 <k(int)+32>
    """)
    assert t.registers is not None
    assert dict(t.registers) == {"R0": 0xF110, "UR4": 0x400, "pc": 0x7F20, "errorpc": 0x7F10}
    assert t.errorpc_symbol is not None
    assert (t.errorpc, t.pc, t.errorpc_symbol.name, t.errorpc_symbol.offset) == (0x7F10, 0x7F20, "k(int)", 32)


@pytest.mark.parametrize(
    "text",
    [
        "(cuda-gdb) p/x $errorpc\n$4 = 0x7f10\n",
        "(cuda-gdb) print $errorpc\n$4 = (void (*)()) 0x7f10 <k(int)+32>\n",
        "==errorpc\n$1 = (void (*)()) 0x7f10 <k(int)+32>\n$2 = (void (*)()) 0x7f20 <k(int)+48>\n",
    ],
)
def test_the_errorpc_is_taken_from_the_answer_to_its_question(text: str) -> None:
    assert parse(text).errorpc == 0x7F10


def test_an_unavailable_errorpc_leaves_the_second_answer_to_the_pc() -> None:
    t = _parse("""
        ==errorpc
        $1 = <unavailable>
        $2 = (void (*)()) 0x7f20 <k(int)+48>
    """)
    assert (t.errorpc, t.pc) == (None, 0x7F20)


def test_a_question_about_something_else_is_no_errorpc() -> None:
    assert _parse("(cuda-gdb) p threadIdx\n$4 = {x = 1}\n(cuda-gdb) p/x a\n$5 = 0x7f10\n").errorpc is None


def test_symbol_and_line_answers_add_section_and_full_path() -> None:
    t = _parse("""
        CUDA Exception: Warp Illegal Address
        The exception was triggered at PC 0x7f10  load(int const*)  (vec.h:9)
        (cuda-gdb) info symbol $errorpc
        load(int const*) + 32 in section .text._Z4mainPi of /tmp/x.o
        (cuda-gdb) info line *$errorpc
        Line 9 of "/home/dev/vec.h" starts at address 0x7f00 <_Z4mainPi+16> and ends at 0x7f20 <_Z4mainPi+48>.
    """)
    assert t.errorpc_symbol is not None
    assert (t.errorpc_symbol.section, t.errorpc_symbol.offset) == (".text._Z4mainPi", 32)
    assert t.source is not None
    assert t.source.file == "/home/dev/vec.h"


def test_a_line_answer_may_name_the_inlining() -> None:
    t = _parse("""
        ==errorpc
        errorpc        0x7f10      0x7f10 <k(int)+32>
        Line 27 of "v.h" starts at address 0x7f00 <_Z1ki+16> and ends at 0x7f20 <_Z1ki+48> inlined from _Z4loadPKi at line 31 of m n.cu.
    """)
    assert t.source is not None
    assert (t.source.inlined_function, t.source.inlined_at) == ("_Z4loadPKi", InlineFrame("m n.cu", 31))


def test_another_line_than_the_exceptions_does_not_replace_it() -> None:
    t = _parse("""
        The exception was triggered at PC 0x7f10  k(int)  (vec.h:9)
        (cuda-gdb) info line *$errorpc
        Line 12 of "/elsewhere/vec.h" starts at address 0x7f00 <_Z1ki+16> and ends at 0x7f20 <_Z1ki+48>.
    """)
    assert t.source is not None
    assert (t.source.file, t.source.line) == ("vec.h", 9)


def test_an_internal_error_is_an_abort_with_its_reason() -> None:
    t = _parse("""
        Opening GPU coredump: cut.core
        cuda/state.c:99: internal-error: initialize: Assertion `devices > 0' failed.
        A problem internal to GDB has been detected,
    """)
    assert t.aborted
    assert t.abort_reason == "cuda/state.c:99: internal-error: initialize: Assertion `devices > 0' failed."


def test_what_stood_before_an_abort_is_kept() -> None:
    t = _parse("""
        CUDA Exception: Warp Illegal Address
        The exception was triggered at PC 0x7f10  k(int)  (vec.h:9)
        terminate called after throwing an instance of 'std::out_of_range'
          what():  vector::_M_range_check: __n (which is 4294967294) >= this->size() (which is 64)

        Fatal signal: Aborted
        ----- Backtrace -----
        0x545d9b _Z22gdb_internal_backtracev
    """)
    assert t.aborted
    assert t.abort_reason is not None
    assert t.abort_reason.endswith("(which is 64)")
    assert (t.errorpc, t.function, t.frames) == (0x7F10, "k(int)", ())


def test_a_dump_that_cannot_be_opened_says_so() -> None:
    t = _parse("""
        Opening GPU coredump: x
        Failed to read core file: elfOpenByName() failed: ELF header 'ident' verification failed
    """)
    assert flags.CANNOT_OPEN in t.flags
    assert t.abort_reason is not None
    assert "ident" in t.abort_reason


def test_versions_are_read_in_both_spellings() -> None:
    assert parse("NVIDIA (R) cuda-gdb 12.4\n").version == "12.4"
    assert parse("NVIDIA (R) CUDA Debugger\n11.8 release\nPortions Copyright\n").version == "11.8"


def test_an_unknown_abi_warning_is_kept() -> None:
    t = _parse("warning: CUDA ELF Image contains unknown ABI version: 8\n" * 3)
    assert flags.UNKNOWN_ABI in t.flags
    assert t.warnings == ("CUDA ELF Image contains unknown ABI version: 8",)


def test_commands_that_a_version_lacks_are_listed() -> None:
    t = _parse('Unrecognized option: \'barriers\'.\nUndefined cuda command: "cluster".  Try "help cuda".\n')
    assert len(t.unsupported) == 2


def test_only_the_first_of_several_dumps_is_read() -> None:
    t = _parse("""
        Opening GPU coredump: a.core
        CUDA Exception: Warp Illegal Address
        The exception was triggered at PC 0x7f10
        Opening GPU coredump: b.core
        CUDA Exception: Warp Misaligned Address
        The exception was triggered at PC 0x7f90
        Opening GPU coredump: c.core
    """)
    assert (t.dump, t.exception_code, t.errorpc, t.more_dumps) == ("a.core", 14, 0x7F10, 2)


def test_text_without_cuda_gdb_says_nothing() -> None:
    for text in ("", "hello\nworld\n", "Traceback (most recent call last):\n  File x, line 3\n"):
        assert not parse(text).says_anything
    assert parse("No CUDA kernels.\n").says_anything
