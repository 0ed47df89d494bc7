"""The simulated API server: OpenAI's completions and chat, /health, /v1/models, /tokenize, /metrics.

Its engine is a process of its own (:mod:`crashlab.demo.engine`). When that dies, the server tells what
vLLM tells, answers 500, and ends with exit code 0. When it hangs, /health goes on to say 200.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from contextlib import suppress
from typing import Any

from crashlab.demo import planted, recorded
from crashlab.demo.answers import Answers, Flaws, load_known
from crashlab.demo.engine import GARBAGE, say
from crashlab.demo.http import Connection, Request
from crashlab.demo.metrics import FIELDS, render
from crashlab.demo.options import DemoOptions
from crashlab.demo.stream import Stream
from crashlab.soak.words import VOCABULARY

MODEL = "demo/recorded-h200"
_LINGER = 0.6
_STATISTICS = 2.0


class Server:
    """Requests in, tokens out. ``engine`` is the child process."""

    def __init__(self, options: DemoOptions) -> None:
        self.options = options
        self.dead = False
        self.ended = asyncio.Event()
        self.values: list[float] = [0.0] * len(FIELDS)
        self.finished = {"stop": 0, "length": 0, "abort": 0}
        self.streams: dict[int, Stream] = {}
        self._answers = _answers(options)
        self._planned: dict[int, tuple[str, ...]] = {}
        self.number = 0
        self.served = 0
        self._log = _open_log(options.request_log)
        self._buffer = b""
        self._last: list[float] = self.values
        self.pids = {"APIServer": os.getpid()}

    async def run(self) -> None:
        """Start up, serve until the engine is gone or a signal comes."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.ended.set)
        engine = self._start_engine(loop)
        self.pids["EngineCore"] = engine.pid
        try:
            await self._serve(loop)
        finally:
            with suppress(OSError):
                engine.kill()
            engine.wait()

    async def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        options = self.options
        lines = list(recorded.log_lines("startup", self.pids))
        if options.bug_every:
            lines = planted.startup(lines, options, os.environ, self.pids)
        for line in lines if not options.quiet else ():
            say(line)
            await asyncio.sleep(options.startup / len(lines))
        if options.scenario == "never-ready":
            await self.ended.wait()
            return
        server = await loop.create_server(
            lambda: Connection(self.handle), options.host, options.port, backlog=1024
        )
        self._say(f"INFO:     Started server process [{os.getpid()}]")
        self._say("INFO:     Application startup complete.")
        self._say(f"INFO:     Uvicorn running on http://{options.host}:{options.port} (Press CTRL+C to quit)")
        statistics = asyncio.ensure_future(self._statistics())
        await self.ended.wait()
        statistics.cancel()
        if self.dead:
            await asyncio.sleep(_LINGER)  # the server still answers 500 for a moment, as the real one does
        self._say("INFO:     Shutting down")
        server.close()
        self._say(f"INFO:     Finished server process [{os.getpid()}]")

    def handle(self, connection: Connection, request: Request) -> None:
        """One request."""
        route = (request.method, request.path)
        if route in (("POST", "/v1/completions"), ("POST", "/v1/chat/completions")):
            self._generate(connection, request)
        elif route == ("GET", "/metrics"):
            connection.answer(
                200, render(self.values, self.finished, MODEL).encode(), "text/plain; version=0.0.4"
            )
        elif route in (("GET", "/health"), ("GET", "/ping")):
            connection.answer(503 if self.dead else 200, b"")
        elif route == ("GET", "/v1/models"):
            row = {
                "id": MODEL,
                "object": "model",
                "owned_by": "crashlab",
                "max_model_len": self.options.context,
            }
            connection.answer(200, json.dumps({"object": "list", "data": [row]}).encode())
        elif route == ("POST", "/tokenize"):
            fields = _fields(request)
            count = len(str(fields.get("prompt", "")).split())
            connection.answer(
                200, json.dumps({"count": count, "max_model_len": self.options.context}).encode()
            )
        else:
            connection.answer(404, b'{"error": {"message": "not found"}}')

    def _generate(self, connection: Connection, request: Request) -> None:
        fields = _fields(request)
        chat = request.path.endswith("chat/completions")
        prompt = _prompt(fields, chat)
        most = fields.get("max_tokens") or fields.get("max_completion_tokens") or 16
        tokens = max(1, len(prompt.split()))
        if self.dead:
            self._refuse(
                connection, request, 500, "EngineCore encountered an issue. See stack trace (above)."
            )
            return
        if not prompt or not isinstance(most, int) or most < 1:
            self._refuse(connection, request, 400, "a prompt and a positive max_tokens are needed")
            return
        if tokens + most > self.options.context:
            self._refuse(connection, request, 400, f"the context holds {self.options.context} tokens")
            return
        self.number += 1
        if self._answers is not None:
            pieces = self._answers.plan(prompt, tokens, len(self.streams) + 1).pieces
            if pieces is None:
                connection.close()
                return
            self._planned[self.number] = pieces
            most = min(most, len(pieces))
        stream = Stream(
            self.number, connection, request, chat=chat, prompt_tokens=tokens, model=MODEL, fields=fields
        )
        self.streams[self.number] = stream
        number = self.number
        connection.on_close = lambda: self._hung_up(number)
        greedy = fields.get("temperature", 1.0) == 0
        seed = zlib.crc32(prompt.encode("utf-8", "replace")) if greedy else None
        self._to_engine({"add": [number, tokens, most, seed]})
        stream.begin()

    def _refuse(self, connection: Connection, request: Request, status: int, why: str) -> None:
        self._access(connection.peer, request.path, status)
        connection.answer(status, json.dumps({"error": {"message": why, "code": status}}).encode())

    def _hung_up(self, number: int) -> None:
        self._planned.pop(number, None)
        if self.streams.pop(number, None) is not None:
            self.finished["abort"] += 1
            self._to_engine({"cancel": number})

    def _start_engine(self, loop: asyncio.AbstractEventLoop) -> subprocess.Popen[bytes]:
        options = self.options
        read, write = os.pipe()
        config = {**options._asdict(), "out": write}
        engine = subprocess.Popen(
            [sys.executable, "-m", "crashlab.demo.engine", json.dumps(config)],
            stdin=subprocess.PIPE,
            pass_fds=(write,),
        )
        os.close(write)
        os.set_blocking(read, False)
        assert engine.stdin is not None
        self._engine_input = engine.stdin
        loop.add_reader(read, self._from_engine, read)
        return engine

    def _to_engine(self, message: dict[str, Any]) -> None:
        with suppress(OSError):
            self._engine_input.write(json.dumps(message).encode() + b"\n")
            self._engine_input.flush()

    def _from_engine(self, descriptor: int) -> None:
        try:
            piece = os.read(descriptor, 1 << 20)
        except BlockingIOError:
            return
        if not piece:
            asyncio.get_running_loop().remove_reader(descriptor)
            self._engine_died()
            return
        *lines, self._buffer = (self._buffer + piece).split(b"\n")
        for line in lines:
            message = json.loads(line)
            self.values = message["m"]
            for number, token, last in message["t"]:
                self._token(number, "!" if token == GARBAGE else VOCABULARY[token], bool(last))

    def _token(self, number: int, word: str, last: bool) -> None:
        stream = self.streams.get(number)
        if stream is None:
            return
        planned = self._planned.get(number)
        if planned is not None and word != "!":
            stream.token(planned[min(stream.tokens, len(planned) - 1)])
        else:
            stream.token(word if word == "!" else f" {word}")
        if last:
            del self.streams[number]
            self._planned.pop(number, None)
            reason = "stop" if planned is not None and stream.tokens >= len(planned) else "length"
            self.finished[reason] += 1
            self.served += 1
            stream.end(reason)
            self._access(stream.peer, stream.path, 200)
            if self._log >= 0:
                os.write(self._log, stream.log_line())

    def _engine_died(self) -> None:
        """What vLLM does: say EngineDeadError, break the streams, answer 500, end with exit code 0."""
        self.dead = True
        if not self.ended.is_set():
            for line in recorded.log_lines("engine-dead", self.pids):
                say(line)
        for stream in list(self.streams.values()):
            stream.fail("EngineCore encountered an issue. See stack trace (above) for the root cause.")
            self._access(stream.peer, stream.path, 500)
        self.streams.clear()
        self.ended.set()

    async def _statistics(self) -> None:
        """The engine's statistics line; in a hang it goes on, with zeros."""
        while True:
            await asyncio.sleep(_STATISTICS)
            old, self._last = self._last, list(self.values)
            prompt, generated = ((self._last[i] - old[i]) / _STATISTICS for i in (4, 5))
            self._say(
                f"INFO {time.strftime('%m-%d %H:%M:%S')} [loggers.py:273] Engine 000: Avg prompt throughput: "
                f"{prompt:.1f} tokens/s, Avg generation throughput: {generated:.1f} tokens/s, "
                f"Running: {self.values[0]:.0f} reqs, Waiting: {self.values[1]:.0f} reqs, "
                f"GPU KV cache usage: {self.values[2] * 100:.1f}%, Prefix cache hit rate: 0.0%"
            )

    def _access(self, peer: str, path: str, status: int) -> None:
        word = {200: "OK", 400: "Bad Request", 500: "Internal Server Error"}.get(status, "")
        if not self.options.quiet:
            self._say(f'INFO:     {peer} - "POST {path} HTTP/1.1" {status} {word}')

    def _say(self, line: str) -> None:
        say(f"(APIServer pid={os.getpid()}) {line}")


def _answers(options: DemoOptions) -> Answers | None:
    """None unless the server is to know something, or to have a flaw."""
    o = options
    flaws = Flaws(
        o.accuracy,
        o.noise,
        o.drop,
        o.degrade,
        o.degrade_share,
        o.degrade_from_tokens,
        o.degrade_from_batch,
    )
    if o.answers is None and flaws == Flaws():
        return None
    return Answers(load_known(o.answers) if o.answers else {}, flaws)


def _open_log(path: str | None) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) if path else -1


def _fields(request: Request) -> dict[str, Any]:
    try:
        value = json.loads(request.body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _prompt(fields: dict[str, Any], chat: bool) -> str:
    if not chat:
        prompt = fields.get("prompt")
        return prompt if isinstance(prompt, str) else ""
    messages = fields.get("messages")
    rows = messages if isinstance(messages, list) else []
    return " ".join(str(row.get("content", "")) for row in rows if isinstance(row, dict))


def serve(options: DemoOptions) -> int:
    """Run the server to its end; its exit code, which is 0 even when its engine died."""

    async def main() -> None:
        await Server(options).run()

    asyncio.run(main())
    return 0
