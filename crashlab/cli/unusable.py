"""Entries of the user's own that cannot be used are named on standard error; matching goes on without them.

Nothing here imports click: the plain analysis of a dump does without it (:mod:`crashlab.cli.plain`).
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crashlab.report.safe import one_line

if TYPE_CHECKING:
    from crashlab.signatures.catalogue import Skipped

_VARIABLE = "CRASHLAB_SIGNATURES"
_SHOWN = 5


def warn_of_variable() -> None:
    """Name what the folders of ``$CRASHLAB_SIGNATURES`` hold that cannot be used."""
    if os.environ.get(_VARIABLE):
        from crashlab.signatures.catalogue import unusable

        warn(unusable())


def warn(skipped: Sequence[Skipped]) -> None:
    """A line for each of the first few, and the command that tells more."""
    lines = [
        f"crashlab: the catalogue entry {item.path} is left out: {item.why}" for item in skipped[:_SHOWN]
    ]
    if len(skipped) > _SHOWN:
        lines.append(f"crashlab: {len(skipped) - _SHOWN} more catalogue entries are left out")
    if lines:
        lines.append("          'crashlab signatures check' says what is wrong with them.")
    with contextlib.suppress(OSError, ValueError):
        for line in lines:
            print(one_line(line, 400), file=sys.stderr)
