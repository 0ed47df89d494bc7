"""Transcripts as people paste them: quoted, fenced, coloured, indented and wrapped."""

# ruff: noqa: E501 (a transcript's lines are as long as the debugger prints them)
from __future__ import annotations

import textwrap

import pytest

from crashlab.debugger import flags
from crashlab.debugger.lines import MAX_CHARS, MAX_LINES, plain_lines
from crashlab.debugger.transcript import Transcript, parse
from crashlab.facts import Dim3
from tests.unit.debugger import recorded

LONG = (
    "#0  0x00007f87377c0d70 in void ns::scatter_kernel<128, 8, ns::inner<false, ns::Opaque<4>, long>::operator()"
    "<ns::Assign>(ns::Iterator&, long, long)::{lambda(int)#1}>(int, ns::Lambda)<<<(12,1,1),(128,1,1)>>> ()"
)
ISSUE = f"""\
Opening GPU coredump: /tmp/core

CUDA Exception: Warp Out-of-range Address
The exception was triggered at PC 0x7f31abb9f6d0  void ns::scatter_kernel<128, 8, ns::inner<false, ns::Opaque<4>, long> >(int, ns::Lambda)  (scatter.cuh:120)
[Current focus set to CUDA kernel 0, grid 69270, cluster (4,0,0), cluster dim (4,1,1), block (16,0,0), thread (64,0,0), device 0, sm 124, warp 2, lane 0]
{LONG}
"""


def _hard_wrapped(text: str, width: int) -> str:
    """As a terminal breaks lines: at the column, wherever that is."""
    out = []
    for line in text.split("\n"):
        out += [line[i : i + width] for i in range(0, len(line), width)] or [""]
    return "\n".join(out)


def _soft_wrapped(text: str, width: int) -> str:
    """As an editor or a mail program does: at blanks, which it drops."""
    return "\n".join(
        "\n".join(textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False))
        for line in text.split("\n")
    )


def _key(t: Transcript) -> tuple[object, ...]:
    names = ("".join((t.function or "").split()), "".join((t.frames[0].function or "").split()))
    source = (t.source.file, t.source.line) if t.source else None
    return (t.exception_code, t.errorpc, source, t.focus, t.frames[0].grid, t.frames[0].block, names)


@pytest.mark.parametrize("width", [72, 80, 100, 120, 132, 150])
def test_hard_wrapping_at_any_width_loses_nothing(width: int) -> None:
    wrapped = parse(_hard_wrapped(ISSUE, width))
    assert _key(wrapped) == _key(parse(ISSUE))
    assert wrapped.frames[0].function == parse(ISSUE).frames[0].function


@pytest.mark.parametrize("width", [72, 80, 100, 120, 132])
def test_soft_wrapping_at_any_width_loses_nothing(width: int) -> None:
    assert _key(parse(_soft_wrapped(ISSUE, width))) == _key(parse(ISSUE))


def test_quotes_fences_and_details_are_taken_off() -> None:
    quoted = "\n".join(f"> > {line}" for line in ("```text", *ISSUE.splitlines(), "```"))
    text = f"I see this:\n\n<details>\n{quoted}\n</details>\n\nany idea?\n"
    assert _key(parse(text)) == _key(parse(ISSUE))


def test_indentation_as_code_is_harmless() -> None:
    assert _key(parse(textwrap.indent(ISSUE, "    "))) == _key(parse(ISSUE))


def test_colours_and_windows_line_ends_are_taken_off() -> None:
    text = ISSUE.replace("CUDA Exception", "\x1b[31;1mCUDA Exception\x1b[0m").replace("\n", "\r\n")
    assert _key(parse(text)) == _key(parse(ISSUE))


def test_html_entities_of_a_copied_page_are_undone() -> None:
    text = ISSUE.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert _key(parse(text)) == _key(parse(ISSUE))


def test_inline_code_marks_are_taken_off() -> None:
    t = parse("It says `CUDA Exception`:\n\n`CUDA Exception: Warp Illegal Address`\n")
    assert t.exception == "Warp Illegal Address"


def test_bytes_that_are_no_text_are_replaced() -> None:
    t = parse(b"\xff\xfe\nCUDA Exception: Warp Illegal Address\n\x00\x01\xc3\n")
    assert t.exception_code == 14


def test_a_name_that_begins_with_a_bracket_is_no_quotation() -> None:
    lines = plain_lines("#0  0x10 in f<g<int\n> >(int)<<<(1,1,1),(2,1,1)>>> ()")
    assert lines[1] == "> >(int)<<<(1,1,1),(2,1,1)>>> ()"
    assert plain_lines("> CUDA Exception: x") == ["CUDA Exception: x"]


def test_gdbs_own_wrapping_is_undone() -> None:
    t = parse(
        "#0  0x0000000000000e50 in Calibrator::operator() (this=0x7fff, index=32, \n"
        "    aux=0x7ffe, iterations=2000)\n"
        "    at /home/dev/Calibrate.cu:23\n"
        "23      /home/dev/Calibrate.cu: No such file or directory.\n"
        "#1  0x0000000000009240 in run<unsigned long><<<(22,1,1),(256,1,1)>>> (size=5488)\n"
        "    at /home/dev/run.cu:4\n"
    )
    assert [(f.function, f.file, f.line) for f in t.frames] == [
        ("Calibrator::operator()", "/home/dev/Calibrate.cu", 23),
        ("run<unsigned long>", "/home/dev/run.cu", 4),
    ]
    assert t.frames[0].args == "this=0x7fff, index=32, aux=0x7ffe, iterations=2000"


def test_prose_after_the_transcript_is_not_joined_to_it() -> None:
    t = parse(
        "The exception was triggered at PC 0x7f31abb9f6d0\nI think this is a bug (see above).\n\n"
        "#0  0x10 in k<<<(1,1,1),(2,1,1)>>> ()\nand nothing else\n"
    )
    assert t.function is None
    assert t.frames[0].function == "k"


def test_a_wrapped_instruction_is_put_together() -> None:
    symbol = "_ZN2ns" + "14scatter_kernel" * 8 + "+6256"
    line = f"*> 0x7f87377c0d70 <{symbol}>:\tSTG.E desc[UR4][R2.64],R5"
    t = parse(_hard_wrapped(line + "\n   0x7f87377c0d80 <" + symbol + ">:\tEXIT", 80))
    assert [w.text for w in t.window] == ["STG.E desc[UR4][R2.64],R5", "EXIT"]
    assert t.errorpc_symbol is not None
    assert t.errorpc_symbol.offset == 6256


def test_a_wrapped_kernel_row_keeps_its_name() -> None:
    name = "at::native::" + "very_long_kernel_name_" * 6 + "<128, 4>()"
    table = (
        "  Kernel Parent Dev Grid Status                 SMs Mask GridDim BlockDim Invocation\n"
        f"*      0      -   0    4 Active 0x0010000000000000000000000000000000 (1,1,1) (32,1,1) {name}\n"
    )
    kernels = parse(_hard_wrapped(table, 100)).kernels
    assert [(k.grid, "".join(k.invocation.split())) for k in kernels] == [(4, "".join(name.split()))]


def test_commands_with_prompts_are_understood() -> None:
    t = parse(
        "(cuda-gdb) target cudacore /tmp/x\nOpening GPU coredump: /tmp/x\n(cuda-gdb) p/x $errorpc\n$1 = 0x7f31abb9f6d0\n"
        "(cuda-gdb) info cuda kernels\n"
        "  Kernel Parent Dev Grid Status                 SMs Mask GridDim BlockDim Invocation\n"
        "*      0      -   0    4 Active 0x0010 (1,1,1) (32,1,1) k()\n(cuda-gdb) quit\n"
    )
    assert (t.errorpc, len(t.kernels)) == (0x7F31ABB9F6D0, 1)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("dump", ["deep", "torch_gather", "lib_cublas_fp32", "nccl_rank0_waits", "graph"])
def test_recorded_transcripts_survive_a_terminal(dump: str, width: int) -> None:
    text = recorded.transcripts("cuda-gdb-13.0-by-hand")[dump].partition("==kernels")[0]
    whole, wrapped = parse(text), parse(_hard_wrapped(text, width))
    assert (wrapped.exception_code, wrapped.errorpc, wrapped.focus) == (
        whole.exception_code,
        whole.errorpc,
        whole.focus,
    )
    squeezed = ["".join((f.function or "").split()) for f in whole.frames]
    assert ["".join((f.function or "").split()) for f in wrapped.frames] == squeezed
    assert [f.grid for f in wrapped.frames] == [f.grid for f in whole.frames]


def test_input_beyond_the_limits_is_cut_and_said() -> None:
    head = "CUDA Exception: Warp Illegal Address\n"
    assert flags.CUT not in parse(head).flags
    for text in (head + "x" * MAX_CHARS, head + "\n" * (MAX_LINES + 1)):
        t = parse(text)
        assert flags.CUT in t.flags
        assert t.exception_code == 14
    assert not parse("\n" * (MAX_LINES + 1)).says_anything


def test_frame_dimensions_may_hold_blanks() -> None:
    t = parse("#0  0x10 in k<<<(1, 2, 3), (4, 5, 6)>>> ()\n")
    assert (t.frames[0].grid, t.frames[0].block) == (Dim3(1, 2, 3), Dim3(4, 5, 6))
