"""Targets that read text: instructions, transcripts, logs, metrics, environment files."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from crashlab.errors import CrashlabError
from tests.support.fuzz import blindly
from tests.support.fuzz.target import Target, archived, fixtures

_DRIVER = ("logs/driver/*.xz", "logs/driver/*.txt", "logs/recorded/*.txt")
_SERVER = ("logs/vllm/*.log.xz", "signatures/vllm_nodump.log", "logs/recorded/*.txt")
_KERNEL = ("logs/kernel/*.txt", "logs/recorded/kernel-h200.txt")
_METRICS = ("soak/*.txt", "logs/vllm/stall-metrics.txt.xz", "logs/vllm/stall-probe.txt")


@lru_cache(maxsize=16)
def _pool(*patterns: str) -> tuple[bytes, ...]:
    return tuple(one for pattern in patterns for one in fixtures(pattern))


def _texts(patterns: tuple[str, ...], most: int = 12000) -> Callable[[random.Random], bytes]:
    """Makes excerpts of these fixtures, damaged."""

    def make(rng: random.Random) -> bytes:
        pool = _pool(*patterns)
        return blindly.damage_text(blindly.excerpt(rng.choice(pool), rng, most), rng, pool, 64 << 10)

    return make


@lru_cache(maxsize=1)
def _instructions() -> tuple[bytes, ...]:
    rows = fixtures("sass/instructions.tsv.xz")[0].splitlines()
    return tuple(row.split(b"\t")[1] for row in rows if row.count(b"\t") >= 3)


_PIECES = (
    b"desc[UR4][R2.64+0x10]", b"c[0x0][0x210]", b"c[0x3][R2+-0x8]", b"cx[UR4][0x8]", b"[R2.X4+UR6+0x10]",
    b"-|R3|", b"!PT", b"@!UP0", b"`(.L_x_1)", b"gdesc[UR8]", b"tmem[UR4]", b"R4.reuse", b"{1,2,3}",
    b"0x7fffffffffffffff", b"+INF", b"-QNAN", b"SB0", b"RZ", b"R255", b"R256", b"R999999999999", b"UR63", b"P7",
    b"B15", b"[", b"]", b",", b" ", b".", b"`", b"(", b")", b"+", b"-0x", b"|", b"~", b"/",
)  # fmt: skip
"""Operands of every shape, and what they are made of."""


def _listing(rng: random.Random) -> bytes:
    """1 to 40 instructions, one a line."""
    lines = [rng.choice(_instructions()) for _ in range(rng.choice((1, 1, 8, 40)))]
    for _ in range(rng.choice((1, 1, 3, 8))):
        which = rng.randrange(len(lines))
        line = lines[which]
        if rng.random() < 0.6:
            at = rng.randrange(len(line) + 1)
            piece = rng.choice(_PIECES) * rng.choice((1, 1, 1, 2, 400))
            line = line[:at] + piece + line[at + rng.choice((0, 0, 2, 6)) :]
        else:
            line = blindly.damage_text(line, rng, _instructions(), 4000)
        lines[which] = line
    return b"\n".join(lines)


def _operands(case: bytes, _place: Path) -> None:
    """Each line parsed; those that are instructions put together as a program and reasoned about."""
    from crashlab.sass.line import SassLine
    from crashlab.sass.liveness import redefinition
    from crashlab.sass.loops import find_spin_loop
    from crashlab.sass.operands import parse
    from crashlab.sass.recompute import recompute
    from crashlab.sass.slice import backward_slice

    lines: list[SassLine] = []
    asked = ("R2", "R3", "UR4", "P0")
    for text in case.decode("utf-8", "replace").split("\n"):
        with suppress(CrashlabError):
            parse(text).target()
            lines.append(SassLine(0x7F0000000000 + 16 * len(lines), text))
    if lines:
        first, last = lines[0].pc, lines[-1].pc
        values: dict[str, int | None] = {f"R{i}": i * 0x1111_1111 % (1 << 32) for i in range(64)}
        backward_slice(lines, last, asked)
        redefinition(lines, first, last, asked, values)
        recompute(lines, first, last, asked, values)
        find_spin_loop(lines, last)


@lru_cache(maxsize=1)
def _sessions() -> tuple[bytes, ...]:
    out = [text for files in archived("debugger/*.tar.xz") for text in files.values()]
    return tuple(text for text in out if len(text) > 200)


def _transcript(rng: random.Random) -> bytes:
    pool = _sessions()
    return blindly.damage_text(blindly.excerpt(rng.choice(pool), rng, 12000), rng, [rng.choice(pool)])


def _session(case: bytes, _place: Path) -> None:
    from crashlab.debugger.transcript import parse
    from crashlab.postmortem.from_transcript import from_transcript
    from crashlab.postmortem.reconcile import reconcile
    from crashlab.report import text
    from crashlab.report.fromtext import analyze_transcript
    from crashlab.report.options import AnalyzeOptions

    transcript = parse(case)
    found = from_transcript(transcript)
    assert found.verdict.confidence is not None
    assert found.verdict.confidence.level in ("medium", "low")
    reconcile(found.faults, found.verdict, transcript)
    with suppress(CrashlabError):
        text.render(analyze_transcript(case, "-", AnalyzeOptions(fast=True)), verbose=True)


def _analyze(case: bytes, place: Path, *, kernel: bool = False) -> None:
    """The reader alone, then a whole report from the file."""
    from crashlab.logs.detect import read_evidence
    from crashlab.report import jsonio, text
    from crashlab.report.fromtext import analyze_logs
    from crashlab.report.options import AnalyzeOptions

    read_evidence(case)
    path = place / "fuzz.log"
    path.write_bytes(case)
    where = (str(path),)
    options = AnalyzeOptions(fast=True, dmesg=where) if kernel else AnalyzeOptions(fast=True, logs=where)
    with suppress(CrashlabError):
        report = analyze_logs(options)
        text.render(report, verbose=True)
        jsonio.loads(jsonio.dumps(report))


def _dmesg(case: bytes, place: Path) -> None:
    from crashlab.logs.kernel_log import read_kernel_log

    assert len(read_kernel_log(case).events) < 1 << 16
    _analyze(case, place, kernel=True)


def _driver(case: bytes, place: Path) -> None:
    from crashlab.logs.driver_log import dumps_with_exceptions, read_driver_log

    dumps_with_exceptions(read_driver_log(case))
    _analyze(case, place)


def _sanitizer(case: bytes, place: Path) -> None:
    from crashlab.logs.sanitizer import read_sanitizer

    read_sanitizer(case)
    _analyze(case, place)


def _metrics(case: bytes, _place: Path) -> None:
    from crashlab.logs.probe import read_probe
    from crashlab.soak.metrics import parse_metrics

    found = parse_metrics(case.decode("utf-8", "replace"))
    assert found.primary is not None
    assert found.secondary is not None
    json.dumps(dict(found.values), allow_nan=False)
    story = read_probe(case)
    if story is not None:
        assert story.stalled in (None, True, False)
        assert story.sentence is None or story.sentence


_SSE = (
    b'data: {"id":"a","choices":[{"index":0,"text":" one","finish_reason":null}]}', b"data: [DONE]", b": ping",
    b"event: x", b"id: 1",
    b'data: {"choices":[{"delta":{"role":"assistant","content":"two"},"finish_reason":"stop"}]}', b"", b"\r",
    b"retry: 9", b"data:",
    b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9,"total_tokens":16}}', b"<html>",
    b'data: {"error":{"message":"gone","code":500}}',
    b'data: {"choices":[{"delta":{"reasoning_content":"hm","tool_calls":[{}]}}]}',
)  # fmt: skip
"""Lines of OpenAI-style streams."""


def _stream(rng: random.Random) -> bytes:
    from tests.support.fuzz.shapes import change_json

    lines = []
    for _ in range(rng.choice((1, 4, 12, 60))):
        line = rng.choice(_SSE)
        if line.startswith(b"data: {") and rng.random() < 0.5:
            line = b"data: " + change_json(line[6:], rng)
        lines += [line, b""] if rng.random() < 0.8 else [line]
    out = b"\n".join(lines)[: 512 << 10]
    return blindly.damage_text(out, rng, _SSE) if rng.random() < 0.4 else out


def _answer(case: bytes, _place: Path) -> None:
    """The same stream in one piece and in pieces: the answer may not depend on how the bytes arrive."""
    from crashlab.soak.answer import Answer

    whole, pieces = Answer(), Answer()
    whole.feed(case)
    step = 1 + len(case) % 37
    if len(case) < 20000:
        for at in range(0, len(case), step):
            pieces.feed(case[at : at + step])
        assert (whole.text, whole.tokens, whole.error) == (pieces.text, pieces.tokens, pieces.error)
    whole.end()
    assert whole.tokens >= 0


def _environment(case: bytes, _place: Path) -> None:
    from crashlab.signatures.environment import derive, parse_text

    with suppress(CrashlabError):
        derive(parse_text(case.decode("utf-8", "replace"), "file"))


TARGETS = (
    Target("operands", "text of instructions, and reasoning over programs of them", _listing, _operands),
    Target("transcript", "cuda-gdb sessions", _transcript, _session),
    Target("driver-log", "the driver's progress log", _texts(_DRIVER), _driver),
    Target("server-log", "vLLM, torch and NCCL output", _texts(_SERVER), _analyze),
    Target("kernel-log", "Xid lines in a kernel log", _texts(_KERNEL), _dmesg),
    Target("sanitizer", "compute-sanitizer reports", _texts(("logs/sanitizer/*.txt",)), _sanitizer),
    Target("metrics", "Prometheus expositions and probe logs", _texts(_METRICS), _metrics),
    Target("sse", "server-sent events of an answer", _stream, _answer),
    Target("environment", "files of environment facts", _texts(("signatures/*.txt",), 4000), _environment),
)  # fmt: skip
