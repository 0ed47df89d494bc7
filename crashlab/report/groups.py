"""Many dumps of many crashes: grouped by key, and what the places they failed at speak for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from crashlab import facts
from crashlab.errors import UnreadableInput
from crashlab.logs.hardware import CrashPlace, sm_pattern
from crashlab.report.clock import now
from crashlab.report.copies import distinct
from crashlab.report.options import AnalyzeOptions

SCHEMA = "crashlab.groups/1"
_MAGIC = (b"\x7fELF", b"\x1f\x8b", b"\xfd7zXZ")
_NAMES = tuple(f"{end}{packed}" for end in (".nvcudmp", ".core") for packed in ("", ".gz", ".xz", ".zst"))
"""A file of such a name was meant to be a dump, whatever became of it: a killed driver leaves it empty."""
_LISTED = 50


class CrashGroup(NamedTuple):
    """Crashes of one coarse key. ``sms`` are (device, SM) of the first report of each; ``dumps`` at most 50 names."""

    key: str | None
    kind: str
    headline: str
    kernel: str | None
    crashes: int
    fine_keys: tuple[str, ...]
    sms: tuple[str, ...]
    hosts: tuple[str, ...]
    first: str | None
    last: str | None
    dumps: tuple[str, ...]


class Groups(NamedTuple):
    """All groups of a folder, the most frequent first, and a judgement over them.

    ``files`` counts the dumps that lie there; ``copies`` are those of them (at most 50) that hold the same
    bytes as an earlier one, which are counted in no group.
    """

    schema: str
    created: str
    folder: str
    groups: tuple[CrashGroup, ...]
    unreadable: tuple[str, ...]
    skipped: int
    hardware_suspect: bool | None
    reasons: tuple[str, ...]
    files: int | None = None
    copies: tuple[str, ...] = ()


def dumps_in(folder: str) -> tuple[list[str], int]:
    """Files of a folder (and its ``cores`` folder) that begin like a dump or are named like one, sorted, and
    how many others there are."""
    found, skipped = [], 0
    for place in (folder, os.path.join(folder, "cores")):
        try:
            names = sorted(os.listdir(place))
        except OSError as error:
            if place == folder:
                raise UnreadableInput(
                    f"Cannot list {folder}: {error.strerror}.", hint="Check the path."
                ) from error
            continue
        for name in names:
            path = os.path.join(place, name)
            if not os.path.isfile(path):
                continue
            if name.lower().endswith(_NAMES) or begins_like_a_dump(path):
                found.append(path)
            else:
                skipped += 1
    return found, skipped


def begins_like_a_dump(path: str) -> bool:
    """Whether a file begins like an ELF or a compressed file."""
    try:
        with open(path, "rb") as file:
            return file.read(6).startswith(_MAGIC)
    except OSError:
        return False


def _is_empty(path: str) -> bool:
    try:
        return os.path.getsize(path) == 0
    except OSError:
        return False


Reader = Callable[[Sequence[str], AnalyzeOptions], Iterable[facts.Report]]


def analyze_folder(folder: str, options: AnalyzeOptions, read: Reader | None = None) -> Groups:
    """Read every dump of a folder by itself and group the verdicts by coarse key.

    ``read`` gives the reports in the order of the paths; default: several processes, for many dumps.
    """
    from crashlab.report.groupwork import read_here

    paths, skipped = dumps_in(folder)
    if not paths:
        raise UnreadableInput(
            f"{folder} holds no GPU core dump.",
            hint="Give the folder that CUDA_COREDUMP_FILE points into, or a run directory.",
        )
    empty = {path for path in paths if _is_empty(path)}
    kept, copies = distinct([path for path in paths if path not in empty])
    # Two empty files are two crashes whose dumps were lost, not copies of one.
    read_ones = {os.fspath(path) for path in kept} | empty
    ordered = [path for path in paths if path in read_ones]
    found = group(folder, (read or read_here)(ordered, options), skipped)
    told = (
        f"{os.path.basename(os.fspath(copy.path))} = {os.path.basename(os.fspath(copy.original))}"
        for copy in copies[:_LISTED]
    )
    return found._replace(files=len(paths), copies=tuple(told))


def group(folder: str, reports: Iterable[facts.Report], skipped: int = 0) -> Groups:
    """The grouping of reports that exist already."""
    members: dict[str, list[facts.Report]] = {}
    unreadable: list[str] = []
    for report in reports:
        if report.verdict.kind == "unreadable":
            unreadable.append(f"{report.inputs[0].path}: {report.verdict.headline}")
            continue
        key = report.signature_key.coarse if report.signature_key else None
        members.setdefault(key or f"-|{report.verdict.kind}", []).append(report)
    ordered = sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))
    judged = sm_pattern(place for _, found in ordered for place in _places(found))
    return Groups(
        SCHEMA,
        now(),
        os.path.basename(os.path.abspath(folder)),
        tuple(_group(key, found) for key, found in ordered),
        tuple(unreadable),
        skipped,
        judged.suspect,
        judged.reasons,
    )


def _group(key: str, reports: list[facts.Report]) -> CrashGroup:
    verdict = reports[0].verdict
    times = sorted(
        stamp.value for r in reports if (stamp := (r.environment or {}).get("dump_time")) is not None
    )
    names = [r.inputs[0].path for r in reports]
    sms = {
        f"{r.verdict.where.device}:{sm}" for r in reports if r.verdict.where for sm in r.verdict.where.sms[:1]
    }
    return CrashGroup(
        key=None if key.startswith("-|") else key,
        kind=verdict.kind,
        headline=verdict.headline,
        kernel=verdict.kernel.name if verdict.kernel else None,
        crashes=len(reports),
        fine_keys=tuple(
            sorted({r.signature_key.fine for r in reports if r.signature_key and r.signature_key.fine})
        ),
        sms=tuple(sorted(sms)),
        hosts=tuple(sorted({host for name in names if (host := _host(name)) is not None})),
        first=times[0] if times else None,
        last=times[-1] if times else None,
        dumps=tuple(names[:_LISTED]),
    )


def _host(name: str) -> str | None:
    """The host in a name of the form ``HOST.PID.TIME.nvcudmp``, as ``%h.%p.%t`` writes it."""
    parts = name.removesuffix(".gz").removesuffix(".xz").split(".")
    if len(parts) >= 4 and parts[-1] == "nvcudmp" and parts[-2].isdigit() and parts[-3].isdigit():
        return ".".join(parts[:-3])
    return None


def _places(reports: list[facts.Report]) -> Iterator[CrashPlace]:
    for report in reports:
        verdict = report.verdict
        if verdict.where is None or verdict.kind == "hang":
            continue
        launch = verdict.kernel.launch if verdict.kernel else None
        blocks = launch.grid.x * launch.grid.y * launch.grid.z if launch and launch.grid else None
        name = verdict.kernel.name if verdict.kernel else None
        yield CrashPlace(
            name, verdict.where.device, verdict.where.sms[0] if verdict.where.sms else None, blocks
        )
