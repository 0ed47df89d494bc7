"""What may be said of a sweep: the worked cases word by word, and what must never be said."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.sweep.facts import OUTCOMES, Arm, ArmRun, Comparison, Exposure, Findings, Setting
from crashlab.sweep.verdict import judge
from crashlab.sweep.verdict.effects import is_matrix
from crashlab.sweep.verdict.judge import is_interleaved
from tests.support.sweeps import (
    KEY,
    TWO_ARMS,
    arm,
    clean,
    fault,
    field_case,
    hours_only,
    matrix,
    worked,
)


def first(findings: Findings) -> Comparison:
    return findings.keys[0].comparisons[0]


def test_the_sentence_of_the_design() -> None:
    runs = [fault("baseline", t, i) for i, t in enumerate((0.7, 1.3, 2.0))]
    runs.append(clean("no graphs", 6.2))
    words = first(judge(TWO_ARMS, hours_only(runs))).words
    assert words == (
        f"0 faults of key {KEY} in 6.2 h; upper bound 0.48/h; baseline 3 in 4.0 h; if the rate were unchanged a "
        "clean run this long has probability 0.060: not yet evidence; 6.9 h needed."
    )


def test_steps_come_before_hours_when_every_run_tells_them() -> None:
    runs = [fault("baseline", t, i) for i, t in enumerate((0.7, 1.3, 2.0))]
    runs.append(clean("no graphs", 6.2))
    found = judge(TWO_ARMS, runs)
    assert found.keys[0].unit == "steps"
    assert "in 1.31 M steps (6.2 h)" in first(found).words
    assert "1.45 M steps (6.9 h) needed" in first(found).words
    runs[-1] = runs[-1]._replace(exposure=Exposure(hours=6.2))
    assert judge(TWO_ARMS, runs).keys[0].unit == "hours"
    runs[-1] = runs[-1]._replace(exposure=Exposure(requests=10))
    assert judge(TWO_ARMS, runs).keys[0].unit == "steps"
    assert any("tell no exposure in steps" in aside for aside in judge(TWO_ARMS, runs).asides)


@pytest.mark.parametrize(("crashes", "p"), [(1, "0.32"), (2, "0.23"), (3, "0.19")])
def test_the_field_case_under_a_constant_rate_is_not_yet_evidence(crashes: int, p: str) -> None:
    found = first(judge(TWO_ARMS, field_case(crashes)))
    assert found.reading == "not-yet"
    assert f"has probability {p}: not yet evidence" in found.words


def test_the_field_case_is_told_in_both_readings_with_the_test_that_decides() -> None:
    found = judge(TWO_ARMS, field_case(3))
    course = found.keys[0].course
    assert course is not None
    assert course.reading == "bunched"
    assert course.bunching_p is not None
    assert course.bunching_p < 0.001
    words = first(found).words
    assert "which is no constant rate" in words
    assert "by ranks alone, however much longer they lasted, that has probability 0.25" in words
    assert "log-normal, which is assumed and not known, the longest of them has 0.00075" in words
    assert "The test that decides: 3 fresh runs of this arm, each at least 47.2 min long" in words
    assert first(found).outlived_p == 0.25
    said = [step.words for step in found.next_steps]
    assert any("3 times afresh" in text and "0.050" in text for text in said)
    assert any("for another" in text for text in said)


def test_ten_bunched_crashes_give_a_shape_and_the_fitted_chance() -> None:
    runs = [fault("baseline", (22.5 + 0.1 * i) / 60, i) for i in range(10)]
    found = judge(TWO_ARMS, hours_only([*runs, clean("no graphs", 50 / 60)]))
    course = found.keys[0].course
    assert course is not None
    assert course.reading == "bunched"
    assert course.shape_low is not None
    assert course.shape_low > 10
    assert "the longest of them has below 0.0001" in first(found).words


def test_many_short_clean_runs_are_no_evidence_when_faults_come_late() -> None:
    runs = [fault("baseline", t / 60, i) for i, t in enumerate((22.8, 23.0, 23.1, 22.9))]
    short = [clean("no graphs", 0.15, i) for i in range(40)]
    found = first(judge(TWO_ARMS, hours_only([*runs, *short])))
    assert found.p is not None
    assert found.p < 0.01
    assert found.reading == "not-constant"
    assert "40 of its 40 runs ended before the baseline's events come" in found.words
    long = first(judge(TWO_ARMS, hours_only([*runs, clean("no graphs", 6.0)])))
    assert long.reading == "evidence"
    mixed = first(judge(TWO_ARMS, hours_only([*runs, *short, clean("no graphs", 1.0, 99)])))
    assert mixed.reading == "evidence"
    barely = [clean("no graphs", 0.40, 50 + i) for i in range(2)]
    assert first(judge(TWO_ARMS, hours_only([*runs, *short, *barely]))).reading == "not-constant"
    enough = [clean("no graphs", 0.40, 50 + i) for i in range(9)]
    assert first(judge(TWO_ARMS, hours_only([*runs, *short, *enough]))).reading == "evidence"
    effect = judge(TWO_ARMS, hours_only([*runs, *short])).keys[0].effects[0]
    assert effect.reading == "not-constant"


def test_constant_rate_with_ten_events_is_not_contradicted_and_shows_no_trend() -> None:
    rnd = random.Random(1)
    runs = [
        fault("baseline", rnd.expovariate(1.0), i, started_utc=f"2026-01-01T{i:02}:00:00Z") for i in range(12)
    ]
    course = judge(TWO_ARMS, hours_only(runs)).keys[0].course
    assert course is not None
    assert course.reading == "constant-not-contradicted"
    assert course.laplace_p is not None
    assert "Laplace" in course.words


def test_faults_that_come_early_or_never_are_said_so() -> None:
    rnd = random.Random(6)
    runs = [fault("baseline", rnd.weibullvariate(1.0, 0.35) + 1e-6, i) for i in range(25)]
    course = judge(TWO_ARMS, hours_only(runs)).keys[0].course
    assert course is not None
    assert course.reading == "early"


def test_one_long_clean_run_is_no_evidence_when_faults_come_early_or_never() -> None:
    rnd = random.Random(6)
    runs = [fault("baseline", rnd.weibullvariate(0.02, 0.35) + 1e-6, i) for i in range(25)]
    found = first(judge(TWO_ARMS, hours_only([*runs, clean("no graphs", 9.0)])))
    assert found.p is not None
    assert found.p < 0.001
    assert found.reading in ("evidence", "not-constant")
    one = [*runs, *(clean("baseline", 9.0, 30 + i) for i in range(9))]
    found = first(judge(TWO_ARMS, hours_only([*one, clean("no graphs", 90.0)])))
    assert found.reading == "not-constant"
    assert "starts count and not hours" in found.words
    many = [clean("no graphs", 9.0, i) for i in range(10)]
    assert first(judge(TWO_ARMS, hours_only([*one, *many]))).reading == "evidence"


def test_a_second_bug_is_not_counted_as_the_first() -> None:
    runs = [
        *(fault("baseline", 1.0, i) for i in range(3)),
        fault("no graphs", 2.0, 0, key="clk1:second"),
        clean("no graphs", 18.0, 1),
    ]
    found = judge(TWO_ARMS, hours_only(runs))
    by_key = {entry.key: entry for entry in found.keys}
    assert set(by_key) == {KEY, "clk1:second"}
    counts = {count.arm: count for count in by_key[KEY].counts}
    assert (counts["no graphs"].events, counts["no graphs"].exposure) == (0, 20.0)
    assert by_key[KEY].comparisons[0].reading == "evidence"
    assert by_key["clk1:second"].comparisons[0].reading == "more"
    assert any("2 keys are judged each by itself" in caveat for caveat in found.caveats)


def test_what_does_not_count_is_named_and_does_not_count() -> None:
    runs = hours_only([
        *(fault("baseline", 1.0, i) for i in range(3)),
        fault("no graphs", 0.0, 0, at_startup=True),
        clean("no graphs", 50.0, 1, outcome="not_applied"),
        clean("no graphs", 50.0, 2, outcome="inconclusive"),
        clean("no graphs", 50.0, 3, outcome="never-ready"),
        clean("no graphs", 1.0, 4, outcome="host-death"),
        clean("elsewhere", 50.0, 0),
        clean("no graphs", 50.0, 5, outcome="a-new-word"),
    ])  # fmt: skip
    found = judge((*TWO_ARMS, arm("waiting", x="1")), runs)
    counts = {count.arm: count for count in found.keys[0].counts}
    assert (counts["no graphs"].events, counts["no graphs"].exposure) == (0, 1.0)
    told = "\n".join(found.asides)
    for said in (
        "1 run failed at start-up (no graphs)",
        "not applied is not the same as no effect",
        "ended inconclusively",
        "never became ready",
        "died for a host-side reason",
        "2 runs belong to no arm",
        "1 arm has not been run yet: waiting",
    ):
        assert said in told


def test_an_arm_that_was_never_applied_is_never_called_without_effect() -> None:
    found = judge(
        TWO_ARMS,
        [*(fault("baseline", 1.0, i) for i in range(3)), clean("no graphs", 9.0, outcome="not_applied")],
    )
    assert found.keys[0].comparisons == ()
    assert found.arms_tried == 0


def test_a_fault_without_a_key_may_be_of_this_key() -> None:
    runs = [
        *(fault("baseline", 1.0, i) for i in range(3)),
        fault("no graphs", 9.0, key=None),
        clean("no graphs", 9.0, 1),
    ]
    entry = next(e for e in judge(TWO_ARMS, runs).keys if e.key == KEY)
    assert "1 fault without a key in this arm may be of this key too" in entry.comparisons[0].words


def test_holm_over_the_arms_tried_and_how_many_they_were() -> None:
    arms = (TWO_ARMS[0], *(arm(f"arm{i}", **{f"lever{i}": "1"}) for i in range(5)))
    runs = [*(fault("baseline", t, i) for i, t in enumerate((0.5, 1.0, 1.5))), clean("arm0", 6.0)]
    runs += [fault(f"arm{i}", 1.0) for i in range(1, 5)]
    found = judge(arms, hours_only(runs))
    item = first(found)
    assert (item.reading, item.tried, found.arms_tried) == ("weak", 5, 5)
    assert item.p == pytest.approx((3 / 9) ** 3)
    assert item.p_adjusted == pytest.approx(5 * (3 / 9) ** 3)
    assert "weak: one of 5 arms tried" in item.words
    assert "to hold among 5 arms" in item.words


def test_an_arm_that_ran_for_exactly_what_was_asked_has_done_enough() -> None:
    runs = [fault("baseline", 1.0 + i / 7, i) for i in range(3)]
    needed = first(judge(TWO_ARMS, hours_only([*runs, clean("no graphs", 0.1)]))).needed
    assert needed is not None
    assert first(judge(TWO_ARMS, hours_only([*runs, clean("no graphs", needed)]))).reading == "evidence"


def test_two_arms_with_faults_are_compared_by_the_exact_binomial() -> None:
    runs = [
        *(fault("baseline", 0.2, i) for i in range(12)),
        fault("no graphs", 5.0),
        clean("no graphs", 5.0, 1),
    ]
    item = first(judge(TWO_ARMS, hours_only(runs)))
    assert item.test == "two-rates"
    assert item.reading == "evidence"
    assert item.ratio == pytest.approx(0.1 / 5.0)
    assert item.ratio_high is not None
    assert item.ratio_high < 1
    assert "rate ratio 0.020 (95 % limits" in item.words


def test_more_faults_than_the_baseline_is_told_and_not_tested() -> None:
    runs = [
        fault("baseline", 5.0),
        clean("baseline", 5.0, 1),
        *(fault("no graphs", 0.1, i) for i in range(6)),
    ]
    item = first(judge(TWO_ARMS, hours_only(runs)))
    assert item.reading == "more"
    assert "not fewer than the baseline" in item.words


def test_two_levers_that_only_together_cause_the_fault_are_both_named_and_no_other() -> None:
    arms, runs = matrix("abcd", "bd")
    found = judge(arms, runs)
    named = {
        s for e in found.keys[0].effects if e.kind == "alone" and e.reading == "evidence" for s in e.levers
    }
    assert named == {Setting("b", "on"), Setting("d", "on")}
    together = found.keys[0].effects[-1]
    assert together.kind == "together"
    assert set(together.levers) == named
    assert together.events_without == 0
    assert "b = on and d = on together" in found.headline
    assert all(item.reading in ("described", "untested", "more") for item in found.keys[0].comparisons)


def test_one_factor_from_a_faulting_baseline_names_both_of_a_pair_too() -> None:
    arms = [arm("baseline", baseline=True, a="1", b="1", c="1")]
    arms += [arm(f"{name} off", **{name: "0"}) for name in "abc"]
    runs = [fault("baseline", 0.3 * (i + 1), i) for i in range(6)]
    runs += [clean("a off", 20.0), clean("b off", 20.0), fault("c off", 0.4), fault("c off", 0.9, 1)]
    found = judge(arms, hours_only(runs))
    assert "a = 1 and b = 1 together" in found.headline
    assert not is_matrix(arms)


def test_a_lever_that_acts_alone_is_named_alone() -> None:
    found = judge(*matrix("abc", "b", runs=3))
    named = [e for e in found.keys[0].effects if e.reading == "evidence"]
    assert [e.levers for e in named] == [(Setting("b", "on"),)]
    assert named[0].separates


def test_confounded_levers_are_not_told_apart_by_pooling() -> None:
    # every arm with a on has b on as well: nothing separates the two, so neither is named
    arms = [arm("m0", baseline=True, a="off", b="off"), arm("m1", a="on", b="on")]
    runs = [clean("m0", 30.0), *(fault("m1", 0.2, i) for i in range(9))]
    found = judge(arms, hours_only(runs))
    assert not [e for e in found.keys[0].effects if e.reading == "evidence" and len(e.levers) == 1]


def test_without_a_baseline_levers_are_still_compared() -> None:
    arms = (arm("one", a=None), arm("two", a="1"))
    runs = hours_only([*(fault("one", 0.3, i) for i in range(8)), clean("two", 12.0)])
    found = judge(arms, runs)
    assert found.keys[0].comparisons == ()
    assert found.keys[0].effects[0].levers == (Setting("a", None),)
    assert "a unset against 1" in found.keys[0].effects[0].words
    assert any("no baseline run" in caveat for caveat in found.caveats)


def test_no_event_at_all_bounds_the_rate_and_asks_for_the_baseline() -> None:
    found = judge(TWO_ARMS, hours_only([clean("baseline", 2.0), clean("no graphs", 1.0)]))
    assert (
        found.headline
        == "No event in 2 runs of 2 arms, 3.0 h (rate below 1.0/h): no lever can be told apart."
    )
    assert "until it has at least 3" in found.next_steps[0].words


def test_a_sweep_without_runs_says_that_there_is_nothing_to_judge() -> None:
    assert judge(TWO_ARMS, []).headline == "Nothing to judge: none of 0 runs had exposure that counts."
    assert judge([], []).keys == ()


def test_too_few_baseline_faults_are_collected_first() -> None:
    steps = judge(TWO_ARMS, hours_only([fault("baseline", 2.0), clean("no graphs", 1.0)])).next_steps
    assert steps[0].arm == "baseline"
    assert steps[0].hours == pytest.approx(4.0)
    assert "collect 2 more before testing a lever" in steps[0].words


def test_an_arm_named_like_a_template_is_only_a_name() -> None:
    arms = (TWO_ARMS[0], arm("{}", graphs="NONE"))
    steps = judge(
        arms, hours_only([*(fault("baseline", 1.0, i) for i in range(3)), clean("{}", 1.0)])
    ).next_steps
    assert any(step.words.startswith("Run arm {} for another 4.1 h:") for step in steps)


def test_in_a_matrix_the_next_step_turns_one_lever_of_the_worst_arm() -> None:
    arms, runs = matrix("ab", "ab", runs=1)
    runs += hours_only([fault("m0", 0.4, 5)])
    steps = judge(arms, runs).next_steps
    assert any(step.arm in ("m1", "m2") and step.hours for step in steps)


def test_stalls_and_garbage_are_keys_of_their_own() -> None:
    runs = [
        fault("baseline", 1.0, 0, key=None, outcome="stall"),
        fault("baseline", 1.0, 1, key=None, outcome="garbage"),
    ]
    found = judge(TWO_ARMS, runs)
    assert {entry.key for entry in found.keys} == {"stall", "garbage"}
    assert found.headline.startswith(("1 stall in", "1 garbage output in"))


@pytest.mark.parametrize(
    ("order", "turns"),
    [("ABACADA", True), ("ABCABC", True), ("AABCDE", False), ("BCDA", False), ("AB", True)],
)
def test_interleaving_is_read_from_the_order_of_the_runs(order: str, turns: bool) -> None:
    arms = [Arm(name, (), name == "A") for name in "ABCDE"]
    runs = [clean(name, 1.0, i, started_utc=f"2026-01-01T{i:02}:00:00Z") for i, name in enumerate(order)]
    assert is_interleaved(arms, runs) is turns


def test_interleaving_is_unknown_without_times_and_judged_on_every_machine() -> None:
    assert is_interleaved(TWO_ARMS, [clean("baseline", 1.0)]) is None
    apart = [
        clean("baseline", 1.0, 0, started_utc="1", machine="x"),
        clean("no graphs", 1.0, 0, started_utc="2", machine="y"),
    ]
    assert is_interleaved(TWO_ARMS, apart) is False


def test_every_finding_carries_the_caveats() -> None:
    told = "\n".join(judge(TWO_ARMS, field_case(1)).caveats)
    for said in (
        "Many short runs",
        "change the exposure",
        "this workload, this GPU",
        "Timing levers",
        "One arm of ten",
    ):
        assert said in told


def test_false_claims_are_at_most_the_level() -> None:
    rnd = random.Random(12)
    arms = [Arm("base", (), True), *(Arm(f"x{i}", (Setting(f"l{i}", "1"),)) for i in range(4))]
    false = 0
    for _ in range(300):
        runs = []
        for number, item in enumerate([arms[0], arms[0], arms[0], *arms, *arms[1:]]):
            time = rnd.expovariate(1.0)
            runs.append(fault(item.name, time, number) if time < 2 else clean(item.name, 2.0, number))
        found = judge(arms, hours_only(runs))
        false += any(e.reading == "evidence" for entry in found.keys for e in entry.effects)
    assert false / 300 <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5


def sentences(found: Findings) -> str:
    parts = [found.headline, *found.caveats, *found.asides, *(s.words for s in found.next_steps)]
    for entry in found.keys:
        parts += [c.words for c in entry.comparisons] + [e.words for e in entry.effects]
        parts += [s.words for s in entry.next_steps] + ([entry.course.words] if entry.course else [])
    return "\n".join(parts)


def test_the_worked_sweep_reads_its_arms_apart() -> None:
    found = judge(worked().arms, worked().runs)
    main = found.keys[0]
    readings = {item.arm: item.reading for item in main.comparisons}
    assert readings["graphs off"] == "evidence"
    assert readings["moe triton"] == "not-yet"
    assert set(readings) == {"graphs off", "moe triton", "small batch"}
    assert found.interleaved is True


names = st.sampled_from(["A", "B", "C", "D"])
amounts = st.one_of(st.none(), st.floats(0, 1e6), st.sampled_from([0.0, 1e-300, 1e300]))
whole = st.one_of(st.none(), st.integers(0, 10**9), st.just(10**400))
some_runs = st.builds(
    ArmRun,
    arm=names,
    number=st.integers(0, 9),
    outcome=st.one_of(st.sampled_from(OUTCOMES), st.text(max_size=3)),
    exposure=st.builds(Exposure, steps=whole, hours=amounts, requests=whole, tokens=whole),
    key=st.one_of(st.none(), st.sampled_from(["K1", "K2"])),
    time_to_event_hours=amounts,
    at_startup=st.booleans(),
    started_utc=st.one_of(st.none(), st.sampled_from(["1", "2", "3"])),
    machine=st.one_of(st.none(), names),
)
some_arms = st.lists(
    st.builds(
        Arm,
        name=names,
        levers=st.lists(
            st.builds(Setting, st.sampled_from("xyz"), st.one_of(st.none(), st.sampled_from("01"))),
            max_size=3,
        ).map(tuple),
        is_baseline=st.booleans(),
    ),
    max_size=4,
    unique_by=lambda item: item.name,
)


@settings(max_examples=150, deadline=None)
@given(some_arms, st.lists(some_runs, max_size=25))
def test_any_runs_give_findings_that_promise_nothing(arms: list[Arm], runs: list[ArmRun]) -> None:
    found = judge(arms, runs)
    said = sentences(found).lower()
    for word in ("fixed it", "is fixed", "stable", "100 %", "proves", "proven", "solved", "safe"):
        assert word not in said
    for entry in found.keys:
        for item in (*entry.comparisons, *entry.effects):
            if item.reading == "evidence":
                assert item.p is not None
                assert item.p_adjusted is not None
                assert item.p <= item.p_adjusted <= 0.05 + 1e-9
    assert judge(arms, runs) == found


def test_the_order_of_the_runs_changes_no_number() -> None:
    result = worked()
    turned = judge(result.arms, tuple(reversed(result.runs)))
    found = judge(result.arms, result.runs)
    assert [e.comparisons for e in turned.keys] == [e.comparisons for e in found.keys]
    assert [e.effects for e in turned.keys] == [e.effects for e in found.keys]
