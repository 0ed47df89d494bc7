"""Exception names of debuggers against the codes of the dump format."""

from __future__ import annotations

import pytest

from crashlab.debugger.exception_names import code_of, code_of_signal, normalise
from crashlab.gpucore import exceptions
from crashlab.gpucore.layout import EXCEPTION_NAMES


@pytest.mark.parametrize("code", [code for code in EXCEPTION_NAMES if code not in (11, 15, 16)])
def test_every_name_that_this_project_prints_is_understood(code: int) -> None:
    assert code_of(exceptions.title(code)) == code


@pytest.mark.parametrize("code", [code for code in EXCEPTION_NAMES if code not in (15, 16)])
def test_every_enumerator_is_understood(code: int) -> None:
    assert code_of(EXCEPTION_NAMES[code]) == code


def test_spelling_does_not_matter() -> None:
    assert normalise("  Warp Out-of-range  Address. ") == "warp out of range address"
    assert code_of("WARP_OUT_OF_RANGE_ADDRESS") == 5
    assert code_of("No such thing") is None


def test_signals_17_and_18_stand_the_other_way_round() -> None:
    assert (code_of_signal(17), code_of_signal(18), code_of_signal(14)) == (18, 17, 14)
    assert code_of_signal(0) is None
