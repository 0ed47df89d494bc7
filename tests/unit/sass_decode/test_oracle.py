"""What older releases of nvdisasm print is read in the spelling of release 13."""

from __future__ import annotations

from pathlib import Path

import pytest

# conftest.py puts scripts/sass on the import path
from oracle import Oracle

_LINES = (
    "FADD R1, R2, R3                                   ?trans5 ?PM1",
    "HADD2 R0, R1, +QNAN , +QNAN",
    "BMOV.32  ???49, R1",
    "EXIT",
)


def _nvdisasm(folder: Path, release: str) -> str:
    path = folder / "nvdisasm"
    listing = "".join(f"        /*{16 * i:04x}*/    {line} ;\n" for i, line in enumerate(_LINES))
    (folder / "listing").write_text(listing)
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then echo "Cuda compilation tools, release {release}, V"\n'
        f'else cat "{folder}/listing"; fi\n'
    )
    path.chmod(0o755)
    return str(path)


def test_release_12_loses_its_notes_and_is_not_believed_about_nan(tmp_path: Path) -> None:
    texts = Oracle(_nvdisasm(tmp_path, "12.8"), "SM70").ask([0] * len(_LINES))
    assert texts == ["FADD R1, R2, R3", None, "BMOV.32  ???49, R1", "EXIT"]


@pytest.mark.parametrize("release", ["13.0", "13.5"])
def test_release_13_is_taken_at_its_word(tmp_path: Path, release: str) -> None:
    assert Oracle(_nvdisasm(tmp_path, release), "SM90a").ask([0] * len(_LINES)) == list(_LINES)
