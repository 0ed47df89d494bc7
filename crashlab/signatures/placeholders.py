"""Texts that a draft holds where only a person knows what belongs there, and whether an entry still has them."""

from __future__ import annotations

from crashlab.signatures.entry import Entry

REFERENCE = "add the issue, pull request or release note"
CAUSE = "a cause that nobody has described yet"
TEST = "name the change that must make it go away"


def left_in(entry: Entry) -> list[str]:
    """A sentence for each placeholder that nobody has replaced."""
    found = [
        (REFERENCE in entry.references, "references", REFERENCE, "name the issue, or take the line out"),
        (any(theory.cause == CAUSE for theory in entry.theories), "cause", CAUSE, "describe it"),
        (
            any(TEST in theory.tests for theory in entry.theories),
            "tests",
            TEST,
            "name one, or take the line out",
        ),
    ]
    return [f"{key} still says {text!r}, as drafted: {what}" for there, key, text, what in found if there]
