"""From what a serving log holds to its story: outcome, who died, what was blamed, plain sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from crashlab.facts import EnvFact, HostReported
from crashlab.logs.cuda_errors import CudaErrorEvent, CudaErrors, reported
from crashlab.logs.driver_facts import DriverDump, DriverLog
from crashlab.logs.lazy import Lazy
from crashlab.logs.serving_facts import Backend, GraphState, HttpCounts, ServingStory, StoryEvent, Throughput

_ENGINE_DEAD = "EngineDeadError"
_STALL_KINDS = ("shm-silence", "rpc-timeout", "watchdog-timeout", "collective-timeout")
_DEATH_KINDS = ("engine-died", "engine-fatal", "start-failed")
_PROC = Lazy(r"(?:core|Worker) proc (\S{1,80}) died")
_NAMES = {"vllm": "vLLM", "sglang": "SGLang", "llama.cpp": "llama.cpp"}


class Material(NamedTuple):
    """What the reader gathered. ``pids``: the first pid seen with each process name."""

    server: str | None
    events: tuple[StoryEvent, ...]
    pids: Mapping[str, int]
    environment: Mapping[str, EnvFact]
    config: Mapping[str, str]
    backends: tuple[Backend, ...]
    overrides: tuple[str, ...]
    graphs: GraphState | None
    throughput: tuple[Throughput, ...]
    stalled: Throughput | None
    zero_lines: int
    http: HttpCounts
    driver: DriverLog
    errors: CudaErrors

    def first(self, *kinds: str) -> StoryEvent | None:
        """The earliest event of these kinds."""
        return next((event for event in self.events if event.kind in kinds), None)

    @property
    def engine_dead_errors(self) -> int:
        """How often the API server printed that the engine is dead."""
        return sum(
            one.times for one in self.errors.tracebacks if (one.exception or "").endswith(_ENGINE_DEAD)
        )


def tell(m: Material) -> ServingStory:
    """The story of one run."""
    outcome = _outcome(m)
    died, died_at = _death(m)
    fault = m.errors.believed
    blamed = reported(fault) if fault is not None else _engine_dead(m)
    lies = _exit_code_lies(m, died)
    return ServingStory(
        server=m.server,
        outcome=outcome,
        sentences=tuple(_sentences(m, outcome, died, died_at, fault, lies)),
        events=_all_events(m),
        died=died,
        died_at=died_at,
        blamed=blamed if outcome is not None else None,
        exit_code_lies=lies,
        setting=(_opening(m), *((_graphs(m.graphs),) if m.graphs is not None else ())),
        environment=dict(m.environment),
        config=dict(m.config),
        backends=m.backends,
        overrides=m.overrides,
        cuda_graphs=m.graphs,
        ready=m.first("ready"),
        throughput=m.throughput,
        stalled=m.stalled,
        http=m.http,
        driver=m.driver,
        errors=m.errors,
    )


def _outcome(m: Material) -> str | None:
    exceptions = [e for dump in m.driver.dumps for e in dump.exceptions]
    if m.driver.asserts or any(e.code == 12 for e in exceptions):
        return "device-assert"
    if exceptions or m.errors.first_fault is not None:
        return "gpu-fault"
    memory = any(event.group == "memory" for event in m.errors.events)
    dead = m.first(*_DEATH_KINDS) is not None or m.engine_dead_errors > 0
    if m.first(*_STALL_KINDS) is not None or (m.stalled is not None and _confirmed(m, dead)):
        return "stall"
    if any(dump.trigger == "none-named" for dump in m.driver.dumps):
        return "inconclusive"  # asked for, or a __trap(): the driver's log cannot tell
    if m.first("ready") is None and (dead or memory):
        return "never-ready"
    if memory and dead:
        return "out-of-memory"
    return "host-death" if dead or m.first("killed") is not None else None


def _confirmed(m: Material, dead: bool) -> bool:
    """A single line of 0 tokens/s may be a long prefill: something else must say so too."""
    return m.zero_lines > 1 or dead or any(not dump.exceptions for dump in m.driver.dumps)


def _death(m: Material) -> tuple[str | None, str | None]:
    """(process that ended first, time of the first sign) as far as the log tells."""
    own = m.first("engine-fatal", "start-failed")
    other = m.first("engine-died")
    if own is not None and own.process is not None:
        return _who(own.process, own.pid), own.time
    if other is None:
        return None, own.time if own else None
    names = [name for name in m.pids if name.startswith("EngineCore")]
    if named := _PROC.search(other.text):
        names = [named.group(1)]
    if len(names) == 1:
        return _who(names[0], m.pids.get(names[0])), other.time
    return "the engine process", other.time


def _who(process: str, pid: int | None) -> str:
    return f"{process} (pid {pid})" if pid is not None else process


def _engine_dead(m: Material) -> HostReported | None:
    for one in m.errors.tracebacks:
        if (one.exception or "").endswith(_ENGINE_DEAD):
            return HostReported(f"{one.exception}: {one.message}" if one.message else one.exception)
    return None


def _exit_code_lies(m: Material, died: str | None) -> str | None:
    orderly = m.first("shutdown")
    if died is None or orderly is None:
        return None
    return (
        f"The API server shut down in good order (line {orderly.line}) after {died} had died: its exit code "
        "can be 0 and proves nothing (vllm-project/vllm#53726)."
    )


def _all_events(m: Material) -> tuple[StoryEvent, ...]:
    rows = list(m.events)
    for dump in m.driver.dumps:
        what = dump.exceptions[0].name if dump.exceptions else "no exception named"
        rows.append(
            StoryEvent(
                "gpu-dump", dump.first_line, f"GPU core dump: {what}", dump.started, dump.process, dump.pid
            )
        )
    for one in m.driver.asserts:
        text = f"{one.file}:{one.line}: {one.expression}"
        rows.append(
            StoryEvent("device-assert", one.first_line or 0, text, None, one.process, one.pid, one.times)
        )
    for event in m.errors.events:
        rows.append(
            StoryEvent(
                "cuda-error", event.line, event.message, event.time, event.process, event.pid, event.times
            )
        )
    if m.stalled is not None:
        text = f"0.0 tokens/s with {m.stalled.running} requests running"
        rows.append(StoryEvent("stalled", m.stalled.line, text, m.stalled.time))
    return tuple(sorted(rows, key=lambda row: row.line))


def _sentences(
    m: Material,
    outcome: str | None,
    died: str | None,
    died_at: str | None,
    fault: CudaErrorEvent | None,
    lies: str | None,
) -> list[str]:
    told = [_opening(m)]
    if m.stalled is not None:
        told.append(_stall(m, m.stalled))
    told.extend(_dump(dump, stalled=m.stalled is not None) for dump in m.driver.dumps)
    if fault is not None:
        told.append(_blame(fault))
    if died is not None:
        told.append(f"{died} died{f' at {died_at}' if died_at else ''}{_aftermath(m)}.")
    if fault is None and m.engine_dead_errors and m.driver.dumps:
        told.append(
            "The log holds no traceback of the engine: with dumps on, the driver ends the process (SIGABRT) "
            "once the dump is written, so EngineDeadError points at a stack trace that was never printed."
        )
    if m.http.failed:
        told.append(f"{m.http.failed} requests were answered with an error, after {m.http.ok} accepted ones.")
    if lies is not None:
        told.append(lies)
    if m.graphs is not None:
        told.append(_graphs(m.graphs))
    if outcome is None:
        told.append("The log shows no failure; that it shows none does not mean there was none.")
    return told


def _opening(m: Material) -> str:
    name = _NAMES.get(m.server or "", "The server")
    version = m.environment.get({"llama.cpp": "llama_cpp"}.get(m.server or "", m.server or ""))
    model = m.config.get("served_model_name") or m.config.get("model") or m.config.get("model_path")
    said = name + (f" {version.value}" if version else "") + (f" with model {model}" if model else "")
    ready = m.first("ready")
    return f"{said} was ready at line {ready.line}." if ready else f"{said} never said that it was ready."


def _stall(m: Material, stalled: Throughput) -> str:
    when = f"At {stalled.time} it" if stalled.time else "It"
    text = (
        f"{when} reported 0.0 tokens/s with {stalled.running} requests running: work in flight, no progress"
    )
    if m.http.health_ok_after_stall:
        text += f", while /health went on answering 200 ({m.http.health_ok_after_stall} times)"
    dead = m.first(*_DEATH_KINDS) is not None
    return text + ("." if _confirmed(m, dead) else "; one such line may also be a long prefill.")


def _dump(dump: DriverDump, *, stalled: bool) -> str:
    when = f"At {dump.started} the" if dump.started else "The"
    base = dump.file.rsplit("/", 1)[-1] if dump.file else None
    kept = f" ({'complete' if dump.complete else 'not finished'}{f', {base}' if base else ''})"
    if dump.exceptions:
        one = dump.exceptions[0]
        names = [frame.name for stack in one.stacks[:1] for frame in stack.frames if frame.name]
        place = f" at PC {one.pc}" if one.pc is not None else ""
        kernel = f" in {names[-1]}" if names else ", kernel not known"
        return f"{when} driver wrote a GPU core dump{kept}: {one.name} ({one.code}){place}{kernel}."
    if dump.trigger is None:
        return f"{when} driver began a GPU core dump{kept} and named no exception before its log ends."
    if stalled:
        return (
            f"{when} driver wrote a GPU core dump without any exception{kept}, as one that is asked for on a "
            "hang; the engine's death afterwards is a consequence of that dump."
        )
    return f"{when} driver wrote a GPU core dump without naming an exception{kept}: asked for, or a __trap()."


def _blame(fault: CudaErrorEvent) -> str:
    site = reported(fault).where
    when = f"At {fault.time} " if fault.time else ""
    who = _who(fault.process, fault.pid) if fault.process else "the process"
    text = f"{when}{who} reported {fault.name or 'an error'} ({fault.message.split(chr(10))[0][:160]})"
    if site:
        text += f", blaming {site[:300]}"
    if fault.victim is not None:
        text += f"; that is {fault.victim.why}"
    elif fault.asynchronous:
        text += "; the report itself says that its stack may be wrong"
    text = text[0].upper() + text[1:]
    return text + ("; it names no culprit." if fault.is_gpu_fault and fault.victim else ".")


def _aftermath(m: Material) -> str:
    times = m.engine_dead_errors
    return f"; the API server printed EngineDeadError {times} times" if times else ""


def _graphs(state: GraphState) -> str:
    words = {
        "off": "CUDA graphs were off",
        "captured": "CUDA graphs were captured",
        "capturing": "CUDA graphs were being captured when last heard of",
        "configured": "CUDA graphs were configured, their capture is not in the log",
    }
    return f"{words[state.state]} (line {state.line}: {state.reason.rstrip('.')})."
