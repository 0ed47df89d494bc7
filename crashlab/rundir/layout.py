"""Names inside a run directory. They are a contract: see docs/reference/run-directory.md."""

from __future__ import annotations

import os
import re

SCHEMA = "crashlab.run/1"

RUN = "run.json"
EVENTS = "events.jsonl"
MANIFEST = "manifest.json"
REPORT = "report.json"
REPORT_TEXT = "report.txt"
KERNEL_LOG = "kernel.log"
GPU_SAMPLES = "gpu.jsonl"
REQUESTS = "requests.jsonl"
METRICS = "metrics.jsonl"
BOUNDED_LOGS = (REQUESTS, METRICS, GPU_SAMPLES)
CORES = "cores"
PIPES = "pipes"
OUTPUT = "output"
HOST = "host"
CASES = "cases"
RESERVE = ".reserve"

STREAMS = ("stdout", "stderr")

_SEGMENT = re.compile(r"(\d{3,6})\.(stdout|stderr)(?:\.\+(\d{1,18}))?\.log")


def segment_name(attempt: int, stream: str, start: int) -> str:
    """The file that holds a stream of an attempt from byte ``start`` on: ``001.stderr.log``,
    ``001.stderr.+268435456.log``."""
    return f"{attempt:03d}.{stream}.log" if start == 0 else f"{attempt:03d}.{stream}.+{start}.log"


def parse_segment(name: str) -> tuple[int, str, int] | None:
    """(attempt, stream, start) of a segment's file name, or None."""
    found = _SEGMENT.fullmatch(name)
    return (int(found[1]), found[2], int(found[3] or 0)) if found else None


def index_name(attempt: int) -> str:
    """The file that says when which bytes came."""
    return f"{attempt:03d}.index.jsonl"


def metrics_name(attempt: int) -> str:
    """The last scrape of a server's /metrics before evidence was taken or it was ended."""
    return f"{HOST}/{attempt:03d}-metrics.txt"


def case_folder(attempt: int) -> str:
    """Where the report on one attempt lies."""
    return f"{CASES}/{attempt:03d}"


def is_run(path: str | os.PathLike[str]) -> bool:
    """Whether a folder is a run directory (or what is left of one)."""
    try:
        return os.path.isdir(path) and any(os.path.isfile(os.path.join(path, name)) for name in (RUN, EVENTS))
    except ValueError:
        return False
