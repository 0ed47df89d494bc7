#!/usr/bin/env python3
"""Compile the signature catalogue and write its documentation page.

usage: scripts/gen_signature_docs.py [--check]     exit status 1 with --check when a file is out of date

From crashlab/signatures/known/*.toml: crashlab/signatures/known.json (what ``analyze`` loads) and
docs/signatures.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from crashlab.signatures import catalogue, document  # noqa: E402


def main() -> int:
    entries = catalogue.load_folder(catalogue.KNOWN)
    targets = {
        Path(catalogue.COMPILED): catalogue.compiled(entries),
        ROOT / "docs" / "signatures.md": document.document(entries),
    }
    stale = [path for path, text in targets.items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date: run scripts/gen_signature_docs.py")
        return 1 if stale else 0
    for path in stale:
        path.write_text(targets[path], "utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
