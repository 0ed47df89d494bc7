"""What is planted, and what the wrapper must say about it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from .wrap import Wrapped, wait_for_event

DUMPS_OFF = "CUDA_ENABLE_COREDUMP_ON_EXCEPTION=0"


class Case(NamedTuple):
    """One scene. `kinds` and `code`: the planted truth; `kernel`: part of the kernel's name; `perhaps`: the
    exit code where the same fault happens to be seen otherwise."""

    name: str
    command: list[str]
    kinds: tuple[str, ...]
    code: int
    kernel: str | None = None
    options: tuple[str, ...] = ()
    seconds: float = 60.0
    meanwhile: Callable[[subprocess.Popen[bytes], Path], None] | None = None
    also: Callable[[Wrapped], str | None] | None = None
    perhaps: int | None = None


def terminate_in_dump(process: subprocess.Popen[bytes], folder: Path) -> None:
    """SIGTERM to the wrapper as soon as the dump file appears."""
    if wait_for_event(folder, "dump", 40):
        process.send_signal(signal.SIGTERM)


def whole_dump(wrapped: Wrapped) -> str | None:
    """The dump must hold the 4 GiB that the program allocated, and be complete."""
    cores = list((wrapped.folder / "cores").glob("*"))
    if len(cores) != 1:
        return f"{len(cores)} dumps"
    size = cores[0].stat().st_size
    if size < 4 << 30:
        return f"the dump has {size:,} bytes only"
    log = (wrapped.folder / "output" / "001.stderr.log").read_bytes()
    return None if b"All done" in log else "the driver did not say 'All done'"


def whole_dump_after_sigterm(wrapped: Wrapped) -> str | None:
    if not any(event.get("signal") == "SIGTERM" for event in wrapped.of("signal")):
        return "SIGTERM did not reach the wrapper while it ran"
    return whole_dump(wrapped)


def two_cases(wrapped: Wrapped) -> str | None:
    roles = sorted(case["role"] for case in wrapped.report.get("cases") or [])
    if len(roles) != 2 or "origin" not in roles:
        return f"cases {roles}"
    said = (wrapped.folder / "output" / "001.stdout.log").read_bytes()
    return None if b"END no error" in said else "the third process did not end well"


def no_dump(wrapped: Wrapped) -> str | None:
    cores = list((wrapped.folder / "cores").glob("*"))
    return f"there is a dump: {cores[0].name}" if cores else None


def dump_as_told(wrapped: Wrapped) -> str | None:
    """Exit code 10 says that there is a dump, 11 that there is none."""
    cores = list((wrapped.folder / "cores").glob("*"))
    return (
        None if bool(cores) == (wrapped.code == 10) else f"exit code {wrapped.code} with {len(cores)} dumps"
    )


def host_stacks(wrapped: Wrapped) -> str | None:
    return None if wrapped.of("host-stack") else "no host stack was taken"


def loaded_torch(wrapped: Wrapped) -> str | None:
    known = wrapped.report.get("environment") or {}
    missing = [key for key in ("torch", "driver", "torch_cuda") if key not in known]
    return f"not in the environment: {', '.join(missing)}" if missing else None


def cases(faults: Path, scripts: Path) -> list[Case]:
    """The scenes in order of importance."""
    program = str(faults)
    torch = [sys.executable, str(scripts / "torch_faults.py")]
    third = scripts.parents[1] / "crashlab" / "capture" / "selftest_gpu.py"
    trio = (
        f'"{program}" oob_load & (sleep 2; exec "{program}" misaligned) & '
        f'(sleep 4; exec "{sys.executable}" -S "{third}" time) & wait; exit 0'
    )
    out = [
        Case("cuda-c", [program, "oob_load"], ("gpu-fault",), 10, "oob_load"),
        Case("graph", [program, "graph"], ("gpu-fault",), 10, "scatter_oob"),
        Case("assert", [program, "assert"], ("device-assert",), 10, "assert_kernel"),
        # whether the corrupt pointer is odd, and then leaves no dump, differs from run to run
        Case("no-dump", [program, "misaligned_function"], ("gpu-fault",), 11, also=dump_as_told, perhaps=10),
        Case("dumps-off", ["env", DUMPS_OFF, program, "oob_load"], ("gpu-fault",), 11, also=no_dump),
        Case("two-of-three", ["sh", "-c", trio], ("gpu-fault",), 10, "oob_load", also=two_cases),
        Case(
            "hang", [program, "hang"], ("hang",), 12, "hang_kernel", ("--stall-after", "4"), also=host_stacks
        ),
        Case(
            "sigterm-in-dump",
            [program, "large_memory"],
            ("gpu-fault",),
            10,
            "oob_load",
            ("--dump", "full", "--fast"),
            90.0,
            terminate_in_dump,
            whole_dump_after_sigterm,
        ),
        Case(
            "full",
            [program, "large_memory"],
            ("gpu-fault",),
            10,
            "oob_load",
            ("--dump", "full"),
            90.0,
            None,
            whole_dump,
        ),
        Case("restart", [program, "oob_load"], ("gpu-fault",), 10, "oob_load", ("--restart", "1")),
        Case("host-crash", ["sh", "-c", "kill -SEGV $$"], ("host-death",), 16),
        Case("clean", ["sh", "-c", "exit 5"], (), 5),
    ]
    if _has_torch():
        out.insert(
            3,
            Case(
                "torch-triton",
                [*torch, "triton_masked_store"],
                ("gpu-fault",),
                10,
                "masked_store",
                seconds=90.0,
                also=loaded_torch,
            ),
        )
        out.append(
            Case(
                "torch-hang",
                [*torch, "triton_hang"],
                ("hang",),
                12,
                "spin_on_flag",
                ("--stall-after", "8"),
                90.0,
            )
        )
    return out


def _has_torch() -> bool:
    import importlib.util

    return importlib.util.find_spec("torch") is not None


def judge(case: Case, wrapped: Wrapped) -> list[str]:
    """What differs from the planted truth; empty when all is right."""
    wrong = []
    if wrapped.code not in (case.code, case.perhaps):
        wrong.append(f"exit code {wrapped.code}, expected {case.code}")
    verdict = wrapped.report.get("verdict") or {}
    kind = verdict.get("kind")
    if case.kinds and kind not in case.kinds:
        wrong.append(f"verdict {kind}, expected {' or '.join(case.kinds)}")
    name = ((verdict.get("kernel") or {}).get("name")) or ""
    if case.kernel and case.kernel not in name:
        wrong.append(f"kernel {name or 'unnamed'}, expected {case.kernel}")
    if case.also is not None and (what := case.also(wrapped)):
        wrong.append(what)
    if wrapped.left:
        wrong.append(f"processes left: {wrapped.left}")
    if not any(event.get("event") == "run-ended" for event in wrapped.events):
        wrong.append("the record has no end")
    return wrong


def settle() -> None:
    """Give the GPU a moment between two faults."""
    time.sleep(0.5)
    os.sync()
