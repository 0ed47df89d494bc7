"""What every ``gen_*.py`` here does with its text: write the file, or say with ``--check`` that it is out of date."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the checkout's own package, installed or not


def settle(targets: Mapping[Path, str]) -> int:
    """Write those of the files that differ from their text. With ``--check`` on the command line nothing is
    written, and the exit status returned is 1 if any differs."""
    check = "--check" in sys.argv[1:]
    stale = [path for path, text in targets.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        if check:
            print(f"{path.relative_to(ROOT)} is out of date: run scripts/{Path(sys.argv[0]).name}")
        else:
            path.write_text(targets[path], "utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if check and stale else 0
