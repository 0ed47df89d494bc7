#!/usr/bin/env python3
"""Write ``docs/verified.md``: the acceptance run on a GPU, and every recorded dump that ships with the tests.

usage: scripts/gen_verified_docs.py [--check]     exit status 1 with --check when the page is out of date
"""

from __future__ import annotations

import json
import sys

from generated import ROOT, settle

TARGET = ROOT / "docs" / "verified.md"
ACCEPTANCE = """# What crashlab was verified on

## The acceptance run

`scripts/gpu/acceptance` plants faults, hangs and garbage on a GPU and holds what crashlab says against what was
planted. This is the run of {machine}. {counts}

The rows of a soak and of the sweep are the real vLLM server: `planted_epilogue_store` is a Triton kernel of a plug-in
that stores out of bounds, or spins, after 3,000 launches; NaN comes from `scripts/gpu/nan_plugin`. Each of the three
faults ended with vLLM's own exit code 0, and vLLM blamed no more than its engine. With `torch.compile` on, vLLM
replaces the patched activation by its own form and the plug-in is never called: that soak ended, rightly, without a
fault; the row with CUDA graphs was made with `-cc.mode=0 -cc.cudagraph_mode=FULL_DECODE_ONLY`, and its log shows the
capture.

| stage | planted | what crashlab said | exit code | |
|--|--|--|--|--|
"""
DUMPS = """
## The recorded dumps

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


def machine_words(machine: dict[str, object]) -> str:
    """GPU, driver and versions in one sentence."""
    packages, tools = machine["packages"], machine["tools"]
    assert isinstance(packages, dict)
    assert isinstance(tools, dict)
    release = str(tools["nvcc"]).partition("release ")[2].partition(",")[0]
    versions = ", ".join(f"{name} {version}" for name, version in packages.items())
    return (
        f"crashlab {machine['crashlab']} on {machine['gpu']}, driver {machine['driver']}, CUDA {machine['cuda']}, nvcc "
        f"and cuda-gdb {release}, Python {machine['python']}, {versions}"
    )


def counts(rows: list[dict[str, object]]) -> str:
    """How many rows are right, and which were judged a second time or not run."""
    away = [f"`{one['name']}` ({one['not_run']})" for one in rows if one.get("not_run")]
    again = [f"`{one['name']}`: {one['judged_again']}" for one in rows if one.get("judged_again")]
    right = sum(bool(one["ok"]) and not one.get("not_run") for one in rows)
    wrong = [f"`{one['name']}`" for one in rows if not one["ok"]]
    told = f"{right} of {len(rows)} rows are right"
    told += f", wrong: {', '.join(wrong)}" if wrong else ", none is wrong"
    told += f"; {len(away)} left nothing to judge: {', '.join(away)}." if away else "."
    if again:
        told += f" The judgement, not crashlab, was mended for {len(again)} of them after the run: {'; '.join(again)}."
    return told


def acceptance_row(entry: dict[str, object]) -> str:
    """One row of the acceptance table."""
    planted = entry.get("planted") or entry.get("expected") or ""
    graphs = f", CUDA graphs {entry['graphs']}" if entry.get("graphs") else ""
    said = entry.get("headline") or measured_words(entry) or ""
    state = "left nothing" if entry.get("not_run") else "right" if entry["ok"] else "wrong"
    code = entry.get("code")
    cells = (
        f"{entry['stage']} `{entry['name']}`",
        f"{planted}{graphs}",
        str(said),
        "" if code is None else str(code),
        state,
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def measured_words(entry: dict[str, object]) -> str:
    """What a row of costs measured, or how large a sweep's dumps were."""
    if sizes := entry.get("dump_bytes"):
        assert isinstance(sizes, list)
        return f"dumps of {', '.join(f'{size:,}' for size in sizes)} bytes"
    measured = entry.get("measured")
    if not isinstance(measured, dict):
        return ""
    if "share" in measured:
        return f"{measured['share']:.2%} of one core while the program sleeps"
    if "ratio" in measured:
        return f"200 MB of output: {measured['ratio']:.2f} of the time into a file, no line lost"
    names = {"eager_us": "eager launches", "graph_us": "graph replays"}
    parts = []
    for key, name in names.items():
        wrapper, driver = measured[key]["wrapper"], measured[key]["driver"]
        parts.append(
            f"{name}: the wrapper {wrapper['value'] - 1:+.2%} (95 % limits {wrapper['low'] - 1:+.2%} to "
            f"{wrapper['high'] - 1:+.2%}), enabled dumps alone {driver['value'] - 1:+.2%}"
        )
    return "; ".join(parts)


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
    accepted = json.loads((ROOT / "tests" / "data" / "acceptance" / "h200.json").read_text())
    rows = [one for one in accepted["rows"] if one["name"] != "build"]
    head = ACCEPTANCE.format(machine=machine_words(accepted["machine"]), counts=counts(rows))
    entries = json.loads((ROOT / "tests" / "data" / "dumps" / "manifest.json").read_text())
    dumps = "\n".join(row(e) for e in sorted(entries, key=lambda e: str(e["name"])))
    return head + "\n".join(acceptance_row(one) for one in rows) + "\n" + DUMPS + dumps + "\n"


if __name__ == "__main__":
    sys.exit(settle({TARGET: build()}))
