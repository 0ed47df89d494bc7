"""The acceptance of ``crashlab soak`` on a GPU: its judgement, its packing, and a whole case with the demo server."""

from __future__ import annotations

import json
import lzma
import shlex
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.unit.logs.material import recorded

# These live in scripts/gpu, which conftest puts on the path.
import accept_soak  # isort: skip
from proof import pack, soakcases  # isort: skip
from proof.soakcases import Seen  # isort: skip

CASES = {case.name: case for case in soakcases.cases()}
RIGHT: dict[str, Any] = {
    "verdict": {
        "kind": "gpu-fault",
        "headline": "x",
        "kernel": {"name": "planted_store"},
        "instruction": {"text": "STG.E [R2], R4"},
        "source": {"file": "/opt/plant/plant.py", "line": 16},
    },
    "run": {"exit_code": 0},
    "host": {"reported": {"text": "EngineDeadError"}},
}
STALL: dict[str, Any] = {
    "verdict": {
        "kind": "stall",
        "hang": {
            "groups": [
                {
                    "kernel": "planted_store",
                    "instruction": "@P0 BRA",
                    "source": {"file": "plant.py", "line": 13},
                }
            ]
        },
    }
}
ENDED = [{"event": "run-ended"}]
STALLED = [*ENDED, {"event": "soak-stall", "health": 200}, {"event": "asked-for-dump", "ok": True}]
CAPTURED = (
    b"Capturing CUDA graphs (decode, FULL): 100%|####| 4/4 [00:01<00:00]\n"
    b"(EngineCore pid=5) INFO 11-29 17:11:17 [runner.py:6] Graph capturing finished in 2 secs, took 0.2 GiB\n"
)


def judge(
    name: str, code: int | None, report: dict[str, Any], events: list[Any], log: bytes = b""
) -> list[str]:
    return soakcases.judge(CASES[name], Seen(code, report, events, log), "planted_store", "plant.py")


def test_what_was_planted_is_right() -> None:
    assert judge("fault", 10, RIGHT, ENDED) == []
    assert judge("stall", 12, STALL, STALLED) == []
    assert judge("garbage", 13, {"verdict": {"kind": "garbage"}}, ENDED) == []


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"kind": "host-death"}, "verdict host-death, expected gpu-fault"),
        ({"kernel": {"name": "innocent"}}, "kernel innocent, expected planted_store"),
        ({"kernel": None}, "kernel unnamed, expected planted_store"),
        ({"source": None}, "source unknown, expected plant.py"),
        ({"instruction": None}, "no instruction"),
    ],
)
def test_each_thing_that_is_not_named_is_wrong(change: dict[str, Any], wrong: str) -> None:
    report = {**RIGHT, "verdict": {**RIGHT["verdict"], **change}}
    assert judge("fault", 10, report, ENDED) == [wrong]


def test_nothing_at_all_is_wrong_in_every_way() -> None:
    told = judge("stall", None, {}, [])
    assert len(told) == 8
    assert "exit code None, expected 12" in told
    assert "the record has no end" in told


def test_graphs_count_only_if_the_servers_log_says_that_they_were_captured() -> None:
    eager = recorded("vllm/oob.log.xz")
    assert judge("fault-graphs", 10, RIGHT, ENDED, eager) == ["CUDA graphs: off"]
    assert judge("fault-graphs", 10, RIGHT, ENDED, b"") == ["CUDA graphs: the log does not say"]
    (broken,) = judge("fault-graphs", 10, RIGHT, ENDED, CAPTURED.splitlines()[0])
    assert broken == "CUDA graphs: capturing"
    assert judge("fault-graphs", 10, RIGHT, ENDED, CAPTURED) == []


def test_a_stall_needs_health_200_and_a_process_that_takes_the_request() -> None:
    events = [*ENDED, {"event": "soak-stall", "health": None}, {"event": "asked-for-dump", "ok": False}]
    assert len(judge("stall", 12, STALL, events)) == 2


def test_a_row_tells_what_the_server_itself_claimed() -> None:
    row = soakcases.row_of(CASES["fault"], Seen(10, RIGHT, ENDED, recorded("vllm/oob.log.xz")))
    assert (row["expected"], row["verdict"], row["server_exit_code"]) == ("gpu-fault", "gpu-fault", 0)
    assert row["server_blamed"] == "EngineDeadError"
    assert row["graphs"] == "off"


def test_environment_and_arguments_go_to_their_case() -> None:
    listed = soakcases.with_settings(
        soakcases.cases(),
        ["A=1", "PYTHONPATH=/site", "VLLM_PLUGINS=plant", "stall:MODE=spin", "garbage:PYTHONPATH=/own"],
        ["fault=--x 'y z'"],
    )
    by_name = {case.name: case for case in listed}
    assert by_name["fault"].arguments == ("--x", "y z")
    assert by_name["fault-again"].arguments == ("--enforce-eager",)
    assert by_name["fault"].env == {"A": "1", "PYTHONPATH": "/site", "VLLM_PLUGINS": "plant"}
    assert by_name["stall"].env["MODE"] == "spin"
    assert "MODE" not in by_name["fault"].env
    assert by_name["garbage"].env["VLLM_PLUGINS"] == "crashlab_nan"
    assert by_name["garbage"].env["PYTHONPATH"] == f"/own:{soakcases.PLUGIN}:/site"


def test_a_port_is_filled_in_or_appended(tmp_path: Path) -> None:
    filled = soakcases.command(CASES["fault"], "serve --listen {port}", tmp_path, "--clients 2")
    assert filled[filled.index("--listen") + 1].isdigit()
    assert "--port" not in filled
    assert soakcases.command(CASES["fault"], "serve", tmp_path, "")[-3] == "--port"


def run_folder(tmp_path: Path, dumps: int, dump_bytes: int) -> Path:
    import random

    folder = tmp_path / "case"
    (folder / "cores").mkdir(parents=True)
    (folder / "pipes").mkdir()
    (folder / "output").mkdir()
    (folder / "events.jsonl").write_text('{"event": "run-ended"}\n')
    for number in range(dumps):
        (folder / "cores" / f"h.{number}.1.nvcudmp").write_bytes(random.Random(number).randbytes(dump_bytes))
    return folder


def test_a_case_is_packed_with_its_dump(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, 1, 10_000)
    assert pack.pack(folder, tmp_path / "case.tar.xz", 100_000) == []
    with tarfile.open(tmp_path / "case.tar.xz") as archive:
        names = archive.getnames()
        member = archive.extractfile("case/cores/h.0.1.nvcudmp.xz")
        assert member is not None
        assert len(lzma.decompress(member.read())) == 10_000
    assert "case/events.jsonl" in names
    assert not any("pipes" in name for name in names)


def test_dumps_that_find_no_room_are_left_out_last_first_and_told(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, 2, 50_000)
    (told,) = pack.pack(folder, tmp_path / "case.tar.xz", 70_000)
    assert told == "the dump h.1.1.nvcudmp (50,000 bytes) found no room"
    told_all = pack.pack(folder, tmp_path / "none.tar.xz", 10)
    assert len(told_all) == 3
    assert not (tmp_path / "none.tar.xz").exists()
    assert pack.pack(tmp_path / "gone", tmp_path / "x.tar.xz", 10) == ["there is no run directory"]


def test_long_logs_lose_their_middle(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, 0, 0)
    (folder / "output" / "001.stdout.log").write_bytes(b"a" * (8 << 20) + b"the end")
    (told,) = pack.pack(folder, tmp_path / "case.tar.xz", 1 << 20)
    assert told == "the middle of output/001.stdout.log was cut out"


def test_files_stay_within_count_and_sum(tmp_path: Path) -> None:
    assert accept_soak.room(tmp_path) == pack.FILE_LIMIT
    for number in range(3):
        with (tmp_path / f"{number}.tar.xz").open("wb") as file:
            file.truncate(pack.FILE_LIMIT)
    assert accept_soak.room(tmp_path) == pack.TOTAL_LIMIT - 1_000_000 - 3 * pack.FILE_LIMIT
    for number in range(7):
        (tmp_path / f"{number}.tar.xz").write_bytes(b"")
    assert accept_soak.room(tmp_path) == 0


def test_a_case_that_is_not_known_or_finds_no_time_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = ["--out", str(tmp_path), "--server-cmd", "x", "--kernel", "k", "--source", "s"]
    assert accept_soak.main([*base, "--only", "fualt"]) == 2
    assert accept_soak.main([*base, "--only", "fault", "--budget", "5"]) == 1
    assert "not run: the time was used up" in capsys.readouterr().out


DEMO = shlex.join(
    [sys.executable, "-m", "crashlab.demo", "--startup", "0", "--step-ms", "3", "--port", "{port}"]
)
DEMO_ARGS = {
    "fault": "--scenario fault --after 150",
    "fault-graphs": "--scenario fault --after 150",
    "stall": "--scenario stall --after 150",
    "garbage": "--scenario garbage --after 600",
}


@pytest.mark.slow
def test_with_the_demo_server_as_a_stand_in_each_case_is_judged_and_packed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = accept_soak.main(
        [
            "--out", str(tmp_path), "--server-cmd", DEMO, "--kernel", "e", "--source", "faults.cu",
            "--only", ",".join(DEMO_ARGS), "--budget", "280",
            "--load", "--clients 8 --input-tokens 8:64 --output-tokens 8:32 --for 60s --stall-after 3s --fast",
            *(f"--args={name}={arguments}" for name, arguments in DEMO_ARGS.items()),
        ]
    )  # fmt: skip
    out = capsys.readouterr().out
    assert code == 1
    assert "3 of 4 right; wrong: fault-graphs" in out, (
        "the demo server captures no CUDA graphs, and is found out"
    )
    rows = {row["name"]: row for row in json.loads((tmp_path / "accept_soak.json").read_text())["rows"]}
    assert rows["fault-graphs"]["wrong"] == ["CUDA graphs: the log does not say"]
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "fault": "gpu-fault",
        "fault-graphs": "gpu-fault",
        "stall": "stall",
        "garbage": "garbage",
    }
    assert rows["fault"]["server_exit_code"] == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(["accept_soak.json", *(f"{name}.tar.xz" for name in DEMO_ARGS)])
    with tarfile.open(tmp_path / "stall.tar.xz") as archive:
        assert any(name.endswith(".nvcudmp.xz") for name in archive.getnames())
