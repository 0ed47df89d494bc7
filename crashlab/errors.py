"""Everything the library raises on purpose: one tree, each error with its exit code and a next step.

Exit codes are those of ``docs/reference`` and never change meaning: 2 usage, 3 prerequisite missing
or input unreadable, 1 internal.
"""

from __future__ import annotations


class CrashlabError(Exception):
    """Base of all errors that may leave the library.

    ``hint`` is one sentence that names what to do next; the command line prints it on its own line.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(CrashlabError):
    """The caller asked for something that makes no sense (unknown view, conflicting options)."""

    exit_code = 2


class UnreadableInput(CrashlabError):
    """An input file cannot be used as what it was given for."""

    exit_code = 3


class UnreadableDump(UnreadableInput):
    """The file is no usable GPU core dump.

    ``reason`` is one of ``not-found``, ``not-elf``, ``not-gpu-core``, ``cut-short``, ``malformed``,
    ``too-large`` and ``empty``.
    """

    def __init__(self, message: str, *, reason: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class MalformedCubin(UnreadableInput):
    """A module image inside a dump contradicts itself; the rest of the dump stays usable."""


class MissingTool(CrashlabError):
    """An external program or optional package that was asked for is not installed."""

    exit_code = 3


class ToolFailed(CrashlabError):
    """An external program ran and did not give a usable answer (crash, time limit, garbage)."""

    exit_code = 3
