"""Files that come compressed, as people attach them: gzip and xz, in pieces, within limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from crashlab.errors import UnreadableInput

_CHUNK = 1 << 20
_DICTIONARY = 1 << 30
"""Memory for unpacking: xz -9 takes 65 MiB, a header may ask for 4 GiB."""


class TooMuchMemory(UnreadableInput):
    """A compressed file whose header asks for more memory than unpacking may take."""


def compression(magic: bytes) -> str | None:
    """``gzip``, ``xz`` or ``zstd`` (which is not read here) by the first bytes of a file; None for any other."""
    if magic[:2] == b"\x1f\x8b":
        return "gzip"
    if magic[:6] == b"\xfd7zXZ\0":
        return "xz"
    return "zstd" if magic[:4] == b"\x28\xb5\x2f\xfd" else None


def inflate(file: BinaryIO, kind: str, on_damage: Callable[[], None] | None = None) -> Iterator[bytes]:
    """Decompressed pieces of at most 1 MiB of a gzip or xz file, up to the end or to the first damaged byte.

    ``on_damage`` is called where that comes before the end that the format foresees. Raises TooMuchMemory
    where the file's own header asks for it; how much may come out is for the caller to limit.
    """
    import lzma
    import zlib

    def fresh() -> Any:
        return zlib.decompressobj(wbits=31) if kind == "gzip" else lzma.LZMADecompressor(memlimit=_DICTIONARY)

    def damaged() -> None:
        if on_damage is not None:
            on_damage()

    stream, data = fresh(), b""
    while True:
        if not data:
            data = file.read(_CHUNK)
            if not data:
                damaged()
                return
        try:
            if kind == "gzip":
                piece = stream.decompress(data, _CHUNK)
                data = stream.unconsumed_tail
            else:
                piece = stream.decompress(data, _CHUNK)
                data = b""
                while not stream.eof and not stream.needs_input:
                    if piece:
                        yield piece
                    piece = stream.decompress(b"", _CHUNK)
        except (zlib.error, lzma.LZMAError, EOFError) as error:
            if "limit exceeded" in str(error):  # the only sign that liblzma gives of it
                raise TooMuchMemory(
                    f"Unpacking this file would take more than {_DICTIONARY:,} bytes of memory.",
                    hint="Unpack it yourself: xz -d.",
                ) from error
            damaged()
            return
        if piece:
            yield piece
        if stream.eof:  # several members may stand behind one another
            data = stream.unused_data.lstrip(b"\0") or file.read(_CHUNK)
            if not data:
                return
            stream = fresh()
