#!/usr/bin/env python3
"""Compile the signature catalogue and write its documentation page.

usage: scripts/gen_signature_docs.py [--check]     exit status 1 with --check when a file is out of date

From crashlab/signatures/known/*.toml: crashlab/signatures/known.json (what ``analyze`` loads) and
docs/signatures.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

from generated import ROOT, settle

from crashlab.signatures import catalogue, document


def main() -> int:
    entries = catalogue.load_folder(catalogue.KNOWN)
    targets = {
        Path(catalogue.COMPILED): catalogue.compiled(entries),
        ROOT / "docs" / "signatures.md": document.document(entries),
    }
    return settle(targets)


if __name__ == "__main__":
    sys.exit(main())
