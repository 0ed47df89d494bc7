"""From answers to a verdict: garbage, degraded, no difference shown, inconclusive."""

from __future__ import annotations

import pytest

from crashlab.demo.answers import Flaws
from crashlab.facts import EnvFact
from crashlab.quality.answered import Answered
from crashlab.quality.build import Heard, build_report
from crashlab.quality.compare import Side, collapse, compare, power_of, step_tests
from crashlab.quality.controls import controls_for
from crashlab.quality.facts import (
    DEGRADED,
    GARBAGE,
    INCONCLUSIVE,
    NO_DIFFERENCE,
    NOTHING_FOUND,
    QualityReport,
)
from crashlab.quality.generate import build_suite
from crashlab.quality.known import known_failures, settings_of
from crashlab.quality.onset import CONCURRENCY, LENGTH
from crashlab.quality.settings import Arm, Settings
from crashlab.quality.talk import Cell, Talk
from tests.unit.quality.simulated import answers, report_of

GOOD = Flaws(accuracy=0.8, noise=0.02)


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("token0", "token0"),
        ("loop", "repetition"),
        ("empty", "token0"),
        ("mojibake", "noise"),
        ("wrong", "wrong-answers"),
    ],
)
def test_an_arm_that_answers_nothing_right_is_garbage_and_the_word_for_it_fits(kind: str, word: str) -> None:
    report = report_of(GOOD, GOOD._replace(degrade=kind))
    assert report.verdict.kind == GARBAGE
    assert report.verdict.worse_arm == "B"
    assert word in report.verdict.garbage
    assert report.controls
    assert report.pair is not None
    assert report.pair.pairs.both == report.pair.pairs.won == 0


def test_one_server_that_gets_nothing_right_cannot_be_judged_and_it_is_said() -> None:
    nothing = GOOD._replace(accuracy=0.0, noise=0.0)
    report = report_of(nothing, None, questions=40)
    assert report.verdict.kind == INCONCLUSIVE
    assert report.verdict.headline == (
        "Almost nothing is right (0 of 40); without a control arm or --expect this cannot be judged"
    )
    known = report_of(nothing, None, questions=40, expect=0.8)
    assert known.verdict.kind == GARBAGE


def test_two_servers_that_get_nothing_right_are_not_called_alike_without_a_word() -> None:
    nothing = GOOD._replace(accuracy=0.0)
    report = report_of(nothing, nothing, questions=40)
    assert report.verdict.kind == NO_DIFFERENCE
    assert "almost nothing is right in either" in report.verdict.headline


def test_a_fifth_of_wrong_answers_is_degraded_with_the_right_counts() -> None:
    report = report_of(GOOD, GOOD._replace(degrade="wrong", share=0.2))
    assert report.verdict.kind == DEGRADED
    assert report.verdict.garbage == ("drift",)
    b = report.arms[1].passes[0].counts
    assert b.asked == b.correct + b.wrong == 200


def test_one_garbage_answer_in_a_hundred_is_called_with_enough_questions() -> None:
    report = report_of(GOOD, GOOD._replace(degrade="token0", share=0.01), questions=1200)
    assert report.verdict.kind == DEGRADED
    assert report.verdict.garbage[0] == "token0"
    assert report.collapse is not None
    assert report.collapse.other_odd == 0
    assert report.collapse.odd == report.arms[1].passes[0].odd["token-0"]
    assert 4 <= report.collapse.odd <= 28


def test_too_few_garbage_answers_are_told_and_not_called() -> None:
    suite = build_suite(1, 100)
    rows = tuple(one._replace(task=t.id) for one, t in zip(answers("+" * 100), suite.tasks, strict=True))
    odd = (rows[0]._replace(outcome="invalid", kinds=("token-0",)), *rows[1:])
    heard = [
        Heard(Arm("A", "http://a"), Talk("A", passes=(rows, rows))),
        Heard(Arm("B", "http://b"), Talk("B", passes=(odd,))),
    ]
    report = build_report(Settings(suite), heard)
    assert report.verdict.kind == NO_DIFFERENCE
    assert any("not yet evidence" in reason for reason in report.verdict.reasons)


def test_the_worse_arm_may_be_the_control() -> None:
    report = report_of(GOOD._replace(degrade="loop"), GOOD)
    assert (report.verdict.kind, report.verdict.worse_arm) == (GARBAGE, "A")


def test_dropped_requests_are_errors_and_leave_the_verdict_alone() -> None:
    report = report_of(GOOD, GOOD._replace(drop=0.2))
    assert report.verdict.kind == NO_DIFFERENCE
    counts = report.arms[1].passes[0].counts
    assert 20 <= counts.error <= 60
    assert report.pair is not None
    assert report.pair.left_out == counts.error
    assert counts.wrong / counts.answered < 0.3


def test_an_arm_that_mostly_fails_is_inconclusive_and_not_garbage() -> None:
    report = report_of(GOOD, GOOD._replace(drop=0.8))
    assert (report.verdict.kind, report.verdict.worse_arm) == (INCONCLUSIVE, "B")


def test_a_control_that_does_not_agree_with_itself_is_inconclusive() -> None:
    suite = build_suite(1, 60)
    rows = [one._replace(task=task.id) for one, task in zip(answers("+" * 60), suite.tasks, strict=True)]
    bad = [one._replace(outcome="wrong") if i < 30 else one for i, one in enumerate(rows)]
    a = Talk("A", passes=(tuple(rows), tuple(bad)))
    b = Talk("B", passes=(tuple(rows),))
    heard = [Heard(Arm("A", "http://a"), a), Heard(Arm("B", "http://b"), b)]
    report = build_report(Settings(suite), heard)
    assert report.verdict.kind == INCONCLUSIVE
    assert "does not agree with itself" in report.verdict.headline


def test_an_arm_that_was_never_asked_is_inconclusive_with_its_problem() -> None:
    suite = build_suite(1, 60)
    rows = tuple(one._replace(task=task.id) for one, task in zip(answers("+" * 60), suite.tasks, strict=True))
    heard = [
        Heard(Arm("A", "http://a"), Talk("A", passes=(rows, rows))),
        Heard(Arm("B", "http://b"), Talk("B", problem="never ready: refused")),
    ]
    report = build_report(Settings(suite), heard)
    assert report.verdict.kind == INCONCLUSIVE
    assert "never ready: refused" in report.verdict.headline
    assert report.asked == "60 questions"
    neither = build_report(Settings(suite), [Heard(Arm("A", "http://a"), Talk("A", problem="never ready"))])
    assert neither.asked == "none of 60 questions"


@pytest.mark.parametrize(
    ("flaws", "dimension"),
    [
        (GOOD._replace(degrade="wrong", from_tokens=700), LENGTH),
        (GOOD._replace(degrade="wrong", from_batch=30), CONCURRENCY),
    ],
)
def test_garbage_that_begins_somewhere_is_garbage_and_the_border_is_named(
    flaws: Flaws, dimension: str
) -> None:
    report = report_of(GOOD, flaws)
    assert report.verdict.kind == GARBAGE
    assert "bad from" in report.verdict.headline
    assert [onset.dimension for onset in report.arms[1].onsets] == [dimension]
    changes = [control.change for control in report.controls]
    expected = "--max-num-seqs 1" if dimension == CONCURRENCY else "--no-enable-prefix-caching"
    assert changes[0] == expected


def told(report_a: float, report_b: float, *, texts: int = 32) -> QualityReport:
    """Two arms that answer alike, and think texts with right answers this likely."""
    suite = build_suite(1, 60)
    rows = tuple(one._replace(task=t.id) for one, t in zip(answers("+-" * 30), suite.tasks, strict=True))
    prose = ((-3.0,),) * 12
    a, b = ((*prose, *((level - i / 1000,) for i in range(texts))) for level in (report_a, report_b))
    heard = [
        Heard(Arm("A", "http://a"), Talk("A", passes=(rows, rows), likelihoods=(a, a))),
        Heard(Arm("B", "http://b"), Talk("B", passes=(rows,), likelihoods=(b,))),
    ]
    return build_report(Settings(suite), heard)


def test_an_arm_that_thinks_right_answers_much_less_likely_is_degraded() -> None:
    report = told(-1.0, -1.4)
    assert (report.verdict.kind, report.verdict.worse_arm, report.verdict.garbage) == (
        DEGRADED,
        "B",
        ("drift",),
    )
    assert "32 of 32 right answers" in report.verdict.headline
    assert "0.40 nats" in report.verdict.headline
    turned = told(-1.4, -1.0)
    assert (turned.verdict.kind, turned.verdict.worse_arm) == (DEGRADED, "A")


@pytest.mark.parametrize(("a", "b", "texts"), [(-1.0, -1.0, 32), (-1.0, -1.05, 32), (-1.0, -1.4, 6)])
def test_a_little_less_sure_or_too_few_texts_is_no_finding(a: float, b: float, texts: int) -> None:
    assert told(a, b, texts=texts).verdict.kind == NO_DIFFERENCE


def test_other_texts_in_most_answers_are_told_beside_no_difference() -> None:
    suite = build_suite(1, 60)
    rows = tuple(one._replace(task=t.id) for one, t in zip(answers("+-" * 30), suite.tasks, strict=True))
    other = tuple(one._replace(text=f"other {one.text}") for one in rows)
    heard = [
        Heard(Arm("A", "http://a"), Talk("A", passes=(rows, rows))),
        Heard(Arm("B", "http://b"), Talk("B", passes=(other,))),
    ]
    verdict = build_report(Settings(suite), heard).verdict
    assert verdict.kind == NO_DIFFERENCE
    assert "but 60 of 60 greedy answers differ in their text, 0 of 60" in verdict.headline


def test_no_difference_never_says_equal() -> None:
    report = report_of(GOOD, GOOD)
    assert report.verdict.kind == NO_DIFFERENCE
    words = " ".join((report.verdict.headline, *report.verdict.reasons)).lower()
    assert "no difference between a and b shown" in words
    assert "equal" not in words
    assert "identical" not in words
    assert report.power is not None
    assert "four times in five" in report.power.words
    assert report.signatures == report.controls == ()


def test_a_few_aa_runs_raise_no_alarm() -> None:
    noisy = Flaws(accuracy=0.7, noise=0.1)
    assert {report_of(noisy, noisy, seed=seed, questions=120).verdict.kind for seed in range(8)} == {
        NO_DIFFERENCE
    }


def unscored(kinds: tuple[str, ...]) -> QualityReport:
    """Questions without right answers: 30 plain answers against 30 that look like this."""
    suite = build_suite(1, 30)
    rows = tuple(Answered(task.id, "l", None, "words") for task in suite.tasks)
    looks = tuple(one._replace(kinds=kinds) for one in rows)
    heard = [
        Heard(Arm("A", "http://a"), Talk("A", passes=(rows, rows))),
        Heard(Arm("B", "http://b"), Talk("B", passes=(looks,))),
    ]
    return build_report(Settings(suite), heard)


def test_questions_without_right_answers_are_judged_by_their_look() -> None:
    assert unscored(()).verdict.kind == NO_DIFFERENCE
    assert "look of 30 answers" in unscored(()).verdict.headline
    bad = unscored(("loop",)).verdict
    assert (bad.kind, bad.worse_arm, bad.garbage) == (GARBAGE, "B", ("repetition",))


def test_a_handful_of_questions_is_too_few_and_says_so() -> None:
    verdict = report_of(GOOD, GOOD, questions=5, prose=False).verdict
    assert verdict.kind == INCONCLUSIVE
    assert verdict.headline == "Only 5 questions were asked of arm A; at least 20 are needed"


def test_one_server_alone() -> None:
    assert report_of(GOOD, None).verdict.kind == NOTHING_FOUND
    garbage = report_of(GOOD._replace(degrade="token0", share=0.5), None)
    assert (garbage.verdict.kind, garbage.verdict.worse_arm) == (GARBAGE, "A")
    assert "token0" in garbage.verdict.garbage
    assert report_of(GOOD._replace(drop=0.95), None, questions=60).verdict.kind == INCONCLUSIVE


def test_one_server_alone_with_a_known_share_of_right_answers() -> None:
    field = report_of(Flaws(degrade="wrong"), None, expect=0.8867)
    assert (field.verdict.kind, field.verdict.garbage) == (GARBAGE, ("wrong-answers",))
    worse = report_of(Flaws(accuracy=0.6), None, expect=0.8867)
    assert (worse.verdict.kind, worse.verdict.garbage) == (DEGRADED, ("drift",))
    assert report_of(Flaws(accuracy=0.9), None, expect=0.85).verdict.kind == NOTHING_FOUND


def test_a_comparison_pairs_by_question_and_leaves_errors_out() -> None:
    first, second = answers("++-!+?"), answers("+-+++!")
    found = compare(Side("A1", first), Side("B1", tuple(reversed(second))), {})
    assert found.pairs == (2, 1, 1, 0)
    assert found.left_out == 2
    assert found.p == 1.0
    assert {one.task for one in found.differing} == {"t1", "t2"}
    assert [one.lost for one in found.differing] == [True, False]
    assert compare(Side("A1", ()), Side("B1", ()), {}).drop is None


def test_the_look_of_answers_is_compared_in_both_directions() -> None:
    plain = answers("+" * 20)
    odd = tuple(one._replace(kinds=("loop",)) for one in plain)
    assert collapse("B", plain, "A", [plain]) is None
    assert collapse("B", (), "A", [odd]) is None
    found = collapse("B", odd, "A", [plain, plain])
    assert found is not None
    assert (found.worse, found.odd, found.other_of) == ("B", 20, 40)
    assert found.p < 1e-9
    turned = collapse("B", plain, "A", [odd, odd])
    assert turned is not None
    assert (turned.worse, turned.odd, turned.of) == ("A", 40, 40)


def test_steps_are_compared_where_both_arms_were() -> None:
    first = [Cell(LENGTH, 256, 20, 20), Cell(LENGTH, 1024, 10, 20), Cell(LENGTH, 4096, 0, 0)]
    second = [Cell(LENGTH, 256, 5, 20), Cell(LENGTH, 1024, 20, 20), Cell(LENGTH, 4096, 3, 20)]
    found = step_tests(first, second)
    assert [(one.at, one.worse) for one in found] == [(256, "B"), (1024, "A")]
    assert found[0].p < 1e-5


def test_power_is_told_for_hopeless_and_for_noisy_runs() -> None:
    assert "even a total loss" in power_of(5, None, 0.01).words
    assert "was not measured" in power_of(200, None, 0.01).words
    assert power_of(0, None, 0.01).drop is None


def changes(garbage: tuple[str, ...], **facts: str) -> list[str]:
    settings = {key: EnvFact(value, "test") for key, value in facts.items()}
    return [control.change for control in controls_for(garbage, settings)]


def test_the_field_s_two_controls_are_proposed_for_an_nvfp4_cache() -> None:
    found = changes(("token0",), kv_cache_dtype="nvfp4", quantization="fp8")
    assert found[0] == "VLLM_COMPUTE_NANS_IN_LOGITS=1"
    assert found[1] == "--kv-cache-dtype fp8"
    assert "older KV cache layout" in found[2]
    assert "--linear-backend marlin" not in found


def test_marlin_is_proposed_unless_it_is_in_use_and_eager_unless_it_is() -> None:
    assert "--linear-backend marlin" in changes(("wrong-answers",))
    found = changes(("wrong-answers",), linear_backend="marlin", enforce_eager="true", quantization="fp8")
    assert "--linear-backend marlin" not in found
    assert "--enforce-eager" not in found
    assert "VLLM_USE_DEEP_GEMM=0" in found
    assert any("VLLM_USE_HW_AGNOSTIC=1" in change for change in found)


def test_a_control_repeats_the_command_with_its_one_change() -> None:
    argv = ("vllm", "serve", "m", "--kv-cache-dtype", "nvfp4", "--port", "1")
    found = controls_for((), {"kv_cache_dtype": EnvFact("nvfp4", "x")}, (), argv)
    assert found[0].argv == ("vllm", "serve", "m", "--port", "1", "--kv-cache-dtype", "fp8")
    equals = controls_for(
        (), {"kv_cache_dtype": EnvFact("nvfp4", "x")}, (), ("vllm", "--kv-cache-dtype=nvfp4")
    )
    assert equals[0].argv == ("vllm", "--kv-cache-dtype", "fp8")


def names(
    garbage: tuple[str, ...], argv: tuple[str, ...] = (), log: tuple[str, ...] = (), **env: str
) -> list[str]:
    facts = {key: EnvFact(value, "user") for key, value in env.items()}
    return [found.id for found in known_failures(garbage, argv, log, facts) if found.status == "match"]


def test_known_failures_of_the_field_are_named() -> None:
    kv = ("vllm", "serve", "m", "--kv-cache-dtype", "nvfp4")
    assert names(("token0",), kv, arch="sm_120")[0] == "NVFP4-KV-TOKEN0"
    log = ("INFO nvfp4.py: Using FlashInferCutlassNvFp4LinearKernel for NVFP4 GEMM",)
    assert "NVFP4-LINEAR-SM12X-GARBAGE" in names(("wrong-answers",), (), log, arch="sm_120")
    e8m0 = ("INFO deep_gemm.py:120 DeepGEMM E8M0 enabled on current platform.",)
    assert "E8M0-ACCURACY" in names(("drift",), (), e8m0, arch="sm_120")
    assert "NAN-TO-BANG" in names(("token0",))
    assert "NVFP4-KV-TOKEN0" not in names(
        ("token0",), ("vllm", "serve", "m", "--kv-cache-dtype", "fp8"), arch="sm_120"
    )


def test_settings_come_from_the_command_the_variables_and_the_log_which_outranks_them() -> None:
    found = settings_of(
        ("vllm", "serve", "m", "--kv-cache-dtype", "auto"),
        {"VLLM_USE_DEEP_GEMM": "0"},
        ("INFO core.py: Initializing a V1 LLM engine (v0.25.1) with config: kv_cache_dtype=fp8_e4m3",),
    )
    assert found["kv_cache_dtype"].value == "fp8_e4m3"
    assert found["vllm_use_deep_gemm"] == EnvFact("0", "environment")
    assert found["vllm"].value == "0.25.1"


def test_secrets_of_a_command_do_not_reach_the_report() -> None:
    suite = build_suite(1, 30)
    arm = Arm(
        "A",
        "http://user:secret@host:1",
        argv=("vllm", "--api-key", "sk-planted"),
        environment=(("HF_TOKEN", "hf_x"),),
    )
    report = build_report(Settings(suite), [Heard(arm, Talk("A"))])
    from crashlab.report.quality import FORMATS, render

    for form in FORMATS:
        text = render(report, form, verbose=True)
        assert "sk-planted" not in text
        assert "user:secret" not in text
        assert "hf_x" not in text


def test_seeds_of_every_random_choice_are_in_the_report() -> None:
    report = report_of(GOOD, GOOD, seed=42)
    assert report.seed == 42
    assert {one.what: one.seed for one in report.seeds} == {
        "questions": "42/tasks/LEVEL",
        "examples": "42/shots",
        "filler of long prompts": "42/filler/TASK/TOKENS",
    }
    assert report.suite.sha256 == build_suite(42, 200).sha256
