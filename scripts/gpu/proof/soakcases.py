"""What is planted in the server, how `crashlab soak` is called, and what it must say."""

from __future__ import annotations

import json
import shlex
import socket
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

PLUGIN = Path(__file__).resolve().parents[1] / "nan_plugin"


class Expected(NamedTuple):
    """What the report and the record must hold. ``graphs``: CUDA graphs must have been captured, by the log.
    ``place``: kernel, instruction and source line of the planted code are demanded."""

    kind: str
    code: int
    place: bool = False
    graphs: bool = False
    stalled: bool = False


class Case(NamedTuple):
    """One soak. ``arguments`` follow the server's command, ``env`` is added to its environment, ``options``
    go to `crashlab soak`."""

    name: str
    expected: Expected
    arguments: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    options: tuple[str, ...] = ()


FAULT = Expected("gpu-fault", 10, place=True)
EAGER = ("--enforce-eager",)


def cases() -> list[Case]:
    """In the order of their importance. Which environment plants what is the caller's to say."""
    return [
        Case("fault", FAULT, EAGER),
        Case(
            "fault-graphs",
            FAULT._replace(graphs=True),
            ("-cc.cudagraph_mode=FULL_DECODE_ONLY",),
            options=("--shape", "decode-heavy"),
        ),
        Case("fault-again", FAULT, EAGER, options=("--shape", "fresh", "--seed", "7")),
        Case("stall", Expected("stall", 12, place=True, stalled=True), EAGER),
        Case(
            "garbage",
            Expected("garbage", 13),
            EAGER,
            {"VLLM_PLUGINS": "crashlab_nan", "PYTHONPATH": str(PLUGIN)},
        ),
    ]


def with_settings(listed: Iterable[Case], env: Iterable[str], arguments: Iterable[str]) -> list[Case]:
    """The cases with ``NAME=VALUE`` or ``CASE:NAME=VALUE`` in their environment, and with the arguments of
    ``CASE=ARGUMENTS`` instead of their own. PYTHONPATH is put behind a case's own."""
    out = []
    for case in listed:
        common: dict[str, str] = {}
        special: dict[str, str] = {}
        for text in env:
            name, _, value = text.partition("=")
            scope, colon, rest = name.partition(":")
            if not colon:
                common[name] = value
            elif scope == case.name:
                special[rest] = value
        merged = {**common, **case.env, **special}
        paths = [one.get("PYTHONPATH") for one in (special, case.env, common)]
        if any(paths):
            merged["PYTHONPATH"] = ":".join(path for path in paths if path)
        own = [
            shlex.split(text.partition("=")[2]) for text in arguments if text.partition("=")[0] == case.name
        ]
        out.append(case._replace(env=merged, arguments=tuple(own[-1]) if own else case.arguments))
    return out


def command(case: Case, server: str, folder: Path, options: str) -> list[str]:
    """`crashlab soak … -- SERVER…`. ``{port}`` in the server's command is filled in, or `--port` appended."""
    port = str(free_port())
    argv = [part.replace("{port}", port) for part in shlex.split(server)]
    if "{port}" not in server:
        argv += ["--port", port]
    return [
        sys.executable, "-m", "crashlab", "soak", "--out", str(folder), "--json", *shlex.split(options), *case.options,
        "--", *argv, *case.arguments,
    ]  # fmt: skip


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Seen(NamedTuple):
    """What a soak left: exit code (None: it had to be killed), report, events, the server's output."""

    code: int | None
    report: dict[str, Any]
    events: list[dict[str, Any]]
    log: bytes

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("event") == kind]


def judge(case: Case, seen: Seen, kernel: str, source: str) -> list[str]:
    """What differs from the planted truth; empty when all is right."""
    expected, verdict = case.expected, seen.report.get("verdict") or {}
    wrong = []
    if seen.code != expected.code:
        wrong.append(f"exit code {seen.code}, expected {expected.code}")
    if verdict.get("kind") != expected.kind:
        wrong.append(f"verdict {verdict.get('kind')}, expected {expected.kind}")
    if expected.place:
        wrong += _misplaced(seen.report, kernel, source)
    if expected.graphs and (state := graphs_of(seen.log)) != "captured":
        wrong.append(f"CUDA graphs: {state or 'the log does not say'}")
    if expected.stalled:
        wrong += _no_stall(seen)
    if not seen.of("run-ended"):
        wrong.append("the record has no end")
    return wrong


def _misplaced(report: dict[str, Any], kernel: str, source: str) -> list[str]:
    """Kernel, instruction and source line; of a hang those of any group of warps."""
    verdict = report.get("verdict") or {}
    places = [verdict, *((verdict.get("hang") or {}).get("groups") or [])]
    names = [_name(place.get("kernel")) for place in places]
    lines = [(place.get("source") or {}).get("file") or "" for place in places]
    wrong = []
    if not any(kernel in name for name in names):
        wrong.append(f"kernel {next((name for name in names if name), 'unnamed')}, expected {kernel}")
    if not any(line.endswith(source) for line in lines):
        wrong.append(f"source {next((line for line in lines if line), 'unknown')}, expected {source}")
    if not any(place.get("instruction") for place in places):
        wrong.append("no instruction")
    return wrong


def _name(kernel: object) -> str:
    return str(kernel.get("name") or "") if isinstance(kernel, dict) else str(kernel or "")


def _no_stall(seen: Seen) -> list[str]:
    wrong = []
    if not any(event.get("health") == 200 for event in seen.of("soak-stall")):
        wrong.append("no stall was seen while /health said 200")
    if not any(event.get("ok") is True for event in seen.of("asked-for-dump")):
        wrong.append("no process took the request for a dump")
    return wrong


def graphs_of(log: bytes) -> str | None:
    """off, configured, capturing or captured, as the server's own log tells; None: it does not."""
    from crashlab.logs.serving import read_serving

    graphs = read_serving(log).cuda_graphs
    return graphs.state if graphs is not None else None


def row_of(case: Case, seen: Seen) -> dict[str, Any]:
    """Expected and seen side by side, and what the server itself claimed."""
    verdict, run = seen.report.get("verdict") or {}, seen.report.get("run") or {}
    reported = (seen.report.get("host") or {}).get("reported") or {}
    return {
        "expected": case.expected.kind,
        "verdict": verdict.get("kind"),
        "headline": verdict.get("headline"),
        "code": seen.code,
        "server_exit_code": run.get("exit_code"),
        "server_blamed": reported.get("where") or reported.get("text"),
        "exposure": run.get("exposure"),
        "graphs": graphs_of(seen.log),
        "arguments": list(case.arguments),
    }


def read_seen(code: int | None, folder: Path) -> Seen:
    """Whatever is there of a run directory."""
    from .wrap import read_events

    try:
        report = json.loads((folder / "report.json").read_text())
    except (OSError, ValueError):
        report = {}
    parts = sorted((folder / "output").glob("001.*.log")) if (folder / "output").is_dir() else []
    return Seen(code, report, read_events(folder), b"\n".join(path.read_bytes() for path in parts))
