"""Whatever comes in, nothing that acts on a terminal goes out: from every input of every command."""

from __future__ import annotations

import json
import re
import struct
import unicodedata
import zipfile
from pathlib import Path
from typing import Any

import pytest

from crashlab.gpucore.dump import CoreDump
from crashlab.report import build, jsonio
from crashlab.report.jsontext import written
from crashlab.report.options import AnalyzeOptions
from tests.support import corpus
from tests.support.command import Completed, run_cli

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\x7f"
"""Sets the window's title, clears the screen, colours by C1, reverses the line."""


def acting(text: str) -> set[str]:
    """Characters of a text that act instead of being shown."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n"}


def check(found: Completed) -> Completed:
    assert not acting(found.out + found.err), ascii(found.out + found.err)[:2000]
    return found


def hostile_dump(place: Path) -> Path:
    """A real dump whose every string (names of kernels, files, sections) was written over with escape codes."""
    raw = bytearray(corpus.raw("oob_load"))
    evil = ESCAPE.encode()
    dump = CoreDump(memoryview(bytes(raw)))
    tables = [dump.sections[i] for i in range(len(dump.sections))]
    spots = [(s.offset, s.size) for s in tables if s.type == 3 and dump.sections.name(s) != ".shstrtab"]
    for module in dump.modules:
        image = dump.image(module)
        if image is not None:  # names of functions and source files inside the code images
            at = bytes(raw).find(bytes(image))
            table, count = struct.unpack_from("<Q", image, 0x28)[0], struct.unpack_from("<H", image, 0x3C)[0]
            for index in range(count):
                kind, offset, size = struct.unpack_from("<4xI16xQQ", image, table + 64 * index)
                if kind == 3:
                    spots.append((at + offset, size))
    for at, size in spots:
        part = bytes(raw[at : at + size])
        for word in re.finditer(rb"[A-Za-z_][\w]{%d,}" % len(evil), part):
            if not word[0].startswith((b"nv", b"debug", b"cuda")):
                raw[at + word.start() : at + word.start() + len(evil)] = evil
    path = place / f"{ESCAPE.replace('/', '')}.core"
    path.write_bytes(raw)
    return path


def hostile_report() -> dict[str, Any]:
    """A real report in which every text carries escape codes."""

    def spoil(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: spoil(item) for key, item in value.items()}
        if isinstance(value, list):
            return [spoil(item) for item in value]
        return f"{value}{ESCAPE}" if isinstance(value, str) and not value.startswith("0x") else value

    report = build.analyze([corpus.path("oob_load")], AnalyzeOptions(sass_by="native", debugger="never"))
    plain = jsonio.to_json(report)
    spoilt: dict[str, Any] = spoil(plain)
    kept = ("kind", "headline")
    spoilt["verdict"]["kind"] = plain["verdict"][kept[0]]
    spoilt["schema"] = plain["schema"]
    return spoilt


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(hostile_dump(tmp_path_factory.mktemp("dump")))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.json"
    path.write_text(json.dumps(hostile_report(), ensure_ascii=False))
    return str(path)


@pytest.mark.parametrize(
    "options",
    [[], ["-v"], ["--json"], ["-q"], ["--show-commands"], ["--fast"]],
    ids=lambda o: "".join(o) or "plain",
)
def test_analyze_of_a_dump(options: list[str], dump: str) -> None:
    found = check(run_cli("analyze", dump, "--debugger", "never", *options))
    assert "owned" in found.out, "the names are still shown"


@pytest.mark.parametrize(
    "view",
    ["kernels", "devices", "contexts", "sms", "blocks", "warps", "lanes", "registers", "backtrace", "modules", "params",
     "constants", "sass", "memory", "sections", "meta"],
)  # fmt: skip
def test_inspect_of_a_dump(view: str, dump: str) -> None:
    check(run_cli("inspect", dump, view))
    check(run_cli("inspect", dump, view, "--json"))


@pytest.mark.parametrize("form", ["text", "md", "html", "json", "junit"])
def test_report_of_a_report(form: str, report: str) -> None:
    assert "owned" in check(run_cli("report", report, "--format", form)).out


def test_comparison_and_issue_text_of_a_report(report: str) -> None:
    check(run_cli("report", report, report))
    check(run_cli("report", report, report, "--format", "json"))
    check(run_cli("report", report, "--for", "vllm"))


def test_matching_a_report(report: str) -> None:
    check(run_cli("signatures", "match", report))
    check(run_cli("signatures", "match", report, "--json"))
    check(run_cli("signatures", "new", report))


@pytest.mark.parametrize("option", ["--log", "--dmesg", "--transcript", "--env"])
def test_text_evidence(option: str, tmp_path: Path) -> None:
    path = tmp_path / f"{ESCAPE}.log"
    path.write_text(
        f"[1.5] NVRM: Xid (PCI:0000:01:00): 31, pid=9, name={ESCAPE}, MMU Fault {ESCAPE}\n"
        f"torch.AcceleratorError: CUDA error: an illegal memory access was encountered {ESCAPE}\n"
        f"EngineCore died {ESCAPE}\n"
        f"CUDA Exception: Warp Illegal Address {ESCAPE}\n#0 0x10 in f{ESCAPE}(int) () at {ESCAPE}.cu:1\n"
        f"torch=={ESCAPE}2.0\nGPU 0: NVIDIA {ESCAPE}\n"
    )
    arguments = (
        [] if option in ("--log", "--transcript") else [str(corpus.path("oob_load")), "--debugger", "never"]
    )
    for more in ([], ["-v"], ["--json"]):
        check(run_cli("analyze", *arguments, option, str(path), *more))


def test_a_catalogue_entry(tmp_path: Path) -> None:
    toml = json.dumps(f"x{ESCAPE}", ensure_ascii=True)
    (tmp_path / "entry.toml").write_text(
        f"id = {toml}\ntitle = {toml}\nkind = 'cause'\nstatus = 'open'\nconfidence = 'low'\nfix = [{toml}]\n"
        f"references = [{toml}]\n[[match]]\nexception = [14]\n"
        f"[[hypothesis]]\ncause = {toml}\nfor = [{{ when = {{ exception = [14] }}, says = {toml} }}]\n"
    )
    for arguments in (["list"], ["list", "--json"], ["show", "x"], ["check", str(tmp_path)]):
        more = [] if arguments[0] == "check" else ["--catalogue", str(tmp_path)]
        check(run_cli("signatures", *arguments, *more))


def test_a_bundle(tmp_path: Path) -> None:
    path = tmp_path / f"{ESCAPE}.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"raw/{ESCAPE}.log", "hf_" + "a" * 30)
        listed = [{"path": f"{ESCAPE}gone", "taken_out": {ESCAPE: 3}}]
        left = [{"name": ESCAPE, "why": ESCAPE}]
        archive.writestr(
            "manifest.json",
            json.dumps({"schema": "crashlab.bundle/1", "files": listed, "left_out": left}),
        )
    assert "STILL LOOKS PRIVATE" in check(run_cli("bundle", "--check", str(path))).out


@pytest.mark.parametrize(
    "arguments",
    [
        ["analyze", "NAME"], ["inspect", "NAME", "kernels"], ["report", "NAME"], ["bundle", "NAME", "-o", "NAME"],
        ["bundle", "--check", "NAME"], ["signatures", "show", "NAME"], ["signatures", "match", "NAME"], ["NAME"],
        ["signatures", "check", "NAME"], ["analyze", "--log", "NAME"], ["analyze", "x", "--debugger", "NAME"],
        ["analyze", "x", "--nvdisasm", "NAME"], ["analyze", "x", "--env", "NAME"], ["inspect", "x", "NAME"],
        ["analyze", "--NAME"],
    ],
)  # fmt: skip
def test_a_name_given_on_the_command_line(arguments: list[str]) -> None:
    check(run_cli(*(word.replace("NAME", f"a{ESCAPE}") for word in arguments)))


def test_json_for_terminals_is_equal_when_read_back() -> None:
    value = {ESCAPE: [ESCAPE, "\ud800x", "\U000e0041", "äß漢", None, 1.5]}
    text = written(value)
    assert json.loads(text) == value
    assert not acting(text)
    assert "äß漢" in text
    text.encode()
