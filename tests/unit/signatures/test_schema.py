from __future__ import annotations

import contextlib
import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.errors import CrashlabError
from crashlab.signatures import catalogue, proof
from crashlab.signatures.criteria import KEYS, arch_fits
from crashlab.signatures.entry import from_plain, to_plain
from crashlab.signatures.errors import BadEntry
from crashlab.signatures.schema import entry_from

GOOD: dict[str, Any] = {
    "id": "MY-KERNEL-OOB",
    "title": "my_kernel reads past its input",
    "kind": "cause",
    "status": "fixed",
    "fixed_in": "mylib 1.4",
    "date": "2026-09-01",
    "confidence": "high",
    "fix": ["mylib >= 1.4"],
    "references": ["owner/repository#12"],
    "match": [
        {
            "exception": ["Warp Illegal Address", 10],
            "kernel": r"my_kernel_v\d+",
            "space": "global",
            "affected": {"mylib": "<1.4"},
            "cuda_graph": True,
            "run": {"kv_cache_dtype": "nvfp4"},
            "require": ["kernel"],
        }
    ],
    "hypothesis": [
        {
            "cause": "an index that counts one row too many",
            "for": [{"when": {"finding": ["past-allocation"]}, "says": "at {address}", "weight": 2}],
            "against": [
                {"when": {"space": ["shared"]}, "unless": {"width": 4}, "says": "no", "decisive": True}
            ],
            "tests": ["a full tile must be clean"],
        }
    ],
    "proof": {
        "match": [
            {
                "says": "the crash",
                "facts": {"exception": 14, "kernel": "my_kernel_v2", "space": "global"},
                "env": {"mylib": "1.3"},
                "run": {"cuda_graph": True, "kv_cache_dtype": "nvfp4"},
            }
        ],
        "near_miss": [
            {
                "says": "the fixed release",
                "expect": "contradicted",
                "facts": {"exception": 14, "kernel": "my_kernel_v2", "space": "global"},
                "env": {"mylib": "1.4"},
                "run": {"kv_cache_dtype": "nvfp4"},
            }
        ],
    },
}


def _with(**changes: Any) -> dict[str, Any]:
    table = copy.deepcopy(GOOD)
    table.update(changes)
    return table


def _match(**changes: Any) -> dict[str, Any]:
    table = copy.deepcopy(GOOD)
    table["match"][0].update(changes)
    return table


def test_a_good_entry_loads_and_its_proof_holds() -> None:
    entry = entry_from(GOOD)
    assert entry.pictures[0].criteria[0].want == (14, 10)
    assert entry.date == "2026-09-01"
    assert [outcome.problem for outcome in proof.check(entry, GOOD)] == [None, None]


def test_questions_are_asked_cheapest_first() -> None:
    keys = [criterion.key for criterion in entry_from(GOOD).pictures[0].criteria]
    assert keys == [key for key in KEYS if key in keys]
    assert keys[0] == "exception"


def test_the_compiled_form_gives_the_same_entry() -> None:
    entry = entry_from(GOOD)
    assert from_plain(to_plain(entry)) == entry


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "it has no id"),
        (_with(id="lower"), "upper-case"),
        (_with(title=""), "title"),
        (_with(kind="guess"), "kind is 'guess'"),
        (_with(status="maybe"), "status"),
        (_with(confidence="sure"), "confidence"),
        (_with(fixed_in=None), "fixed_in"),
        (_with(date="soon"), "date"),
        (_with(colour="red"), "unknown key 'colour'"),
        (_with(match=[]), "no \\[\\[match\\]\\]"),
        (_with(match={}), "array of tables"),
        (_with(hypothesis=[]), "at least one \\[\\[hypothesis\\]\\]"),
        (_with(kind="classification"), "reads_as"),
        (_with(fix="x" * 3000), "fix"),
        (_with(references=[1]), "references"),
        (_match(colour=1), "unknown key 'colour'"),
        (_match(exception=["No Such Exception"]), "unknown exception name"),
        (_match(exception=-1), "non-negative"),
        (_match(exception=[]), "1 to 64 items"),
        (_match(kernel="(a+)+"), "repeated group"),
        (_match(kernel=r"\d+"), "plain characters in a row"),
        (_match(kernel=["ab|kernel"]), "plain characters in a row"),
        (_match(kernel=[]), "1 to 64 patterns"),
        (_match(kernel=[""]), "non-empty"),
        (_match(affected="<1"), "table"),
        (_match(affected={"mylib": 1}), "version range in quotes"),
        (_match(affected={"mylib": "new"}), "version range"),
        (_match(affected={"My Lib": "<1"}), "no fact name"),
        (_match(cuda_graph="yes"), "true or false"),
        (_match(arch=["blackwell"]), "sm_12x"),
        (_match(error=["bad"]), "not among"),
        (_match(address_below="low"), "non-negative"),
        (_match(require=["log"]), "does not have"),
        (_with(match=[{"affected": {"mylib": "<1"}}]), "versions alone"),
        (_with(hypothesis=[{"cause": "It is the driver."}]), "full stop"),
        (_with(hypothesis=[{"cause": "x", "for": [{"says": "y"}]}]), "when or unless"),
        (_with(hypothesis=[{"cause": "x", "for": [{"when": 1, "says": "y"}]}]), "must be a table"),
        (_with(hypothesis=[{"cause": "x", "why": 1}]), "unknown key 'why'"),
    ],
)
def test_what_is_wrong_is_named(table: dict[str, Any], words: str) -> None:
    if table.get("fixed_in", "") is None:
        del table["fixed_in"]
    with pytest.raises(BadEntry, match=words):
        entry_from(table)


def test_a_status_of_fixed_needs_to_say_where() -> None:
    table = copy.deepcopy(GOOD)
    del table["fixed_in"]
    with pytest.raises(BadEntry, match="fixed_in"):
        entry_from(table)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (None, "no \\[\\[proof.match\\]\\]"),
        ({"match": GOOD["proof"]["match"]}, "at least one"),
        ({"near_miss": GOOD["proof"]["near_miss"]}, "at least one"),
        ({"match": [1], "near_miss": [{"says": "x"}]}, "needs says"),
        ({"match": [{"says": "x", "expect": "sure"}], "near_miss": [{"says": "x"}]}, "expect"),
        ({"match": [{"says": "x", "facts": {"colour": 1}}], "near_miss": [{"says": "x"}]}, "unknown fact"),
        ({"match": [{"says": "x", "facts": 1}], "near_miss": [{"says": "x"}]}, "facts must be a table"),
        ({"match": [{"says": "x", "env": 1}], "near_miss": [{"says": "x"}]}, "env must be a table"),
        ({"match": [{"says": "x", "why": 1}], "near_miss": [{"says": "x"}]}, "unknown key"),
    ],
)
def test_no_entry_without_both_proofs(change: Any, words: str) -> None:
    table = copy.deepcopy(GOOD)
    if change is None:
        del table["proof"]
    else:
        table["proof"] = change
    with pytest.raises(BadEntry, match=words):
        proof.check(entry_from(table), table)


def test_a_proof_that_fails_says_what_came_instead() -> None:
    table = copy.deepcopy(GOOD)
    table["proof"]["match"][0]["facts"]["exception"] = 5
    table["proof"]["near_miss"][0]["env"] = {"mylib": "1.2"}
    del table["proof"]["near_miss"][0]["expect"]
    problems = [outcome.problem for outcome in proof.check(entry_from(table), table)]
    assert problems[0] == "expected match, got absent"
    assert problems[1] is not None
    assert problems[1].startswith("a near miss must not match")
    table["proof"]["near_miss"][0]["expect"] = "absent"
    assert proof.check(entry_from(table), table)[1].problem == "expected absent, got match"


@pytest.mark.parametrize(
    ("want", "arch", "fits"),
    [
        ("sm_120", 120, True),
        ("sm_120a", 120, True),
        ("sm_120", 121, False),
        ("sm_12x", 121, True),
        ("sm_12x", 120, True),
        ("sm_12x", 110, False),
        ("sm_100+", 120, True),
        ("sm_100+", 90, False),
        ("sm_8x", 86, True),
    ],
)
def test_architectures(want: str, arch: int, fits: bool) -> None:
    assert arch_fits(want, arch) is fits


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@given(st.sampled_from(sorted(GOOD)), JSON)
def test_only_crashlab_errors_leave_the_loader(key: str, value: Any) -> None:
    table = _with(**{key: value})
    with contextlib.suppress(CrashlabError):
        proof.check(entry_from(table), table)


@given(st.sampled_from(sorted(KEYS)), JSON)
def test_only_crashlab_errors_leave_the_criteria(key: str, value: Any) -> None:
    with contextlib.suppress(CrashlabError):
        entry_from(_match(**{key: value}))


@given(st.binary(max_size=200))
def test_only_crashlab_errors_leave_the_toml_reader(raw: bytes) -> None:
    with contextlib.suppress(CrashlabError):
        catalogue.parse_toml(raw.decode("utf-8", "replace"), "f")


def test_deeply_nested_toml_is_refused_not_crashed(tmp_path: Path) -> None:
    (tmp_path / "deep.toml").write_text("a = " + "[" * 20_000 + "]" * 20_000)
    with pytest.raises(BadEntry):
        catalogue.read_toml(str(tmp_path / "deep.toml"))
