"""Raw log bytes to clean, numbered, bounded lines: the first step of every reader in this room.

Logs arrive through terminals, containers and journals, so one line may carry colour codes, NUL
bytes, half a UTF-8 sequence, several carriage-return updates of a progress bar, or megabytes of
text. Everything here is one pass and bounded: a line longer than :data:`MAX_LINE` bytes keeps its
beginning. Patterns have no nested quantifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NamedTuple

from crashlab.logs.lazy import Lazy

MAX_LINE = 64 * 1024
_CHUNK = 1 << 20
_EMPTY = (b"", b"\r")
_MOST_UNPACKED = 16 << 30
_UNPACKED_ANYWAY, _RATIO = 64 << 20, 500
"""Text packs to a tenth or a fiftieth. What packs to less than a five-hundredth was made to keep a reader busy."""

_ANSI = Lazy(r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|\x1b[@-_]?")
# C0 without tab and carriage return, DEL and C1; also the replacement for undecodable bytes stays.
_CONTROL = Lazy(r"[\x00-\x08\x0a-\x0c\x0e-\x1f\x7f-\x9f]")

# `vllm-1  | text` (docker compose); the CRI, docker and Ray time stamps; syslog and journalctl.
_COMPOSE = Lazy(r"([\w.-]{1,64}) {1,40}\| ?")
_ISO = Lazy(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?) (?:std(?:out|err) [FP] )?"
    r"|(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,9}) (?=\()"
)
_SYSLOG = Lazy(
    r"([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?:[\w.-]{1,255} )?([\w./@-]{1,64})(?:\[(\d{1,9})\])?: "
)
_SYSLOG_AFTER_ISO = Lazy(r"[\w.-]{1,255} ([\w./@-]{1,64})(?:\[(\d{1,9})\])?: ")
# `(EngineCore pid=793) `, `(VllmWorker rank=0 pid=12) `, Ray's `(Name pid=12, ip=…) `.
_SERVER = Lazy(r"\(([^\s=]{1,120})(?: rank=(\d{1,6}))? pid=(\d{1,9})(?:, [^()]{0,80})?\) ?")
_RANK = Lazy(r"\[(?:default)?(rank)?(\d{1,6})\]: ?")


class Line(NamedTuple):
    """One line as a reader gets it.

    ``number`` is the 1-based line of the file; the parts of a line that a carriage return splits
    share it. ``process`` and ``pid`` come from a server's or journal's prefix, ``stamp`` is the
    time that a container or journal put in front; all three are None without such a prefix.
    """

    number: int
    text: str
    process: str | None = None
    pid: int | None = None
    rank: int | None = None
    stamp: str | None = None


def clean(raw: bytes | str) -> str:
    """Decode and strip one line: no ANSI codes, no control characters but tab and carriage return."""
    text = raw[:MAX_LINE].decode("utf-8", "replace") if isinstance(raw, bytes) else raw[:MAX_LINE]
    text = text.rstrip("\r\n")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if _CONTROL.search(text):
        text = _CONTROL.sub("", text)
    return text


def split_prefix(text: str, number: int = 0) -> Line:
    """Take the container, journal, rank and server prefixes off ``text`` (each at most once or twice)."""
    stamp: str | None = None
    process: str | None = None
    pid: int | None = None
    rank: int | None = None
    at = 0
    if " | " in text[:108] and (found := _COMPOSE.match(text)):
        at = found.end()
    head = text[at : at + 1]
    if head.isdigit() and (found := _ISO.match(text, at)):
        stamp, at = found.group(1) or found.group(2), found.end()
        if sys_found := _SYSLOG_AFTER_ISO.match(text, at):
            process, at = sys_found.group(1), sys_found.end()
            pid = int(sys_found.group(2)) if sys_found.group(2) else None
    elif head.isupper() and (found := _SYSLOG.match(text, at)):
        stamp, process, at = found.group(1), found.group(2), found.end()
        pid = int(found.group(3)) if found.group(3) else None
    # Two rounds: vLLM's forked helpers print the prefix twice, and torchrun puts a rank before it.
    for _ in range(3):
        if text.startswith("(", at) and (found := _SERVER.match(text, at)):
            process, pid, at = found.group(1), int(found.group(3)), found.end()
            rank = int(found.group(2)) if found.group(2) else rank
        elif text.startswith("[", at) and (found := _RANK.match(text, at)):
            rank, at = int(found.group(2)), found.end()
        else:
            break
    return Line(number, text[at:] if at else text, process, pid, rank, stamp)


class LineSplitter:
    """Bytes in, :class:`Line` out; holds at most one unfinished line of :data:`MAX_LINE` bytes.

    Of empty lines in a row the first stands for all: no reader learns more from the rest, each of which
    would cost as much as a line with something in it. They are numbered all the same.
    """

    def __init__(self) -> None:
        self.number = 0
        self._held = b""
        self._after_empty = False

    def feed(self, chunk: bytes) -> Iterator[Line]:
        """Yield the lines that ``chunk`` completes."""
        *whole, rest = chunk.split(b"\n")
        for raw in whole:
            if self._held:
                raw, self._held = self._held + raw[:MAX_LINE], b""
            yield from self._lines(raw)
        room = MAX_LINE - len(self._held)
        self._held += rest[:room]

    def finish(self) -> Iterator[Line]:
        """Yield the last line if it had no newline."""
        if self._held:
            raw, self._held = self._held, b""
            yield from self._lines(raw)

    def _lines(self, raw: bytes) -> Iterator[Line]:
        self.number += 1
        empty = raw in _EMPTY
        if empty and self._after_empty:
            return
        self._after_empty = empty
        yield from parts(clean(raw), self.number)


def parts(text: str, number: int) -> Iterator[Line]:
    """The carriage-return separated updates of one cleaned line, each with its prefix taken off."""
    if "\r" not in text:
        yield split_prefix(text, number)
        return
    for piece in text.split("\r"):
        if piece:
            yield split_prefix(piece, number)


def read_lines(source: Iterable[bytes | str] | bytes | str) -> Iterator[Line]:
    """Lines of a whole text, or of an iterable of lines (a list, an open file).

    For files of unknown shape use :func:`read_file`, whose memory is bounded even for one huge line.
    """
    if isinstance(source, str):
        source = source.encode("utf-8", "surrogatepass")
    if isinstance(source, bytes):
        splitter = LineSplitter()
        yield from splitter.feed(source)
        yield from splitter.finish()
        return
    for number, raw in enumerate(source, 1):
        yield from parts(clean(raw), number)


def read_file(path: str, note: Callable[[str], None] | None = None) -> Iterator[Line]:
    """Stream a log file (plain, gzip or xz) in pieces of 1 MiB.

    ``note`` gets a sentence when a compressed file was cut short or is damaged. Raises UnreadableInput if it
    is no file that can be read, a GPU core dump, compressed with zstd, or unpacks to more than
    16 GiB or to more than 500 times its size.
    """
    from crashlab.errors import UnreadableInput
    from crashlab.inputfile import open_regular

    splitter = LineSplitter()
    with open_regular(path, "log") as stream:
        try:
            for piece in _pieces(stream, path, note):
                yield from splitter.feed(piece)
        except OSError as error:
            raise UnreadableInput(f"cannot read the log {path}: {error.strerror or error}") from error
    yield from splitter.finish()


def _pieces(stream: BinaryIO, path: str, note: Callable[[str], None] | None) -> Iterator[bytes]:
    from crashlab.errors import UnreadableInput
    from crashlab.inflate import compression, inflate

    magic = stream.read(6)
    stream.seek(0)
    if magic[:4] == b"\x7fELF":
        raise UnreadableInput(
            f"{path} is an ELF file, not a log",
            hint="A GPU core dump is given by itself: crashlab analyze FILE.",
        )
    kind = compression(magic)
    if kind is None:
        while chunk := stream.read(_CHUNK):
            yield chunk
        return
    if kind == "zstd":
        raise UnreadableInput(
            f"the log {path} is compressed with zstd, which is not read here",
            hint="Unpack it first: zstd -d.",
        )
    import os

    most = min(_MOST_UNPACKED, max(_UNPACKED_ANYWAY, _RATIO * os.fstat(stream.fileno()).st_size))
    size = 0

    def damaged() -> None:
        if note is not None:
            name = path.rsplit("/", 1)[-1]
            note(f"{name} is cut short or damaged: it was read up to byte {size:,} of what it unpacks to.")

    for piece in inflate(stream, kind, damaged):
        size += len(piece)
        if size > most:
            raise UnreadableInput(
                f"the log {path} unpacks to more than {most:,} bytes",
                hint="Unpack it yourself and give the part around the crash.",
            )
        yield piece
