"""Does crashlab's reading of a dump agree with what was planted, with the driver's log and with cuda-gdb?"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from recorder.harvest import Dump, harvest, log_facts, planted_facts
from recorder.scenes import Scene

from .wrap import crashlab, environment

ANALYZE_SECONDS = 120.0
MAYBE = ("gpu-fault", "device-assert", "trap")
_SPAN = re.compile(r"(\d+)(?:-(\d+))?\Z")


def read_and_judge(scene: Scene, folder: Path, seconds: float) -> list[Dump]:
    """As `recorder.harvest.harvest`, which see; each dump's `observed` gets crashlab's verdict, its exit code
    and, as `wrong`, what differs from the truth. The dumps are deleted."""
    paths = sorted(folder.glob("*.nvcudmp"), key=lambda path: path.stat().st_mtime)
    said = [_analyze(path) for path in paths]
    dumps = harvest(scene._replace(keep=False), folder, seconds)
    out = []
    for dump, (code, report) in zip(dumps, said, strict=True):
        verdict = report.get("verdict") or {}
        seen = {
            "code": code,
            "headline": verdict.get("headline"),
            "kind": verdict.get("kind"),
            "report": report,
        }
        out.append(dump._replace(observed={**dump.observed, **seen}))
    return out


def _analyze(dump: Path) -> tuple[int | None, dict[str, Any]]:
    """`crashlab analyze --json`: exit code (None: it took too long) and report ({}: there was none)."""
    try:
        done = subprocess.run(
            crashlab("analyze", "--json", str(dump)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment(),
            timeout=ANALYZE_SECONDS,
            check=False,
        )
        report = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return None, {}
    except ValueError:
        return done.returncode, {}
    return done.returncode, report if isinstance(report, dict) else {}


def judge_dump(
    scene: Scene, report: Mapping[str, Any], observed: Mapping[str, Any], stdout: str, stderr: str
) -> list[str]:
    """What differs from the truth; empty when all is right. `observed`: what cuda-gdb printed of this dump
    (`recorder.harvest.debugger_facts`); `stdout`: the fault program's; `stderr`: the driver's words."""
    verdict = report.get("verdict")
    if not isinstance(verdict, dict):
        return ["no report"]
    kinds = _kinds(scene)
    if verdict.get("kind") not in kinds:
        return [f"verdict {verdict.get('kind')}, expected {' or '.join(kinds)}"]
    if verdict["kind"] == "hang":
        return list(_hang(scene, report, verdict))
    if verdict["kind"] != "gpu-fault":
        return []
    log = log_facts(stderr)
    return [
        *_fault(scene, verdict),
        *_against_driver(scene, report, log),
        *_against_debugger(scene, report, observed.get("error")),
        *_address(verdict.get("address") or {}, planted_facts(stdout)),
    ]


def _kinds(scene: Scene) -> tuple[str, ...]:
    if scene.kind == "hang":
        # a stream that waits has no kernel on the GPU: all that its dump can show is that nothing failed
        return ("hang",) if scene.facts["kernel"] else ("no-fault",)
    return MAYBE if scene.kind == "maybe-fault" else (scene.kind,)


def _hang(scene: Scene, report: Mapping[str, Any], verdict: Mapping[str, Any]) -> Iterator[str]:
    places = [verdict, *(report.get("faults") or []), *((verdict.get("hang") or {}).get("groups") or [])]
    names = {_mangled(place, key) for place in places for key in ("kernel", "function")}
    if scene.facts["kernel"] not in names:
        yield f"hang in {', '.join(sorted(name for name in names if name))}, expected {scene.facts['kernel']}"


def _mangled(place: Mapping[str, Any], key: str) -> str:
    one = place.get(key)
    if isinstance(one, dict):
        return str(one.get("mangled") or one.get("name") or "")
    return str(one or "")


def _fault(scene: Scene, verdict: Mapping[str, Any]) -> Iterator[str]:
    code = (verdict.get("exception") or {}).get("code")
    if scene.facts["codes"] and code not in scene.facts["codes"]:
        yield f"exception {code}, expected {scene.facts['codes']}"
    if scene.facts.get("lost"):  # neither warp nor PC in the kernel: it may go unnamed, but not misnamed
        if _mangled(verdict, "kernel") not in ("", scene.facts["kernel"]):
            yield f"kernel {_mangled(verdict, 'kernel')}, expected {scene.facts['kernel']} or none"
        return
    for key in ("kernel", "function"):
        if scene.facts[key] and _mangled(verdict, key) != scene.facts[key]:
            yield f"{key} {_mangled(verdict, key) or 'unnamed'}, expected {scene.facts[key]}"
    text = str((verdict.get("instruction") or {}).get("text") or "")
    if scene.facts["opcode"] and scene.facts["opcode"] not in text:
        yield f"instruction {text or 'unnamed'}, expected {scene.facts['opcode']}"


def _against_driver(scene: Scene, report: Mapping[str, Any], log: Mapping[str, Any]) -> Iterator[str]:
    """The driver prints a PC or a few; where several instructions fault, it need not be that of the verdict."""
    found, pcs = _faults(report), {int(one, 16) for one in log["driver_pcs"]}
    if found and pcs and not pcs & set(found) and not scene.facts.get("lost"):
        yield f"PC {_hexadecimal(found)}, the driver's log has {_hexadecimal(pcs)}"


def _against_debugger(scene: Scene, report: Mapping[str, Any], error: object) -> Iterator[str]:
    """cuda-gdb shows one warp's instruction: it must be among those that crashlab calls failing."""
    if not isinstance(error, dict) or scene.facts.get("lost"):
        return
    found, pc = _faults(report), int(error["pc"], 16)
    if pc not in found:
        yield f"PC {_hexadecimal(found)}, cuda-gdb has {error['pc']}"
    ours, theirs = _opcode(found.get(pc) or ""), _opcode(str(error["sass"]))
    if ours and theirs and ours != theirs:
        yield f"instruction {ours}, cuda-gdb has {theirs}"


def _faults(report: Mapping[str, Any]) -> dict[int, str]:
    """The PC of every failing instruction with its text ("": not decoded)."""
    places = [report["verdict"], *(report.get("faults") or [])]
    texts = [(one["pc"], (one.get("instruction") or {}).get("text") or "") for one in places if one.get("pc")]
    return {int(pc, 16): text for pc, text in reversed(texts)}


def _hexadecimal(pcs: Iterable[int]) -> str:
    return ", ".join(hex(pc) for pc in sorted(pcs)) or "unknown"


def _opcode(text: str) -> str:
    words = [word for word in text.replace(";", " ").split() if not word.startswith("@")]
    return words[0] if words else ""


def _address(address: Mapping[str, Any], planted: Mapping[str, str]) -> Iterator[str]:
    """A recovered address must be the planted one, and the threads that have it those that were planted."""
    if address.get("state") != "recovered":
        return
    bad = [lane for lane in address.get("per_lane") or [] if lane.get("bad")]
    values = {int(lane["address"], 16) for lane in bad if lane.get("address")}
    threads = {lane["thread"][0] for lane in bad if lane.get("thread")}
    wanted = _threads(planted.get("bad_threads", ""))
    first = _number(planted.get("bad_address", ""))
    if values and first is not None:
        size = _number(planted.get("buffer_bytes", "")) or 0
        # Of a buffer that was freed, the program can only say where it began. And where several warps fail, the
        # report may show another than the first, whose thread 0 has the planted address.
        somewhere = planted["bad_address"] == planted.get("buffer") or (wanted and min(wanted) not in threads)
        if not (first in values or (somewhere and any(first <= value < first + size for value in values))):
            yield f"address {address.get('value')}, planted {planted['bad_address']}"
    if wanted and (odd := sorted(threads - wanted)):
        yield f"calls threads {odd[:4]} bad, planted {planted['bad_threads']}"


def _number(text: str) -> int | None:
    """As C++ prints it, hexadecimal or decimal; a null pointer is `(nil)`."""
    if text in ("(nil)", "nil"):
        return 0
    try:
        return int(text, 0)
    except ValueError:
        return None


def _threads(text: str) -> set[int]:
    """Of `5` or `0-31`; empty for any other text."""
    found = _SPAN.match(text)
    return set(range(int(found[1]), int(found[2] or found[1]) + 1)) if found else set()
