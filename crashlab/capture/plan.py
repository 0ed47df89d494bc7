"""The environment that makes the CUDA driver leave evidence: what is set, what is kept, and why.

Names, defaults and limits: NVIDIA's cuda-gdb manual, "GPU core dump support", and driver 580.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from crashlab.capture.confounds import Confound, find_confounds
from crashlab.errors import UsageError
from crashlab.rundir import layout

DETAILS = ("light", "shared", "full")
MAX_PATH = 1023
"""The driver cuts CUDA_COREDUMP_FILE after this many characters."""

# The driver only warns about a flag that it does not know. Never skip_abort: it can swallow the fault.
_SKIPS = {
    "light": (
        "skip_nonrelocated_elf_images",
        "skip_global_memory",
        "skip_shared_memory",
        "skip_local_memory",
        "skip_constbank_memory",
    ),
    "shared": ("skip_nonrelocated_elf_images", "skip_global_memory", "skip_constbank_memory"),
    "full": ("skip_nonrelocated_elf_images",),
}
CRASHLAB, USER = "crashlab", "user"


class Setting(NamedTuple):
    """One variable as the program will see it. ``origin``: crashlab or user (kept as it was)."""

    name: str
    value: str
    origin: str
    why: str


class Plan(NamedTuple):
    """``settings`` in the order to print; ``confounds`` are settings that weaken the evidence.

    ``dump_pattern`` and ``pipe_pattern`` are the effective CUDA_COREDUMP_FILE and CUDA_COREDUMP_PIPE
    (with %h, %p, %t), None where none is written.
    """

    settings: tuple[Setting, ...]
    confounds: tuple[Confound, ...]
    dump_pattern: str | None
    pipe_pattern: str | None

    def apply(self, base: Mapping[str, str]) -> dict[str, str]:
        """The whole environment of the program."""
        return {**base, **{one.name: one.value for one in self.settings}}


def plan_environment(
    base: Mapping[str, str], run: str, *, dump: str = "light", hang_dumps: bool = True
) -> Plan:
    """What to set for a program whose environment would be ``base`` and whose evidence goes below ``run``.

    A variable that the user has set is kept. Raises UsageError for an unknown ``dump`` or a folder
    whose path the driver would cut.
    """
    if dump not in DETAILS:
        raise UsageError(f"unknown dump detail {dump!r}", hint=f"Choose one of {', '.join(DETAILS)}.")
    settings = [_chosen(base, *row) for row in _wanted(run, dump, hang_dumps)]
    value = {one.name: one.value for one in settings}
    too_long = [one for one in settings if one.origin == CRASHLAB and len(one.value) > MAX_PATH]
    if too_long:
        raise UsageError(
            f"{too_long[0].name} would have {len(too_long[0].value)} characters; the driver takes {MAX_PATH}.",
            hint="Name a shorter folder with --out.",
        )
    writes = value["CUDA_ENABLE_COREDUMP_ON_EXCEPTION"] not in ("", "0")
    pipes = value.get("CUDA_ENABLE_USER_TRIGGERED_COREDUMP", base.get("CUDA_ENABLE_USER_TRIGGERED_COREDUMP"))
    listens = pipes not in (None, "", "0")
    pipe = value.get("CUDA_COREDUMP_PIPE", base.get("CUDA_COREDUMP_PIPE"))
    return Plan(
        tuple(settings),
        find_confounds({**base, **value}),
        value["CUDA_COREDUMP_FILE"] if writes or listens else None,
        pipe if listens else None,
    )


def _wanted(run: str, dump: str, hang_dumps: bool) -> list[tuple[str, str, str]]:
    rows = [
        ("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1", "write a GPU core dump when a kernel faults"),
        ("CUDA_COREDUMP_SHOW_PROGRESS", "1", "print the exception, its SM and PC, even if the file is lost"),
        (
            "CUDA_COREDUMP_FILE",
            os.path.join(run, layout.CORES, "%h.%p.%t.nvcudmp"),
            "one file for each host, process and time",
        ),
        (
            "CUDA_COREDUMP_GENERATION_FLAGS",
            ",".join(_SKIPS[dump]),
            f"--dump {dump}: what the dump leaves out",
        ),
    ]
    if hang_dumps:
        rows += [
            (
                "CUDA_ENABLE_USER_TRIGGERED_COREDUMP",
                "1",
                "let a hung process be asked for a dump",
            ),
            ("CUDA_COREDUMP_PIPE", os.path.join(run, layout.PIPES, "%h.%p"), "where to ask for it"),
        ]
    rows.append(("PYTHONFAULTHANDLER", "1", "Python prints its stacks when the driver aborts the process"))
    return rows


def _chosen(base: Mapping[str, str], name: str, value: str, why: str) -> Setting:
    if name in base:
        return Setting(name, base[name], USER, "already set; kept")
    return Setting(name, value, CRASHLAB, why)
