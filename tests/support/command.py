"""Run a crashlab command inside the test process and collect what a shell would see."""

from __future__ import annotations

import contextlib
import io
import sys
from typing import NamedTuple
from unittest import mock

from crashlab.cli.entry import main


class Completed(NamedTuple):
    code: int
    out: str
    err: str


class _Stream(io.TextIOWrapper):
    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="", write_through=True)

    def text(self) -> str:
        self.flush()
        raw = self.buffer
        assert isinstance(raw, io.BytesIO)
        return raw.getvalue().decode("utf-8", "replace")


def run_cli(*arguments: str, stdin: bytes = b"") -> Completed:
    """Exit code, stdout and stderr of ``crashlab ARGUMENTS``."""
    out, err = _Stream(), _Stream()
    source = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8", errors="replace")
    code = 0
    with (
        mock.patch.object(sys, "stdin", source),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main(list(arguments))
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
    return Completed(code, out.text(), err.text())
