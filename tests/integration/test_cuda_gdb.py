"""The real cuda-gdb over the real dumps: it is confined, it is survived, and it agrees or is explained.

Which one: the program that CRASHLAB_CUDA_GDB names, else one in ``.tools/cuda-gdb`` (where
``scripts/install-cuda-gdb .tools/cuda-gdb`` puts it), else one on PATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from functools import lru_cache
from pathlib import Path

import pytest

from crashlab.debugger import commands, flags
from crashlab.debugger.candidates import Candidate, Choice, choose, probe
from crashlab.debugger.session import SessionResult, run_session
from crashlab.gpucore.dump import CoreDump
from crashlab.postmortem.disassembly import Disassembly
from crashlab.postmortem.examine import examine
from crashlab.postmortem.from_transcript import from_transcript
from crashlab.postmortem.reconcile import reconcile
from tests.support import corpus

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
DUMPS = sorted(corpus.manifest()) if (corpus.DUMPS / "manifest.json").exists() else []


@lru_cache(maxsize=1)
def _found() -> Candidate | None:
    for path in (
        os.environ.get("CRASHLAB_CUDA_GDB"),
        str(ROOT / ".tools" / "cuda-gdb" / "cuda-gdb"),
        shutil.which("cuda-gdb"),
    ):
        if path and os.path.exists(path):
            candidate = probe(os.path.abspath(path))
            if candidate.problem is None:
                return candidate
    return None


@lru_cache(maxsize=1)
def _choice() -> Choice:
    candidate = _found()
    if candidate is None:
        pytest.skip("no cuda-gdb: set CRASHLAB_CUDA_GDB or run scripts/install-cuda-gdb .tools/cuda-gdb")
    return choose((candidate,), (580, 159), (9, 0))


@lru_cache(maxsize=64)
def _session(dump: str) -> SessionResult:
    return run_session(corpus.path(dump), _choice(), seconds=120)


@pytest.mark.parametrize("dump", DUMPS)
def test_it_opens_the_dump_or_dies_knowingly(dump: str) -> None:
    result = _session(dump)
    assert result.status in ("ok", "aborted"), result.detail
    if dump == "cut_short":
        assert (result.status, result.transcript is not None) == ("aborted", True)
    if result.status == "ok":
        assert result.output.splitlines()[-1] == f"=={commands.END}"
        assert result.exit_code == 0
    else:
        assert result.detail


@pytest.mark.parametrize("dump", [dump for dump in DUMPS if dump != "cut_short"])
def test_it_agrees_with_the_native_reading_or_the_difference_is_explained(dump: str) -> None:
    result = _session(dump)
    disassembly = Disassembly(external=False)
    try:
        native = examine(CoreDump.open(corpus.path(dump)), disassembly)
    finally:
        disassembly.close()
    found = reconcile(
        native.faults, native.verdict, result.transcript, result.reader_status(), misfits=_choice().misfits
    )
    for one in found.inconsistencies:
        assert one.what
        assert one.resolution
        assert not one.resolution.startswith("Unresolved")
    surprising = [
        one.what
        for one in found.inconsistencies
        if not one.what.startswith(
            (
                "cuda-gdb is not of the dump's version",
                f"cuda-gdb {result.version} aborted",
                "The dump holds a fault, cuda-gdb shows none",
                "cuda-gdb's backtrace shows benign_scale",
            )
        )
    ]
    assert surprising == []
    assert found.doubts == ()


@pytest.mark.parametrize("dump", [dump for dump in DUMPS if dump != "cut_short"])
def test_its_words_alone_give_the_right_verdict(dump: str) -> None:
    transcript = _session(dump).transcript
    known = corpus.manifest()[dump]["expect"]
    if transcript is None or flags.NO_EXCEPTION in transcript.flags or transcript.errorpc is None:
        pytest.skip("this version sees no fault in this dump")
    verdict = from_transcript(transcript).verdict
    assert (verdict.kind, str(verdict.pc)) == (known["kind"], known["pc"])
    assert verdict.exception is not None
    assert verdict.exception.code == known["exception_code"]


def test_it_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    choice = _choice()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    shared = Path("/tmp/cuda-dbg")
    before = set(shared.iterdir()) if shared.exists() else set()
    result = run_session(corpus.path("shared_oob"), choice)
    assert result.status == "ok"
    assert list(tmp_path.iterdir()) == []
    assert (set(shared.iterdir()) if shared.exists() else set()) <= before


def test_stopping_it_in_the_middle_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice = _choice()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    started = time.monotonic()
    result = run_session(corpus.path("torch_gather"), choice, seconds=0.05)
    assert time.monotonic() - started < 10
    assert result.status == "timed-out"
    assert list(tmp_path.iterdir()) == []
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=False).stdout
    assert str(tmp_path) not in running


def test_source_files_that_a_dump_names_are_not_read(tmp_path: Path) -> None:
    """A hostile dump could name any file of the analyst; gdb would print a line of it."""
    result = _session("shared_oob")
    assert "faults.cu:" in result.output
    assert "No such file or directory" not in result.output  # it did not even look


def test_a_file_name_with_every_trap_works(tmp_path: Path) -> None:
    odd = tmp_path / "-ex 'shell touch pwned' $(touch pwned)\n~.core"
    odd.write_bytes(corpus.raw("deep"))
    result = run_session(odd, _choice())
    assert result.status == "ok"
    assert result.transcript is not None
    assert result.transcript.exception_code == 14
    assert not (tmp_path / "pwned").exists()


def test_files_that_are_no_dump_fail_with_its_own_words(tmp_path: Path) -> None:
    for content in (b"", b"hello", b"\x7fELF" + bytes(60), corpus.raw("deep")[:200_000]):
        path = tmp_path / "x.core"
        path.write_bytes(content)
        result = run_session(path, _choice())
        assert result.status in ("failed", "aborted")
        assert result.detail


def test_disassembly_is_read_where_its_tools_are_found() -> None:
    transcript = _session("shared_oob").transcript
    assert transcript is not None
    if flags.CANNOT_DISASSEMBLE in transcript.flags:
        pytest.skip("cuobjdump is not there: scripts/install-cuda-gdb --with-disassembler fetches it")
    instruction = from_transcript(transcript).verdict.instruction
    assert instruction is not None
    assert instruction.text == "STS.128 [R0], R4"


def test_the_lines_for_a_person_work_as_printed(tmp_path: Path) -> None:
    candidate = _choice().candidate
    assert candidate is not None
    dump = tmp_path / "my dump.core"
    dump.write_bytes(corpus.raw("deep"))
    (line,) = commands.by_hand(str(dump), 0x7FA59F7A0100, program=candidate.path)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    printed = subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=env, check=False).stdout
    assert "inner(float const*, long long)" in printed
    assert "deep_call" in printed
