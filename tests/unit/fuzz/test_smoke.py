"""A few cases of every fuzz target, and the program that runs campaigns of them."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from crashlab.errors import CrashlabError
from tests.support.fuzz import TARGETS, campaign, shapes
from tests.support.fuzz.target import Target
from tests.support.fuzz.worker import Limits, attempt, case_of

ROOT = Path(__file__).resolve().parents[3]
CASES = 8
LIMITS = Limits(seconds=10.0)
SLOW = {"dump": 4, "inspect": 4, "rundir": 3, "bundle": 3, "http": 4}


@pytest.mark.parametrize("name", TARGETS)
def test_a_few_cases_of_each_target_survive(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    for seed in range(SLOW.get(name, CASES)):
        finding, _ = attempt(target, case_of(target, seed), tmp_path, LIMITS)
        assert finding is None, f"scripts/fuzz {name} --seed {seed} --cases 1\n{finding and finding.detail}"


@pytest.mark.parametrize("name", TARGETS)
def test_a_case_is_the_same_for_the_same_seed_and_mostly_differs_for_another(name: str) -> None:
    cases = [case_of(TARGETS[name], seed) for seed in range(4)]
    assert cases[1] == case_of(TARGETS[name], 1)
    assert len(set(cases)) > 1


def planted(case: bytes, _place: Path) -> None:
    """A parser with one mistake a byte; its CrashlabError is none of them."""
    if b"\xff" in case:
        raise KeyError("planted")
    if b"\xfe" in case:
        time.sleep(60)
    if b"\xfd" in case:
        os.kill(os.getpid(), 9)
    if b"\xfc" in case:
        bytearray(1 << 30)
    if b"\xfb" in case:
        until = time.process_time() + 0.4
        while time.process_time() < until:
            pass
    if b"\xfa" in case:
        warnings.warn("planted", FutureWarning, stacklevel=1)


def planted_target(byte: int) -> Target:
    def make(rng: random.Random) -> bytes:
        return b"abcdefgh" * 20 + (bytes([byte]) if rng.random() < 0.2 else b"") + b"tail" * 20

    return Target("planted", "one mistake", make, planted)


@pytest.mark.parametrize(
    ("byte", "kind", "where"),
    [
        (0xFF, "KeyError", "test_smoke.py:planted"),
        (0xFE, "hang", "test_smoke.py:planted"),
        (0xFD, "killed", "child"),
        (0xFC, "MemoryError", "test_smoke.py:planted"),
        (0xFB, "slow", "planted"),
        (0xFA, "FutureWarning", "test_smoke.py:planted"),
    ],
)
def test_a_campaign_finds_what_is_planted_and_makes_it_small(
    byte: int, kind: str, where: str, tmp_path: Path
) -> None:
    limits = Limits(seconds=0.2, patience=2.0 if kind == "hang" else 100.0)
    shrink = 20.0 if kind == "KeyError" else 0.2
    found = campaign.run(
        planted_target(byte),
        minutes=0.02,
        first_seed=0,
        folder=tmp_path,
        limits=limits,
        cases=40,
        shrink=shrink,
    )
    assert len(found.findings) == 1
    (folder,) = (tmp_path / "planted").iterdir()
    facts = json.loads((folder / "finding.json").read_text())
    assert (facts["kind"], facts["where"]) == (kind, where)
    assert bytes([byte]) in (folder / "original.bin").read_bytes()
    if kind == "KeyError":
        assert (folder / "smaller.bin").read_bytes() == b"\xff"
        assert "planted" in (folder / "traceback.txt").read_text()


def test_a_campaign_without_mistakes_finds_none(tmp_path: Path) -> None:
    def run(_case: bytes, _place: Path) -> None:
        return None

    target = Target("clean", "no mistakes", lambda rng: rng.randbytes(10), run)
    found = campaign.run(target, minutes=1.0, first_seed=5, folder=tmp_path, limits=LIMITS, cases=50)
    assert (found.cases, found.first_seed, found.findings) == (50, 5, {})
    assert not list(tmp_path.iterdir())


def test_the_program_runs_one_case_again_and_says_what_it_did(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "scripts/fuzz",
        "sse",
        "--seed",
        "3",
        "--cases",
        "2",
        "--findings",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 cases" in done.stdout
    assert "seeds 3 to 4" in done.stdout
    row = json.loads((tmp_path / "campaigns.jsonl").read_text())
    assert (row["target"], row["cases"]) == ("sse", 2)
    case = tmp_path / "case"
    case.write_bytes(b"data: x\n")
    again = subprocess.run([*command[:3], "--replay", str(case)], cwd=ROOT, timeout=120, check=False)
    assert again.returncode == 0


def test_files_of_one_case_cannot_lead_out_of_their_folder() -> None:
    case = shapes.join_files({"../../x": b"1", "/etc/y": b"2", "a/../b": b"3", "": b"4"})
    assert set(shapes.split_files(case)) == {"x", "etc/y", "a/b"}
    assert shapes.split_files(shapes.join_files({"a": b"1\n", "b/c": b""})) == {"a": b"1\n", "b/c": b""}


def test_our_errors_are_no_findings(tmp_path: Path) -> None:
    def run(_case: bytes, _place: Path) -> None:
        raise CrashlabError("it is what a parser may do, but the target has to suppress it")

    finding, _ = attempt(Target("x", "", lambda _: b"", run), b"", tmp_path, LIMITS)
    assert finding is not None, "targets suppress CrashlabError where it is allowed, and nowhere else"
