"""The redacted attachment: everything a maintainer needs, nothing a user would regret, in parts GitHub takes."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from crashlab import __version__, facts
from crashlab.errors import CrashlabError, UnreadableDump, UsageError
from crashlab.gpucore.dump import CoreDump
from crashlab.report import bundledump, bundlefiles, html, jsonio, junit, markdown, text
from crashlab.report.clock import now
from crashlab.report.redact import Redactor
from crashlab.report.timeline import Timeline

SCHEMA = "crashlab.bundle/1"
PART_LIMIT = 24_000_000
"""GitHub takes .zip attachments up to 25 MB; a little is left for the archive's own tables."""
_CHUNK = 20_000_000
_WITH_CUBIN = ("gpu-fault", "device-assert", "trap", "hang")
"""Verdicts of which a reader of the bundle expects the faulting cubin."""
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
_README = """This is a crash report bundle of crashlab. manifest.json lists every file with its SHA-256 and
says what was taken out of it. report.html and report.txt are the report for people, report.json is
the one for programs, issues/ holds it as issue texts.

Files that end in .000, .001, … are pieces of one file: cat NAME.0* > NAME

Placeholders such as <secret>, <user>, <host-1> and <ip-1> stand for what was taken out; equal ones
stand for the same value. In binary files it was overwritten with the letter x.
"""


class Options(NamedTuple):
    """``dump`` takes the dumps in, ``memory`` also what lay in GPU memory. Names are redacted everywhere."""

    dump: bool = False
    memory: bool = False
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


DEFAULTS = Options()


class Entry(NamedTuple):
    """One file of the bundle; ``redacted`` counts what was taken out of it, by rule."""

    name: str
    data: bytes
    redacted: dict[str, int]


class Left(NamedTuple):
    """A file that stays on the machine, and why."""

    name: str
    why: str


class Bundle(NamedTuple):
    """What was written."""

    parts: tuple[Path, ...]
    names: tuple[str, ...]
    left: tuple[Left, ...]
    counts: dict[str, int]


def write(
    report: facts.Report,
    folder: Path | None,
    target: Path,
    options: Options = DEFAULTS,
    timeline: Timeline | None = None,
    dump: Path | None = None,
) -> Bundle:
    """Write the bundle of a report and, if given, its run directory, or the one ``dump`` that it is about.

    Existing files are not overwritten.

    Raises UsageError when the target exists or is no ``.zip``.
    """
    if target.suffix != ".zip":
        raise UsageError(
            f"A bundle is a .zip file, not {target.name}.", hint="GitHub accepts .zip attachments."
        )
    if target.exists():
        raise UsageError(
            f"{target.name} exists already.", hint="Choose another name; nothing is overwritten."
        )
    redactor = Redactor(users=options.users, hosts=options.hosts)
    found, texts = bundlefiles.read_all(folder) if folder is not None else ([], {})
    if folder is None and dump is not None:
        found = [bundlefiles.Found(dump, dump.name, "dump")]
    redactor.learn_report(report)
    for item in found:
        redactor.learn(item.path.name)
    for content in texts.values():
        redactor.learn(content)
    left: list[Left] = []
    entries = _collect(report, found, texts, redactor, options, timeline, left)
    parts, names = _write_parts(entries, target, left, redactor)
    return Bundle(parts, names, tuple(left), dict(redactor.counts))


def _collect(
    report: facts.Report, found: list[bundlefiles.Found], texts: dict[str, str], redactor: Redactor, options: Options,
    timeline: Timeline | None, left: list[Left],
) -> Iterator[Entry]:  # fmt: skip
    before = dict(redactor.counts)
    cubins: list[str | None] = []
    clean = redactor.copy(timeline) if timeline is not None else None
    yield from _forms(redactor.report(report), clean, lambda: _since(before, redactor))
    for item in found:
        name = redactor.text(item.name)
        if item.kind is None:
            left.append(Left(name, item.why or "not wanted"))
        elif item.kind == "dump":
            yield from _dump(item, name, report, redactor, options, left, cubins)
        else:
            before = dict(redactor.counts)
            data = bundlefiles.cleaned(item, texts.pop(item.name), redactor)
            yield from _pieces(f"raw/{name}", iter([data]), before, redactor)
    if None not in cubins and report.verdict.kind in _WITH_CUBIN:
        why = next(
            (why for why in cubins if why is not None), "there is no readable dump of the verdict here"
        )
        left.append(Left("faulting.cubin", why))


def _forms(
    report: facts.Report, timeline: Timeline | None, counted: Callable[[], dict[str, int]]
) -> Iterator[Entry]:
    """The report in all forms."""
    forms = {
        "report.json": jsonio.dumps(report),
        "report.txt": text.render(report, verbose=True),
        "report.html": html.render(report, timeline),
        "report.md": markdown.render(report),
        "junit.xml": junit.render(report),
    }
    for name, form in markdown.FORMS.items():
        forms[f"issues/{name}.md"] = markdown.render(report, form)
    for name, content in forms.items():
        yield Entry(name, content.encode("utf-8", "replace"), counted() if name == "report.json" else {})


def _dump(
    item: bundlefiles.Found, name: str, report: facts.Report, redactor: Redactor, options: Options, left: list[Left],
    cubins: list[str | None],
) -> Iterator[Entry]:  # fmt: skip
    """The faulting cubin of the verdict's dump, and the dump itself when it was asked for.

    ``cubins`` gets None for a cubin that is there, else why it is not.
    """
    try:
        dump = CoreDump.open(item.path)
    except UnreadableDump as error:
        left.append(Left(name, f"an unreadable dump: {error}"))
        return
    accused = report.inputs[0].path if report.inputs else None
    if accused is None or item.path.name == accused or len(report.inputs) == 1:
        image = bundledump.faulting_cubin(dump, report)
        cubins.append(None if image is not None else bundledump.why_no_cubin(dump, report))
        if image is not None:
            before = dict(redactor.counts)
            data = redactor.binary(image)
            yield from _pieces("faulting.cubin", iter([data]), before, redactor)
    if not options.dump:
        left.append(Left(name, "dumps stay unless --include-dump asks for them"))
        return
    before = dict(redactor.counts)
    plain = name.removesuffix(".xz").removesuffix(".gz")
    yield from _pieces(plain, bundledump.stripped(dump, redactor, memory=options.memory), before, redactor)


def _since(before: dict[str, int], redactor: Redactor) -> dict[str, int]:
    return {k: v - before.get(k, 0) for k, v in redactor.counts.items() if v > before.get(k, 0)}


def _pieces(name: str, data: Iterator[bytes], before: dict[str, int], redactor: Redactor) -> Iterator[Entry]:
    """One entry, or several numbered ones when the file is larger than a part may be."""
    held, number = bytearray(), 0
    for piece in data:
        held += piece
        while len(held) > _CHUNK:
            yield Entry(f"{name}.{number:03}", bytes(held[:_CHUNK]), _since(before, redactor))
            del held[:_CHUNK]
            number += 1
    yield Entry(f"{name}.{number:03}" if number else name, bytes(held), _since(before, redactor))


def _apart(entry: Entry, listed: list[dict[str, Any]]) -> Entry:
    """The entry under a name of its own: two dumps may have a faulting cubin, and two names become one when
    what told them apart is taken out."""
    names = {item["path"] for item in listed}
    name, number = entry.name, 1
    while name in names:
        number += 1
        stem, dot, end = entry.name.rpartition(".")
        name = f"{stem}-{number}.{end}" if dot else f"{entry.name}-{number}"
    return entry._replace(name=name)


class _Parts:
    """Zip files one after the other, none above the limit."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self.paths: list[Path] = []
        self._zip: zipfile.ZipFile | None = None
        self._size = 0

    def add(self, name: str, data: bytes) -> int:
        """Write one file; returns the number of the part that holds it, from 1."""
        import zlib

        size = len(zlib.compress(data, 6)) + 1000 + 4 * len(name)
        if self._zip is None or self._size + size > PART_LIMIT:
            self.close()
            number = len(self.paths) + 1
            path = self._target if number == 1 else self._target.with_suffix(f".part{number}.zip")
            self._zip = zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED, compresslevel=6)
            self.paths.append(path)
            self._size = 0
        info = zipfile.ZipInfo(name, _ZIP_TIME)
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = 0o644 << 16
        self._zip.writestr(info, data)
        self._size += size
        return len(self.paths)

    def close(self) -> None:
        if self._zip is not None:
            self._zip.close()
            self._zip = None


def _write_parts(
    entries: Iterator[Entry], target: Path, left: list[Left], redactor: Redactor
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    parts = _Parts(target)
    listed: list[dict[str, Any]] = []
    try:
        parts.add("README.txt", _README.encode())
        for entry in entries:
            entry = _apart(entry, listed)
            number = parts.add(entry.name, entry.data)
            listed.append({
                "path": entry.name,
                "part": number,
                "bytes": len(entry.data),
                "sha256": hashlib.sha256(entry.data).hexdigest(),
                "taken_out": entry.redacted,
            })  # fmt: skip
        manifest = {
            "schema": SCHEMA,
            "tool": {"name": "crashlab", "version": __version__},
            "created": now(),
            "files": listed,
            "left_out": [item._asdict() for item in left],
            "taken_out": redactor.counts,
            "binaries": "Only uncompressed text was looked at in binary files (cubin, dump); it was overwritten "
            "with x. Registers and kernel arguments in a dump are numbers and stay.",
        }
        parts.add("manifest.json", (json.dumps(manifest, indent=1, ensure_ascii=False) + "\n").encode())
    except (OSError, CrashlabError) as error:
        parts.close()
        for path in parts.paths:
            path.unlink(missing_ok=True)
        if isinstance(error, CrashlabError):
            raise
        reason = error.strerror or str(error)
        hint = "Check the folder and its free space."
        raise UsageError(f"Cannot write {target.name}: {reason}.", hint=hint) from error
    parts.close()
    return tuple(parts.paths), tuple(item["path"] for item in listed)
