#!/usr/bin/env python3
"""Write the table of levers into docs/reference/sweep-plan.md from crashlab/sweep/levers/*.toml.

usage: scripts/gen_sweep_docs.py [--check]
"""

from __future__ import annotations

import sys

from generated import ROOT, settle

from crashlab.sweep.catalogue import as_rows, bundled

PAGE = ROOT / "docs" / "reference" / "sweep-plan.md"
BEGIN, END = "<!-- levers: written by scripts/gen_sweep_docs.py -->\n", "<!-- end of levers -->"


def table() -> str:
    lines = ["| lever | set by | values | suggests | shown by |", "|--|--|--|--|--|"]
    for row in as_rows(bundled().values()):
        values = ", ".join(f"`{value}`" for value in row["values"]) or "any"
        suggest = ", ".join(f"`{value}`" for value in row["suggest"])
        lines.append(
            f"| `{row['id']}`: {row['title']} | {'; '.join(row['set'])} | {values} | {suggest} | "
            f"{', '.join(row['shown_by'])} |"
        )
    return "\n".join(lines) + "\n"


def page() -> str:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    sys.exit(settle({PAGE: page()}))
