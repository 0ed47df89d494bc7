"""The nvdisasm driver: started early, bounded in time and output, nothing left behind."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.errors import CrashlabError, MissingTool, ToolFailed, UsageError
from crashlab.sass import disassembler, locate
from crashlab.sass.disassembler import Tool, command_line, find_nvdisasm, start, version
from crashlab.sass.line import SassLine

CODE = bytes(range(16)) * 2
REAL = find_nvdisasm()
needs_nvdisasm = pytest.mark.skipif(REAL is None, reason="nvdisasm is not installed")

# Two instructions of sm_90, as a compiler makes them.
MOV = bytes.fromhex("0272000001000000000f000000e20f00")
EXIT = bytes.fromhex("4d790000000000000000800300ea0f00")
GOOD = 'printf "        /*1000*/  LDC R1, c[0x0][0x28] ;\\n        /*1010*/  @!P0 EXIT;\\n"'


def fake(folder: Path, body: str) -> Tool:
    """An executable that behaves as the shell text ``body`` says."""
    path = folder / "nvdisasm"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return Tool(str(path), "a test")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"


def wait_until_gone(pid: int) -> bool:
    for _ in range(100):
        if not alive(pid):
            return True
        time.sleep(0.02)
    return False


def test_gives_one_line_an_instruction(tmp_path: Path) -> None:
    lines = start(CODE, 0x1000, "sm_90", fake(tmp_path, GOOD)).result()
    assert lines == (SassLine(0x1000, "LDC R1, c[0x0][0x28]"), SassLine(0x1010, "@!P0 EXIT"))


def test_passes_architecture_base_and_the_code_itself(tmp_path: Path) -> None:
    tool = fake(tmp_path, f'echo "$@" > {tmp_path}/argv; cat "$5" > {tmp_path}/code; {GOOD}')
    start(CODE, 0x1000, "sm_90a", tool).result()
    assert (tmp_path / "argv").read_text().startswith("-b SM90a -base 0x1000 ")
    assert (tmp_path / "code").read_bytes() == CODE


def test_runs_while_nobody_waits(tmp_path: Path) -> None:
    tool = fake(tmp_path, f"{GOOD}; : > {tmp_path}/done")
    pending = start(CODE, 0x1000, "sm_90", tool)
    for _ in range(200):
        if (tmp_path / "done").exists():
            break
        time.sleep(0.02)
    assert (tmp_path / "done").exists()
    assert len(pending.result()) == 2


def test_a_large_listing_does_not_block_before_it_is_read(tmp_path: Path) -> None:
    body = (
        f'i=0; while [ $i -lt 3000 ]; do echo "// {"x" * 80}"; i=$((i+1)); done; {GOOD}; : > {tmp_path}/done'
    )
    pending = start(CODE, 0x1000, "sm_90", fake(tmp_path, body))
    for _ in range(500):
        if (tmp_path / "done").exists():
            break
        time.sleep(0.02)
    assert (tmp_path / "done").exists()
    assert len(pending.result()) == 2


def test_annotations_and_double_blanks_are_removed(tmp_path: Path) -> None:
    text = '/*1000*/  STL [R1+0x14], R8 (*"SpillRefill"*) ;\n/*1010*/   FSEL R3, RZ, +QNAN , P1 ;\n'
    (tmp_path / "out").write_text(text)
    lines = start(CODE, 0x1000, "sm_90", fake(tmp_path, f"cat {tmp_path}/out")).result()
    assert [line.text for line in lines] == ["STL [R1+0x14], R8", "FSEL R3, RZ, +QNAN, P1"]


def test_a_tool_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    tool = fake(tmp_path, f"sleep 600 & echo $! > {tmp_path}/child; echo $$ > {tmp_path}/self; wait")
    pending = start(CODE, 0x1000, "sm_90", tool)
    begun = time.monotonic()
    with pytest.raises(ToolFailed, match="in time"):
        pending.result(timeout=0.5)
    assert time.monotonic() - begun < 5
    for name in ("self", "child"):
        assert wait_until_gone(int((tmp_path / name).read_text()))


def test_a_tool_that_closes_its_output_and_stays_is_killed(tmp_path: Path) -> None:
    tool = fake(tmp_path, f"echo $$ > {tmp_path}/self; exec >&- 2>&-; sleep 600")
    with pytest.raises(ToolFailed, match="did not end"):
        start(CODE, 0x1000, "sm_90", tool).result(timeout=0.5)
    assert wait_until_gone(int((tmp_path / "self").read_text()))


def test_a_child_that_outlives_the_tool_is_killed(tmp_path: Path) -> None:
    tool = fake(tmp_path, f"sleep 600 >/dev/null 2>&1 & echo $! > {tmp_path}/child; {GOOD}")
    assert len(start(CODE, 0x1000, "sm_90", tool).result()) == 2
    assert wait_until_gone(int((tmp_path / "child").read_text()))


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_a_tool_that_floods_is_ended(tmp_path: Path, stream: str) -> None:
    tool = fake(tmp_path, f"echo $$ > {tmp_path}/self; while :; do echo {'x' * 500} {stream}; done")
    with pytest.raises(ToolFailed, match="more than"):
        start(CODE, 0x1000, "sm_90", tool).result(timeout=30)
    assert wait_until_gone(int((tmp_path / "self").read_text()))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("echo rubbish", "0 instructions for 2"),
        ("head -c 3000 /dev/urandom", "instructions for 2"),
        (GOOD.replace("1010", "1020"), "others than were asked for"),
        ("exit 0", "0 instructions"),
        ("echo 'nvdisasm fatal   : no' >&2; exit 1", "ended with 1: nvdisasm fatal   : no"),
        ("exit 3", "ended with 3: no output"),
        ("kill -SEGV $$", "ended with -11"),
    ],
)
def test_a_tool_that_fails_says_how(tmp_path: Path, body: str, words: str) -> None:
    with pytest.raises(ToolFailed, match=re.escape(words)):
        start(CODE, 0x1000, "sm_90", fake(tmp_path, body)).result()


def test_an_unknown_architecture_gets_a_hint(tmp_path: Path) -> None:
    body = "echo \"nvdisasm fatal   : Value 'SM70' is not defined for option 'binary'\" >&2; exit 1"
    with pytest.raises(ToolFailed) as caught:
        start(CODE, 0x1000, "sm_70", fake(tmp_path, body)).result()
    assert caught.value.hint is not None
    assert "release" in caught.value.hint


def test_bad_words_are_named_and_the_others_decoded(tmp_path: Path) -> None:
    """The first run refuses the file; the second gets an instruction in place of the bad word."""
    body = (
        f'if [ -e {tmp_path}/again ]; then cat "$5" > {tmp_path}/code; {GOOD}; else : > {tmp_path}/again; '
        "echo \"nvdisasm error   : Unrecognized operation for functional unit 'uC' at address 0x00001010\" >&2; "
        'echo "nvdisasm error   : Illegal instruction found" >&2; exit 1; fi'
    )
    lines = start(CODE, 0x1000, "sm_90", fake(tmp_path, body)).result()
    assert lines[0].text == "LDC R1, c[0x0][0x28]"
    assert lines[1] == SassLine(0x1010, "ILLEGAL 0x0f0e0d0c0b0a09080706050403020100")
    assert (tmp_path / "code").read_bytes()[:16] == CODE[:16]


def test_a_tool_that_refuses_twice_fails(tmp_path: Path) -> None:
    body = 'echo "at address 0x00001000" >&2; echo "nvdisasm error : Illegal instruction found" >&2; exit 1'
    with pytest.raises(ToolFailed, match="Illegal instruction"):
        start(CODE, 0x1000, "sm_90", fake(tmp_path, body)).result()


def test_missing_tools_raise_missing_tool(tmp_path: Path) -> None:
    with pytest.raises(MissingTool):
        start(CODE, 0x1000, "sm_90", None)
    with pytest.raises(MissingTool):
        start(CODE, 0x1000, "sm_90", Tool(str(tmp_path / "none"), "a test"))
    with pytest.raises(MissingTool):
        find_nvdisasm(str(tmp_path / "none"))


def test_a_file_that_is_no_program_raises_tool_failed(tmp_path: Path) -> None:
    path = tmp_path / "nvdisasm"
    path.write_bytes(b"\x7fELF rubbish")
    path.chmod(0o755)
    with pytest.raises(ToolFailed, match="cannot start"):
        start(CODE, 0x1000, "sm_90", Tool(str(path), "a test"))


@pytest.mark.parametrize(
    ("code", "base", "arch"),
    [
        (b"", 0, "sm_90"),
        (CODE[:-1], 0, "sm_90"),
        (CODE, -16, "sm_90"),
        (CODE, 0, "x86"),
        (CODE, 0, "sm_90; rm"),
        (CODE, 0, ""),
    ],
)
def test_unusable_arguments_raise_usage_error(tmp_path: Path, code: bytes, base: int, arch: str) -> None:
    with pytest.raises(UsageError):
        start(code, base, arch, fake(tmp_path, GOOD))


def test_kill_ends_a_process_that_nobody_collects(tmp_path: Path) -> None:
    pending = start(CODE, 0x1000, "sm_90", fake(tmp_path, f"echo $$ > {tmp_path}/self; sleep 600"))
    for _ in range(200):
        if (tmp_path / "self").exists() and (tmp_path / "self").read_text():
            break
        time.sleep(0.02)
    pending.kill()
    pending.kill()
    assert wait_until_gone(int((tmp_path / "self").read_text()))


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    tool = fake(tmp_path, GOOD)
    start(CODE, 0x1000, "sm_90", tool).result()
    before = set(os.listdir("/proc/self/fd"))
    for body in (GOOD, "exit 1", "echo rubbish"):
        pending = start(CODE, 0x1000, "sm_90", fake(tmp_path, body))
        with contextlib.suppress(ToolFailed):
            pending.result()
    assert set(os.listdir("/proc/self/fd")) == before


def test_works_without_memory_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    tool = fake(tmp_path, f'cat "$5" > {tmp_path}/code; {GOOD}')
    assert len(start(CODE, 0x1000, "sm_90", tool).result()) == 2
    assert (tmp_path / "code").read_bytes() == CODE


def test_the_command_line_can_be_run_by_hand() -> None:
    assert command_line(Tool("/x/nvdisasm", ""), "sm_120", 0x7F00, "code.bin") == (
        "/x/nvdisasm", "-b", "SM120", "-base", "0x7f00", "code.bin",
    )  # fmt: skip
    assert command_line(None, "90a", 0, "f")[:3] == ("nvdisasm", "-b", "SM90a")


def test_version_reads_the_release(tmp_path: Path) -> None:
    assert version(fake(tmp_path, "echo 'Cuda compilation tools, release 13.5, V13.5.37'")) == "13.5.37"
    assert version(fake(tmp_path, "echo something else")) is None
    with pytest.raises(ToolFailed, match="ended with 1"):
        version(fake(tmp_path, "exit 1"))


class TestFinding:
    """The order: override, PyPI package (newest CUDA), Triton, toolkit, PATH."""

    @pytest.fixture(autouse=True)
    def _empty_machine(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = tmp_path
        monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), ""])
        monkeypatch.setattr(locate, "_toolkits", lambda _: iter((str(tmp_path / "cuda"),)))
        for name in ("CUDA_HOME", "CUDA_PATH"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        self.setenv = monkeypatch.setenv

    def put(self, path: str) -> str:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("#!/bin/sh\n")
        target.chmod(0o755)
        return str(target)

    def test_nothing_installed_gives_none(self) -> None:
        assert find_nvdisasm() is None

    def test_each_place_is_preferred_to_the_next(self) -> None:
        self.setenv("CUDA_HOME", str(self.root / "home"))
        places = [
            "bin/nvdisasm",
            "cuda/bin/nvdisasm",
            "home/bin/nvdisasm",
            "site/triton/backends/nvidia/bin/nvdisasm",
            "site/nvidia/cuda_nvdisasm/bin/nvdisasm",
            "site/nvidia/cu13/bin/nvdisasm",
            "site/nvidia/cu14/bin/nvdisasm",
        ]
        for place in places:
            expected = self.put(place)
            found = find_nvdisasm()
            assert found is not None
            assert found.path == expected
            assert found.found_in

    def _tool(self, path: str, release: str | None) -> str:
        target = self.put(path)
        answer = f"echo 'Cuda compilation tools, release {release}, V{release}.37'" if release else "exit 1"
        Path(target).write_text(f"#!/bin/sh\n{answer}\n")
        return target

    @pytest.mark.parametrize(
        ("triton", "toolkit", "arch", "chosen"),
        [
            ("12.8", "13.0", "sm_90", "toolkit"),
            ("12.8", "12.8", "sm_90", "triton"),
            ("12.8", "13.0", "sm_70", "triton"),
            ("12.8", "12.9", "sm_121a", "toolkit"),
            ("13.1", "13.0", None, "triton"),
            (None, "11.8", "sm_90", "toolkit"),
        ],
    )
    def test_of_several_the_newest_that_knows_the_chip_is_taken(
        self, triton: str | None, toolkit: str, arch: str | None, chosen: str
    ) -> None:
        paths = {
            "triton": self._tool("site/triton/backends/nvidia/bin/nvdisasm", triton),
            "toolkit": self._tool("bin/nvdisasm", toolkit),
        }
        found = find_nvdisasm(None, arch)
        assert found is not None
        assert found.path == paths[chosen]

    def test_an_override_is_used_or_refused(self) -> None:
        self.put("bin/nvdisasm")
        mine = self.put("mine/nvdisasm")
        found = find_nvdisasm(mine)
        assert found is not None
        assert found.path == mine
        with pytest.raises(MissingTool):
            find_nvdisasm(str(self.root / "absent"))

    def test_a_file_without_the_right_to_run_is_passed_over(self) -> None:
        os.chmod(self.put("site/nvidia/cu13/bin/nvdisasm"), 0o644)
        expected = self.put("bin/nvdisasm")
        found = find_nvdisasm()
        assert found is not None
        assert found.path == expected


def test_toolkits_prefer_the_plain_name_then_the_newest(tmp_path: Path) -> None:
    for name in ("cuda-9.2", "cuda-12", "cuda-13.0", "cuda", "cudnn"):
        (tmp_path / name).mkdir()
    names = [Path(path).name for path in locate._toolkits(str(tmp_path))]
    assert names == ["cuda", "cuda-13.0", "cuda-12", "cuda-9.2"]


@settings(max_examples=25, deadline=None)
@given(data=st.binary(max_size=2000), code=st.integers(0, 3))
def test_only_crashlab_errors_leave_whatever_the_tool_prints(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, code: int
) -> None:
    folder = tmp_path_factory.mktemp("fake")
    (folder / "out").write_bytes(data)
    tool = fake(folder, f"cat {folder}/out; cat {folder}/out >&2; exit {code}")
    try:
        lines = start(CODE, 0x1000, "sm_90", tool).result()
    except CrashlabError:
        return
    assert [line.pc for line in lines] == [0x1000, 0x1010]


@needs_nvdisasm
@pytest.mark.integration
def test_the_real_program_decodes_good_and_bad_words() -> None:
    assert REAL is not None
    code = MOV + bytes(16) + b"\xff" * 16 + EXIT
    lines = start(code, 0x7F0012340000, "sm_90", REAL).result(60)
    assert [line.pc for line in lines] == [0x7F0012340000 + 16 * i for i in range(4)]
    assert lines[0].text == "MOV R0, R1"
    assert lines[1].text == "ILLEGAL 0x" + "0" * 32
    assert lines[2].text == "ILLEGAL 0x" + "f" * 32
    assert lines[3].text == "EXIT"
    assert version(REAL) is not None


@needs_nvdisasm
@pytest.mark.integration
def test_the_real_program_can_be_killed_at_once() -> None:
    assert REAL is not None
    pending = start(MOV * 64, 0, "sm_90", REAL)
    with pytest.raises(ToolFailed):
        pending.result(0.0)


def test_killed_by_a_signal_from_outside_is_a_failure(tmp_path: Path) -> None:
    pending = start(CODE, 0x1000, "sm_90", fake(tmp_path, f"echo $$ > {tmp_path}/self; exec sleep 600"))
    for _ in range(200):
        if (tmp_path / "self").exists() and (tmp_path / "self").read_text():
            break
        time.sleep(0.02)
    os.kill(int((tmp_path / "self").read_text()), signal.SIGKILL)
    with pytest.raises(ToolFailed, match="-9"):
        pending.result(10)


def test_the_public_names_are_there() -> None:
    assert set(disassembler.__all__) <= set(dir(disassembler))
