"""A run that was found in two places is put together: overflow goes home when there is room again."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress

from crashlab.rundir import layout, private


def bring_home(run: str, overflow: str) -> bool:
    """Move the segments that had to be written elsewhere into the run directory.

    True if nothing is left outside. A file that does not fit stays where it is and remains readable.
    """
    try:
        names = sorted(os.listdir(overflow)) if private.is_ours(overflow) else []
    except OSError:
        return True
    home = True
    for name in names:
        target = os.path.join(run, layout.OUTPUT, name)
        try:
            if os.path.exists(target):
                home = False
                continue
            shutil.copyfile(os.path.join(overflow, name), f"{target}.tmp")
            os.replace(f"{target}.tmp", target)
            os.unlink(os.path.join(overflow, name))
        except OSError:
            with suppress(OSError):
                os.unlink(f"{target}.tmp")
            home = False
    with suppress(OSError):
        os.rmdir(overflow)
    return home
