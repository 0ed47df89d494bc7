"""The simulated engine core: a process of its own, as in vLLM, which can be stopped, killed and crash.

``python -m crashlab.demo.engine CONFIG``. It reads one JSON object a line from standard input
(``add``, ``cancel``) and writes one for each step to descriptor ``out``.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any

from crashlab.demo import planted, recorded
from crashlab.soak.words import VOCABULARY

GARBAGE = -1
"""The token that NaN logits lead to."""
_KV_TOKENS = 400_000


class Sequence:
    """One request in the engine."""

    __slots__ = ("done", "left", "prompt", "rng", "to_prefill")

    def __init__(self, prompt: int, most: int, seed: int | None) -> None:
        self.prompt = prompt
        self.to_prefill = prompt
        self.left = most
        self.done = 0
        self.rng = random.Random(seed)  # None: sampled anew each time

    def token(self) -> int:
        """The next token: a word of the vocabulary."""
        return self.rng.randrange(len(VOCABULARY))


class Engine:
    """Continuous batching with chunked prefill, without a model."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.waiting: dict[int, Sequence] = {}
        self.running: dict[int, Sequence] = {}
        self.steps = self.stirred = 0
        self.prompt_tokens = self.generated = self.queries = 0
        self.slow_until: float | None = None
        self.been_slow = False

    def take(self, message: dict[str, Any]) -> None:
        """A message of the API server."""
        if "add" in message:
            number, prompt, most, seed = message["add"]
            self.waiting[number] = Sequence(prompt, most, seed)
            self.queries += prompt
        elif "cancel" in message:
            self.waiting.pop(message["cancel"], None)
            self.running.pop(message["cancel"], None)

    def step(self, garbage: bool) -> list[list[int]]:
        """One step: ``[request, token, finished]`` for each token made."""
        self.steps += 1
        while self.waiting and len(self.running) < self.config["max_num_seqs"]:
            number = next(iter(self.waiting))
            self.running[number] = self.waiting.pop(number)
        budget = self.config["prefill"]
        out = []
        for number, one in list(self.running.items()):
            if one.to_prefill:
                part = min(budget, one.to_prefill)
                one.to_prefill -= part
                budget -= part
                if one.to_prefill:
                    continue
                self.prompt_tokens += one.prompt
            one.done += 1
            one.left -= 1
            self.generated += 1
            out.append([number, GARBAGE if garbage else one.token(), int(one.left <= 0)])
            if one.left <= 0:
                del self.running[number]
        return out

    def metrics(self) -> list[float]:
        """In the order of :data:`crashlab.demo.metrics.FIELDS`."""
        used = sum(one.prompt - one.to_prefill + one.done for one in self.running.values())
        if self.slow_until is not None:
            used += self.stirred
        return [
            len(self.running),
            len(self.waiting),
            used / _KV_TOKENS,
            self.queries,
            self.prompt_tokens,
            self.generated,
            self.steps,
        ]


def fault(pids: dict[str, int]) -> None:
    """Die as the driver lets a faulting process die: lines, dump, abort. Does not return."""
    file = recorded.expand(os.environ.get("CUDA_COREDUMP_FILE", "core_%t_%h_%p.nvcudmp"))
    dump_gpu(recorded.FAULT, file)
    for line in recorded.log_lines("traceback", pids):
        say(line)
    abort()


def dump_gpu(name: str, file: str) -> None:
    """Write a recorded dump in the way the driver does: in pieces, announced on stderr."""
    content = recorded.dump(name)
    for line in recorded.driver_lines(name, file):
        say(line)
        if "Writing out device table" in line:
            with suppress(OSError), open(file, "wb") as target:
                for at in range(0, len(content), 1 << 18):
                    target.write(content[at : at + (1 << 18)])
                    target.flush()
                    time.sleep(0.05)


def abort() -> None:
    """SIGABRT without a core file of the host: the machine's core_pattern is not ours to exercise."""
    import resource

    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGABRT, signal.SIG_DFL)
    os.abort()


def say(line: str) -> None:
    """One line on stderr."""
    with suppress(OSError):
        os.write(2, line.encode() + b"\n")


def make_pipe() -> int | None:
    """The pipe through which a dump can be asked for, as the driver makes it; its read end."""
    pattern = os.environ.get("CUDA_COREDUMP_PIPE")
    if not pattern or os.environ.get("CUDA_ENABLE_USER_TRIGGERED_COREDUMP", "0") == "0":
        return None
    path = recorded.expand(pattern)
    try:
        os.mkfifo(path, 0o600)
        return os.open(path, os.O_RDWR | os.O_NONBLOCK)
    except OSError:
        return None


def stall(pipe: int | None) -> None:
    """Spin on the GPU for ever; a dump that is asked for is written, and ends the process."""
    while True:
        ready = select.select([pipe] if pipe is not None else [], [], [], 3600.0)[0]
        if ready:
            file = os.environ.get("CUDA_COREDUMP_FILE", "core_%t_%h_%p.nvcudmp")
            dump_gpu(recorded.STALL, recorded.expand(file))
            abort()


def run(config: dict[str, Any]) -> None:
    """The engine's loop, until its input ends or its scenario does."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the API server ends it
    engine, out, pipe = Engine(config), config["out"], make_pipe()
    scenario, after = config["scenario"], config["after"]
    pids = {"EngineCore": os.getpid(), "APIServer": os.getppid()}
    chance = planted.chance(config)
    dice = random.Random()
    buffer = b""
    os.set_blocking(0, False)
    due = time.monotonic()
    while True:
        busy = bool(engine.waiting or engine.running)
        wait = max(0.0, due - time.monotonic()) if busy else None
        if select.select([0], [], [], wait)[0]:
            piece = os.read(0, 1 << 20)
            if not piece:
                return
            *lines, buffer = (buffer + piece).split(b"\n")
            for line in lines:
                engine.take(json.loads(line))
            if not busy:
                due = time.monotonic()
        if time.monotonic() < due or not (engine.waiting or engine.running):
            continue
        due = max(due + config["step_ms"] / 1000, time.monotonic() - 1.0)
        begun = engine.steps >= after
        if (begun and scenario == "fault") or (chance and dice.random() < chance):
            fault(pids)
        elif begun and scenario == "stall":
            stall(pipe)
        elif begun and scenario == "exit0":
            os.kill(os.getpid(), signal.SIGKILL)
        if begun and scenario == "slow-prefill" and _still_prefilling(engine):
            tokens: list[list[int]] = []
            engine.stirred += 1
        else:
            tokens = engine.step(begun and scenario == "garbage")
        told = json.dumps({"t": tokens, "m": engine.metrics()}, separators=(",", ":"))
        try:
            _write(out, told.encode() + b"\n")
        except OSError:
            return


def _still_prefilling(engine: Engine) -> bool:
    """For a while only the cache's use grows, and no token comes."""
    now = time.monotonic()
    if engine.slow_until is None and not engine.been_slow:
        engine.slow_until, engine.been_slow = now + engine.config["slow_seconds"], True
    if engine.slow_until is not None and now >= engine.slow_until:
        engine.slow_until = None
    return engine.slow_until is not None


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
