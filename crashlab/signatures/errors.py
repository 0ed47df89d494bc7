"""What goes wrong with a catalogue entry, a pattern or a version range."""

from __future__ import annotations

from crashlab.errors import UnreadableInput


class BadEntry(UnreadableInput):
    """A signature cannot be used: broken TOML, unknown key, unsafe pattern, missing proof."""
