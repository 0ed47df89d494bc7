"""Ten thousand damaged dumps: each ends in a report or a CrashlabError, in bounded time and memory."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.errors import CrashlabError
from crashlab.gpucore.dump import CoreDump
from crashlab.report import build, jsonio, text
from crashlab.report.options import AnalyzeOptions
from tests.support import corpus
from tests.support.mutate import mutate
from tests.support.scene import simple_scene

BASES = (
    "oob_load", "oob_store", "shared_oob", "stack", "hang", "tma", "seed_sm120", "barrier_hang", "assert", "badpc",
    "deep", "oob_load_debug", "many", "two_devices", "trap",
)  # fmt: skip
CHUNKS, EACH = 20, 500
SECONDS = 5.0
"""For one dump: a hundred times what the slowest of them takes."""


def survive(path: Path) -> None:
    """Analyze and render; anything but a report or a CrashlabError is a failure."""
    try:
        report = build.analyze([path], AnalyzeOptions(sass_by="native", debugger="never"))
    except CrashlabError:
        return
    assert report.verdict.headline
    text.render(report, verbose=True)
    jsonio.dumps(report)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_damaged_dumps_end_in_a_report_or_an_error(chunk: int, tmp_path: Path) -> None:
    target = tmp_path / "damaged.core"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in range(chunk * EACH, (chunk + 1) * EACH):
        name = BASES[seed % len(BASES)]
        target.write_bytes(mutate(corpus.raw(name), seed))
        start = time.perf_counter()
        survive(target)
        assert time.perf_counter() - start < SECONDS, f"seed {seed} of {name}"
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 512 << 10, f"{grown} KiB more for seeds {chunk * EACH} to {(chunk + 1) * EACH}"


@pytest.mark.parametrize("name", ["oob_load", "oob_store"])
def test_a_dump_cut_at_every_section_boundary(name: str, tmp_path: Path) -> None:
    raw = corpus.raw(name)
    dump = CoreDump(memoryview(raw))
    cuts = {0, 1, 63, 64}
    for index in range(len(dump.sections)):
        section = dump.sections[index]
        cuts |= {section.offset, section.offset + section.size, section.offset + section.size - 1}
    target = tmp_path / "cut.core"
    for cut in sorted(c for c in cuts if 0 <= c < len(raw)):
        target.write_bytes(raw[:cut])
        report = build.analyze([target], AnalyzeOptions(fast=True))
        assert report.verdict.kind == "unreadable", cut


@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(CrashlabError):
        CoreDump(memoryview(data))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=40),
    st.sampled_from([346, 525, 580, 615]),
)
def test_arbitrary_bytes_in_an_artificial_dump(changes: list[tuple[int, int]], release: int) -> None:
    data = bytearray(simple_scene(release=release, pc=0x1000).writer.build())
    for at, value in changes:
        data[at % len(data)] = value
    try:
        dump = CoreDump(memoryview(bytes(data)))
    except CrashlabError:
        return
    for warp in dump.warps:
        for lane in dump.lanes(warp):
            dump.registers(lane)
            dump.backtrace(lane)
        cta = dump.cta_of(warp)
        if cta is not None:
            dump.grid_of(cta)
            dump.shared_memory(cta)
