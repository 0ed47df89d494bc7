"""Pure decisions: hang rules, patience with dumps, restarts."""

from __future__ import annotations

import errno

from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.capture import announce
from crashlab.capture.attempts import run_attempts
from crashlab.capture.config import AttemptResult
from crashlab.capture.patience import HELD_QUIET, UNHELD_QUIET, DumpPatience, Limits, Sight
from crashlab.capture.rules import HangRules, Life
from crashlab.capture.signals import SignalBox
from crashlab.capture.tree import Proc


class TestHangRules:
    def test_silence_counts_bytes(self) -> None:
        life = Life(0.0)
        life.see(10, 0, 5.0)
        assert life.hung(HangRules(silence=10), 14.9) is None
        assert "no output" in (life.hung(HangRules(silence=10), 15.0) or "")

    def test_bytes_without_progress_do_not_stop_the_stall_clock(self) -> None:
        life = Life(0.0)
        for second in range(1, 31):
            life.see(second * 100, 1, float(second))
        assert life.hung(HangRules(silence=10), 30.0) is None
        assert "no sign of progress" in (life.hung(HangRules(stall_after=20), 30.0) or "")

    def test_without_rules_nothing_is_ever_hung(self) -> None:
        assert Life(0.0).hung(HangRules(), 1e9) is None

    def test_counting_begins_anew(self) -> None:
        life = Life(0.0)
        life.restart(100.0)
        assert life.hung(HangRules(silence=10), 105.0) is None


def sight(**fields: object) -> Sight:
    return Sight(**{"announced": True, "files": 1, "size": 0, "alive": True, **fields})  # type: ignore[arg-type]


class TestPatience:
    def test_nothing_to_wait_for(self) -> None:
        patience = DumpPatience(Limits())
        assert not patience.busy(sight(announced=False, files=0), 0.0)
        assert not patience.busy(sight(alive=False), 1.0)
        assert patience.gave_up is None

    def test_a_dump_that_grows_is_waited_for_up_to_the_total(self) -> None:
        patience = DumpPatience(Limits(total=1000))
        assert all(patience.busy(sight(size=second), float(second)) for second in range(1000))
        assert not patience.busy(sight(size=1000), 1000.0)
        assert patience.gave_up == "the dump has taken 1000 s"

    def test_a_pause_is_borne_longer_while_the_file_is_held_open(self) -> None:
        patience = DumpPatience(Limits())
        assert patience.busy(sight(size=5), 0.0)
        assert patience.busy(sight(size=5), UNHELD_QUIET + 1)
        assert not patience.busy(sight(size=5), HELD_QUIET)

    def test_a_dump_that_was_announced_and_has_no_file_is_given_up_soon(self) -> None:
        patience = DumpPatience(Limits())
        assert patience.busy(sight(files=0), 0.0)
        assert not patience.busy(sight(files=0), UNHELD_QUIET)
        assert "has not moved" in (patience.gave_up or "")

    def test_the_size_limit(self) -> None:
        patience = DumpPatience(Limits(bytes=100))
        assert patience.busy(sight(size=100), 0.0)
        assert not patience.busy(sight(size=101), 0.1)
        assert "the limit is 100" in (patience.gave_up or "")

    @settings(deadline=None)
    @given(
        st.lists(
            st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 50), st.floats(0.1, 60)), max_size=60
        )
    )
    def test_it_never_waits_for_ever(self, rows: list[tuple[bool, int, int, float]]) -> None:
        patience, now = DumpPatience(Limits(total=600)), 0.0
        for announced, files, size, step in rows:
            patience.busy(Sight(announced, files, size, True), now)
            now += step
        now += 600
        patience.busy(sight(), now)
        assert not patience.busy(sight(), now + 600)


def result(**fields: object) -> AttemptResult:
    base = AttemptResult(1, 0, None, None, None, (), (), 0, 0, (), False, 60.0)
    return base._replace(**fields)  # type: ignore[arg-type]


class TestRestart:
    def attempts(self, results: list[AttemptResult], restarts: int) -> int:
        said: list[str] = []
        with SignalBox() as box:
            box.wait = lambda seconds, also: None  # type: ignore[method-assign]
            import time
            from unittest import mock

            clock = map(float, range(0, 100000, 50))
            with mock.patch.object(time, "monotonic", side_effect=clock):
                done = run_attempts(box, restarts, lambda n: results[n - 1], lambda _: True, say=said.append)
        return len(done)

    def test_a_crash_is_tried_again_as_often_as_allowed(self) -> None:
        assert self.attempts([result(exit_code=1)] * 9, 3) == 4

    def test_a_good_end_and_the_users_wish_stop_it(self) -> None:
        assert self.attempts([result(exit_code=1), result(), result()], 5) == 2
        assert self.attempts([result(exit_code=143, ended_by="user")] * 3, 5) == 1

    def test_a_fault_behind_exit_code_0_is_a_crash(self) -> None:
        assert self.attempts([result(suspicious=True), result()], 5) == 2

    def test_whoever_looks_at_the_results_can_stop_it(self) -> None:
        with SignalBox() as box:
            done = run_attempts(box, 5, lambda n: result(exit_code=1), lambda _: False, say=str)
        assert len(done) == 1

    def test_shell_codes(self) -> None:
        assert result(exit_code=None, signal=6).shell_code == 134
        assert result(exit_code=None).shell_code == 1


class TestAnnounce:
    def test_what_is_waited_for_for_ever_is_said_to_be(self) -> None:
        found = [Proc(n, 1, 0.0, "worker", ()) for n in range(7)]
        said = announce.still_running(found, None)
        assert "7 processes (worker 0, worker 1, worker 2, worker 3, worker 4 and 2 more)" in said
        assert said.endswith("are still running, and are waited for (--linger never)")

    def test_output_that_finds_no_taker_is_told_with_the_reason(self) -> None:
        assert str(announce.nobody_reads("stdout", errno.EIO)).startswith(
            "nobody reads the program's stdout any"
        )
        full = str(announce.nobody_reads("stdout", errno.ENOSPC))
        assert full.startswith("No space left on device while writing the program's stdout: ")
        assert announce.nobody_reads("stdout", errno.EBADF) is None, "it was closed from the start"

    def test_a_kill_says_whose_patience_ended(self) -> None:
        assert announce.killed(1, 10.0, hurried=False) == "killed 1 process (SIGKILL) after --grace 10 s"
        assert announce.killed(2, 10.0, hurried=True) == "killed 2 processes (SIGKILL) at the second request"
