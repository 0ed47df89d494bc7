"""Programs that crashlab starts: no name out of a dump is an argument, no secret is in their environment."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from pathlib import Path

import pytest

from crashlab.capture import hoststacks
from crashlab.debugger.process import Limits, Outcome
from crashlab.errors import ToolFailed
from crashlab.quality import lmeval
from crashlab.sass import disassembler
from crashlab.sass.locate import Tool
from crashlab.soak.client import Server
from crashlab.soak.external import ExternalLoad
from tests.support import corpus
from tests.support.command import run_cli

SECRET = "hf_canarycanarycanary"


def spy(folder: Path, *, answer: str = "") -> Path:
    """A program that writes down its arguments and environment beside itself."""
    path = folder / "spy"
    path.write_text(
        f"#!{sys.executable} -S\n"
        "import json, os, sys\n"
        "here = os.path.dirname(os.path.abspath(__file__))\n"
        "with open(os.path.join(here, 'seen'), 'a') as file:\n"
        "    file.write(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]) + '\\n')\n"
        f"print({answer!r})\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_TOKEN", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("LD_PRELOAD", "")


@pytest.mark.parametrize(
    "name", ["-x.core", "--json", "-", "a b;$(touch owned).core", "`id`.core", "%n%s.core", "@file"]
)
def test_a_dump_may_have_any_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(corpus.raw("oob_load"))
    found = run_cli("analyze", "--debugger", "never", "--json", "--", name)
    assert '"kind": "gpu-fault"' in found.out, found.err
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_cuda_gdb_gets_neither_the_name_of_the_dump_nor_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "bin"
    place.mkdir()
    program = spy(place, answer="NVIDIA (R) cuda-gdb 12.4")
    (tmp_path / ".gdbinit").write_text("shell touch owned\n")
    (tmp_path / "--eval-command=shell touch owned").write_bytes(corpus.raw("oob_load"))
    monkeypatch.chdir(tmp_path)
    run_cli("analyze", "--debugger", str(program), "--", "--eval-command=shell touch owned")
    seen = (place / "seen").read_text()
    assert "-nx" in seen
    assert "touch owned" not in seen
    assert SECRET not in seen
    assert str(tmp_path) + '"]' not in seen, "it works in a folder of its own"
    assert not (tmp_path / "owned").exists()


def test_nvdisasm_gets_numbers_and_a_descriptor_and_no_secrets(tmp_path: Path) -> None:
    program = spy(tmp_path)
    pending = disassembler.start(bytes(16), 0x7F0000000000, "sm_90", Tool(str(program), "test"))
    with pytest.raises(Exception, match="instructions"):
        pending.result()
    seen = (tmp_path / "seen").read_text()
    assert '["-b", "SM90", "-base", "0x7f0000000000", "/dev/fd/' in seen
    assert SECRET not in seen


@pytest.mark.parametrize("arch", ["sm_90 --help", "-h", "sm_", "../../x", "sm_90\n", "", "sm_٩٠", "sm_9999"])
def test_an_architecture_out_of_a_dump_is_no_option(arch: str, tmp_path: Path) -> None:
    program = spy(tmp_path)
    with pytest.raises(Exception, match=r"architecture|instructions"):
        disassembler.start(bytes(16), 0, arch, Tool(str(program), "test")).result()
    if (tmp_path / "seen").exists():
        assert (tmp_path / "seen").read_text().startswith('[["-b", "SM')
        assert "help" not in (tmp_path / "seen").read_text()


def test_py_spy_gets_a_number_and_no_secrets() -> None:
    seen: list[tuple[list[str], dict[str, str], str]] = []

    def runner(argv: object, env: object, cwd: str, _limits: Limits, _listener: object) -> Outcome:
        seen.append((list(argv), dict(env), cwd))  # type: ignore[call-overload]
        return Outcome(b"Thread 1", 0, 1.0)

    hoststacks.take(os.getpid(), py_spy="/x/py-spy", runner=runner)  # type: ignore[arg-type]
    argv, env, cwd = seen[0]
    assert argv[:4] == ["/x/py-spy", "dump", "--pid", str(os.getpid())]
    assert SECRET not in str(env)
    assert cwd != os.getcwd()


HOSTILE_MODELS = (
    "m,trust_remote_code=True",
    "-o/tmp/x",
    "m; touch owned",
    "$(touch owned)",
    "m n",
    "m\nn",
    "a=b",
    "`x`",
)


@pytest.mark.parametrize("model", HOSTILE_MODELS)
def test_a_model_name_of_the_server_never_becomes_part_of_a_command(model: str, tmp_path: Path) -> None:
    server = Server("http://127.0.0.1:1", model)
    assert not server.has_plain_model
    load = ExternalLoad((str(spy(tmp_path)), "--model", "{model}"), server)
    assert "cannot stand in a command" in (asyncio.run(load.run()) or "")
    assert not (tmp_path / "seen").exists()
    with pytest.raises(ToolFailed, match="take apart"):
        lmeval.ask(lmeval.Job(("gsm8k",), server), "x", str(tmp_path))


@pytest.mark.parametrize(
    "model", ["", "m", "meta-llama/Llama-3.1-8B@main", "/models/x_y.gguf", "a:b", "~/m", "模型"]
)
def test_ordinary_model_names_are_plain(model: str) -> None:
    assert Server("http://127.0.0.1:1", model).has_plain_model


def test_nothing_is_ever_run_by_a_shell() -> None:
    sources = Path(__file__).resolve().parents[3] / "crashlab"
    for path in sources.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for word in ("shell=True", "os.system(", "os.popen(", "pickle.load", "yaml.load(", "marshal.load"):
            assert word not in text, f"{path.name}: {word}"
