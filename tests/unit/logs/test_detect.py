"""One ``--log FILE`` takes any kind of text evidence, or a mixture."""

from __future__ import annotations

from pathlib import Path

import pytest

from crashlab.errors import UnreadableInput
from crashlab.logs.detect import EvidenceReader, detect, read_evidence, read_evidence_file
from crashlab.logs.text import read_lines
from tests.unit.logs.material import recorded

TRANSCRIPT = "Opening GPU coredump: /var/crash/a.core\n\nCUDA Exception: Warp Illegal Address\n"


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("driver/oob_load.txt.xz", {"driver-log"}),
        ("driver/torch_gather.txt.xz", {"driver-log"}),
        ("driver/unknown_flags.txt", {"driver-log"}),
        ("driver/disk_full.txt.xz", {"driver-log", "cuda-errors"}),
        ("vllm/oob.log.xz", {"driver-log", "server-log"}),
        ("vllm/nodump.log.xz", {"cuda-errors", "server-log"}),
        ("vllm/stall.log.xz", {"driver-log", "server-log"}),
        ("vllm/stall-probe.txt", {"metrics"}),
        ("vllm/stall-metrics.txt.xz", {"metrics"}),
        ("kernel/h200-each-fault.txt", {"kernel-log"}),
        ("sanitizer/memcheck-2025.3.txt", {"sanitizer", "cuda-errors"}),
    ],
)
def test_every_recorded_kind_is_recognised(name: str, kinds: set[str]) -> None:
    assert detect(recorded(name)) == kinds


def test_a_transcript_is_recognised_and_ordinary_text_is_nothing() -> None:
    assert detect(TRANSCRIPT) == {"transcript"}
    assert detect("the quick brown fox\n") == frozenset()
    assert detect(b"") == frozenset()


def test_a_pasted_issue_with_everything_in_it_feeds_every_reader() -> None:
    parts = ("driver/oob_load.txt.xz", "kernel/h200-each-fault.txt", "sanitizer/memcheck-2025.3.txt")
    evidence = read_evidence(b"\n".join(recorded(name) for name in parts) + TRANSCRIPT.encode())
    assert evidence.kinds >= {"driver-log", "kernel-log", "sanitizer", "transcript"}
    assert len(evidence.driver.dumps) == 1
    assert len(evidence.kernel.xids) > 10
    assert len(evidence.sanitizer.faults) == 7
    assert evidence.story is None


def test_a_file_gives_the_same_evidence_as_its_text(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(recorded("vllm/oob.log.xz"))
    assert read_evidence_file(str(log)) == read_evidence(recorded("vllm/oob.log.xz"))
    with pytest.raises(UnreadableInput):
        read_evidence_file(str(tmp_path / "no.log"))


def test_the_reader_says_when_nothing_may_be_killed() -> None:
    reader, states = EvidenceReader(), []
    for line in read_lines(recorded("driver/hang.txt.xz")):
        reader.feed(line)
        states.append(reader.dumping)
    assert (states[0], states[-1]) == (True, False)
