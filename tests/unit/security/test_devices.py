"""Pipes and devices where files are expected: refused at once, by every reader of the library."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import crashlab
from crashlab.errors import CrashlabError
from crashlab.gpucore.dump import CoreDump
from crashlab.quality.usertasks import load_tasks
from crashlab.report import bundlecheck
from crashlab.signatures.catalogue import load_folder, read_toml
from crashlab.signatures.environment import read_file
from crashlab.soak.prompts import Source, load_source
from crashlab.soak.replay import load_replay

READERS: dict[str, Callable[[str], object]] = {
    "report": crashlab.load_report,
    "dump": CoreDump.open,
    "bundle": lambda path: bundlecheck.check(Path(path)),
    "entry": read_toml,
    "environment": read_file,
    "prompts": load_source,
    "replay": lambda path: load_replay(path, Source()),
    "questions": lambda path: load_tasks(path, 1, None),
    "questions as TOML": lambda path: load_tasks(path, 1, None),
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "what", ["fifo", "/dev/zero", "/dev/tty", "folder", "gone", "nul\0byte", "", "socket"]
)
def test_it_is_refused_at_once(reader: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / ("x.toml" if "TOML" in reader else "x")
    if what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "socket":
        os.mknod(path, 0o140600)
    given = what if what.startswith(("/", "nul")) or not what else str(path)
    with pytest.raises(CrashlabError):
        READERS[reader](given)


@pytest.mark.timeout(30)
def test_a_pipe_among_the_entries_of_a_catalogue_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.toml")
    with pytest.raises(CrashlabError):
        load_folder(str(tmp_path))
