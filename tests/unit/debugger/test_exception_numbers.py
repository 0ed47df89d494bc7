"""cuda-gdb's own numbers of exceptions against the codes of the dump format."""

from __future__ import annotations

from crashlab.debugger.exception_numbers import code_of_signal


def test_signals_17_and_18_stand_the_other_way_round() -> None:
    assert (code_of_signal(17), code_of_signal(18), code_of_signal(14)) == (18, 17, 14)
    assert code_of_signal(0) is None
