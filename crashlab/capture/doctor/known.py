"""Catalogue entries of the user's own: better found broken now than after the crash."""

from __future__ import annotations

from collections.abc import Iterator

from crashlab.capture.doctor.check import WARN, Check, ok
from crashlab.capture.doctor.place import Place
from crashlab.signatures import catalogue


def entries(place: Place) -> Iterator[Check]:
    """Can what ``$CRASHLAB_SIGNATURES`` names be used? Nothing is asked where it names nothing."""
    folders = catalogue.variable_folders(place.environ)
    if not folders:
        return
    why = "an entry that cannot be used is not held against a crash"
    bad = catalogue.unusable(place.environ)
    if bad:
        more = f"; and {len(bad) - 1} more" if len(bad) > 1 else ""
        found = f"{bad[0].path}: {bad[0].why}{more}"
        yield Check("signatures", WARN, found, why, "crashlab signatures check")
    else:
        yield ok("signatures", f"{', '.join(folders)}: every entry can be used", why)
