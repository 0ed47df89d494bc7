"""The numbers printed in docs/explanation/statistics.md are those that the functions give."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from crashlab.stats import course, rates

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "explanation" / "statistics.md").read_text()
TIMES = (22.4, 23.0, 23.6)


def row(head: str) -> list[str]:
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {head} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_the_table_of_exposures() -> None:
    counts, factors = row("baseline faults"), row("clean exposure")
    for count, factor in zip(counts, factors, strict=True):
        events = int(count) if count.isdigit() else None
        assert float(factor) == pytest.approx(rates.clean_needed_factor(events), abs=0.006)


@pytest.mark.parametrize("crashes", [1, 2, 3])
def test_the_field_case(crashes: int) -> None:
    exposure, p = row(str(crashes))
    assert exposure == f"{23 * crashes} min"
    assert float(p) == pytest.approx(rates.clean_probability(crashes, 23.0 * crashes, 50.0) or 0.0, abs=0.006)
    assert row("rate known exactly")[1].endswith(f"{math.exp(-50 / 23):.2f}")


def test_the_sentences_of_the_field_case() -> None:
    text = " ".join(PAGE.split())
    assert f"probability {course.bunching_probability(TIMES):.4f}." in text
    assert f"beyond 50 minutes has probability {course.outlasting_probability(TIMES, 50.0):.5f}." in text
    assert re.search(r"one time in four", text)
    assert course.outlived_probability(3, 1) == 1 / 4
    assert "1/20" in text
    assert course.outlived_probability(3, 3) == 1 / 20
    assert (rates.clean_needed(3, 69.0) or 0.0) / 60 == pytest.approx(2.0, abs=0.05)
