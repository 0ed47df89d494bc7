"""The bytes of a dump: mapped, never read whole; compressed files are unpacked first, within limits."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from typing import BinaryIO

from crashlab.errors import UnreadableDump
from crashlab.inflate import TooMuchMemory, compression, inflate

_IN_MEMORY = 64 << 20
_RESERVE = 256 << 20

DumpPath = str | os.PathLike[str]


def open_view(path: DumpPath, *, unpack_limit: int | None = None) -> tuple[memoryview, int, str | None]:
    """Map a dump.

    Returns its bytes, their count and the compression (``gzip``, ``xz`` or None). A compressed dump
    is unpacked into an unlinked temporary file (small ones into memory), at most ``unpack_limit``
    bytes; without a limit, what the temporary folder can hold less 256 MiB.
    """
    name = os.fspath(path)
    try:
        # O_NONBLOCK: a FIFO given by mistake must not block for ever.
        handle = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        raise UnreadableDump(
            f"Cannot open {os.path.basename(name)}: {error.strerror}.",
            reason="not-found",
            hint="Check the path.",
        ) from error
    except ValueError as error:  # embedded NUL
        raise UnreadableDump(f"Not a usable path: {error}.", reason="not-found") from error
    try:
        return _view_of(handle, os.path.basename(name), unpack_limit)
    finally:
        os.close(handle)  # a mapping outlives its descriptor


def _view_of(handle: int, name: str, limit: int | None) -> tuple[memoryview, int, str | None]:
    import stat

    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        what = "a folder, not a file" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise UnreadableDump(
            f"{name} is {what}.",
            reason="not-found",
            hint="Give the dump file itself, or a folder of dumps to 'crashlab analyze DIR'.",
        )
    if status.st_size == 0:
        return memoryview(b""), 0, None
    kind = compression(os.pread(handle, 6, 0))
    if kind == "zstd":
        raise UnreadableDump(
            f"{name} is compressed with zstd, which is not read here.",
            reason="not-elf",
            hint="Unpack it first: zstd -d.",
        )
    if kind is not None:
        with os.fdopen(os.dup(handle), "rb") as file:
            return *_unpack(file, kind, limit), kind
    return _map(handle), status.st_size, None


def _map(handle: int) -> memoryview:
    try:
        return memoryview(mmap.mmap(handle, 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise UnreadableDump(f"Cannot map the dump: {error}.", reason="not-found") from error


def _unpack(file: BinaryIO, kind: str, limit: int | None) -> tuple[memoryview, int]:
    """Stream-decompress; a stream that ends early yields what there was, as a cut file would."""
    import tempfile

    if limit is None:
        room = os.statvfs(tempfile.gettempdir())
        limit = max(room.f_bavail * room.f_frsize - _RESERVE, _IN_MEMORY)
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as out:
        size = 0
        for chunk in _pieces(file, kind):
            size += len(chunk)
            if size > limit:
                raise UnreadableDump(
                    f"The {kind} dump unpacks to more than {limit:,} bytes, which is all there is room for.",
                    reason="too-large",
                    hint="Unpack it yourself onto a larger disk, or set TMPDIR to a folder with room.",
                )
            if size > _IN_MEMORY:
                out.rollover()  # before the write: a byte behind gigabytes of zeros would fill memory with them
            if chunk.count(0) == len(chunk):
                out.seek(len(chunk), os.SEEK_CUR)  # keep runs of zeros sparse
            else:
                out.write(chunk)
        if size <= _IN_MEMORY:
            out.seek(0)
            return memoryview(out.read(size).ljust(size, b"\0")), size
        out.rollover()
        out.truncate(size)
        out.flush()
        return memoryview(mmap.mmap(out.fileno(), size, access=mmap.ACCESS_READ)), size


def _pieces(file: BinaryIO, kind: str) -> Iterator[bytes]:
    try:
        yield from inflate(file, kind)
    except TooMuchMemory as error:
        raise UnreadableDump(str(error), reason="too-large", hint=error.hint) from error
