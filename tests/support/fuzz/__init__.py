"""Coverage-blind fuzzing of every parser: seeded mutations of real fixtures, in a child with limits.

``scripts/fuzz`` runs campaigns; ``tests/unit/fuzz`` runs a few cases of each target.
"""

from __future__ import annotations

from tests.support.fuzz import binaries, experiments, network, structures, texts
from tests.support.fuzz.target import Target

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        *binaries.TARGETS,
        *texts.TARGETS,
        *network.TARGETS,
        *structures.TARGETS,
        *experiments.TARGETS,
    )
}
