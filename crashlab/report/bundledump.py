"""A dump made fit for a bundle: memory emptied unless asked for, text in the rest redacted in place."""

from __future__ import annotations

from collections.abc import Iterator

from crashlab import facts
from crashlab.gpucore import layout
from crashlab.gpucore.dump import CoreDump
from crashlab.report.redact import Redactor

_MEMORY = (layout.MANAGED_MEMORY, layout.GLOBAL_MEMORY, layout.LOCAL_MEMORY, layout.SHARED_MEMORY)
_PIECE = 4 << 20
_OVERLAP = 4096


def stripped(dump: CoreDump, redactor: Redactor, *, memory: bool = False) -> Iterator[bytes]:
    """The dump in pieces, of the same total length, so that it opens like the original.

    Without ``memory`` the bytes of all memory sections are zeros.
    """
    holes = [] if memory else sorted(_memory(dump))
    at = 0
    for start, end in (*holes, (dump.size, dump.size)):
        yield from _redacted(dump, at, max(at, start), redactor)
        at = max(at, start)
        while at < end:
            step = min(_PIECE, end - at)
            yield bytes(step)
            at += step


def _memory(dump: CoreDump) -> Iterator[tuple[int, int]]:
    for kind in _MEMORY:
        for section in dump.sections.of_kind(kind):
            end = min(section.offset + section.size, dump.size)
            if section.size and section.offset < end:
                yield section.offset, end


def _redacted(dump: CoreDump, start: int, end: int, redactor: Redactor) -> Iterator[bytes]:
    """Pieces overlap while they are redacted, so that no text is missed at a seam."""
    while start < end:
        stop = min(start + _PIECE, end)
        before = max(0, start - _OVERLAP)
        piece = redactor.binary(bytes(dump.view[before : min(stop + _OVERLAP, end)]))
        yield piece[start - before : stop - before]
        start = stop


def faulting_cubin(dump: CoreDump, report: facts.Report) -> bytes | None:
    """The image that holds the verdict's PC; None when the report names none or the dump lacks it."""
    module = report.verdict.module
    if module is None or module.index is None:
        return None
    row = next((m for m in dump.modules if m.row == module.index), None)
    image = dump.image(row) if row is not None else None
    return bytes(image) if image else None


def why_no_cubin(dump: CoreDump, report: facts.Report) -> str:
    """Why :func:`faulting_cubin` has none, as a clause."""
    module = report.verdict.module
    if module is None or module.index is None:
        return "no loaded module is known to hold the PC of the verdict"
    if not any(m.row == module.index for m in dump.modules):
        return f"the dump has no module {module.index}, which the report names"
    return "the dump does not hold the image of the faulting module"
