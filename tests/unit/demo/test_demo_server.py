"""The simulated server as a process: protocol, metrics, and each way to end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from crashlab.demo import recorded
from crashlab.demo.metrics import FIELDS, render
from crashlab.demo.options import parse
from crashlab.soak.answer import Answer
from crashlab.soak.metrics import parse_metrics

ROOT = Path(__file__).resolve().parents[3]


class Demo:
    """A running server."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process, self.port, self.log = process, port, log

    def call(self, path: str, body: dict[str, Any] | None = None, timeout: float = 20.0) -> tuple[int, bytes]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def generate(self, prompt: str, tokens: int, **fields: Any) -> Answer:
        body = {"prompt": prompt, "max_tokens": tokens, "stream": True, "temperature": 0, **fields}
        answer = Answer()
        answer.feed(self.call("/v1/completions", body)[1])
        answer.end()
        return answer

    @property
    def engine(self) -> psutil.Process:
        return psutil.Process(self.process.pid).children()[0]

    @property
    def said(self) -> str:
        return self.log.read_text()


@contextmanager
def demo(
    folder: Path, *arguments: str, environment: dict[str, str] | None = None, patience: float = 60.0
) -> Iterator[Demo]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "server.log"
    base = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_")}
    with log.open("wb") as file:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "crashlab.demo",
                "--port",
                str(port),
                "--startup",
                "0",
                "--step-ms",
                "2",
                *arguments,
            ],
            cwd=ROOT,
            env={**base, **(environment or {})},
            stderr=file,
        )
        one = Demo(process, port, log)
        try:
            deadline = time.monotonic() + patience
            while (
                time.monotonic() < deadline and process.poll() is None and "Uvicorn running" not in one.said
            ):
                time.sleep(0.02)
            yield one
        finally:
            for child in psutil.Process(process.pid).children() if process.poll() is None else []:
                child.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def test_it_speaks_completions_chat_models_tokenize_health_and_metrics(tmp_path: Path) -> None:
    with demo(tmp_path) as server:
        answer = server.generate("one two three", 12)
        assert (answer.error, answer.finish, answer.chunks) == (None, "length", 12)
        usage = server.generate("one two three", 12, stream_options={"include_usage": True})
        assert (usage.usage, usage.prompt_tokens) == (12, 3)
        assert usage.text == answer.text, "greedy answers are the same each time"
        assert server.generate("one two three", 12, temperature=1).text != answer.text
        assert server.generate("another prompt", 12).text != answer.text
        chat = {"messages": [{"role": "user", "content": "hi you"}], "max_tokens": 3}
        whole = json.loads(server.call("/v1/chat/completions", chat)[1])
        assert len(whole["choices"][0]["message"]["content"].split()) == 3
        assert whole["usage"]["prompt_tokens"] == 2
        assert json.loads(server.call("/v1/models")[1])["data"][0]["max_model_len"] == 4096
        assert json.loads(server.call("/tokenize", {"prompt": "a b c"})[1])["count"] == 3
        assert server.call("/health")[0] == 200
        assert server.call("/nothing")[0] == 404
        counters = parse_metrics(server.call("/metrics")[1].decode())
        assert counters.get("generation_tokens") == 12 * 4 + 3
        assert counters.finished["length"] == 5
        assert counters.asleep is False


@pytest.mark.parametrize(
    "body", [{}, {"prompt": ""}, {"prompt": "x", "max_tokens": -4}, {"prompt": "x " * 9000}]
)
def test_requests_it_cannot_serve_are_refused(tmp_path: Path, body: dict[str, Any]) -> None:
    with demo(tmp_path) as server:
        assert server.call("/v1/completions", body)[0] == 400


def test_a_client_that_hangs_up_frees_its_place(tmp_path: Path) -> None:
    with demo(tmp_path, "--step-ms", "20") as server:
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            body = json.dumps({"prompt": "x", "max_tokens": 4000, "stream": True}).encode()
            head = f"POST /v1/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            client.sendall(head + body)
            assert client.recv(100).startswith(b"HTTP/1.1 200")
        deadline = time.monotonic() + 60
        server.generate("y", 2)
        while (counters := parse_metrics(server.call("/metrics")[1].decode())).finished.get("abort") != 1:
            assert time.monotonic() < deadline
        server.generate("y", 2)
        assert counters.finished["length"] >= 1


def test_a_fault_leaves_lines_a_dump_a_misleading_traceback_and_exit_code_0(tmp_path: Path) -> None:
    pattern = str(tmp_path / "%h.%p.%t.nvcudmp")
    with demo(
        tmp_path, "--scenario", "fault", "--after", "20", environment={"CUDA_COREDUMP_FILE": pattern}
    ) as server:
        engine = server.engine.pid
        answer = server.generate("x", 400)
        assert answer.error == "stream-error"
        assert server.process.wait(30) == 0
    dumps = list(tmp_path.glob(f"*.{engine}.*.nvcudmp"))
    assert [d.read_bytes() for d in dumps] == [recorded.dump(recorded.FAULT)]
    said = server.said
    order = [
        "Starting GPU coredump generation",
        "CUDBG_EXCEPTION_WARP_OUT_OF_RANGE_ADDRESS",
        f"Writing ELF file to {dumps[0]}",
        "All done",
        f"(EngineCore pid={engine}) ERROR",
        "copy_event.synchronize()",
        "EngineDeadError",
        "Finished server process",
    ]
    places = [said.index(words) for words in order]
    assert places == sorted(places)


def test_a_stall_keeps_health_at_200_and_freezes_the_metrics(tmp_path: Path) -> None:
    with demo(tmp_path, "--scenario", "stall", "--after", "10") as server:
        with pytest.raises(OSError, match="timed out"):
            server.call("/v1/completions", {"prompt": "x", "max_tokens": 100}, timeout=1.5)
        first = server.call("/metrics")[1]
        assert server.call("/health")[0] == 200
        assert server.call("/v1/models")[0] == 200
        time.sleep(0.3)
        second = parse_metrics(server.call("/metrics")[1].decode())
        assert second.primary == parse_metrics(first.decode()).primary


def test_a_stalled_engine_writes_its_dump_when_asked_through_its_pipe(tmp_path: Path) -> None:
    environment = {
        "CUDA_ENABLE_USER_TRIGGERED_COREDUMP": "1",
        "CUDA_COREDUMP_PIPE": str(tmp_path / "pipe.%p"),
        "CUDA_COREDUMP_FILE": str(tmp_path / "dump.%p"),
    }
    with demo(tmp_path, "--scenario", "stall", "--after", "5", environment=environment) as server:
        engine = server.engine.pid
        with pytest.raises(OSError, match="timed out"):
            server.call("/v1/completions", {"prompt": "x", "max_tokens": 100}, timeout=1.0)
        (tmp_path / f"pipe.{engine}").open("wb").write(b"\0" * 100)
        assert server.process.wait(30) == 0
    assert (tmp_path / f"dump.{engine}").read_bytes() == recorded.dump(recorded.STALL)


def test_garbage_is_one_token_for_everybody(tmp_path: Path) -> None:
    with demo(tmp_path, "--scenario", "garbage", "--after", "5") as server:
        assert "!" not in server.generate("x", 4).text
        assert server.generate("y", 40).text.endswith("!" * 30)


def test_an_engine_that_is_killed_ends_the_server_with_exit_code_0(tmp_path: Path) -> None:
    with demo(tmp_path, "--scenario", "exit0", "--after", "5") as server:
        assert server.generate("x", 100).error == "stream-error"
        assert server.process.wait(30) == 0
    assert "coredump" not in server.said


def test_a_slow_prefill_moves_only_the_cache(tmp_path: Path) -> None:
    with demo(tmp_path, "--scenario", "slow-prefill", "--after", "0", "--slow-seconds", "1.5") as server:
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            body = json.dumps({"prompt": "x y z", "max_tokens": 4}).encode()
            client.sendall(
                f"POST /v1/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
            )
            time.sleep(0.4)
            one = parse_metrics(server.call("/metrics")[1].decode())
            time.sleep(0.4)
            other = parse_metrics(server.call("/metrics")[1].decode())
            assert client.recv(100).startswith(b"HTTP/1.1 200")
        assert time.monotonic() - began >= 1.5
        assert one.primary == other.primary
        assert one.secondary != other.secondary


def test_a_server_that_is_never_ready_listens_nowhere_and_ends_on_request(tmp_path: Path) -> None:
    with demo(tmp_path, "--scenario", "never-ready", patience=4.0) as server:
        pass
    assert server.process.returncode == 0
    assert "Uvicorn" not in server.said


def test_what_ships_is_small_and_whole() -> None:
    folder = Path(recorded.__file__).parent / "data"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 300_000
    assert recorded.dump(recorded.FAULT)[:4] == recorded.dump(recorded.STALL)[:4] == b"\x7fELF"
    for name in ("startup", "traceback", "engine-dead", "fault-driver", "stall-driver"):
        text = recorded.text(name)
        assert text.strip()
        assert "/root" not in text
        assert "/home" not in text


def test_metrics_have_every_field_once() -> None:
    text = render([1.0] * len(FIELDS), {"stop": 2}, "m")
    for name, _ in FIELDS:
        assert text.count(f"\n{name}{{") == 1


def test_options_have_the_defaults_of_their_type() -> None:
    options = parse(["--scenario", "stall", "--after", "5", "--max-model-len", "99"])
    assert (options.scenario, options.after, options.context, options.quiet) == ("stall", 5, 99, False)
