"""Budgets of the room: 5,000 entries in 100 ms, loading without parsing TOML, no heavy imports."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

from crashlab.signatures import catalogue, schema
from crashlab.signatures.entry import Entry
from crashlab.signatures.match import match
from tests.unit.signatures.material import DATA, env, seed_sm120


def _synthetic(count: int) -> list[Entry]:
    made = []
    for number in range(count):
        table: dict[str, Any] = {
            "id": f"SYNTHETIC-{number}",
            "title": "synthetic",
            "kind": "cause",
            "status": "open",
            "confidence": "low",
            "match": [
                {
                    "exception": [(4, 5, 6, 10, 14)[number % 5]],
                    "kernel": [rf"kernel_{number}_\d+.*tile_{number % 97}", f"other_kernel_{number}"],
                    "opcode": ["^STS"],
                    "space": ["shared"],
                    "affected": {"cudnn": f"<9.{number % 40}"},
                },
                {"log": [rf"error number {number} in .{{0,20}}worker", f"failure code x{number}y"]},
            ],
            "hypothesis": [{"cause": "a synthetic cause", "for": [{"when": {"xid": [31]}, "says": "it"}]}],
        }
        made.append(schema.entry_from(table))
    return made


def _best_of(count: int, work: Any) -> float:
    times = []
    for _ in range(count):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def test_five_thousand_entries_match_a_report_in_under_100_ms() -> None:
    entries = _synthetic(5000)
    log = (DATA / "vllm_nodump.log").read_text().splitlines()
    facts = env(cudnn="9.19.0.56")
    assert match(seed_sm120(), env=facts, entries=entries) == ()
    assert _best_of(5, lambda: match(seed_sm120(), env=facts, entries=entries)) < 0.1
    assert _best_of(5, lambda: match(seed_sm120(), env=facts, log=log, entries=entries)) < 0.2


def test_the_needle_is_found_among_five_thousand() -> None:
    entries = [*_synthetic(5000), *catalogue.bundled()]
    assert match(seed_sm120(), env=env(cudnn="9.19.0.56"), entries=entries)[0].id == "CUDNN-SM120-FORT-STS"
    found = match(None, log=["error number 4711 in the worker"], entries=entries)
    assert [item.id for item in found] == ["SYNTHETIC-4711"]


def test_matching_imports_neither_toml_nor_processes_nor_the_command_line() -> None:
    code = (
        "import sys\n"
        "from crashlab.signatures.match import match\n"
        "match({'verdict': {'kind': 'gpu-fault'}})\n"
        "heavy = {'tomllib', 'tomli', 'subprocess', 'tempfile', 'ctypes', 'jinja2', 'click', 'dataclasses'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_matching_a_hostile_log_ends_in_time() -> None:
    line = "error " * 300
    log = [line + str(number) for number in range(5000)]
    start = time.perf_counter()
    match(None, log=log)
    assert time.perf_counter() - start < 10
