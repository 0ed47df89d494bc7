#!/usr/bin/env python3
"""Write ``docs/verified.md``: every recorded dump that ships with the tests, and what is true of it.

usage: scripts/gen_verified_docs.py [--check]     exit status 1 with --check when the page is out of date
"""

from __future__ import annotations

import json
import sys

from generated import ROOT, settle

TARGET = ROOT / "docs" / "verified.md"
HEAD = """# What crashlab was verified on

Every row is a GPU core dump that ships under `tests/data/dumps`. All but `seed_sm120` (built from the documented layout
around a real sm_120 cubin) were recorded on NVIDIA H200 with driver 580.159 and CUDA 13.0, with the programs under
`scripts/gpu`. What is true of each is known from the program that planted the fault, and checked against nvdisasm and,
where it opens the dump, against cuda-gdb 13.0. The tests demand that crashlab says the same of each: kind, exception,
PC, kernel, function, offset, instruction and source line, and for the address whether it can be recovered, what is
wrong with it, and no thread that was not.

"Address" is what the dump allows to know, not a wish: *not recoverable* means that the registers were gone.

| dump | what was planted | exception | instruction | address | cuda-gdb 13.0 |
|--|--|--|--|--|--|
"""


def row(entry: dict[str, object]) -> str:
    expect = entry["expect"]
    assert isinstance(expect, dict)
    address = expect.get("address") or {}
    found = address.get("kind") or address.get("state") or ""
    cells = (
        f"`{entry['name']}`",
        str(entry["scene"]).replace("|", "\\|"),
        str(expect.get("exception_code") or expect["kind"]),
        f"`{expect['sass']}`".replace("|", "\\|") if expect.get("sass") else "",
        str(found).replace("-", " "),
        str(entry.get("cuda_gdb_13_0") or "not tried"),
    )
    return f"| {' | '.join(cells)} |"


def build() -> str:
    entries = json.loads((ROOT / "tests" / "data" / "dumps" / "manifest.json").read_text())
    return HEAD + "\n".join(row(e) for e in sorted(entries, key=lambda e: str(e["name"]))) + "\n"


if __name__ == "__main__":
    sys.exit(settle({TARGET: build()}))
