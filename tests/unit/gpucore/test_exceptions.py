"""Names of GPU exceptions in everybody's spelling against the codes of the dump format."""

from __future__ import annotations

import pytest

from crashlab.gpucore.exceptions import code_of, spelled, title
from crashlab.gpucore.layout import EXCEPTION_NAMES


@pytest.mark.parametrize("code", EXCEPTION_NAMES)
def test_every_name_that_this_project_prints_is_understood(code: int) -> None:
    assert code_of(title(code)) == code


@pytest.mark.parametrize("code", EXCEPTION_NAMES)
def test_every_enumerator_is_understood(code: int) -> None:
    assert code_of(EXCEPTION_NAMES[code]) == code


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Invalid Managed Memory Access", 15),
        ("Non-migratable System-scoped Atomic Access", 16),
        ("Cluster Target Block Not Present", 18),
        ("Warp Barrier Arrival Mismatch", 31),
        ("Cluster Shared Memory Issue", 32),
    ],
)
def test_names_that_some_debugger_printed_are_understood(name: str, code: int) -> None:
    assert code_of(name) == code


def test_spelling_does_not_matter() -> None:
    assert spelled("  Warp Out-of-range  Address. ") == "warp out of range address"
    assert code_of("WARP_OUT_OF_RANGE_ADDRESS") == 5
    assert code_of("No such thing") is None
