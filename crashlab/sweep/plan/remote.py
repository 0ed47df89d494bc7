"""What one run of a sweep needs of a machine."""

from __future__ import annotations

from typing import NamedTuple

from crashlab.sweep.tomltext import Table

_MOST_GPUS = 1e6


class Remote(NamedTuple):
    """What one run needs of a machine, for Ray and Slurm."""

    gpus: float = 1.0
    cpus: float = 1.0
    memory_gb: float | None = None
    parallel: int | None = None
    max_artifacts_mb: int = 1024
    sbatch: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    rounds: int = 3


def read_remote(table: Table) -> Remote:
    """The table [remote]. Raises UsageError."""
    default = Remote()
    gpus = table.take("gpus")
    a_number = isinstance(gpus, (int, float)) and not isinstance(gpus, bool)
    if gpus is not None and not (a_number and 0 <= gpus < _MOST_GPUS):  # nan is in no range
        raise table.wrong("gpus", "a number from 0")
    remote = Remote(
        default.gpus if gpus is None else float(gpus),
        table.number("cpus") or default.cpus,
        table.number("memory-gb"),
        table.whole("parallel", 1, 10_000),
        table.whole("max-artifacts-mb", 1) or default.max_artifacts_mb,
        table.texts("sbatch"),
        table.texts("setup"),
        table.whole("rounds", 1, 1000) or default.rounds,
    )
    table.done()
    return remote
