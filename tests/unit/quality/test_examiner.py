"""The interview over HTTP, against the demo server, with everything that can go wrong around it."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crashlab.demo.http import Connection, Request
from crashlab.errors import MissingTool
from crashlab.quality.answered import count
from crashlab.quality.attend import COMPLETE, DIED, INTERRUPTED, NEVER_READY, attend
from crashlab.quality.build import Heard, build_report
from crashlab.quality.examiner import DONE, Examiner
from crashlab.quality.generate import build_suite
from crashlab.quality.settings import Arm, Settings
from crashlab.soak.deadlines import Deadlines
from crashlab.soak.servers import ServerView

Handle = Callable[[Connection, Request, dict[str, Any]], None]
SUITE = build_suite(1, 40, ("digits",))


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def serving(handle: Handle) -> Iterator[str]:
    """A server in a thread; ``handle`` gets each request with its JSON body."""
    loop = asyncio.new_event_loop()
    port = free_port()

    def answer(connection: Connection, request: Request) -> None:
        try:
            fields = json.loads(request.body) if request.body else {}
        except ValueError:
            fields = {}
        handle(connection, request, fields)

    server = loop.run_until_complete(loop.create_server(lambda: Connection(answer), "127.0.0.1", port))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)


def reply(connection: Connection, value: Any) -> None:
    connection.answer(200, json.dumps(value).encode())


def stream(connection: Connection, text: str) -> None:
    usage = {"prompt_tokens": 40, "completion_tokens": max(1, len(text))}
    events = [
        {"choices": [{"index": 0, "text": text, "finish_reason": "stop"}]},
        {"choices": [], "usage": usage},
    ]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    connection.begin_stream()
    connection.chunk(body.encode())
    connection.end_stream()


def sensible(connection: Connection, request: Request, fields: dict[str, Any]) -> None:
    """Knows all answers, tells log-probabilities and the text of token 0."""
    known = {task.prompt: task.answer for task in SUITE.tasks}
    if request.path == "/v1/models":
        reply(connection, {"data": [{"id": "tiny", "max_model_len": 2048}]})
    elif request.path == "/detokenize":
        reply(connection, {"prompt": "<pad>"})
    elif request.path == "/tokenize":
        reply(connection, {"count": len(str(fields.get("prompt", "")).split())})
    elif fields.get("echo"):
        prompt = str(fields["prompt"])
        told = {
            "token_logprobs": [None, *[-0.5] * 9, -1.0],
            "text_offset": [0, *[len(prompt) - 1] * 9, len(prompt)],
        }
        reply(connection, {"choices": [{"text": "", "logprobs": told}]})
    elif not fields.get("stream"):
        reply(connection, {"choices": [{"text": "x"}], "usage": {"prompt_tokens": 3}})
    else:
        prompt = str(fields.get("prompt", ""))
        found = next(
            (answer for known_prompt, answer in known.items() if prompt.endswith(known_prompt)), "word"
        )
        stream(connection, f" {found}")


class Handles:
    """A server's handle as the supervisor gives it."""

    def __init__(self, *, ended: str | None = None, after: float = 0.0, interrupt: bool = False) -> None:
        self._ended, self._until, self._interrupt = ended, time.monotonic() + after, interrupt
        self.stopped = False

    def step(self, seconds: float) -> ServerView:
        time.sleep(0.02)
        over = self._ended is not None and time.monotonic() >= self._until
        return ServerView(self._ended if over else None)

    def interrupted(self) -> bool:
        return self._interrupt and time.monotonic() >= self._until

    def take_evidence(self, reason: str) -> None:
        raise AssertionError("nothing hangs here")

    def stop(self, reason: str) -> None:
        self.stopped = True


def settings(**fields: Any) -> Settings:
    return Settings(SUITE, 1, 8, ready_within=5.0)._replace(**fields)


def test_a_whole_interview_over_http() -> None:
    kept: list[dict[str, Any]] = []
    with serving(sensible) as url:
        examiner = Examiner(Arm("A", url), settings(max_length=300), kept.append)
        found = attend(examiner, Handles())
    talk = examiner.talk
    assert found.end == COMPLETE
    assert examiner.phase == DONE
    assert (talk.model, talk.context, talk.token0) == ("tiny", 2048, "<pad>")
    assert [count(one).correct for one in talk.passes] == [40, 40]
    assert [len(one) for one in talk.prose] == [12, 12]
    assert talk.likelihoods[0] == talk.likelihoods[1] == ((-0.5,) * 9,) * 44
    assert {cell.right for cell in talk.cells} == {32}
    assert talk.problem is None
    assert {row["arm"] for row in kept} == {"A"}


def test_extra_fields_and_key_are_sent_with_every_question() -> None:
    seen: list[tuple[Any, Any]] = []

    def handle(connection: Connection, request: Request, fields: dict[str, Any]) -> None:
        if fields.get("stream"):
            seen.append((fields.get("top_k"), request.headers.get(b"authorization")))
        sensible(connection, request, fields)

    with serving(handle) as url:
        arm = Arm("A", url, "tiny", "planted-key")
        examiner = Examiner(arm, settings(ladder=False, extra={"top_k": 1}), lambda row: None)
        attend(examiner, Handles())
    assert set(seen) == {(1, b"Bearer planted-key")}
    assert len(seen) == 2 * (40 + 12)


def test_nan_logits_that_the_server_counts_itself_are_garbage() -> None:
    asked = 0

    def handle(connection: Connection, request: Request, fields: dict[str, Any]) -> None:
        nonlocal asked
        asked += bool(fields.get("stream"))
        if request.path == "/metrics":
            connection.answer(200, b"# TYPE vllm:corrupted_requests counter\n"
                              b"vllm:corrupted_requests_total{engine=\"0\"} %d\n" % (asked // 10))  # fmt: skip
        else:
            sensible(connection, request, fields)

    wanted = settings(ladder=False, alone=True)
    with serving(handle) as url:
        arm = Arm("A", url)
        examiner = Examiner(arm, wanted, lambda row: None)
        attend(examiner, Handles())
    assert examiner.talk.corrupted == 10
    verdict = build_report(wanted, [Heard(arm, examiner.talk)]).verdict
    assert (verdict.kind, verdict.garbage) == ("garbage", ("nan",))
    assert "10 requests with NaN logits" in verdict.headline


def test_slow_answers_are_cut_off_and_count_as_errors() -> None:
    def handle(connection: Connection, request: Request, fields: dict[str, Any]) -> None:
        if not (fields.get("stream") and "What is" in str(fields.get("prompt", ""))):
            sensible(connection, request, fields)

    quick = Deadlines(0.5, 0.5, 0.5, 0.5)
    few = build_suite(1, 8, ("digits",))
    with serving(handle) as url:
        wanted = settings(suite=few, ladder=False, passes=1, prose=False, deadlines=quick)
        examiner = Examiner(Arm("A", url), wanted, lambda row: None)
        attend(examiner, Handles())
    counts = count(examiner.talk.passes[0])
    assert counts.error == 8
    assert counts.wrong == 0


def test_a_server_that_dies_ends_the_interview_with_what_was_answered() -> None:
    with serving(sensible) as url:
        examiner = Examiner(Arm("A", url), settings(passes=400), lambda row: None)
        found = attend(examiner, Handles(ended="the server ended by signal 9", after=1.0))
    assert found.end == DIED
    assert found.why == "the server ended by signal 9 while it was asked"
    assert count(examiner.talk.passes[0]).correct == 40
    assert not examiner.alive


def test_a_server_that_ends_before_it_answers_never_became_ready() -> None:
    examiner = Examiner(Arm("A", f"http://127.0.0.1:{free_port()}"), settings(), lambda row: None)
    found = attend(examiner, Handles(ended="the server ended with exit code 1", after=0.3))
    assert found.end == NEVER_READY
    assert "before it answered" in (found.why or "")


def test_nobody_listening_is_never_ready_after_the_time_given() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    examiner = Examiner(Arm("A", url), settings(ready_within=0.6), lambda row: None)
    found = attend(examiner, Handles())
    assert found.end == NEVER_READY
    assert "nobody listens" in (found.why or "")


def test_an_interrupt_stops_at_once_and_the_rest_counts_as_not_asked() -> None:
    with serving(sensible) as url:
        examiner = Examiner(Arm("A", url), settings(passes=400), lambda row: None)
        found = attend(examiner, Handles(interrupt=True, after=1.0))
    assert found.end == INTERRUPTED
    assert not examiner.alive


def test_a_missing_lm_eval_is_our_error_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with serving(sensible) as url:
        examiner = Examiner(
            Arm("A", url), settings(lm_eval=("gsm8k",), limit=3), lambda row: None, folder=str(tmp_path)
        )
        attend(examiner, Handles())
    assert isinstance(examiner.error, MissingTool)
