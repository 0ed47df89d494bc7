"""What fuzzing and the audit found, each as small as it can be: it must stay mended."""

from __future__ import annotations

import json
import time
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from crashlab.errors import CrashlabError, UnreadableInput, UsageError
from crashlab.gpucore import layout
from crashlab.gpucore.dump import CoreDump
from crashlab.inputfile import parse_toml
from crashlab.postmortem.codemap import CodeMap
from crashlab.report import build, bundle, html, jsonio, text
from crashlab.report.fromrundir import analyze_rundir
from crashlab.report.options import AnalyzeOptions
from crashlab.report.redact import Redactor
from crashlab.rundir.lines import finite
from crashlab.rundir.output import pieces
from crashlab.rundir.reader import open_run
from crashlab.sass.evaluate import evaluate
from crashlab.sass.line import SassLine
from crashlab.sass.liveness import redefinition
from crashlab.sass.loops import find_spin_loop
from crashlab.sass.operands import parse
from crashlab.sass.recompute import recompute
from crashlab.sass.slice import backward_slice
from crashlab.signatures.catalogue import parse_toml as parse_entry
from crashlab.soak import ready
from crashlab.soak.answer import Answer
from crashlab.soak.metrics import parse_metrics
from crashlab.soak.record import from_json
from tests.support import corpus
from tests.support.fuzz.target import DATA, unpacked

HUGE = 10**400
"""JSON and TOML allow it, and no float holds it."""
TOO_LONG = "0x" + "f" * 4000
"""Reads as an integer of 4,817 digits, which Python refuses to print."""


def plain_report() -> dict[str, Any]:
    report = build.analyze([corpus.path("oob_load")], AnalyzeOptions(sass_by="native", debugger="never"))
    found: dict[str, Any] = jsonio.to_json(report)
    return found


def test_an_environment_fact_that_is_null_is_absent_and_does_not_break_the_page() -> None:
    plain = plain_report()
    plain["environment"] = {"cudnn": None, "torch": {"value": "2.11", "source": "x"}}
    report = jsonio.loads(json.dumps(plain))
    assert list(report.environment or {}) == ["torch"]
    html.render(report)


def test_a_value_that_may_be_null_stays_null() -> None:
    plain = plain_report()
    plain["inconsistencies"] = [{"what": "x", "sources": {"a": "1", "b": None}, "resolution": "y"}]
    report = jsonio.loads(json.dumps(plain))
    (found,) = report.inconsistencies
    assert dict(found.sources) == {"a": "1", "b": None}


def test_a_metric_with_a_giant_label_does_not_hold_up_the_load() -> None:
    line = 'vllm:generation_tokens_total{a="' + '\\"' * 2_000_000 + '"} 1\n'
    started = time.process_time()
    found = parse_metrics(line + "vllm:generation_tokens_total 7\n")
    assert time.process_time() - started < 2.0
    assert found.values == {"generation_tokens": 7.0}


def test_what_is_wrong_with_a_stream_does_not_depend_on_how_its_bytes_arrive() -> None:
    stream = b'<html>\n\ndata: {"error": {"message": "gone"}}\n\n'
    whole, bytewise = Answer(), Answer()
    whole.feed(stream)
    for at in range(len(stream)):
        bytewise.feed(stream[at : at + 1])
    assert whole.error == bytewise.error == "malformed"


@pytest.mark.parametrize("value", [HUGE, -HUGE, float("nan"), float("inf"), True, "1", None, [1]])
def test_numbers_that_are_none_are_not_made_into_floats(value: object) -> None:
    assert finite(value) is None
    assert from_json({"lane": 0, "number": 1, "shape": "x", "sent": value}) is not None


@pytest.mark.parametrize("name", ["s", "m", "o", "n"])
@pytest.mark.parametrize("value", [{}, [], HUGE, -1, None, "x", float("nan")])
def test_an_output_index_may_hold_anything(name: str, value: object, tmp_path: Path) -> None:
    (tmp_path / "output").mkdir()
    event = {"event": "started", "m": HUGE, "t": "x", "attempt": 1}
    (tmp_path / "events.jsonl").write_text(json.dumps(event) + "\n")
    (tmp_path / "output" / "001.stdout.log").write_bytes(b"hello\n")
    line = {"m": 1.0, "s": "stdout", "o": 0, "n": 6, name: value}
    (tmp_path / "output" / "001.index.jsonl").write_text(json.dumps(line) + "\n")
    assert b"".join(piece.data for piece in pieces(open_run(tmp_path), 1)) == b"hello\n"
    text.render(analyze_rundir(tmp_path, AnalyzeOptions(fast=True)), verbose=True)


@pytest.mark.parametrize("value", [1.5, "x", {}, [1, None, {}], HUGE])
@pytest.mark.parametrize("name", ["confounds", "argv", "machine", "overflow", "settings", "environment"])
def test_the_facts_of_a_run_may_be_anything(name: str, value: object, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"schema": "crashlab.run/1", name: value}))
    (tmp_path / "events.jsonl").write_text('{"event": "ended", "attempt": 1, "exit_code": 1}\n')
    text.render(analyze_rundir(tmp_path, AnalyzeOptions(fast=True)), verbose=True)


@pytest.mark.parametrize("value", [HUGE, float("nan"), "x", None, {}, [1]])
@pytest.mark.parametrize(
    "name", ["exposure", "why", "load", "notes", "exposure_words", "examples", "outcome"]
)
def test_the_outcome_of_a_soak_may_be_anything(name: str, value: object, tmp_path: Path) -> None:
    outcome = {"event": "soak-outcome", "attempt": 1, "outcome": "stall", "why": "x", name: value}
    if name == "exposure":
        outcome["exposure"] = {"hours": value, "requests": value}
    (tmp_path / "events.jsonl").write_text(json.dumps(outcome) + "\n")
    report = analyze_rundir(tmp_path, AnalyzeOptions(fast=True))
    json.dumps(jsonio.to_json(report), allow_nan=False)
    html.render(report)


@pytest.mark.parametrize(
    "line",
    [
        "MOV R１２, R0",
        "MOV P², R0",
        "LDG.E R2, [R٣.64+0x10]",
        "BRA ٣",
        "LDC R1, c[0x0][0x٢٨]",
        "FADD R0, R1, ٣.5",
    ],
)
def test_digits_of_other_scripts_are_no_registers_and_no_numbers(line: str) -> None:
    parsed = parse(line)
    named = (*(parsed.defines or ()), *(parsed.reads or ()))
    assert all(name.isascii() for name in named)


def test_instructions_that_lack_operands_are_survived() -> None:
    """Of every mnemonic that nvdisasm prints: its first operands only, its last ones only, and none."""
    by_mnemonic: dict[str, str] = {}
    for row in unpacked(DATA / "sass" / "instructions.tsv.xz").decode().splitlines():
        text_of = row.split("\t")[1]
        mnemonic = next(word for word in text_of.split(" ") if not word.startswith("@"))
        by_mnemonic.setdefault(mnemonic, text_of[text_of.index(mnemonic) + len(mnemonic) :])
    assert len(by_mnemonic) > 1000
    asked = ("R2", "R3")
    for mnemonic, rest in by_mnemonic.items():
        operands = [part.strip() for part in rest.split(", ")]
        for count in range(len(operands)):
            for kept in (operands[:count], operands[count:]):
                line = f"{mnemonic} {', '.join(kept)}"
                with suppress(CrashlabError):
                    evaluate(parse(line), lambda _: 0x12345678)
                    program = [
                        SassLine(0x1000, line),
                        SassLine(0x1010, "LDG.E R2, [R2.64]"),
                        SassLine(0x1020, "BRA 0x1000"),
                    ]
                    find_spin_loop(program, 0x1010)
                    redefinition(program, 0x1010, 0x1020, asked)
                    recompute(program, 0x1010, 0x1020, asked, {})
                    backward_slice(program, 0x1010, asked)


@pytest.mark.parametrize("arch", [b"sm_\xc2\xb2", b"sm_\xd9\xa3", b"\xff\xff\xff\xff\xff"])
@pytest.mark.parametrize("name", ["shared_oob", "oob_load", "tma", "hang"])
def test_an_architecture_that_is_none_is_survived(name: str, arch: bytes, tmp_path: Path) -> None:
    raw = corpus.raw(name)
    assert b"sm_90\0" in raw
    path = tmp_path / "x.core"
    path.write_bytes(raw.replace(b"sm_90\0", arch + b"\0"))
    report = build.analyze([path], AnalyzeOptions(debugger="never"))
    text.render(report, verbose=True)
    jsonio.dumps(report)


@pytest.mark.parametrize(
    "toml", [f"a = {TOO_LONG}", f"a = [{TOO_LONG}]", f"a = {{b = [[-{2**70}]]}}", "a = " + "[" * 5000]
)
def test_toml_that_cannot_be_used_is_a_value_error(toml: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the words are the parser's own
        parse_toml(toml)
    with pytest.raises(CrashlabError):
        parse_entry(toml, "entry.toml")


def test_toml_within_64_bits_is_read() -> None:
    assert parse_toml("a = 0xffffffffffffffff\nb = [1.5, true]") == {"a": 2**64 - 1, "b": [1.5, True]}


@pytest.mark.parametrize("count", [HUGE, 0, -1, True, 1.5, "9", None])
def test_token_counts_of_a_server_are_checked(count: object) -> None:
    assert not ready._is_count(count)
    assert ready._pick({"data": [{"id": "m", "max_model_len": count}]}, "") == ("m", None)
    answer = Answer()
    answer.feed(b"data: " + json.dumps({"usage": {"completion_tokens": count}}).encode() + b"\n\n")
    assert answer.usage in (None, 0)


@pytest.mark.parametrize("piece", ["-eyJ", "prompt: ", "prompt: x\n", "a-", "eyJa."])
def test_redaction_takes_linear_time(piece: str) -> None:
    started = time.process_time()
    Redactor().text(piece * (400_000 // len(piece)))
    assert time.process_time() - started < 6.0


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("Bearer-less eyJhbGciOiJIUzI.eyJzdWIiOiIx.c2lnbmF0dXJl end", "Bearer-less <secret> end"),
        ("x-eyJhbGciOiJIUzI1.eyJzdWIi", "x-<secret>"),
        ("a=eyJhbGciOiJIUzI1NiJ9.eyJz_-dWIiOiIx", "a=<secret>"),
        ("eyJ.short.words and keyJhbGciOiJIUzI1NiJ9.eyJz and eyJhbGciOiJIUzI1NiJ9", None),
    ],
)
def test_json_web_tokens_are_still_taken_out(given: str, left: str | None) -> None:
    assert Redactor().text(given) == (given if left is None else left)


def test_tens_of_thousands_of_hosts_are_numbered_in_linear_time() -> None:
    redactor = Redactor()
    started = time.process_time()
    made = redactor.text(" ".join(f"11.{i >> 16}.{i >> 8 & 255}.{i & 255}" for i in range(30_000)))
    assert time.process_time() - started < 8.0
    assert made.endswith("<ip-30000>")


def test_two_files_never_get_the_same_name_in_a_bundle(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "cores").mkdir(parents=True)
    for name in ("a.nvcudmp", "b.nvcudmp"):
        (run / "cores" / name).write_bytes(corpus.raw("oob_load"))
    for name in ("10.1.2.3.log", "10.1.2.4.log"):
        (run / name).write_text(name)
    report = build.analyze([run / "cores" / "a.nvcudmp"], AnalyzeOptions(sass_by="native", debugger="never"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bundle.write(report, run, tmp_path / "out.zip", bundle.Options(dump=True))
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        names = archive.namelist()
    assert len(names) == len(set(names))
    assert {"faulting.cubin", "faulting-2.cubin"} <= set(names)


def test_a_table_that_claims_a_million_modules_is_not_asked_again_for_each_address() -> None:
    """A large section relabelled as the table of modules, in a dump whose PCs then lie in none of them."""
    raw = bytearray(corpus.raw("torch_gather"))
    dump = CoreDump(memoryview(bytes(raw)))
    table, count = int.from_bytes(raw[0x28:0x30], "little"), len(dump.sections)
    largest = max((dump.sections[i] for i in range(count)), key=lambda s: s.size)
    header = table + 64 * largest.number
    raw[header + 4 : header + 8] = (layout.SECTION_BASE + layout.MODULE_TABLE).to_bytes(4, "little")
    raw[header + 56 : header + 64] = (8).to_bytes(8, "little")
    damaged = CoreDump(memoryview(bytes(raw)))
    assert len(damaged.modules) <= layout.ROW_LIMITS[layout.MODULE_TABLE] + 64
    code = CodeMap(damaged)
    started = time.process_time()
    for pc in range(200):
        code.at(0x1234_0000 + pc)
    assert time.process_time() - started < 10.0


def test_plans_and_questions_with_numbers_that_cannot_be_printed(tmp_path: Path) -> None:
    from crashlab.quality.usertasks import load_tasks
    from crashlab.sweep.plan import read_plan

    with pytest.raises(UsageError):
        read_plan(f'command = ["x"]\n[baseline]\nmoe-backend = {TOO_LONG}\n', "plan.toml")
    path = tmp_path / "tasks.toml"
    path.write_text(f'[[task]]\nprompt = "x"\nnumber = {TOO_LONG}\n')
    with pytest.raises(UnreadableInput):
        load_tasks(str(path), 1, None)


def test_a_sweeps_record_with_amounts_that_are_none() -> None:
    from crashlab.sweep.journal import replay, to_fields

    for amount in (HUGE, float("nan"), float("inf"), "x", True):
        exposure = {"steps": amount, "hours": amount, "requests": amount, "tokens": amount}
        line = {
            "event": "run-ended",
            "run": 1,
            "arm": "a",
            "number": 0,
            "outcome": "clean",
            "exposure": exposure,
        }
        (run,) = replay([line]).runs
        json.dumps(to_fields(run), allow_nan=False)
