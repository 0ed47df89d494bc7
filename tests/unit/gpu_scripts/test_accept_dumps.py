"""The acceptance of dumps on a GPU: its judgement, tried on the recorded dumps, and the table of the whole run."""

from __future__ import annotations

import copy
import json
import lzma
import runpy
from pathlib import Path
from typing import Any

import pytest

# These live in scripts/gpu, which conftest puts on the path.
import accept_dumps  # isort: skip
import accept_run  # isort: skip
from proof import dumps  # isort: skip
from proof import scenes as run_scenes  # isort: skip
from proof.wrap import Wrapped  # isort: skip
from recorder.machine import Machine  # isort: skip
from recorder.pack import Item  # isort: skip
from recorder.scenes import Scene, load_scenes  # isort: skip

ROOT = Path(__file__).resolve().parents[3]
REPORTS = ROOT / "tests" / "golden" / "report" / "json"

SCENES = {scene.name: scene for scene in load_scenes()}
# recorded with other programs than those of scripts/gpu: the same faults in kernels of other names
OTHERS = {
    *("badpc", "barrier_hang", "graph", "int32_overflow", "multi", "oob_load", "oob_load_debug"),
    *("oob_store", "oob_store_nolineinfo", "tma"),
}
NAMES = {path.name.partition(".")[0] for path in REPORTS.glob("*.json.xz")}
RECORDED = sorted(name for name in NAMES & set(SCENES) - OTHERS if SCENES[name].kind != "unreadable")


def report(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lzma.decompress((REPORTS / f"{name}.json.xz").read_bytes()))
    return found


def judged(name: str, change: dict[str, Any] | None = None, **more: Any) -> list[str]:
    """The judgement of a recorded dump, with a change of its verdict."""
    document = copy.deepcopy(report(name))
    document["verdict"].update(change or {})
    observed = {"error": more.get("error")}
    return dumps.judge_dump(SCENES[name], document, observed, more.get("stdout", ""), more.get("stderr", ""))


def test_most_scenes_are_among_the_recorded_dumps() -> None:
    assert len(RECORDED) > 70


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_said_of_a_recorded_dump_agrees_with_its_scene(name: str) -> None:
    assert judged(name) == []


@pytest.mark.parametrize(
    ("name", "change", "wrong"),
    [
        ("atom_add_oob", {"kind": "hang"}, "verdict hang, expected gpu-fault"),
        ("atom_add_oob", {"exception": {"code": 6}}, "exception 6, expected [14]"),
        (
            "atom_add_oob",
            {"kernel": {"mangled": "innocent"}},
            "kernel innocent, expected _Z12atom_add_oobPjS_x",
        ),
        ("atom_add_oob", {"function": None}, "function unnamed, expected _Z12atom_add_oobPjS_x"),
        (
            "atom_add_oob",
            {"instruction": {"text": "LDG.E R1, [R2]"}},
            "instruction LDG.E R1, [R2], expected ATOMG",
        ),
        (
            "cluster_partner_gone",
            {"kernel": {"mangled": "x"}},
            "kernel x, expected _Z20cluster_partner_gonePix or none",
        ),
    ],
)
def test_each_thing_that_is_not_as_planted_is_wrong(name: str, change: dict[str, Any], wrong: str) -> None:
    assert judged(name, change) == [wrong]


def test_a_hang_must_name_the_planted_kernel_in_some_group() -> None:
    assert dumps.judge_dump(
        SCENES["lock_hang"], {"verdict": {"kind": "hang", "kernel": {"mangled": "other"}}}, {}, "", ""
    ) == ["hang in other, expected _Z9lock_hangPi"]


def test_without_a_report_nothing_is_right() -> None:
    assert dumps.judge_dump(SCENES["trap"], {}, {}, "", "") == ["no report"]


def test_the_driver_s_log_and_the_debugger_are_heard() -> None:
    pc = report("atom_add_oob")["verdict"]["pc"]
    line = "coredump: - PC {}\n"
    assert judged("atom_add_oob", stderr=line.format(pc)) == []
    assert judged("atom_add_oob", stderr=line.format("0x7f0000000010")) == [
        f"PC {pc}, the driver's log has 0x7f0000000010"
    ]
    assert judged("atom_add_oob", error={"pc": pc, "sass": "ATOMG.E.ADD.STRONG.GPU PT,R5"}) == []
    assert judged("atom_add_oob", error={"pc": "0x10", "sass": "@P0 STG.E [R2],R4"}) == [
        f"PC {pc}, cuda-gdb has 0x10"
    ]
    assert judged("atom_add_oob", error={"pc": pc, "sass": "@P0 STG.E [R2],R4"}) == [
        "instruction ATOMG.E.ADD.STRONG.GPU, cuda-gdb has STG.E"
    ]


def test_where_several_instructions_fail_the_debugger_may_show_another_than_the_verdict_s() -> None:
    document = report("atom_add_oob")
    verdict = document["verdict"]
    document["faults"] = [verdict, {"pc": "0x7f0000000010", "instruction": None}]
    other = {"error": {"pc": "0x7f0000000010", "sass": "LDG.E R1,[R2]"}}
    log = "coredump: - PC 0x7f0000000010\n"
    assert dumps.judge_dump(SCENES["atom_add_oob"], document, other, "", log) == []


def test_a_recovered_address_and_its_threads_must_be_the_planted_ones() -> None:
    lanes = [lane for lane in report("atom_add_oob")["verdict"]["address"]["per_lane"] if lane["bad"]]
    address, thread = lanes[0]["address"], lanes[0]["thread"][0]
    fact = "FACT bad_address {}\nFACT bad_threads {}\n"
    assert judged("atom_add_oob", stdout=fact.format(address, thread)) == []
    assert judged("atom_add_oob", stdout=fact.format("0x7f0000000000", thread + 1)) == [
        f"address {report('atom_add_oob')['verdict']['address']['value']}, planted 0x7f0000000000",
        f"calls threads [{thread}] bad, planted {thread + 1}",
    ]
    start = f"{int(address, 16) - 64:#x}"
    inside = f"FACT buffer {start}\nFACT bad_address {start}\nFACT buffer_bytes 65\n"
    assert judged("atom_add_oob", stdout=inside) == []
    assert judged("atom_add_oob", stdout=inside.replace(" 65", " 64")) != []


def test_of_several_bad_warps_the_report_may_show_another_than_the_first() -> None:
    lane = {"bad": True, "address": "0x7f0000000204", "thread": [32, 0, 0]}
    document = copy.deepcopy(report("misaligned_64"))
    document["verdict"]["address"]["per_lane"] = [lane]
    planted = "FACT buffer_bytes 1048576\nFACT bad_address 0x7f0000000004\nFACT bad_threads {}\n"
    scene = SCENES["misaligned_64"]
    assert dumps.judge_dump(scene, document, {}, planted.format("0-63"), "") == []
    assert dumps.judge_dump(scene, document, {}, planted.format("32-63"), "") == [
        f"address {document['verdict']['address']['value']}, planted 0x7f0000000004"
    ]


def test_a_null_pointer_is_written_as_the_c_library_prints_it() -> None:
    assert judged("null_global", stdout="FACT bad_address (nil)\n") == []


def row(scene: Scene, tmp_path: Path, names: list[str], verdict: str = "as planted") -> dict[str, Any]:
    for kind in ("driver-log", "program-log"):
        (tmp_path / f"{kind}.txt").write_text("")
    return {
        "name": scene.name,
        "attempt": 1,
        "run": {"seconds": 1.0},
        "verdict": verdict,
        "files": [Item(f"{kind}/x.txt", tmp_path / f"{kind}.txt") for kind in ("driver-log", "program-log")],
        "dumps": [
            {
                "name": name,
                "debugger": "in time",
                "kind": report(name)["verdict"]["kind"],
                "report": report(name),
            }
            for name in names
        ],
    }


def test_a_row_of_the_table_is_right_wrong_or_not_run(tmp_path: Path) -> None:
    scene = SCENES["trap"]
    wrong, kept = accept_dumps.judge_row(scene, row(scene, tmp_path, ["trap"]))
    assert (wrong, kept["verdict"], kept["debugger"]) == ([], "trap", ["opens"])
    assert accept_dumps.judge_row(scene, row(scene, tmp_path, ["lock_hang"]))[0] == [
        "verdict hang, expected trap"
    ]
    assert accept_dumps.judge_row(scene, row(scene, tmp_path, [], "no dump: END"))[0] == ["no dump: END"]
    wrong, kept = accept_dumps.judge_row(
        scene, {**row(scene, tmp_path, []), "run": None, "verdict": "not run: x"}
    )
    assert (wrong, kept["not_run"]) == ([], "not run: x")


def test_a_scene_that_may_fault_may_leave_no_dump(tmp_path: Path) -> None:
    scene = SCENES["constant_oob"]
    wrong, kept = accept_dumps.judge_row(scene, row(scene, tmp_path, [], "no dump: END cudaSuccess"))
    assert (wrong, kept["not_run"]) == ([], "no dump: END cudaSuccess")


def test_of_several_ranks_one_fails_and_the_others_wait(tmp_path: Path) -> None:
    scene = SCENES["nccl_pair"]._replace(facts={**SCENES["triton_hang"].facts, "kernel": "x", "codes": []})
    scene = scene._replace(kind="trap")
    assert accept_dumps.judge_row(scene, row(scene, tmp_path, ["trap", "lock_hang"]))[0] == []
    assert accept_dumps.judge_row(scene, row(scene, tmp_path, ["trap", "assert"]))[0] == [
        "assert: verdict device-assert, expected trap"
    ]


def test_without_a_gpu_the_exit_code_says_that_nothing_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert accept_dumps.main(["--out", str(tmp_path / "out")]) == 77
    assert accept_dumps.main(["--out", str(tmp_path / "out"), "--only", "nothing"]) == 2
    assert "no such scene: nothing" in capsys.readouterr().err


class TestWholeRun:
    module = runpy.run_path(str(ROOT / "scripts" / "gpu" / "acceptance"))

    def options(self, tmp_path: Path, *more: str) -> Any:
        return self.module["parse"](["--out", str(tmp_path), *more])

    def stage(self, name: str) -> Any:
        return next(stage for stage in self.module["STAGES"] if stage.name == name)

    def test_a_setting_for_one_case_of_the_soak_does_not_reach_the_sweep(self, tmp_path: Path) -> None:
        asked = self.options(tmp_path, "--server-cmd", "vllm serve m", "--env", "A=1", "--env", "stall:B=2")
        soak = self.module["command"](self.stage("soak"), asked)
        sweep = self.module["command"](self.stage("sweep"), asked)
        assert "stall:B=2" in soak
        assert "stall:B=2" not in sweep
        assert "A=1" in sweep
        assert "--source" not in sweep

    def test_a_stage_that_left_no_result_is_a_wrong_row(self, tmp_path: Path) -> None:
        rows = self.module["rows_of"](self.stage("dumps"), tmp_path)
        assert [(one["name"], one["ok"]) for one in rows] == [("dumps", False)]
        assert "BAD" in self.module["table"](rows)

    def test_rows_are_shown_with_their_stage(self, tmp_path: Path) -> None:
        (tmp_path / "dumps").mkdir()
        rows = [
            {"name": "trap", "ok": True, "wrong": [], "headline": "A trap"},
            {"name": "two", "ok": True, "wrong": [], "not_run": "needs 2 GPUs"},
        ]
        (tmp_path / "dumps" / "accept_dumps.json").write_text(json.dumps({"rows": rows}))
        shown = self.module["table"](self.module["rows_of"](self.stage("dumps"), tmp_path)).splitlines()
        assert [line.split() for line in shown] == [
            ["dumps", "trap", "ok", "A", "trap"],
            ["dumps", "two", "not", "run", "needs", "2", "GPUs"],
        ]

    def test_stages_beside_each_other_see_every_gpu_their_own_first(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[tuple[str, list[int]]] = []
        run = self.module["side_by_side"]
        monkeypatch.setitem(
            run.__globals__, "run_stage", lambda stage, _, gpus: seen.append((stage.name, gpus))
        )
        stages = [self.stage("run"), self.stage("dumps"), self.stage("soak")]
        run(stages, self.options(tmp_path, "--lanes", "3"), 2)
        assert sorted(name for name, _ in seen) == ["dumps", "run", "soak"]
        assert all(gpus in ([0, 1], [1, 0]) for _, gpus in seen)
        seen.clear()
        run(stages, self.options(tmp_path), 1)
        assert seen == [("soak", [0]), ("dumps", [0]), ("run", [0])]

    def test_no_stage_gets_more_than_the_longest_time(self, tmp_path: Path) -> None:
        argv = self.module["command"](self.stage("dumps"), self.options(tmp_path, "--longest", "60"))
        assert argv[argv.index("--budget") + 1] == "60"

    def test_a_run_in_pieces_gives_one_table(self, tmp_path: Path) -> None:
        machine = Machine("GPU", 1, 90, "580", {}, "CUDA Version: 13.0")
        first = [
            {"stage": "soak", "name": "fault", "ok": False, "wrong": ["x"], "terminal": "long"},
            {"stage": "soak", "name": "stall", "ok": True, "wrong": []},
        ]
        earlier = tmp_path / "acceptance.json"
        earlier.write_text(json.dumps(self.module["document"](first, machine, None)))
        second = [
            {"stage": "soak", "name": "fault", "ok": True, "wrong": []},
            {"stage": "run", "name": "hang", "ok": True, "wrong": []},
        ]
        whole = self.module["document"](second, machine, earlier)
        assert [(row["stage"], row["name"], row["ok"]) for row in whole["rows"]] == [
            ("run", "hang", True),
            ("soak", "stall", True),
            ("soak", "fault", True),
        ]
        assert whole["machine"]["cuda"] == "13.0"
        assert "terminal" not in json.loads(earlier.read_text())["rows"][0]


class TestRuns:
    """The judgement of one wrapped program."""

    def wrapped(self, tmp_path: Path, code: int, cores: int) -> Wrapped:
        (tmp_path / "cores").mkdir()
        for number in range(cores):
            (tmp_path / "cores" / f"{number}.nvcudmp").write_bytes(b"x")
        verdict = {"verdict": {"kind": "gpu-fault", "kernel": {"name": "call_through_pointer"}}}
        return Wrapped(code, 1.0, "", tmp_path, verdict, [{"event": "run-ended"}], [])

    @pytest.mark.parametrize(
        ("code", "cores", "right"), [(10, 1, True), (11, 0, True), (10, 0, False), (11, 1, False)]
    )
    def test_a_fault_that_may_leave_no_dump_has_the_exit_code_of_what_it_left(
        self, tmp_path: Path, code: int, cores: int, right: bool
    ) -> None:
        case = next(one for one in run_scenes.cases(tmp_path, tmp_path) if one.name == "no-dump")
        assert (run_scenes.judge(case, self.wrapped(tmp_path, code, cores)) == []) is right

    def test_any_other_exit_code_is_wrong(self, tmp_path: Path) -> None:
        case = next(one for one in run_scenes.cases(tmp_path, tmp_path) if one.name == "no-dump")
        assert "exit code 12, expected 11" in run_scenes.judge(case, self.wrapped(tmp_path, 12, 0))

    @pytest.mark.parametrize(
        ("low", "high", "wrong"),
        [(0.9947, 1.006, 0), (0.99, 1.02, 2), (1.02, 1.03, 2)],
    )
    def test_costs_are_right_where_they_are_surely_within_one_percent(
        self, low: float, high: float, wrong: int
    ) -> None:
        found = {
            name: {"wrapper": {"value": 1.0, "low": low, "high": high}} for name in ("eager_us", "graph_us")
        }
        assert len(accept_run.judge_overhead(found)) == wrong
        assert accept_run.judge_overhead({}) == ["eager_us: no timings", "graph_us: no timings"]
