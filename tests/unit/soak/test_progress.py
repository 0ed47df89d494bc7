"""The state machine over time-stamped sights, with the recorded stall of vLLM 0.25.1 among them."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.soak.metrics import parse_metrics
from crashlab.soak.progress import (
    DEAD,
    DUMPING,
    FAILING,
    IDLE,
    PREFILLING,
    PROGRESSING,
    STALLED,
    STARTING,
    STATES,
    Limits,
    Progress,
    Sight,
)

DATA = Path(__file__).resolve().parents[2] / "data" / "soak"
LIMITS = Limits(stall=120.0, prefill=900.0)


def busy(now: float, **fields: object) -> Sight:
    """A sight of a server with one request in flight since the second 0."""
    base = Sight(now, in_flight=1, unanswered=0, oldest=0.0, running=1.0, primary=(1.0,), secondary=(0.5,))
    return base._replace(**fields)  # type: ignore[arg-type]


def states(sights: list[Sight], limits: Limits = LIMITS) -> list[str]:
    machine = Progress(sights[0].now, limits)
    return [machine.see(sight).state for sight in sights]


def test_a_server_without_a_first_answer_is_starting() -> None:
    assert states([Sight(0.0, ready=False), Sight(500.0, ready=False)]) == [STARTING, STARTING]


def test_nothing_in_flight_is_idle_however_long() -> None:
    assert states([Sight(0.0), Sight(5000.0)]) == [IDLE, IDLE]


def test_requests_that_all_fail_are_no_progress_and_no_idleness_but_a_stall_is_still_seen() -> None:
    assert states([Sight(0.0, failing=2), Sight(1.0, failing=3)]) == [IDLE, FAILING]
    assert states([busy(0.0), busy(1.0, failing=9), busy(200.0, failing=9)]) == [
        PROGRESSING,
        FAILING,
        STALLED,
    ]
    assert states([Sight(0.0, failing=9, alive=False)]) == [DEAD]


def test_client_bytes_alone_are_progress_where_there_are_no_metrics() -> None:
    sights = [Sight(float(t), in_flight=1, oldest=float(t), client_bytes=t * 10) for t in range(0, 1000, 50)]
    assert set(states(sights)) == {PROGRESSING}


def test_tokens_are_only_claimed_once_something_has_moved() -> None:
    machine = Progress(0.0, LIMITS)
    machine.see(Sight(0.0))
    assert machine.see(busy(1.0)).why == "requests have just been sent"
    assert machine.see(busy(2.0, primary=(9.0,))).why == "tokens come"
    machine.see(Sight(3.0, primary=(9.0,)))
    assert machine.see(busy(4.0, primary=(9.0,))).why == "requests have just been sent"


def test_frozen_metrics_with_requests_in_flight_are_a_stall_at_the_limit_and_not_before() -> None:
    found = states([busy(0.0), busy(60.0), busy(119.0), busy(121.0)])
    assert found == [PROGRESSING, PROGRESSING, PROGRESSING, STALLED]


def test_a_running_gauge_that_stays_up_is_no_progress() -> None:
    assert states([busy(0.0, running=16.0), busy(130.0, running=16.0)])[-1] == STALLED


def test_moving_counters_without_client_bytes_are_progress() -> None:
    found = states([busy(float(t), primary=(float(t),)) for t in range(0, 600, 60)])
    assert set(found) == {PROGRESSING}


def test_a_long_prefill_moves_only_the_cache_and_is_no_stall() -> None:
    found = states([busy(float(t), secondary=(t / 1000,)) for t in range(0, 890, 10)])
    assert STALLED not in found
    assert found[-1] == PREFILLING


def test_a_prefill_beyond_its_limit_is_a_stall() -> None:
    found = states([busy(float(t), secondary=(t / 1000,)) for t in range(0, 920, 10)])
    assert found[-1] == STALLED
    assert found[found.index(STALLED) - 1] == PREFILLING


def test_waiting_for_a_first_token_in_one_long_step_is_prefilling_until_the_limit() -> None:
    found = states([busy(float(t), unanswered=1) for t in (0, 30, 60, 110)])
    assert found == [PROGRESSING, PREFILLING, PREFILLING, PREFILLING]


def test_a_stall_ends_when_a_token_comes() -> None:
    found = states([busy(0.0), busy(130.0), busy(131.0, client_bytes=10)])
    assert found == [PROGRESSING, STALLED, PROGRESSING]


def test_a_stall_that_ended_does_not_make_the_next_one_slower_to_see() -> None:
    machine = Progress(0.0, LIMITS)
    for sight in (busy(0.0), busy(400.0), busy(401.0, client_bytes=1)):
        machine.see(sight)
    assert machine.patience == 120.0


def test_a_slow_server_is_given_twice_its_longest_pause() -> None:
    machine = Progress(0.0, LIMITS)
    for t in (0, 100, 200, 300):
        machine.see(busy(float(t), client_bytes=t))
    assert machine.patience == 200.0
    assert machine.see(busy(480.0, client_bytes=300)).state == PROGRESSING
    assert machine.see(busy(501.0, client_bytes=300)).state == STALLED


def test_requests_that_are_turned_away_at_once_are_admission_control_and_no_stall() -> None:
    sights = [
        Sight(float(t), in_flight=4, unanswered=4, oldest=t - 0.01, running=0.0) for t in range(0, 400, 20)
    ]
    assert STALLED not in states(sights)


def test_a_refusing_server_with_frozen_work_inside_is_a_stall() -> None:
    sights = [busy(float(t), oldest=t - 0.01) for t in range(0, 200, 20)]
    assert states(sights)[-1] == STALLED


def test_a_server_that_sleeps_is_idle() -> None:
    assert states([busy(0.0), busy(300.0, asleep=True)])[-1] == IDLE


def test_work_of_others_counts_by_the_servers_own_gauge() -> None:
    others = {"in_flight": 0, "oldest": None}
    assert states([busy(0.0, **others), busy(121.0, **others)])[-1] == STALLED


def test_silence_is_counted_from_when_work_came() -> None:
    idle = Sight(0.0, primary=(1.0,), secondary=(0.5,), running=0.0)
    found = states(
        [idle, idle._replace(now=1000.0), busy(1001.0, oldest=1000.5), busy(1100.0, oldest=1000.5)]
    )
    assert found == [IDLE, IDLE, PROGRESSING, PROGRESSING]


def test_metrics_that_cannot_be_read_are_no_sign_either_way() -> None:
    gone = {"primary": None, "secondary": None, "running": None}
    found = states([busy(0.0), busy(60.0, **gone), busy(121.0, **gone)])
    assert found[-1] == STALLED
    found = states([busy(0.0), busy(60.0, **gone), busy(100.0, **gone), busy(110.0)])
    assert found[-1] == PROGRESSING


def test_a_dump_and_death_stand_above_everything() -> None:
    assert states([busy(500.0, dumping=True)]) == [DUMPING]
    assert states([busy(500.0, dumping=True, alive=False)]) == [DEAD]


def test_the_recorded_stall_of_vllm_is_seen_although_health_says_200() -> None:
    """Every five seconds from the recording: two live readings, then frozen ones with running 16."""
    machine, seen = Progress(0.0, Limits(stall=20.0)), []
    for block in (DATA / "vllm-stall-probe.txt").read_text().split("== ")[1:]:
        assert "health=200" in block
        text = re.sub(r"(vllm:\S+) ", r"\n\1 ", block.partition("\n")[2])
        counters = parse_metrics(text)
        at = float(re.match(r"t=(\d+)s", block)[1])  # type: ignore[index]
        sight = Sight(
            at,
            in_flight=16,
            oldest=min(at, 10.0),
            primary=counters.primary,
            secondary=counters.secondary,
            running=counters.get("running"),
        )
        seen.append((at, machine.see(sight).state))
    assert seen == [
        (5.0, PROGRESSING),
        (10.0, PROGRESSING),
        (15.0, PROGRESSING),
        (20.0, PROGRESSING),
        (25.0, PROGRESSING),
        (30.0, STALLED),
        (35.0, STALLED),
    ]


@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            Sight,
            now=st.floats(0, 5000),
            ready=st.booleans(),
            alive=st.booleans(),
            dumping=st.booleans(),
            in_flight=st.integers(0, 5),
            unanswered=st.integers(0, 5),
            oldest=st.none() | st.floats(0, 5000),
            client_bytes=st.integers(0, 3),
            primary=st.none() | st.tuples(st.floats(0, 3)),
            secondary=st.none() | st.tuples(st.floats(0, 3)),
            running=st.none() | st.floats(0, 3),
            asleep=st.none() | st.booleans(),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_whatever_is_seen_the_state_is_known_and_a_stall_needs_time_and_work(sights: list[Sight]) -> None:
    sights.sort(key=lambda s: s.now)
    machine = Progress(sights[0].now, LIMITS)
    for sight in sights:
        status = machine.see(sight)
        assert status.state in STATES
        assert status.silent <= status.quiet
        if status.state == STALLED:
            assert sight.alive
            assert sight.ready
            assert not sight.dumping
            assert sight.in_flight or sight.running
            assert status.quiet >= LIMITS.stall
