"""Check whole folders of entries: schema, proofs, what a draft left open, and the compiled catalogue's age."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from crashlab.signatures import catalogue, placeholders, proof, schema
from crashlab.signatures.entry import Entry
from crashlab.signatures.errors import BadEntry


class CheckResult(NamedTuple):
    """``entries`` that loaded, every fixture's outcome, and one sentence a problem."""

    entries: int
    outcomes: tuple[proof.Outcome, ...]
    problems: tuple[str, ...]


def run(folders: Sequence[str]) -> CheckResult:
    """Validate each file and run its proofs; a broken entry is a problem, not an exception.

    Raises UsageError for a folder that cannot be read.
    """
    outcomes: list[proof.Outcome] = []
    problems: list[str] = []
    entries: list[Entry] = []
    bundled = {card.id: card for card in catalogue.cards()}
    for folder in folders:
        own: list[Entry] = []
        for path in catalogue.toml_files(folder):
            try:
                table = catalogue.read_toml(path)
                entry = schema.entry_from(table, source=folder)
                if any(other.id == entry.id for other in own):
                    raise BadEntry(f"the id {entry.id} is taken by another file of this folder")
                catalogue.refuse_taken(entry, bundled.get(entry.id))
                own.append(entry)
                outcomes += proof.check(entry, table)
            except BadEntry as error:
                problems.append(
                    f"{os.path.basename(path)}: {error}" + (f" {error.hint}" if error.hint else "")
                )
        if os.path.abspath(folder) == os.path.abspath(catalogue.KNOWN) and not _is_compiled(own):
            problems.append("known.json is out of date: run scripts/gen_signature_docs.py of the source tree")
        entries += own
    problems += [f"{entry.id}: {what}" for entry in entries for what in placeholders.left_in(entry)]
    problems += [
        f"{outcome.entry}: {outcome.fixture}: {outcome.problem}" for outcome in outcomes if outcome.problem
    ]
    return CheckResult(len(entries), tuple(outcomes), tuple(problems))


def _is_compiled(entries: list[Entry]) -> bool:
    try:
        with open(catalogue.COMPILED, encoding="utf-8") as stream:
            return stream.read() == catalogue.compiled(entries)
    except OSError:
        return False
