"""``crashlab inspect``: every view over real dumps as table and JSON, against golden files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import corpus, golden
from tests.support.command import run_cli

VIEWS = (
    "kernels", "devices", "contexts", "sms", "blocks", "warps", "modules", "params", "constants", "memory",
    "sections", "meta",
)  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
def test_views_as_text_and_json(view: str, update_golden: bool) -> None:
    core = str(corpus.path("shared_oob"))
    text = run_cli("inspect", core, view)
    assert text.code == 0
    golden.check(f"inspect/{view}.txt", text.out, update=update_golden)
    golden.check(f"inspect/{view}.json", run_cli("inspect", core, view, "--json").out, update=update_golden)


@pytest.mark.parametrize(
    ("view", "arguments"),
    [
        ("lanes", ["--sm", "125", "--warp", "1"]),
        ("registers", ["--sm", "125", "--warp", "1", "--lane", "0"]),
        ("backtrace", ["--faulting", "--lane", "0"]),
        ("warps", ["--faulting"]),
        ("blocks", ["--block", "2"]),
        ("sms", ["--sm", "3"]),
        ("kernels", ["--grid", "5"]),
    ],
)
def test_filters_narrow_a_view(view: str, arguments: list[str], update_golden: bool) -> None:
    found = run_cli("inspect", str(corpus.path("shared_oob")), view, *arguments)
    assert found.code == 0
    golden.check(f"inspect/{view}-filtered.txt", found.out, update=update_golden)


def test_the_call_stack_of_nested_device_functions(update_golden: bool) -> None:
    found = run_cli("inspect", str(corpus.path("deep")), "backtrace", "--faulting", "--lane", "0")
    golden.check("inspect/backtrace-deep.txt", found.out, update=update_golden)


def test_memory_of_a_full_dump_is_listed_and_read(update_golden: bool) -> None:
    core = str(corpus.path("shared_oob_full"))
    listed = json.loads(run_cli("inspect", core, "memory", "--json").out)["rows"]
    assert {row["space"] for row in listed} >= {"global memory", "shared memory"}
    start = next(row["start"] for row in listed if row["space"] == "global memory")
    found = run_cli("inspect", core, "memory", "--address", start, "--length", "32")
    assert found.code == 0
    assert found.out.count("\n") == 3
    shared = run_cli("inspect", core, "memory", "--space", "shared", "--sm", "125", "--length", "64")
    golden.check("inspect/memory-shared.txt", shared.out, update=update_golden)


def test_an_address_in_a_light_dump_is_told_apart_from_one_that_was_not_dumped() -> None:
    light = run_cli("inspect", str(corpus.path("tma")), "memory", "--address", "0x7f5a2a580280")
    assert light.code == 2
    assert "No global memory is in this dump (a light dump, without memory)" in light.err
    assert "'crashlab inspect CORE params' has the kernels' parameters" in " ".join(light.err.split())
    full = run_cli("inspect", str(corpus.path("shared_oob_full")), "memory", "--address", "0x10")
    assert "in no dumped range" in full.err


def test_a_module_is_carved_into_a_new_file_and_nothing_is_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "m.cubin"
    core = str(corpus.path("shared_oob"))
    assert run_cli("inspect", core, "cubin", "-o", str(target)).code == 0
    assert target.read_bytes()[:4] == b"\x7fELF"
    again = run_cli("inspect", core, "cubin", "-o", str(target))
    assert again.code == 2
    assert "exists already" in again.err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["cubin"], 2, "-o module.cubin"),
        (["cubin", "--module", "99", "-o", "/dev/null/x"], 2, "No such module"),
        (["memory", "--address", "0x10"], 2, "No global memory is in this dump"),
        (["memory", "--space", "local"], 2, "No local memory"),
        (["blocks", "--block", "a,b"], 2, "block index"),
        (["sass", "--pc", "0x10"], 2, "No module of the dump holds PC 0x10"),
        (["nonsense"], 2, "nonsense"),
        (["memory", "--address", "zzz"], 2, "zzz"),
    ],
)
def test_what_cannot_be_shown_says_what_to_do(arguments: list[str], code: int, says: str) -> None:
    found = run_cli("inspect", str(corpus.path("oob_load")), *arguments)
    assert found.code == code
    assert says in found.err
    assert "Traceback" not in found.err


def test_an_unreadable_dump_exits_3() -> None:
    found = run_cli("inspect", str(corpus.path("cut_short")), "kernels")
    assert found.code == 3
    assert "cut short" in found.err
