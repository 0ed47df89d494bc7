"""Finding cuda-gdb programs, asking their version, and choosing one for a dump."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crashlab.debugger.candidates import Candidate, choose, find, probe
from crashlab.debugger.disassembler import find_tools
from crashlab.debugger.version import cuda_of_driver, first_version_for, has_dropped, parse_version, spell
from tests.support import fake_cuda_gdb as fake


def _tool(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    tool = folder / name
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    return tool


def test_an_option_is_the_only_candidate(tmp_path: Path) -> None:
    program = fake.install(tmp_path / "opt", "answers")
    other = fake.install(tmp_path / "path", "answers")
    found = find(program, env={"PATH": str(Path(other).parent)}, toolkits=str(tmp_path))
    assert found == (Candidate(program, "option", (12, 4)),)
    assert find(str(tmp_path / "opt"), env={}) == found  # a folder is taken for the program in it


def test_path_toolkit_variables_and_toolkits_are_searched_in_this_order(tmp_path: Path) -> None:
    on_path = fake.install(tmp_path / "path", "answers", version=fake.version_text("12.9"))
    home = fake.install(tmp_path / "home" / "bin", "answers", version=fake.version_text("13.0"))
    old = fake.install(tmp_path / "local" / "cuda-11.8" / "bin", "answers", version=fake.VERSION_11_8)
    (tmp_path / "local" / "cuda").symlink_to(tmp_path / "local" / "cuda-11.8")
    (tmp_path / "local" / "cuda-12.0" / "bin").mkdir(parents=True)  # without a debugger
    env = {"PATH": f".:{tmp_path / 'path'}:{tmp_path / 'none'}", "CUDA_HOME": str(tmp_path / "home")}
    found = find(env=env, toolkits=str(tmp_path / "local"))
    assert [(c.source, c.version) for c in found] == [
        ("PATH", (12, 9)),
        ("CUDA_HOME", (13, 0)),
        (str(tmp_path / "local"), (11, 8)),
    ]
    assert [os.path.realpath(c.path) for c in found] == [on_path, home, old]


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    found = find(env={"PATH": ""}, toolkits=str(tmp_path / "none"))
    choice = choose(found)
    assert (found, choice.candidate) == ((), None)
    assert choice.why == "no cuda-gdb was found on PATH, in CUDA_HOME or under /usr/local"
    assert choice.hint is not None
    assert "install-cuda-gdb" in choice.hint


@pytest.mark.parametrize(
    ("behaviour", "mute", "version", "problem"),
    [
        ("silent", True, "", "does not say that it is cuda-gdb"),
        ("killed", True, "", "--version failed (-9): Opening GPU coredump: core"),
        ("floods", True, "", "does not answer --version"),
        ("answers", False, "GNU gdb 14.2\n", "does not say that it is cuda-gdb"),
    ],
)
def test_programs_that_cannot_be_used_say_why(
    tmp_path: Path, behaviour: str, mute: bool, version: str, problem: str
) -> None:
    program = fake.install(tmp_path, behaviour, mute=mute, version=version)
    assert probe(program).problem == problem


def test_missing_and_broken_programs_say_why(tmp_path: Path) -> None:
    assert probe(str(tmp_path / "cuda-gdb")).problem == "no such program"
    broken = probe(fake.install_broken(tmp_path))
    assert broken.problem is not None
    assert broken.problem.startswith("cannot be started: ")
    choice = choose((broken,))
    assert choice.candidate is None
    assert broken.problem in choice.why


def test_the_newest_that_fits_is_chosen() -> None:
    old, middle, new = (Candidate(f"/{v[0]}/cuda-gdb", "PATH", v) for v in ((11, 8), (12, 9), (13, 0)))
    choice = choose((old, new, middle), (580, 159), (9, 0))
    assert choice.candidate == new
    assert choice.misfits == ()
    assert choice.why == (
        "cuda-gdb 13.0 (/13/cuda-gdb) is the newest of 3 found that fits and knows sm_90 and dumps of driver 580.159"
    )
    volta = choose((old, new, middle), (535, 54), (7, 0))
    assert volta.candidate == middle  # CUDA 13 gave Volta up
    assert "is the newest of 3 found that fits" in volta.why


def test_without_a_fit_the_newest_is_taken_and_the_misfit_named() -> None:
    choice = choose((Candidate("/x/cuda-gdb", "PATH", (12, 4)),), (580, 159), (12, 0))
    assert choice.candidate is not None
    assert choice.misfits == ("sm_120 needs 12.8 or newer", "the dump's driver 580.159 belongs to CUDA 13.0")
    assert choice.why == (
        "cuda-gdb 12.4 (/x/cuda-gdb) is the only one found, although sm_120 needs 12.8 or newer and "
        "the dump's driver 580.159 belongs to CUDA 13.0"
    )


def test_an_option_is_taken_whatever_it_is() -> None:
    choice = choose((Candidate("/x/cuda-gdb", "option", (11, 0)),), None, (9, 0))
    assert choice.candidate is not None
    assert choice.why.startswith("cuda-gdb 11.0 (/x/cuda-gdb) was asked for, although")
    assert (
        choose((Candidate("/x/cuda-gdb", "option", (13, 0)),)).why
        == "cuda-gdb 13.0 (/x/cuda-gdb) was asked for"
    )


def test_a_session_without_a_known_version_is_doubted() -> None:
    choice = choose((Candidate("/x/cuda-gdb", "PATH"),))
    assert choice.misfits == ("its version is unknown",)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVIDIA (R) cuda-gdb 12.4\nPortions", (12, 4)),
        ("NVIDIA (R) cuda-gdb 13.0\n", (13, 0)),
        ("NVIDIA (R) CUDA Debugger\n11.8 release\nPortions", (11, 8)),
        ("NVIDIA (R) CUDA Debugger\n10.2 release\n", (10, 2)),
        ("GNU gdb (Debian 13.1-3) 13.1", None),
        ("14.2 release", None),
        ("", None),
    ],
)
def test_versions_are_read(text: str, version: tuple[int, int] | None) -> None:
    assert parse_version(text) == version


def test_drivers_belong_to_releases() -> None:
    assert cuda_of_driver((580, 159)) == (13, 0)
    assert cuda_of_driver((550, 54, 14)) == (12, 4)
    assert cuda_of_driver((999,)) == (13, 1)  # at least the newest that is known
    assert cuda_of_driver((390,)) is None
    assert cuda_of_driver(()) is None


def test_chips_came_and_went_with_releases() -> None:
    assert first_version_for((9, 0)) == (11, 8)
    assert first_version_for((12, 1)) == (12, 9)
    assert first_version_for((12, 7)) == (12, 9)  # unknown, as new as its family at least
    assert first_version_for((20, 0)) is None
    assert has_dropped((13, 0), (7, 0))
    assert not has_dropped((12, 9), (7, 0))
    assert not has_dropped((13, 0), (7, 5))
    assert spell(None) is None


def test_the_disassembler_is_found_beside_the_debugger_on_path_and_in_wheels(tmp_path: Path) -> None:
    program = fake.install(tmp_path / "gdb", "answers")
    assert find_tools(program, env={}, library_paths=()) == {}
    wheel = _tool(tmp_path / "site" / "nvidia" / "cu13" / "bin", "nvdisasm")
    on_path = _tool(tmp_path / "tools", "cuobjdump")
    (tmp_path / "none" / "bin" / "cuobjdump").mkdir(parents=True)
    env = {"PATH": f"relative:{tmp_path / 'tools'}", "CUDA_HOME": str(tmp_path / "none")}
    libraries = (str(tmp_path / "empty"), str(tmp_path / "site"))
    assert find_tools(program, env=env, library_paths=libraries) == {
        "cuobjdump": str(on_path),
        "nvdisasm": str(wheel),
    }
    beside = _tool(tmp_path / "gdb" / "disassembler", "cuobjdump")
    assert find_tools(program, env=env, library_paths=())["cuobjdump"] == str(beside)


def test_a_debugger_is_asked_in_a_folder_that_is_gone_afterwards(tmp_path: Path) -> None:
    program = fake.install(tmp_path, "looks-around", mute=True)
    probe(program)
    log = (tmp_path / "log").read_text()
    assert log.strip().isdecimal()
    assert not any(name.startswith("crashlab-gdb-") for name in os.listdir(tmp_path))
