"""Kernel log, NVML, host stacks, facts of the machine."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crashlab.capture import hoststacks, machine, nvml
from crashlab.capture.kmsg import KernelFollower
from crashlab.debugger.process import Limits, Outcome
from tests.support.runs import wait_until

XID = (
    "4,1,28199846,-;NVRM: Xid (PCI:0000:00:06): 31, pid=560, name=g, channel 0x0000000a, intr 00000000. "
    "MMU Fault: ENGINE GRAPHICS GPC1 GPCCLIENT_T1_8 faulted @ 0x8085_e5e00000. Fault is of type FAULT_PDE "
    "ACCESS_TYPE_VIRT_WRITE\n SUBSYSTEM=pci\n"
)


class TestKernelLog:
    def test_records_become_lines_as_dmesg_prints_them(self, tmp_path: Path) -> None:
        path = tmp_path / "kmsg"
        path.write_text(XID)
        follower = KernelFollower(str(path))
        (line,) = follower.read()
        assert line.startswith("[   28.199846] NVRM: Xid (PCI:0000:00:06): 31")
        (xid,) = follower.reader.result().xids
        assert (xid.event.code, xid.event.pid) == (31, 560)
        follower.close()

    def test_other_lines_are_left_out(self, tmp_path: Path) -> None:
        path = tmp_path / "kmsg"
        path.write_text("6,1,1,-;usb 1-1: new device\n")
        assert KernelFollower(str(path)).read() == []

    def test_a_log_that_cannot_be_read_says_why(self) -> None:
        follower = KernelFollower("/nowhere/kmsg")
        assert follower.why_not == "No such file or directory"
        assert follower.read() == []

    @pytest.mark.parametrize(
        ("error", "why"), [(BlockingIOError(), None), (OSError(22, "Invalid argument"), "Invalid argument")]
    )
    def test_errors_of_the_device(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, why: str | None
    ) -> None:
        (tmp_path / "kmsg").write_text("x")
        follower = KernelFollower(str(tmp_path / "kmsg"))
        answers: list[object] = [BrokenPipeError(), error]

        def read(fd: int, size: int) -> bytes:
            answer = answers.pop(0)
            assert isinstance(answer, OSError)
            raise answer

        with monkeypatch.context() as patch:
            patch.setattr("crashlab.capture.kmsg.os.read", read)
            assert follower.read() == []
        assert follower.why_not == why


class FakeNvml:
    """One GPU, one Xid, then time-outs."""

    NVML_TEMPERATURE_GPU = 0
    nvmlEventTypeXidCriticalError = 8  # noqa: N815

    def __init__(self, xids: int = 1) -> None:
        self.xids = xids

    def nvmlInit(self) -> None: ...  # noqa: N802

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> object:  # noqa: N802
        return SimpleNamespace(total=1 << 37, used=1 << 30)

    def nvmlDeviceGetPciInfo(self, handle: int) -> object:  # noqa: N802
        return SimpleNamespace(busId=b"00000000:01:00.0")

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:  # noqa: N802
        return (9, 0)

    def nvmlDeviceGetName(self, handle: int) -> bytes:  # noqa: N802
        return b"NVIDIA H200"

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "580.159.04"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:  # noqa: N802
        return 13000

    def nvmlDeviceGetMigMode(self, handle: int) -> tuple[int, int]:  # noqa: N802
        return (0, 0)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> object:  # noqa: N802
        return SimpleNamespace(gpu=97)

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:  # noqa: N802
        return 512_000

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[object]:  # noqa: N802
        return [SimpleNamespace(pid=12)]

    def nvmlEventSetCreate(self) -> object:  # noqa: N802
        return object()

    def nvmlDeviceRegisterEvents(self, handle: int, kind: int, events: object) -> None: ...  # noqa: N802

    def nvmlEventSetWait_v2(self, events: object, ms: int) -> object:  # noqa: N802
        if self.xids:
            self.xids -= 1
            return SimpleNamespace(eventData=31, device=0)
        raise RuntimeError("NVML_ERROR_TIMEOUT")


class TestNvml:
    def test_facts_leave_out_what_cannot_be_asked(self) -> None:
        (facts,) = nvml.gpu_facts(FakeNvml())
        assert facts["name"] == "NVIDIA H200"
        assert (facts["driver"], facts["cuda_driver"], facts["compute_capability"]) == (
            "580.159.04",
            "13.0",
            "9.0",
        )
        (values,) = nvml.sample(FakeNvml())
        assert (values["busy_percent"], values["watts"], values["pids"]) == (97, 512.0, [12])
        assert "celsius" not in values

    def test_the_sampler_tells_facts_samples_and_xids(self) -> None:
        heard: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue()
        sampler = nvml.Sampler(lambda kind, values: heard.put((kind, values)), 0.1, FakeNvml())
        sampler.start()
        kinds = set()
        deadline = time.monotonic() + 30
        while kinds != {"gpu", "sample", "xid"} and time.monotonic() < deadline:
            kinds.add(heard.get(timeout=30)[0])
        sampler.stop()
        assert kinds == {"gpu", "sample", "xid"}

    def test_without_events_samples_still_come(self) -> None:
        class NoEvents(FakeNvml):
            def nvmlEventSetCreate(self) -> object:  # noqa: N802
                raise RuntimeError("not supported")

        heard: list[str] = []
        sampler = nvml.Sampler(lambda kind, values: heard.append(kind), 0.05, NoEvents())
        sampler.start()
        wait_until(lambda: heard.count("sample") > 1)
        sampler.stop()

    def test_without_the_package_there_is_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pynvml", None)
        assert nvml.load() is None
        sampler = nvml.Sampler(lambda kind, values: None)
        sampler.start()
        sampler.stop()

    def test_the_package_is_initialised(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fake = FakeNvml()
        monkeypatch.setitem(sys.modules, "pynvml", fake)
        assert nvml.load() is fake


def answering(*outcomes: Outcome) -> tuple[Any, list[Sequence[str]]]:
    left, asked = list(outcomes), []

    def run(
        argv: Sequence[str], env: Mapping[str, str], cwd: str, limits: Limits, on_output: object = None
    ) -> Outcome:
        asked.append(argv)
        return left.pop(0)

    return run, asked


class TestHostStacks:
    @pytest.fixture
    def python(self) -> Any:
        process = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(30)"])
        deadline = time.monotonic() + 30
        while not hoststacks.is_python(process.pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        yield process.pid
        process.kill()
        process.wait()

    def test_native_stacks_first(self, python: int) -> None:
        run, asked = answering(Outcome(b"Thread 1\n  main", 0))
        stack = hoststacks.take(python, py_spy="/bin/py-spy", runner=run)
        assert (stack.how, stack.problem) == ("py-spy --native", None)
        assert asked[0][1:] == ("dump", "--pid", str(python), "--native")
        assert "thread" in stack.text

    def test_without_native_then_the_kernels_view(self, python: int) -> None:
        run, _ = answering(Outcome(b"no unwinder", 1), Outcome(b"Thread 1", 0))
        stack = hoststacks.take(python, py_spy="py-spy", runner=run)
        assert (stack.how, stack.problem) == ("py-spy", "no unwinder")
        run, _ = answering(Outcome(b"Permission denied", 1), Outcome(timed_out=True))
        stack = hoststacks.take(python, py_spy="py-spy", runner=run)
        assert (stack.how, stack.problem) == ("kernel", "py-spy: timed out")
        assert stack.text.startswith(f"thread {python}")

    def test_without_py_spy_and_for_other_programs_the_kernel_tells(self, python: int) -> None:
        assert hoststacks.take(python, py_spy=None).problem == "py-spy is not installed"
        process = subprocess.Popen(["sleep", "30"])
        stack = hoststacks.take(process.pid, py_spy="py-spy")
        process.kill()
        process.wait()
        assert (stack.how, stack.problem) == ("kernel", None)

    def test_a_process_that_has_gone(self) -> None:
        assert hoststacks.take(4_000_001, py_spy=None).problem == "the process has gone"

    def test_py_spy_is_looked_for_on_the_path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "py-spy").write_text("#!/bin/sh\n")
        (tmp_path / "py-spy").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        assert hoststacks.find_py_spy() == str(tmp_path / "py-spy")


class TestFacts:
    @pytest.fixture
    def proc(self, tmp_path: Path) -> str:
        (tmp_path / "driver/nvidia/gpus/0000:01:00.0").mkdir(parents=True)
        (tmp_path / "driver/nvidia/version").write_text(
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\nGCC version:\n"
        )
        (tmp_path / "driver/nvidia/gpus/0000:01:00.0/information").write_text(
            "Model: \t\t NVIDIA H200\nIRQ: 5\n"
        )
        (tmp_path / "meminfo").write_text("MemTotal:       24684084 kB\n")
        return str(tmp_path)

    def test_driver_and_gpu_of_the_kernel_module(self, proc: str) -> None:
        facts = machine.machine_facts(proc)
        assert (facts["driver"], facts["gpus"]) == ("580.159.04", ["NVIDIA H200"])
        assert facts["memory_bytes"] == 24684084 * 1024

    def test_absent_is_left_out(self, tmp_path: Path) -> None:
        facts = machine.machine_facts(str(tmp_path))
        assert not {"driver", "gpus", "memory_bytes", "ptrace_scope"} & set(facts)
        assert facts["pid"] == os.getpid()

    def test_space(self) -> None:
        assert machine.free_bytes("/") is not None
        assert machine.free_bytes("/nowhere") is None
