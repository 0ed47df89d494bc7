"""Targets that read what crashlab or its user wrote: entries, reports, run directories, bundles."""

from __future__ import annotations

import json
import random
import shutil
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from crashlab.errors import CrashlabError
from tests.support.fuzz import blindly, shapes
from tests.support.fuzz.target import KNOWN, Target, archived, reports


@lru_cache(maxsize=1)
def _known() -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted(KNOWN.glob("*.toml")))


_TOML = (
    b"'(a|b)*c'", b'"(.*.*.*)x"', b"'[a-z]{1,99999}'", b"'(?P<x>a)(?=b)'", b"'\\1'", b"'('", b"'[^'", b"[]",
    b"{}", b"1e400", b"-1", b"true", b"2026-11-30", b"'''\n'''", b"[[match]]", b"[proof]", b"a.b.c.d = 1",
    b"'\\p{L}'", b"'.*'", b"''", b'"\\u0000"', b"99999999999999999999", b"nan", b"inf", b"[[[[]]]]",
    b"07:32:00",
)  # fmt: skip
"""Values of other types, and patterns that a backtracking matcher would choke on."""


def _entry(rng: random.Random) -> bytes:
    text = rng.choice(_known())
    for _ in range(rng.choice((1, 1, 2, 5))):
        if rng.random() < 0.5:
            lines = text.split(b"\n")
            at = rng.randrange(len(lines))
            key, equals, _ = lines[at].partition(b"=")
            lines[at] = key + b"= " + rng.choice(_TOML) if equals else rng.choice(_TOML)
            text = b"\n".join(lines)
        else:
            text = blindly.damage_text(text, rng, [rng.choice(_known())], 64 << 10)
    return text


@lru_cache(maxsize=1)
def _log() -> tuple[str, ...]:
    from tests.support.fuzz.target import fixtures

    return tuple(fixtures("signatures/vllm_nodump.log")[0].decode().splitlines())


def _catalogue(case: bytes, _place: Path) -> None:
    """An entry read, held against real reports and a real log, and written as documentation."""
    from crashlab.report import jsonio
    from crashlab.signatures import document, proof
    from crashlab.signatures.catalogue import parse_toml
    from crashlab.signatures.entry import from_plain, to_plain
    from crashlab.signatures.match import match
    from crashlab.signatures.schema import entry_from

    with suppress(CrashlabError):
        table = parse_toml(case.decode("utf-8", "replace"), "fuzz")
        entry = entry_from(table, "fuzz")
        assert from_plain(json.loads(json.dumps(to_plain(entry))), "fuzz").id == entry.id
        document.section(entry)
        for raw in reports()[:3]:
            match(jsonio.loads(raw), log=_log(), entries=[entry])
        proof.fixtures_of(table)


def _report(rng: random.Random) -> bytes:
    data = rng.choice(reports())
    if rng.random() < 0.85:
        return shapes.change_json(data, rng)
    return blindly.damage_text(data, rng, reports())


def _reread(case: bytes, place: Path) -> None:
    """A report.json read, rendered in every form, compared, matched, redacted and bundled."""
    from crashlab.report import bundle, compare, html, jsonio, junit, markdown, text
    from crashlab.signatures.key import keys
    from crashlab.signatures.match import match

    with suppress(CrashlabError):
        report = jsonio.loads(case)
        again = jsonio.loads(jsonio.dumps(report))
        assert again.verdict.kind == report.verdict.kind
        keys(report.verdict)
        match(report)
        text.render(report, verbose=True)
        junit.render(report)
        html.render(report)
        for form in (markdown.PLAIN, *markdown.FORMS.values()):
            markdown.render(report, form)
        markdown.prefilled_url(report, markdown.FORMS["vllm"])
        compare.render(compare.compare(report, jsonio.loads(reports()[0])), "a", "b")
        if len(case) % 8 == 0:
            target = place / "out.zip"
            target.unlink(missing_ok=True)
            bundle.write(report, None, target)


@lru_cache(maxsize=1)
def _runs() -> tuple[dict[str, bytes], ...]:
    """Recorded run directories, without the folder's own name."""
    out = []
    for files in archived("runs/*.tar.xz"):
        prefix = next(name for name in files if name.endswith("run.json")).removesuffix("run.json")
        out.append({name.removeprefix(prefix): data for name, data in files.items()})
    return (*out, {**out[0], **_soaked(out[0])}, {**out[-1], **_soaked(out[-1])})


def _soaked(files: dict[str, bytes]) -> dict[str, bytes]:
    """What a soak adds to a run directory."""
    outcome = {
        "event": "soak-outcome", "m": 9.0, "attempt": 1, "outcome": "garbage", "why": "5 answers repeat a word",
        "exposure": {"hours": 0.5, "requests": 90, "steps": 7000}, "exposure_words": "0.5 h under load",
        "load": {"sent": 90}, "notes": ["a note"], "examples": ["bla bla bla"], "ours": False,
    }  # fmt: skip
    header = {
        "record": "load", "shape": "fresh", "seed": 7, "prompts": "vocabulary", "tokens_a_word": 1.4,
        "input": [100, 200], "output": [10, 20], "context": 4096, "ignore_eos": False, "temperature": 1.0,
    }  # fmt: skip
    request = {
        "lane": 0, "number": 1, "shape": "fresh", "sent": 5.0, "first": 0.1, "total": 2.0, "tokens": 20,
    }  # fmt: skip
    timeline = [
        {"t": 0.5, "tokens_per_s": 900.0, "in_flight": 16, "kv_cache_usage": 0.4, "state": "PROGRESSING"},
        {"t": 3.0, "event": "the first fault", "kind": "fault"},
    ]

    def lines(*rows: object) -> bytes:
        return b"".join(json.dumps(row).encode() + b"\n" for row in rows)

    return {
        "events.jsonl": files.get("events.jsonl", b"") + lines(outcome),
        "requests.jsonl": lines(header, request, {**request, "number": 2, "error": "reset"}),
        "requests.+300.jsonl": lines({**header, "continued": True}, {**request, "number": 3}),
        "metrics.jsonl": lines({"m": 1.0, "health": 200, "generation_tokens": 900.0}),
        "timeline.jsonl": lines(*timeline),
    }


def _run_folder(rng: random.Random) -> bytes:
    """A run directory in which some files are damaged, gone, or others than their name says."""
    files = dict(rng.choice(_runs()))
    pool = [data for data in rng.choice(_runs()).values() if data] or [b"x"]
    for _ in range(rng.choice((1, 2, 2, 4))):
        name = rng.choice(sorted(files))
        data, what = files[name], rng.random()
        if what < 0.08:
            del files[name]
            if not files:
                break
        elif what < 0.14:
            files[name] = rng.choice(pool)
        elif name.endswith(".jsonl"):
            files[name] = shapes.change_json_lines(data, rng, pool)
        elif name.endswith(".json"):
            files[name] = shapes.change_json(data, rng)
        elif name.startswith("cores/"):
            files[name] = blindly.damage(data, rng, pool)
        else:
            files[name] = blindly.damage_text(data, rng, pool)
    return shapes.join_files(files)


def _unfold(case: bytes, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in shapes.split_files(case).items():
        with suppress(OSError):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)


def _rundir(case: bytes, place: Path) -> None:
    """A run directory analysed, rendered with its timeline, bundled, and its load prepared for replay."""
    from crashlab.cli.evidence import load
    from crashlab.report import bundle, html, text
    from crashlab.report.fromrundir import analyze_rundir
    from crashlab.report.options import AnalyzeOptions
    from crashlab.rundir.manifest import build_manifest
    from crashlab.soak.prompts import Source
    from crashlab.soak.replay import load_replay

    folder = place / "run"
    _unfold(case, folder)
    with suppress(CrashlabError):
        text.render(analyze_rundir(str(folder), AnalyzeOptions(debugger="never")), verbose=True)
    with suppress(CrashlabError):
        evidence = load(str(folder), "never")
        html.render(evidence.report, evidence.timeline)
        if len(case) % 4 == 0:
            target = place / "out.zip"
            target.unlink(missing_ok=True)
            bundle.write(evidence.report, folder, target, bundle.Options(dump=True), evidence.timeline)
    with suppress(CrashlabError):
        load_replay(str(folder), Source())
    build_manifest(str(folder))


@lru_cache(maxsize=1)
def _bundled() -> dict[str, bytes]:
    """The files of a real bundle."""
    import io
    import tempfile
    import zipfile

    from crashlab.report import bundle, jsonio

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "real.zip"
        run = Path(folder) / "run"
        _unfold(shapes.join_files(_runs()[0]), run)
        bundle.write(jsonio.loads(reports()[0]), run, target)
        with zipfile.ZipFile(io.BytesIO(target.read_bytes())) as archive:
            return {info.filename: archive.read(info) for info in archive.infolist()}


def _zip(rng: random.Random) -> bytes:
    files = dict(_bundled())
    for name in rng.sample(sorted(files), min(len(files), 8)):
        if name != "manifest.json":
            del files[name]
    for _ in range(rng.choice((0, 1, 3))):
        name = rng.choice(sorted(files))
        data = files[name]
        changed = shapes.change_json(data, rng) if name.endswith(".json") else data
        files[name] = changed if changed != data else blindly.damage_text(data, rng, [data])
    made = shapes.make_zip(files, rng)
    return blindly.damage(made, rng, [made]) if rng.random() < 0.6 else made


def _check(case: bytes, place: Path) -> None:
    from crashlab.report import bundlecheck

    path = place / "fuzz.zip"
    path.write_bytes(case)
    with suppress(CrashlabError):
        found = bundlecheck.check(path)
        assert found.good in (True, False)


TARGETS = (
    Target("signature", "TOML entries of a catalogue, and matching with them", _entry, _catalogue),
    Target("report", "report.json read back, rendered, compared, bundled", _report, _reread),
    Target("rundir", "run directories: analyze, report, bundle, replay", _run_folder, _rundir),
    Target("bundle", "zip files given to bundle --check", _zip, _check),
)  # fmt: skip
