"""lm-evaluation-harness as another way to ask: driven when it is installed, and its result files read.

It writes ``samples_TASK_TIME.jsonl`` (``--log_samples``) with one line for each question and filter, and
``results_TIME.json``. One line has ``doc_id``, ``filter`` (strict-match, flexible-extract), ``resps`` and
``exact_match``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from crashlab.errors import CrashlabError, MissingTool, ToolFailed
from crashlab.quality.answered import Answered
from crashlab.quality.degenerate import kinds_of
from crashlab.quality.jsonlines import read_objects, read_text
from crashlab.quality.scoring import CORRECT, INVALID, WRONG
from crashlab.rundir.lines import finite
from crashlab.soak.client import Server

PROGRAM = "lm_eval"
STRICT, FLEXIBLE = "strict-match", "flexible-extract"
_METRICS = ("exact_match", "acc", "em")
_LIMIT = 6 * 3600.0
_POLL = 0.5
_TAIL = 2000


class Job(NamedTuple):
    """``tasks`` as lm-eval names them; ``limit`` questions a task (None: all)."""

    tasks: tuple[str, ...]
    server: Server
    seed: int = 0
    limit: int | None = None
    concurrency: int = 16


def argv_of(job: Job, program: str, output: str) -> list[str]:
    """The command. Text prompts: the server tokenizes, so no tokenizer is fetched."""
    server = job.server
    model = (
        f"model={server.model},base_url={server.url}/v1/completions,num_concurrent={job.concurrency},"
        "max_retries=1,tokenized_requests=False,tokenizer_backend=None"
    )
    argv = [program, "--model", "local-completions", "--model_args", model, "--tasks", ",".join(job.tasks)]
    argv += [
        "--output_path",
        output,
        "--log_samples",
        "--seed",
        str(job.seed),
        "--gen_kwargs",
        "temperature=0",
    ]
    return argv if job.limit is None else [*argv, "--limit", str(job.limit)]


def find_program() -> str:
    """Path of lm-eval. Raises MissingTool if it is not installed."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise MissingTool(
            "lm-eval is not installed here.",
            hint="pip install 'lm-eval[api]', or ask the built-in questions by leaving out --lm-eval.",
        )
    return program


def ask(
    job: Job,
    label: str,
    folder: str | None = None,
    stopping: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[Answered, ...]:
    """Run lm-eval once and read its samples. Raises MissingTool if it is not installed, ToolFailed if it
    ends with an error or writes no samples, or if the server's name of its model cannot be an argument."""
    if not job.server.has_plain_model:
        raise ToolFailed(
            f"The server calls its model {job.server.model[:80]!r}, which lm-eval would take apart.",
            hint="Start it with a plain --served-model-name.",
        )
    program = find_program()
    output = (
        tempfile.mkdtemp(prefix="lm-eval-") if folder is None else os.path.join(folder, f"lm-eval-{label}")
    )
    os.makedirs(output, exist_ok=True)
    base = dict(os.environ)
    if job.server.key:
        base["OPENAI_API_KEY"] = job.server.key
    log = os.path.join(output, "output.log")
    code = _run(argv_of(job, program, output), base, log, stopping)
    if code != 0:
        raise ToolFailed(f"lm-eval ended with exit code {code}: {_last_line(log)}", hint=f"Its output: {log}")
    for name, value in read_results(output).items():
        say(f"lm-eval reports {name} {value:.4f}")
    return read_folder(output)


def _run(argv: list[str], environment: Mapping[str, str], log: str, stopping: Callable[[], bool]) -> int:
    until = time.monotonic() + _LIMIT
    with open(log, "wb") as file:
        process = subprocess.Popen(
            argv,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(_POLL)
            if stopping() or time.monotonic() > until:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(10.0)
                process.kill()
                return process.wait()


def read_folder(folder: str) -> tuple[Answered, ...]:
    """The answers in the samples files at any depth below. Raises ToolFailed if there are none."""
    rows: list[dict[str, Any]] = []
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.startswith("samples_") and name.endswith(".jsonl"):
                task = name[len("samples_") :].rpartition("_")[0] or "task"
                rows += [{**row, "task": task} for row in read_objects(os.path.join(place, name))]
    answers = read_samples(rows)
    if not answers:
        raise ToolFailed(f"lm-eval left no samples in {folder}.", hint="It must run with --log_samples.")
    return answers


def read_samples(rows: Iterable[Mapping[str, Any]]) -> tuple[Answered, ...]:
    """One answer for each question. Right is what the flexible filter says, or the only one there is."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in rows:
        number, task = row.get("doc_id"), row.get("task")
        if isinstance(number, int) and not isinstance(number, bool):
            filters = found.setdefault(f"{task}-{number}", {})
            filters[str(row.get("filter", "none"))] = row
    return tuple(_answered(name, filters) for name, filters in found.items())


def _answered(name: str, filters: Mapping[str, Mapping[str, Any]]) -> Answered:
    main = filters.get(FLEXIBLE) or next(iter(filters.values()))
    text = _text(main.get("resps"))
    right = _right(main)
    strict = _right(filters[STRICT]) if STRICT in filters else None
    invalid = not right and (not text.strip() or "[invalid]" in _text(main.get("filtered_resps")))
    outcome = CORRECT if right else INVALID if invalid else WRONG
    kinds = kinds_of(text, len(text.split()))
    return Answered(name, name.rpartition("-")[0], outcome, text, strict, kinds)


def _right(row: Mapping[str, Any]) -> bool:
    values = [row[name] for name in _METRICS if name in row]
    return bool(values) and isinstance(values[0], (int, float)) and values[0] >= 1


def _text(value: object) -> str:
    """The first text in a nest of lists."""
    for _ in range(4):
        if isinstance(value, str):
            return value
        if not isinstance(value, list) or not value:
            return ""
        value = value[0]
    return ""


def _last_line(path: str) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - _TAIL))
            lines = file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return "no output"
    return next((" ".join(line.split())[:300] for line in reversed(lines) if line.strip()), "no output")


def read_results(folder: str) -> dict[str, float]:
    """``TASK/METRIC,FILTER`` and its value, from the results files at any depth below."""
    out: dict[str, float] = {}
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.startswith("results_") and name.endswith(".json"):
                out.update(totals(_json(os.path.join(place, name))))
    return out


def totals(document: object) -> dict[str, float]:
    """The same from one parsed file; nothing if it has another form."""
    out = {}
    results = document.get("results") if isinstance(document, dict) else None
    for task, metrics in results.items() if isinstance(results, dict) else ():
        for name, value in metrics.items() if isinstance(metrics, dict) else ():
            number = finite(value)
            if number is not None and "stderr" not in name:
                out[f"{task}/{name}"] = number
    return out


def _json(path: str) -> object:
    try:
        return json.loads(read_text(path))
    except (CrashlabError, ValueError, RecursionError):
        return None
