"""What text evidence alone can say, in one shape for all its sources."""

from __future__ import annotations

from typing import NamedTuple

from crashlab import facts

NO_DUMP = "No dump was read: instruction, address and threads are not known, only what was printed."


class LogFinding(NamedTuple):
    """What the logs alone say: the verdict first, then every distinct fault in the log's order."""

    verdict: facts.Verdict
    faults: tuple[facts.Fault, ...] = ()
    bystanders: tuple[facts.Bystander, ...] = ()
    inconsistencies: tuple[facts.Inconsistency, ...] = ()
    provenance: tuple[str, ...] = ()
    host: facts.Host | None = None
