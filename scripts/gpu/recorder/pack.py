"""Packs what was recorded into a few tar files of bounded size."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import NamedTuple


class Item(NamedTuple):
    name: str  # its path inside the archive
    path: Path


def _cost(path: Path) -> int:
    """Bytes in a tar file: a header, and the content in blocks of 512."""
    return 512 + (path.stat().st_size + 511) // 512 * 512


def pack(items: list[Item], out: Path, part_bytes: int, total_bytes: int) -> tuple[dict[str, str], list[str]]:
    """Fills part0.tar, part1.tar, … in the order of `items`, each into the first part with room.

    Returns ({name: part}, [names that were left out because nothing had room]).
    """
    reserve = 20_480  # the end-of-archive blocks
    rooms: list[int] = []
    placed: dict[str, str] = {}
    left_out: list[str] = []
    members: list[list[Item]] = []
    for item in items:
        cost = _cost(item.path)
        number = next((index for index, room in enumerate(rooms) if room >= cost), None)
        if number is None and (len(rooms) + 1) * part_bytes <= total_bytes and cost <= part_bytes - reserve:
            rooms.append(part_bytes - reserve)
            members.append([])
            number = len(rooms) - 1
        if number is None:
            left_out.append(item.name)
            continue
        rooms[number] -= cost
        members[number].append(item)
        placed[item.name] = f"part{number}.tar"
    for number, part in enumerate(members):
        with tarfile.open(out / f"part{number}.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
            for item in part:
                archive.add(item.path, item.name, recursive=False)
    return placed, left_out
