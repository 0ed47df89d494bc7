"""Whether an installed package brings catalogue entries, without reading every package's metadata.

``importlib.metadata`` costs some 25 ms of a run that takes 150, and nearly nobody has such a package.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

_METADATA = (".dist-info", ".egg-info", "EGG-INFO")


def may_exist(group: str) -> bool:
    """Says whether an installed distribution may have entry points of ``group``.

    True means that ``importlib.metadata`` has to be asked; False that it would find none.
    """
    if any(finder is not PathFinder and hasattr(finder, "find_distributions") for finder in sys.meta_path):
        return True
    heading = f"[{group}]".encode()
    return any(_names(folder or ".", heading) for folder in sys.path)


def _names(folder: str, heading: bytes) -> bool:
    """Says whether a distribution in ``folder`` has the heading of the group, or cannot be told."""
    try:
        names = os.listdir(folder)
    except NotADirectoryError:
        return True  # an archive may hold distributions too
    except OSError:
        return False
    for name in names:
        if name.endswith(_METADATA):
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), "rb") as stream:
                    if heading in stream.read():
                        return True
            except OSError:  # it has no entry points
                continue
    return False
