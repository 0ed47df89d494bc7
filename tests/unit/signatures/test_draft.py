from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab import facts
from crashlab.errors import CrashlabError, UsageError
from crashlab.signatures import catalogue, placeholders, proof, schema
from crashlab.signatures.draft import draft, generalise
from crashlab.signatures.entry import Entry
from crashlab.signatures.match import match
from crashlab.signatures.patterns import exact
from tests.unit.signatures.material import SEED_KERNEL, env, report_of, seed_sm120


def _load(text: str) -> tuple[Entry, list[str | None]]:
    table = catalogue.parse_toml(text, "draft")
    entry = schema.entry_from(table)
    return entry, [outcome.problem for outcome in proof.check(entry, table)]


def test_a_draft_passes_its_own_check_and_matches_its_crash() -> None:
    report = report_of(seed_sm120(), environment=env(cudnn="9.19.0.56", driver="580.159"))
    text = draft(report, "MINE")
    entry, problems = _load(text)
    assert problems == [None, None]
    assert entry.id == "MINE"
    assert match(report, entries=[entry])[0].status == "match"
    assert 'seen.cudnn = "==9.19.0.56"' in text


def test_a_draft_tells_which_of_its_words_nobody_has_replaced() -> None:
    entry, _ = _load(draft(report_of(seed_sm120()), "MINE"))
    assert [words.split()[0] for words in placeholders.left_in(entry)] == ["references", "cause", "tests"]
    theory = entry.theories[0]._replace(cause="a described one", tests=())
    assert placeholders.left_in(entry._replace(references=(), theories=(theory,))) == []


def test_numbers_are_generalised_away() -> None:
    pattern = generalise(SEED_KERNEL)
    assert pattern == "cudnn_generated_fort_native_sm.*_matMul_pointwise_pointwise_knob_"
    other = SEED_KERNEL.replace("knob_3_128x128", "knob_17_64x256").replace("sm120", "sm121")
    assert exact(pattern).search(other)


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("void cutlass::device_kernel<GemmUniversal<int>>(Params)", "cutlass::device_kernel"),
        ("_Z3foov", None),
        ("k", None),
        ("triton_poi_fused_add_12", "triton_poi_fused_add_"),
        ("$kernel$inner_function", "\\$kernel\\$inner_function"),
    ],
)
def test_names(name: str, pattern: str | None) -> None:
    assert generalise(name) == pattern


def test_a_weak_picture_expects_only_possible() -> None:
    verdict = facts.Verdict(
        "gpu-fault",
        "h",
        None,
        facts.Kernel("triton_poi_fused_add_12", "triton_poi_fused_add_12"),
    )
    text = draft(verdict)
    _, problems = _load(text)
    assert problems == [None, None]
    assert 'expect = "possible"' in text


def test_a_hang_drafts_from_its_kernel() -> None:
    group = facts.HangGroup("spin_forever_kernel", None, facts.Hex(1), 1, 1, state="spinning")
    entry, problems = _load(draft(facts.Verdict("hang", "h", hang=facts.Hang((group,)))))
    assert problems == [None, None]
    assert entry.id == "NEW-SPIN-FOREVER-KERNEL"


def test_a_log_drafts_from_the_hosts_words() -> None:
    verdict = facts.Verdict("host-death", "h")
    host = facts.Host(facts.HostReported("RuntimeError: expected 12 tensors in the frobnicator queue, got 7"))
    entry, problems = _load(draft(report_of(verdict, host=host)))
    assert problems == [None, None]
    assert entry.pictures[0].criteria[-1].key == "log"


def test_a_function_stands_in_for_a_kernel_without_a_telling_name() -> None:
    verdict = seed_sm120()._replace(
        kernel=facts.Kernel("k", "k"), function=facts.Function("device_function_of_mine", None)
    )
    entry, problems = _load(draft(verdict))
    assert problems == [None, None]
    assert any(criterion.key == "function" for criterion in entry.pictures[0].criteria)


def test_a_report_that_tells_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to recognise it by"):
        draft(facts.Verdict("unreadable", "h"))


@given(st.text(max_size=80), st.text(max_size=20), st.text(max_size=20))
def test_hostile_names_give_readable_toml_or_a_crashlab_error(name: str, kind: str, version: str) -> None:
    verdict = seed_sm120()._replace(
        kind=kind, kernel=facts.Kernel("kernel_of_mine" + name, None), function=None
    )
    try:
        entry, _ = _load(draft(report_of(verdict, environment=env(cudnn=version))))
    except CrashlabError:
        return
    assert entry.pictures
