"""The preflight checks on played machines, and the self-test around a played GPU."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from crashlab.capture import selftest, selftest_gpu
from crashlab.capture.doctor import gpu, host, tools, versions
from crashlab.capture.doctor.check import FAIL, OK, UNKNOWN, WARN, Check, worst
from crashlab.capture.doctor.place import Place, dotted, here
from crashlab.capture.doctor.preflight import preflight
from crashlab.debugger.process import Limits, Outcome
from crashlab.report.fromrundir import analyze_rundir
from crashlab.report.options import AnalyzeOptions
from tests.support.command import run_cli
from tests.support.runs import fake

H200 = {
    "name": "NVIDIA H200",
    "driver": "580.159.04",
    "cuda_driver": "13.0",
    "compute_capability": "9.0",
    "memory_bytes": 150 << 30,
}


def saying(text: str = "", code: int = 0) -> Any:
    def run(
        argv: Sequence[str], env: Mapping[str, str], cwd: str, limits: Limits, on_output: object = None
    ) -> Outcome:
        return Outcome(text.encode(), code)

    return run


@pytest.fixture
def place(tmp_path: Path) -> Callable[..., Place]:
    (tmp_path / "proc").mkdir()

    def make(**fields: object) -> Place:
        base = {
            "environ": {},
            "folder": str(tmp_path / "runs"),
            "proc": str(tmp_path / "proc"),
            "root": str(tmp_path),
            "shm": str(tmp_path),
            "which": lambda name: None,
            "runner": saying(),
            "gpus": (H200,),
            "nvml": True,
        }
        return Place(**{**base, **fields})  # type: ignore[arg-type]

    return make


Make = Callable[..., Place]


class TestGpu:
    def test_no_driver_and_no_gpu_fail(self, place: Make) -> None:
        assert gpu.driver(place(gpus=())).status == FAIL
        assert gpu.gpus(place(gpus=())).status == FAIL

    def test_an_old_driver_is_a_warning(self, place: Make) -> None:
        assert gpu.driver(place(gpus=({**H200, "driver": "470.82"},))).status == WARN
        assert gpu.driver(place()).status == OK

    def test_mig_is_told(self, place: Make) -> None:
        assert gpu.gpus(place(gpus=({**H200, "mig": True},))).status == WARN

    def test_a_container_with_a_driver_and_without_the_debugger_library_writes_no_dump(
        self, place: Make
    ) -> None:
        check = gpu.debugger_library(place())
        assert check.status == FAIL
        assert "580.159.04" in (check.fix or "")

    def test_the_library_is_found_where_drivers_put_it(self, place: Make, tmp_path: Path) -> None:
        (tmp_path / "usr/lib64").mkdir(parents=True)
        (tmp_path / "usr/lib64/libcudadebugger.so.1").write_bytes(b"")
        assert gpu.debugger_library(place()).status == OK
        cache = saying("libcudadebugger.so.1 (libc6,x86-64) => /x/libcudadebugger.so.1")
        (tmp_path / "usr/lib64/libcudadebugger.so.1").unlink()
        assert gpu.debugger_library(place(runner=cache)).status == OK

    def test_settings_that_defeat_dumps_fail_and_others_warn(self, place: Make) -> None:
        checks = list(
            gpu.settings(
                place(environ={"CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "0", "CUDA_LAUNCH_BLOCKING": "1"})
            )
        )
        assert {(c.found.partition("=")[0], c.status) for c in checks} == {
            ("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", FAIL),
            ("CUDA_LAUNCH_BLOCKING", WARN),
        }

    def test_mps_is_seen_though_the_kernel_cuts_its_name(self, place: Make, tmp_path: Path) -> None:
        (tmp_path / "proc/77").mkdir()
        (tmp_path / "proc/77/comm").write_text("nvidia-cuda-mps\n")
        assert gpu.others(place()).status == WARN
        (tmp_path / "proc/77/comm").write_text("bash\n")
        assert gpu.others(place()).status == OK

    def test_nvml_and_kernel_log(self, place: Make, tmp_path: Path) -> None:
        assert gpu.nvml_package(place(nvml=False)).status == WARN
        assert gpu.nvml_package(place()).status == OK
        assert gpu.kernel_log(place()).status == UNKNOWN
        (tmp_path / "dev").mkdir()
        (tmp_path / "dev/kmsg").write_text("")
        assert gpu.kernel_log(place()).status == OK


class TestHost:
    def test_a_folder_that_does_not_exist_yet_is_judged_by_its_parent(self, place: Make) -> None:
        assert host.folder(place()).status == OK
        assert host.folder(place(folder="/proc/nowhere")).status == FAIL

    def test_space_for_a_full_dump_is_told(self, place: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(host, "free_bytes", lambda path: 20 << 30)
        assert "not for --dump full" in host.space(place()).found
        monkeypatch.setattr(host, "free_bytes", lambda path: 1 << 30)
        assert host.space(place()).status == WARN
        monkeypatch.setattr(host, "free_bytes", lambda path: None)
        assert host.space(place()).status == UNKNOWN
        monkeypatch.setattr(host, "free_bytes", lambda path: 900 << 30)
        assert "not for" not in host.space(place()).found

    def test_py_spy_and_ptrace(self, place: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(host.hoststacks, "find_py_spy", lambda: None)
        assert host.host_stacks(place()).status == WARN
        there = place(which=lambda name: "/bin/py-spy")
        assert host.host_stacks(there).status == OK
        (tmp_path / "proc/sys/kernel/yama").mkdir(parents=True)
        (tmp_path / "proc/sys/kernel/yama/ptrace_scope").write_text("1\n")
        monkeypatch.setattr(os, "getuid", lambda: 1000)
        assert "ptrace_scope is 1" in host.host_stacks(there).found

    def test_host_cores(self, place: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "proc/sys/kernel").mkdir(parents=True)
        (tmp_path / "proc/sys/kernel/core_pattern").write_text("core\n")
        monkeypatch.setattr(host.resource, "getrlimit", lambda which: (host.resource.RLIM_INFINITY,) * 2)
        assert host.host_core(place()).status == WARN
        monkeypatch.setattr(host.resource, "getrlimit", lambda which: (0, 0))
        assert host.host_core(place()).status == OK

    def test_dockers_64_mib_of_shared_memory_are_a_warning(
        self, place: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(host, "free_bytes", lambda path, total: 64 << 20)
        assert host.shared_memory(place()).found.endswith("64 MiB")
        monkeypatch.setattr(host, "free_bytes", lambda path, total: 16 << 30)
        assert host.shared_memory(place()).status == OK
        monkeypatch.setattr(host, "free_bytes", lambda path, total: None)
        assert host.shared_memory(place()).status == WARN


class TestTools:
    def test_cuda_gdb(self, place: Make, tmp_path: Path) -> None:
        assert tools.cuda_gdb(place()).status == WARN
        (tmp_path / "cuda-gdb").write_text("")
        path = {"PATH": str(tmp_path)}
        assert tools.cuda_gdb(place(environ=path, runner=saying("NVIDIA (R) cuda-gdb 13.0"))).status == OK
        old = tools.cuda_gdb(place(environ=path, runner=saying("NVIDIA (R) cuda-gdb 12.4")))
        assert (old.status, "driver 580" in old.found) == (WARN, True)

    def test_nvdisasm(self, place: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        assert tools.nvdisasm(place()).status == OK
        monkeypatch.setattr(tools, "version", lambda tool: "11.4.1")
        assert "does not know sm_90" in tools.nvdisasm(place()).found
        monkeypatch.setattr(tools, "find_nvdisasm", lambda *_: None)
        assert tools.nvdisasm(place()).status == WARN

        def broken(*_: object) -> None:
            raise tools.CrashlabError("broken", hint="mend it")

        monkeypatch.setattr(tools, "find_nvdisasm", broken)
        assert tools.nvdisasm(place()).fix == "mend it"


class TestVersions:
    def only(self, checks: list[Check], name: str) -> Check:
        (check,) = [check for check in checks if check.name == name]
        return check

    def nvcc(self, tmp_path: Path) -> Mapping[str, str]:
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin/nvcc").write_text("")
        return {"CUDA_HOME": str(tmp_path)}

    def test_a_torch_for_a_newer_cuda_than_the_drivers_fails(self, place: Make) -> None:
        torch = {"torch": "2.11.0+cu130", "cuda": "13.0"}
        old = place(gpus=({**H200, "cuda_driver": "12.4"},))
        assert self.only(list(versions.checks(old, torch)), "cuda versions").status == FAIL
        assert self.only(list(versions.checks(place(), torch)), "cuda versions").status == OK
        assert self.only(list(versions.checks(place(), None)), "cuda versions").status == UNKNOWN

    @pytest.mark.parametrize(
        ("sm", "release", "status"),
        [
            ("12.0", "12.4", FAIL),
            ("12.0", "12.8", WARN),
            ("12.0", "12.9", OK),
            ("10.3", "12.8", FAIL),
            ("9.0", "12.4", OK),
        ],
    )
    def test_a_toolkit_must_know_the_gpu(
        self, place: Make, tmp_path: Path, sm: str, release: str, status: str
    ) -> None:
        told = place(
            environ=self.nvcc(tmp_path),
            gpus=({**H200, "compute_capability": sm},),
            runner=saying(f"Cuda compilation tools, release {release}, V{release}.1"),
        )
        assert self.only(list(versions.checks(told, None)), "toolkit").status == status

    def test_without_gpu_or_toolkit_nothing_is_claimed(self, place: Make, tmp_path: Path) -> None:
        assert self.only(list(versions.checks(place(), None)), "toolkit").status == UNKNOWN
        told = place(environ=self.nvcc(tmp_path), gpus=(), runner=saying("release 13.0"))
        assert self.only(list(versions.checks(told, None)), "toolkit").status == OK

    @pytest.mark.parametrize(
        ("sm", "archs", "status"),
        [
            ("9.0", ["sm_80", "sm_90"], OK),
            ("8.6", ["sm_80"], OK),
            ("8.0", ["sm_86"], FAIL),
            ("12.0", ["sm_90", "sm_100"], FAIL),
            ("12.0", ["compute_90"], OK),
            ("9.0", [], UNKNOWN),
        ],
    )
    def test_the_gpu_must_be_in_torchs_list(
        self, place: Make, sm: str, archs: list[str], status: str
    ) -> None:
        told = place(gpus=({**H200, "compute_capability": sm},))
        checks = list(versions.checks(told, {"torch": "2", "cuda": "13.0", "archs": archs}))
        assert self.only(checks, "torch architectures").status == status

    def test_cudnn_as_loaded_against_installed(self, place: Make, tmp_path: Path) -> None:
        site = tmp_path / "site-packages"
        (site / "nvidia_cudnn_cu13-9.19.0.56.dist-info").mkdir(parents=True)
        path = f"{site}/nvidia/cudnn/lib/libcudnn.so.9"

        def check(number: object, *maps: str) -> Check:
            torch = {"torch": "2", "cuda": "13.0", "cudnn": number, "maps": list(maps)}
            return self.only(list(versions.checks(place(), torch)), "cudnn")

        assert check(91900, path).status == OK
        assert check(91002, path).status == WARN
        assert "2 files" in check(91900, path, "/usr/lib/libcudnn.so.9.1.0").found
        assert check(None).status == UNKNOWN

    def test_torch_is_asked_in_a_process_of_its_own(self, place: Make) -> None:
        assert versions.ask_torch(place(runner=saying('noise\nANSWER {"torch": "2.11"}'))) == {
            "torch": "2.11"
        }
        assert versions.ask_torch(place(runner=saying("ModuleNotFoundError", 1))) is None
        assert versions.ask_torch(place(runner=saying("ANSWER {broken"))) is None


def test_all_checks_run_on_any_machine(place: Make) -> None:
    checks = preflight(place(), torch=False)
    assert len(checks) > 12
    assert worst(checks) == FAIL
    assert worst([]) == OK
    assert all(check.why for check in checks)


def test_this_machine_can_be_looked_at(tmp_path: Path) -> None:
    assert here(str(tmp_path)).environ is os.environ


def test_numbers_of_versions() -> None:
    assert dotted("580.159.04") == (580, 159, 4)
    assert dotted("12.x") == (12,)
    assert dotted(None) == ()


def test_a_program_that_is_asked_gets_a_folder_of_its_own(place: Make) -> None:
    seen = []

    def run(argv: object, env: Mapping[str, str], cwd: str, limits: object, on_output: object) -> Outcome:
        seen.append((cwd, env))
        return Outcome()

    place(runner=run).ask(("x",), 1.0, {"PATH": "/p", "TMPDIR": "/shared"})
    ((cwd, env),) = seen
    assert cwd not in ("/", os.getcwd())
    assert env["TMPDIR"].startswith(cwd)
    assert env["PATH"] == "/p"


FAST = AnalyzeOptions(fast=True)


class TestSelfTest:
    def analyze(self, path: str) -> Any:
        return analyze_rundir(path, FAST)

    def statuses(self, tested: selftest.Tested) -> dict[str, str]:
        return {check.name: check.status for check in tested.checks}

    def test_the_chain_is_followed_and_another_kernel_is_not_taken_for_the_planted_one(
        self, tmp_path: Path
    ) -> None:
        tested = selftest.fault_test(
            str(tmp_path / "run"), self.analyze, command=tuple(fake("fault:oob_load"))
        )
        assert self.statuses(tested) == {
            "fault: dump": OK,
            "fault: verdict": FAIL,
            "fault: address": WARN,
            "fault: cuda-gdb": UNKNOWN,
        }

    def test_no_dump_is_the_end_of_the_chain(self, tmp_path: Path) -> None:
        tested = selftest.fault_test(str(tmp_path / "run"), self.analyze, command=tuple(fake("exit:4")))
        assert self.statuses(tested) == {"fault: dump": FAIL}

    def test_without_a_gpu_that_is_said(self, tmp_path: Path) -> None:
        for test in (selftest.fault_test, selftest.hang_test):
            command = tuple(fake("say:NO-GPU cuInit: CUDA_ERROR_NO_DEVICE (100)", "exit:77"))
            tested = test(str(tmp_path / test.__name__), self.analyze, command=command)
            assert tested.checks[0].status == FAIL
            assert "CUDA_ERROR_NO_DEVICE" in tested.checks[0].found
            assert "above" in (tested.checks[0].fix or "")  # not the command that has just been given

    def test_the_hang_path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(selftest, "_HANG_AFTER", 1.0)
        tested = selftest.hang_test(str(tmp_path / "run"), self.analyze, command=tuple(fake("hang")))
        assert self.statuses(tested) == {"hang: dump": OK, "hang: verdict": FAIL, "hang: ended": OK}

    @pytest.mark.parametrize(("number", "status"), [("5.0", OK), ("x", UNKNOWN)])
    def test_overhead(self, tmp_path: Path, number: str, status: str) -> None:
        words = f"say:FACT microseconds {number}" if number != "x" else "say:nothing"
        assert selftest.overhead_test(command=tuple(fake(words)), folder=str(tmp_path)).status == status

    def test_dumps_that_cost_time_are_told(self, tmp_path: Path) -> None:
        script = "import os;print('FACT microseconds', 9 if 'CUDA_COREDUMP_FILE' in os.environ else 5)"
        check = selftest.overhead_test(command=(sys.executable, "-S", "-c", script), folder=str(tmp_path))
        assert check.status == WARN

    def test_the_planted_fault_is_recognised(self) -> None:
        from crashlab import facts

        verdict = facts.Verdict(
            "gpu-fault",
            "x",
            exception=facts.GpuException(14, "Warp Illegal Address"),
            kernel=facts.Kernel(selftest_gpu.FAULT_KERNEL, selftest_gpu.FAULT_KERNEL),
            address=facts.Address("recovered", facts.Hex(selftest_gpu.BAD_ADDRESS)),
        )
        readers = {"cuda_gdb": facts.ReaderStatus("ok", version="13.0")}
        report = facts.Report("s", facts.Tool("x", "1"), "now", (), verdict, readers=readers)
        checks = (selftest._verdict(report), selftest._address(report), selftest._debugger(report))
        assert [check.status for check in checks] == [OK, OK, OK]
        against = facts.Inconsistency("the PC", {"cuda_gdb": "0x1", "native": "0x2"}, "native")
        assert selftest._debugger(report._replace(inconsistencies=(against,))).status == WARN
        failed = {"cuda_gdb": facts.ReaderStatus("aborted", detail="crashed")}
        assert selftest._debugger(report._replace(readers=failed)).status == WARN


class FakeDriver:
    """Driver entry points that succeed, or fail at one name."""

    def __init__(self, failing: str | None = None) -> None:
        self.failing = failing
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: object) -> int:
            self.called.append(name)
            return 700 if name == self.failing else 0

        return call


class TestGpuProgram:
    def run(
        self, what: str, monkeypatch: pytest.MonkeyPatch, failing: str | None = None
    ) -> tuple[int, FakeDriver]:
        driver = FakeDriver(failing)
        monkeypatch.setattr(selftest_gpu.ctypes, "CDLL", lambda name: driver)
        monkeypatch.setattr(selftest_gpu, "_STEPS", 3)
        monkeypatch.setattr(sys, "argv", ["selftest_gpu.py", what])
        return selftest_gpu.main(), driver

    @pytest.mark.parametrize("what", ["fault", "spin", "time"])
    def test_each_part_launches_and_waits(self, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
        code, driver = self.run(what, monkeypatch)
        assert code == 0
        assert driver.called[-1] == "cuCtxSynchronize"
        assert "cuLaunchKernel" in driver.called

    def test_an_error_of_the_gpu_is_code_4_and_a_missing_gpu_77(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.run("fault", monkeypatch, "cuCtxSynchronize")[0] == 4
        assert self.run("fault", monkeypatch, "cuInit")[0] == 77
        assert "NO-GPU cuInit" in capsys.readouterr().out

    def test_the_ptx_names_the_kernels_and_a_target_that_every_supported_driver_knows(self) -> None:
        for name in (selftest_gpu.FAULT_KERNEL, selftest_gpu.SPIN_KERNEL, selftest_gpu.EMPTY_KERNEL):
            assert f".entry {name}(" in selftest_gpu.PTX
        assert ".target sm_75" in selftest_gpu.PTX


class TestCommand:
    def test_json_tells_every_check_and_the_exit_code_says_not_ready(self, tmp_path: Path) -> None:
        done = run_cli("doctor", "--json", "--no-torch", "--out", str(tmp_path))
        answer = json.loads(done.out)
        assert answer["schema"] == "crashlab.doctor/1"
        assert done.code == (0 if answer["ready"] else 3)
        assert {"name", "status", "found", "why", "fix"} == set(answer["checks"][0])

    def test_text_names_what_mends_it(self, tmp_path: Path) -> None:
        done = run_cli("doctor", "--no-torch", "-v", "--self-test", "--out", str(tmp_path))
        assert "self-test" in done.out
        if done.code == 3:
            assert "FAIL" in done.out
            assert "fix" in done.out
