"""Several dumps of one crash: who is the origin, who only waited."""

from __future__ import annotations

from pathlib import Path

from crashlab.gpucore.dump import CoreDump
from crashlab.report import build, text
from crashlab.report.options import AnalyzeOptions
from tests.support import corpus
from tests.support.scene import simple_scene

FAST = AnalyzeOptions(fast=True)


def _dump(tmp_path: Path, name: str, *, pc: int | None, time: int) -> Path:
    data = bytearray(simple_scene(pc=pc).writer.build())
    dump = CoreDump(memoryview(bytes(data)))
    assert dump.meta is not None
    meta = dump.sections[dump.meta.section]
    data[meta.offset + 28 : meta.offset + 32] = time.to_bytes(4, "little")
    target = tmp_path / name
    target.write_bytes(data)
    return target


def test_the_earliest_exception_is_the_origin_whatever_the_order_given(tmp_path: Path) -> None:
    late = _dump(tmp_path, "late.core", pc=0x2000, time=200)
    early = _dump(tmp_path, "early.core", pc=0x1000, time=100)
    waits = _dump(tmp_path, "waits.core", pc=None, time=50)
    report = build.analyze([late, waits, early], FAST)
    assert report.verdict.pc == 0x1000
    assert [(c.input, c.role) for c in report.cases] == [
        ("waits.core", "bystander"), ("early.core", "origin"), ("late.core", "sympathetic"),
    ]  # fmt: skip
    assert any("early.core" in note for note in report.provenance)
    assert [i.path for i in report.inputs] == ["early.core", "late.core", "waits.core"]


def test_a_waiting_rank_is_a_bystander_with_the_reason() -> None:
    report = build.analyze([corpus.path("hang"), corpus.path("oob_load")], FAST)
    assert report.verdict.kind == "gpu-fault"
    waiting = next(b for b in report.bystanders if b.kernel.startswith("hang_kernel"))
    assert "no exception of its own" in waiting.why


def test_an_unreadable_dump_beside_a_good_one_is_listed_and_does_not_hide_it() -> None:
    report = build.analyze([corpus.path("cut_short"), corpus.path("oob_load")], FAST)
    assert report.verdict.kind == "gpu-fault"
    assert {c.input: c.role for c in report.cases}["cut_short.core"] == "unreadable"


def test_without_any_exception_the_verdict_stays_a_hang() -> None:
    report = build.analyze([corpus.path("hang"), corpus.path("barrier_hang")], FAST)
    assert report.verdict.kind == "hang"
    assert any("none of them has an exception" in note for note in report.provenance)


def test_dumps_that_were_written_long_after_the_first_are_not_called_sympathetic(tmp_path: Path) -> None:
    first = _dump(tmp_path, "first.core", pc=0x1000, time=1000)
    same = _dump(tmp_path, "same.core", pc=0x2000, time=1300)
    later = _dump(tmp_path, "later.core", pc=0x3000, time=4000)
    report = build.analyze([first, same, later], FAST)
    assert [(c.input, c.role) for c in report.cases] == [
        ("first.core", "origin"), ("same.core", "sympathetic"), ("later.core", "apart"),
    ]  # fmt: skip
    caution = report.verdict.does_not_mean[-1]
    assert "later.core and first.core were written 50 minutes apart" in caution
    assert "may be of different crashes" in caution
    assert "same.core" not in caution
    assert "apart        later.core" in text.render(report)


def test_a_rank_that_was_dumped_an_hour_before_did_not_wait_for_this_crash(tmp_path: Path) -> None:
    waits = _dump(tmp_path, "waits.core", pc=None, time=1000)
    fault = _dump(tmp_path, "fault.core", pc=0x1000, time=4600)
    report = build.analyze([waits, fault], FAST)
    assert {c.input: c.role for c in report.cases} == {"waits.core": "apart", "fault.core": "origin"}
    assert not any("waits.core" in b.why for b in report.bystanders)


def test_dumps_close_together_carry_no_caution_about_time() -> None:
    report = build.analyze([corpus.path("hang"), corpus.path("oob_load")], FAST)
    assert not any("apart" in sentence for sentence in report.verdict.does_not_mean)


def test_a_log_beside_several_unreadable_dumps_is_an_input_once(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("RuntimeError: CUDA error: an illegal memory access was encountered\n")
    for name, content in (("a.core", b"nothing"), ("b.core", b"something")):
        (tmp_path / name).write_bytes(content)
    options = FAST._replace(logs=(str(log),))
    report = build.analyze([tmp_path / "a.core", tmp_path / "b.core"], options)
    assert [item.path for item in report.inputs] == ["a.core", "server.log", "b.core"]
