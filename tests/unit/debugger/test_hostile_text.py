"""Whatever the text, parsing ends soon, in bounded memory, without an error."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.debugger.focus import parse_focus
from crashlab.debugger.frame import parse_frame
from crashlab.debugger.located import (
    parse_exception_pc,
    parse_info_line,
    parse_info_symbol,
    parse_sass,
    parse_symbolic,
)
from crashlab.debugger.tables import parse_device, parse_kernel, parse_lane, parse_register, parse_warp
from crashlab.debugger.transcript import Transcript, parse
from crashlab.postmortem.from_transcript import from_transcript
from crashlab.postmortem.reconcile import reconcile
from tests.unit.debugger import recorded

PIECES = [
    "CUDA Exception: Warp Illegal Address\n",
    "The exception was triggered at PC 0x7f10",
    "  f(int)  (a.cu:1 in _Z1fi inlined from b.cu:2)\n",
    "[Current focus set to CUDA kernel 0, grid 1, block (0,0,0), ",
    "thread (1,0,0), device 0, sm 1, warp 2, lane 3]\n",
    "#0  0x10 in f<<<(1,1,1),(2,1,1)>>> () at a.cu:1\n",
    "#1  0x20 in g(int) [clone f(int)] ()",
    "*=> 0x7f10 <f+16>:\tSTG [R2], R3\n",
    "  Kernel Parent Dev Grid Status SMs Mask GridDim BlockDim Invocation\n",
    "* 0 - 0 1 Active 0x1 (1,1,1) (2,1,1) f(a=1)\n",
    "  Ln State PC ThreadIdx Exception\n",
    "Device 0 SM 1 Warp 2\n",
    "* 3 active 0x7f20 (1,0,0) Warp Illegal Address\n",
    'Line 3 of "a.cu" starts at address 0x7f00 <f> and ends at 0x7f20 <f+32>.\n',
    "f + 16 in section .text.f of x\n",
    "$1 = (void (*)()) 0x7f10 <f+16>\n",
    "==errorpc\n",
    "(cuda-gdb) p $errorpc\n",
    "warning: Encountered unhandled device exception (77)\n",
    "Assertion failed.\n",
    "terminate called after throwing an instance of 'x'\n  what():  y\n",
    "pc 0x7f20 0x7f20 <f+32>\n",
    "> ",
    "\n",
    "```\n",
    "\x1b[0m",
    "<(({",
    ")}>",
    "0x",
    " ",
    "\t",
]

pasted = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=12)), max_size=60).map("".join)


def _judge(t: Transcript) -> None:
    found = from_transcript(t)
    assert found.verdict.headline
    assert found.verdict.confidence is not None
    assert found.verdict.confidence.level in ("medium", "low")
    reconcile(found.faults, found.verdict, t)


@settings(max_examples=400, deadline=None)
@given(pasted)
def test_any_mixture_of_real_lines_parses(text: str) -> None:
    _judge(parse(text))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=2000))
def test_any_bytes_parse(raw: bytes) -> None:
    _judge(parse(raw))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(recorded.cases("cuda-gdb-13.0-by-hand", "cuda-gdb-12.4")), st.data())
def test_a_damaged_transcript_parses(case: tuple[str, str], data: st.DataObject) -> None:
    text = recorded.transcripts(case[0])[case[1]][:6000]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 400)))
    _judge(parse(text[:start] + data.draw(st.text(max_size=20)) + text[end:]))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(recorded.cases("cuda-gdb-13.0-by-hand")), st.integers(0, 20000))
def test_a_cut_transcript_says_nothing_that_the_whole_one_does_not(case: tuple[str, str], at: int) -> None:
    text = recorded.transcripts(case[0])[case[1]]
    lines = text[:at].rpartition("\n")[0]  # the last line may be cut in the middle of a number
    part, whole = parse(lines), parse(text)
    for field in ("exception", "exception_code", "errorpc", "focus", "dump"):
        assert getattr(part, field) in (None, getattr(whole, field))


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=80), pasted.map(lambda s: s.replace("\n", " "))))
def test_every_line_parser_takes_any_line(line: str) -> None:
    parse_focus(line)
    parse_frame(line)
    parse_exception_pc(line)
    parse_info_line(line)
    parse_info_symbol(line)
    parse_sass(line)
    parse_symbolic(line)
    parse_device(line)
    parse_kernel(line)
    parse_warp(line, (0, 1, None))
    parse_lane(line, (0, 1, 2))
    parse_register(line)


@pytest.mark.parametrize(
    "text",
    [
        "a\n" * 2_000_000,
        "#0 0x12 in f(((\n" * 250_000,
        "[Current focus set to CUDA \n" + "x\n" * 1_000_000,
        "(" * 4_000_000,
        "=> 0x12 <" + "a+1" * 1_000_000 + "\n",
        "\x1b[" * 2_000_000,
        ("a + 1 in section .text." + "b" * 60_000 + "\n") * 60,
        ("$1 = " + "0x1 <" * 12_000 + ">\n") * 60,
        ("#0 0x12 in " + "f(" * 30_000 + ")" * 30_000 + "\n") * 40,
        ("#0 0x12 in f(\n" + ("x" * 5_000 + "\n") * 200) * 4,
        "  Kernel Parent Dev Grid Status SMs Mask GridDim BlockDim Invocation\n"
        "* 0 - 0 4 Active 0x00 (1,1,1) (1,1,1) a\n" + "b\n" * 190_000,
        "  Ln State PC ThreadIdx Exception\n" + "* 0 active 0x10 (0,0,0) Warp Illegal Address\n" * 90_000,
        (" " * 60_000 + "x\n") * 60,
        "> " * 2_000_000,
        "CUDA Exception: " + "Warp-" * 800_000,
    ],
    ids=lambda text: f"{text[:12]!r}x{len(text)}",
)
def test_time_is_bounded_for_texts_made_to_be_slow(text: str) -> None:
    started = time.process_time()
    transcript = parse(text)
    assert time.process_time() - started < 8.0  # about 1 s on an idle machine; quadratic ones take minutes
    assert len(transcript.lanes) <= 8192
    assert len(transcript.frames) <= 1024
