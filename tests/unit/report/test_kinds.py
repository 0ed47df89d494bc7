"""Every kind of verdict has one name in words."""

from __future__ import annotations

import re
from pathlib import Path

from crashlab.cli import exitcode
from crashlab.report.kinds import spoken, title

ROOT = Path(__file__).resolve().parents[3]


def test_every_kind_with_an_exit_code_has_words() -> None:
    for kind in exitcode.KINDS:
        assert re.fullmatch(r"[A-Za-z -]+", spoken(kind))
        assert "-" not in spoken(kind) or kind == "host-death"
    assert (spoken("host-death"), title("host-death")) == ("host-side death", "Host-side death")


def test_a_kind_of_another_version_is_shown_as_it_is() -> None:
    assert (spoken("something-new"), title("something-new")) == ("something-new", "Something-new")
    assert title("") == ""


def test_the_documentation_calls_it_by_the_same_name() -> None:
    assert "host-side death" in (ROOT / "docs" / "reference" / "exit-codes.md").read_text()
