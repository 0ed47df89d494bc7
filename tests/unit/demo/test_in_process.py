"""The simulated server and its engine inside the test's process, where each part can be reached."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.demo import engine as engines
from crashlab.demo import recorded
from crashlab.demo.engine import GARBAGE, Engine
from crashlab.demo.http import Connection, Request
from crashlab.demo.options import DemoOptions
from crashlab.demo.server import Server, serve
from crashlab.soak.words import VOCABULARY

CONFIG = {**DemoOptions()._asdict(), "max_num_seqs": 2, "prefill": 100}


class Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.closed = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("192.0.2.1", 1234) if name == "peername" else default

    def write(self, data: Any) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def connection() -> tuple[Connection, Transport, list[Request]]:
    seen: list[Request] = []

    def handle(one: Connection, request: Request) -> None:
        seen.append(request)
        one.answer(200, b"ok", "text/plain")

    one, transport = Connection(handle), Transport()
    one.connection_made(transport)
    return one, transport, seen


def test_requests_are_read_from_any_pieces_and_kept_apart() -> None:
    one, transport, seen = connection()
    raw = b"POST /a?x=1 HTTP/1.1\r\nContent-Length: 5\r\nX-Request-Id: 7\r\n\r\nhelloGET /b HTTP/1.1\r\n\r\n"
    for at in range(len(raw)):
        one.data_received(raw[at : at + 1])
    assert [(r.method, r.path, r.body) for r in seen] == [("POST", "/a", b"hello"), ("GET", "/b", b"")]
    assert seen[0].headers[b"x-request-id"] == b"7"
    assert transport.sent.count(b"HTTP/1.1 200 OK") == 2


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: " + b"x" * 70_000,
    ],
)
def test_what_is_no_request_ends_the_connection(raw: bytes) -> None:
    one, transport, seen = connection()
    one.data_received(raw)
    assert transport.closed
    assert seen == []


@settings(deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=5))
def test_no_bytes_break_the_protocol(pieces: list[bytes]) -> None:
    one, _, _ = connection()
    for piece in pieces:
        one.data_received(piece)
    one.connection_lost(None)


def test_streams_are_chunked_and_a_closed_connection_takes_nothing() -> None:
    one, transport, _ = connection()
    one.begin_stream()
    one.chunk(b"data: x\n\n")
    one.end_stream()
    assert transport.sent.endswith(b"9\r\ndata: x\n\n\r\n0\r\n\r\n")
    size = len(transport.sent)
    one.close()
    one.chunk(b"more")
    assert len(transport.sent) == size


def test_the_engine_batches_prefills_in_chunks_and_counts() -> None:
    engine = Engine(CONFIG)
    for number, prompt, most in ((1, 50, 2), (2, 120, 1), (3, 10, 1)):
        engine.take({"add": [number, prompt, most, 5]})
    first = engine.step(False)
    assert [row[0] for row in first] == [1], "the second prompt is only partly read, the third waits"
    assert engine.metrics()[:2] == [2, 1]
    second = engine.step(False)
    assert [(row[0], row[2]) for row in second] == [(1, 1), (2, 1)]
    assert [row[0] for row in engine.step(True)] == [3]
    assert engine.metrics()[4:] == [180, 4, 3]
    assert engine.metrics()[:2] == [0, 0]


def test_the_same_seed_gives_the_same_tokens_and_garbage_is_garbage() -> None:
    def tokens(seed: int | None) -> list[int]:
        engine = Engine(CONFIG)
        engine.take({"add": [1, 1, 20, seed]})
        return [engine.step(False)[0][1] for _ in range(20)]

    assert tokens(3) == tokens(3)
    assert tokens(3) != tokens(4)
    assert all(0 <= token < len(VOCABULARY) for token in tokens(None))
    engine = Engine(CONFIG)
    engine.take({"add": [1, 1, 1, 1]})
    assert engine.step(True)[0][1] == GARBAGE


def test_a_cancelled_request_is_forgotten_wherever_it_is() -> None:
    engine = Engine(CONFIG)
    for number in (1, 2, 3):
        engine.take({"add": [number, 1, 50, 1]})
    engine.step(False)
    for number in (1, 3, 99):
        engine.take({"cancel": number})
    assert engine.metrics()[:2] == [1, 0]


def test_the_recorded_fault_is_played_lines_dump_and_traceback_then_abort(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(engines, "say", said.append)
    monkeypatch.setattr(engines, "abort", lambda: said.append("ABORT"))
    monkeypatch.setenv("CUDA_COREDUMP_FILE", str(tmp_path / "%h.%p.nvcudmp"))
    engines.fault({"EngineCore": 7, "APIServer": 8})
    file = Path(recorded.expand(str(tmp_path / "%h.%p.nvcudmp")))
    assert file.read_bytes() == recorded.dump(recorded.FAULT)
    assert said[-1] == "ABORT"
    assert any("(EngineCore pid=7) ERROR" in line for line in said)
    assert str(file) in "\n".join(said)


def test_a_folder_that_is_not_there_loses_the_dump_and_not_the_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(engines, "say", said.append)
    engines.dump_gpu(recorded.STALL, str(tmp_path / "no" / "folder"))
    assert "All done" in said[-1]


def test_a_pipe_is_made_only_when_it_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_COREDUMP_PIPE", raising=False)
    assert engines.make_pipe() is None
    monkeypatch.setenv("CUDA_COREDUMP_PIPE", str(tmp_path / "pipe"))
    assert engines.make_pipe() is None
    monkeypatch.setenv("CUDA_ENABLE_USER_TRIGGERED_COREDUMP", "1")
    descriptor = engines.make_pipe()
    assert descriptor is not None
    os.close(descriptor)
    assert engines.make_pipe() is None, "it is there already"


def run_engine(
    monkeypatch: pytest.MonkeyPatch, messages: list[dict[str, Any]], **config: Any
) -> list[dict[str, Any]]:
    """The engine's loop over a pipe that ends after the messages were answered."""
    read, write = os.pipe()
    out_read, out_write = os.pipe()
    saved = os.dup(0)
    os.dup2(read, 0)
    os.write(write, b"".join(json.dumps(m).encode() + b"\n" for m in messages))
    threading.Timer(1.0, os.close, (write,)).start()
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    try:
        engines.run({**CONFIG, "step_ms": 1.0, "out": out_write, **config})
    finally:
        os.dup2(saved, 0)
        os.set_blocking(0, True)
        for descriptor in (saved, read, out_write):
            os.close(descriptor)
    with os.fdopen(out_read) as file:
        return [json.loads(line) for line in file]


def test_the_loop_answers_each_step_until_its_input_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = run_engine(monkeypatch, [{"add": [1, 3, 5, 1]}], scenario="none")
    assert [step["t"][0][2] for step in steps] == [0, 0, 0, 0, 1]
    assert steps[-1]["m"][5:] == [5, 5]


def test_a_slow_prefill_moves_the_cache_and_then_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = run_engine(
        monkeypatch, [{"add": [1, 3, 4, 1]}], scenario="slow-prefill", after=0, slow_seconds=0.3
    )
    empty = [step for step in steps if not step["t"]]
    assert len(empty) > 5
    assert len({step["m"][2] for step in empty}) == len(empty)
    assert sum(len(step["t"]) for step in steps) == 4


def test_a_scenario_begins_after_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    def dead(name: str) -> Any:
        def call(*_: object) -> None:
            called.append(name)
            raise SystemExit

        return call

    monkeypatch.setattr(engines, "fault", dead("fault"))
    monkeypatch.setattr(engines, "stall", dead("stall"))
    monkeypatch.setattr(os, "kill", dead("exit0"))
    for scenario in ("fault", "stall", "exit0"):
        with pytest.raises(SystemExit):
            run_engine(monkeypatch, [{"add": [1, 3, 50, 1]}], scenario=scenario, after=3)
    assert called == ["fault", "stall", "exit0"]


def test_the_server_runs_in_a_loop_of_ours_and_logs_first_tokens(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path / "requests.jsonl"
    options = DemoOptions(port=port, step_ms=2.0, startup=0.0, request_log=str(log), quiet=True)

    async def call(raw: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(raw)
        data = b""
        while b"[DONE]" not in data and b"\r\n\r\n" not in data.partition(b"\r\n\r\n")[2]:
            piece = await asyncio.wait_for(reader.read(65536), 10)
            data += piece
            if not piece or b"Content-Length" in data:
                break
        writer.close()
        return data

    def post(path: str, **fields: Any) -> bytes:
        body = json.dumps(fields).encode()
        head = f"POST {path} HTTP/1.1\r\nX-Request-Id: me\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    async def main() -> list[bytes]:
        server = Server(options)
        task = asyncio.ensure_future(server.run())
        for _ in range(200):
            await asyncio.sleep(0.05)
            if server.pids.get("EngineCore") and server.options.port:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    continue
                writer.close()
                break
        answers = [
            await call(post("/v1/completions", prompt="a b", max_tokens=3, stream=True)),
            await call(post("/v1/chat/completions", messages=[{"content": "x"}], max_tokens=2)),
            await call(post("/tokenize", prompt="a b c")),
            await call(post("/v1/completions", prompt="")),
            await call(b"POST /v1/completions HTTP/1.1\r\nContent-Length: 1\r\n\r\n{"),
            await call(b"GET /metrics HTTP/1.1\r\n\r\n"),
            await call(b"GET /health HTTP/1.1\r\n\r\n"),
            await call(b"GET /v1/models HTTP/1.1\r\n\r\n"),
            await call(b"GET /else HTTP/1.1\r\n\r\n"),
        ]
        server._engine_died()
        answers.append(await call(post("/v1/completions", prompt="a", max_tokens=3)))
        await asyncio.wait_for(task, 20)
        return answers

    answers = asyncio.run(main())
    status = [int(answer.split(b" ")[1]) for answer in answers]
    assert status == [200, 200, 200, 400, 400, 200, 200, 200, 404, 500]
    row = json.loads(log.read_text().splitlines()[0])
    assert row["id"] == "me"
    assert row["received"] <= row["first"]


def test_never_ready_ends_on_a_signal_with_0() -> None:
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGTERM)).start()
    assert serve(DemoOptions(port=0, scenario="never-ready", startup=0.0, quiet=True)) == 0
