"""The process tree, orphans, endings, signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from crashlab.capture import ending, tree
from crashlab.capture.ending import Ending
from crashlab.capture.signals import SignalBox, send
from crashlab.capture.tree import Proc, ProcessTree


def sleeper(seconds: float = 30, session: bool = True) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", str(seconds)], start_new_session=session)


class TestTree:
    def test_descendants_are_seen_start_and_go(self) -> None:
        process = subprocess.Popen(["sh", "-c", "sleep 30 & wait"], start_new_session=True)
        watched = ProcessTree(process.pid)
        deadline = time.monotonic() + 30
        seen: set[int] = set()
        while (
            len(seen) < 2 and time.monotonic() < deadline
        ):  # by pid: a child not yet executed is called sh too
            seen |= {one.pid for one in watched.scan(0.0).started}
        os.killpg(process.pid, signal.SIGKILL)
        assert process.pid in seen
        assert len(seen) == 2
        process.wait()
        deadline = time.monotonic() + 30
        while watched.known and time.monotonic() < deadline:
            watched.scan(0.0)
        assert not watched.known

    def test_our_own_helpers_are_no_part_of_it(self) -> None:
        program, helper = sleeper(), sleeper()
        try:
            watched = ProcessTree(program.pid, ours=(helper.pid,))
            assert [one.pid for one in watched.alive()] == [program.pid]
            other = sleeper()
            watched.own(other.pid)
            assert [one.pid for one in watched.alive()] == [program.pid]
            other.kill()
            other.wait()
        finally:
            for process in (program, helper):
                process.kill()
                process.wait()

    def test_orphans_come_to_us_and_are_reaped(self) -> None:
        assert tree.become_subreaper()
        code = "import os,time\nif os.fork()==0:\n os.setsid()\n time.sleep(0.3)\n os._exit(7)\n"
        process = subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True)
        watched = ProcessTree(process.pid)
        process.wait()
        deadline = time.monotonic() + 30
        while not watched.reaped and time.monotonic() < deadline:
            watched.scan(time.monotonic())
            time.sleep(0.05)
        assert [code for _, code in watched.reaped] == [7]

    def test_open_files_of_the_tree_are_told(self, tmp_path: object) -> None:
        path = f"{tmp_path}/held"
        process = subprocess.Popen(["sh", "-c", f"exec sleep 30 3> {path}"], start_new_session=True)
        watched = ProcessTree(process.pid)
        deadline = time.monotonic() + 30
        while path not in list(watched.open_files()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert path in list(watched.open_files())
        process.kill()
        process.wait()

    def test_looks_keep_a_distance(self) -> None:
        watched = ProcessTree(os.getpid())
        watched.scan(100.0)
        assert not watched.due(100.1)
        assert watched.due(100.0 + 3600)


class FakeTree:
    """Processes that end when enough is enough."""

    def __init__(self, pids: list[int]) -> None:
        self.pids = pids

    def alive(self) -> list[Proc]:
        return [Proc(pid, 1, 0.0, "x", ()) for pid in self.pids]


class TestEnding:
    @pytest.fixture
    def sent(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[int], int]]:
        calls: list[tuple[list[int], int]] = []
        monkeypatch.setattr(ending, "send", lambda pids, number, group=None: calls.append((pids, number)))
        return calls

    def test_ask_wait_insist(self, sent: list[tuple[list[int], int]]) -> None:
        watched = FakeTree([4_000_001])
        end = Ending("user", signal.SIGTERM, 5.0, group=4_000_001)
        assert end.advance(watched, 0.0).asked == (4_000_001,)  # type: ignore[arg-type]
        assert end.begun
        assert end.advance(watched, 4.9) == ending.Step()  # type: ignore[arg-type]
        assert end.advance(watched, 5.0).killed == (4_000_001,)  # type: ignore[arg-type]
        assert [number for _, number in sent] == [signal.SIGTERM, signal.SIGKILL]
        watched.pids.clear()
        assert end.advance(watched, 6.0).over  # type: ignore[arg-type]

    def test_what_cannot_be_killed_is_named_not_waited_for(self, sent: list[tuple[list[int], int]]) -> None:
        watched = FakeTree([4_000_001])
        end = Ending("hang", signal.SIGTERM, 0.0, group=1)
        end.advance(watched, 0.0)  # type: ignore[arg-type]
        end.advance(watched, 0.1)  # type: ignore[arg-type]
        step = end.advance(watched, 0.2 + ending.UNKILLABLE_SECONDS)  # type: ignore[arg-type]
        assert (step.over, step.left) == (True, (4_000_001,))

    def test_hurry_skips_the_grace(self, sent: list[tuple[list[int], int]]) -> None:
        watched = FakeTree([4_000_001])
        end = Ending("user", signal.SIGINT, 999.0, group=1)
        end.advance(watched, 0.0)  # type: ignore[arg-type]
        end.hurry()
        assert end.advance(watched, 0.1).killed  # type: ignore[arg-type]


class TestSignals:
    def test_signals_are_noted_in_order_and_wake_up(self) -> None:
        read, write = os.pipe()
        with SignalBox() as box:
            os.kill(os.getpid(), signal.SIGUSR1)
            os.kill(os.getpid(), signal.SIGTERM)
            before = time.monotonic()
            box.wait(5, read)
            assert time.monotonic() - before < 4
            assert box.wants_stop()
            assert box.take() == [signal.SIGUSR1, signal.SIGTERM]
            assert not box.wants_stop()
        os.close(read)
        os.close(write)

    def test_handlers_are_put_back(self) -> None:
        before = signal.getsignal(signal.SIGTERM)
        with SignalBox():
            assert signal.getsignal(signal.SIGTERM) != before
        assert signal.getsignal(signal.SIGTERM) == before

    def test_outside_the_main_thread_nothing_is_installed(self) -> None:
        before, failed = signal.getsignal(signal.SIGTERM), []

        def work() -> None:
            try:
                with SignalBox() as box:
                    failed.append(signal.getsignal(signal.SIGTERM) != before)
                    box.take()
            except ValueError:
                failed.append(True)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert failed == [False]

    def test_who_has_gone_is_no_error(self) -> None:
        send([4_000_001], signal.SIGTERM, 4_000_002)
