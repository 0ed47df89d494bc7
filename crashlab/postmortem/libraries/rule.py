"""One rule of the attribution table. See ``load`` for what each field means in TOML."""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from typing import NamedTuple

#: Confidence levels, weakest first.
LEVELS = ("low", "medium", "high")

#: What a rule asks of the module that holds the kernel, as pairs of key and value. Lists mean "any of":
#: ``compiler``, ``siblings``, ``sections``: parts of the text, or of one of the texts; ``source``: parts of
#: the path of the faulting line's file (with a leading dot: its ending); ``arch``: parts of the architecture;
#: ``kernels_min``, ``kernels_max``: a number; ``line_info``: true or false.
Asked = tuple[tuple[str, tuple[str, ...] | int | bool], ...]

TEXT_KEYS = ("compiler", "source", "arch", "sections", "siblings")
NUMBER_KEYS = ("kernels_min", "kernels_max")


class Rule(NamedTuple):
    """One way to recognise a library's kernel. (One class only: each costs 0.4 ms of start-up time.)"""

    id: str
    library: str
    rank: int
    confidence: str
    head: tuple[str, ...] = ()
    name: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    match: str | None = None
    unless: tuple[str, ...] = ()
    module: Asked = ()
    support: Asked = ()
    family: str | None = None
    details: tuple[str, ...] = ()
    source_details: tuple[str, ...] = ()
    set: tuple[tuple[str, str], ...] = ()


#: A library: beginnings of the file names that bring its kernels, parts of its source paths, and whether its
#: kernels never come without one of those files.
Owner = tuple[tuple[str, ...], tuple[str, ...], bool]
