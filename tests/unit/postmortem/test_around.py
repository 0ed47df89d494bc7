"""The few instructions that a hurried answer reads are those that the whole function has there."""

from __future__ import annotations

import pytest

from crashlab.gpucore.dump import CoreDump
from crashlab.postmortem.attribute import attribute
from crashlab.postmortem.codemap import CodeHit, CodeMap
from crashlab.postmortem.disassembly import NATIVE, NVDISASM, Disassembly
from crashlab.postmortem.evidence import collect
from tests.support import corpus


def _hit(name: str) -> CodeHit | None:
    dump = CoreDump.open(corpus.path(name))
    groups = collect(dump)
    return attribute(dump, CodeMap(dump), groups[0]).code if groups else None


@pytest.mark.parametrize("name", corpus.names())
@pytest.mark.parametrize(("before", "after"), [(8, 6), (0, 0), (3, 10_000)])
def test_what_is_around_a_pc_stands_in_the_whole_function(name: str, before: int, after: int) -> None:
    hit = _hit(name)
    near = Disassembly(external=False)
    found = near.around(hit, before, after)
    if hit is None:
        assert found is None
        return
    whole = Disassembly(external=False).lines(hit)
    assert whole is not None
    assert found is not None
    at = next(i for i, line in enumerate(whole) if line.pc == hit.pc)
    assert found == whole[max(0, at - before) : at + after + 1]
    assert near.used == NATIVE
    assert near.lines(hit) == whole, "the function can still be asked for"


def test_without_a_decoder_of_our_own_it_is_told_why_there_is_nothing() -> None:
    hit = _hit("oob_load")
    reader = Disassembly(sass_by=NVDISASM, external=False)
    assert reader.around(hit, 8, 6) is None
    assert reader.used is None
    assert reader.missing == "no external program was to be started"
