"""Make a run directory small enough to carry home: one compressed tar file, the dump inside it if it fits."""

from __future__ import annotations

import lzma
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

FILE_LIMIT = 16_000_000
TOTAL_LIMIT = 64_000_000
FILES = 8
_LOG_HEAD, _LOG_TAIL = 512 << 10, 4 << 20
_LEFT_OUT = ("pipes", ".reserve", "cores")


def pack(folder: Path, target: Path, room: int) -> list[str]:
    """Write `target` (`.tar.xz`) with at most `room` bytes; what had to be left out, in words."""
    dumps = sorted(path for path in (folder / "cores").glob("*") if path.is_file()) if folder.is_dir() else []
    if not folder.is_dir():
        return ["there is no run directory"]
    told: list[str] = []
    while True:
        told_now = _write(folder, target, dumps)
        if target.stat().st_size <= room:
            return [*told, *told_now]
        if not dumps:
            target.unlink()
            return [*told, f"{target.name} has more than {room:,} bytes and was left out"]
        told.append(f"the dump {dumps[-1].name} ({dumps[-1].stat().st_size:,} bytes) found no room")
        dumps = dumps[:-1]


def _write(folder: Path, target: Path, dumps: list[Path]) -> list[str]:
    told: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place, folder.name)
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
        for log in sorted(copy.rglob("*")):
            if log.is_file() and log.stat().st_size > _LOG_HEAD + _LOG_TAIL:
                told.append(f"the middle of {log.relative_to(copy)} was cut out")
                data = log.read_bytes()
                log.write_bytes(data[:_LOG_HEAD] + b"\n[cut]\n" + data[-_LOG_TAIL:])
        (copy / "cores").mkdir()
        for dump in dumps:
            _compress(dump, copy / "cores" / f"{dump.name}.xz")
        with lzma.open(target, "wb", preset=3) as out, tarfile.open(fileobj=out, mode="w") as archive:
            archive.add(copy, folder.name)
    return told


def _compress(source: Path, target: Path) -> None:
    """With the xz program on all processors where there is one: a dump has a hundred megabytes."""
    with target.open("wb") as out:
        if shutil.which("xz"):
            subprocess.run(["xz", "-T0", "-3", "-c", str(source)], stdout=out, check=True)
            return
        with lzma.open(out, "wb", preset=1) as packed, source.open("rb") as data:
            shutil.copyfileobj(data, packed, 1 << 20)
