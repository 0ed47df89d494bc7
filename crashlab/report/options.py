"""What a caller can ask of an analysis."""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from crashlab.facts import EnvFact

if TYPE_CHECKING:
    from crashlab.logs.hardware import CrashedProcess
else:
    CrashedProcess = object  # only named below: the readers of kernel logs are imported when there is one


class AnalyzeOptions(NamedTuple):
    """Options of :func:`crashlab.analyze`.

    ``fast`` starts no external process at all. ``debugger`` is auto, always, never or a path;
    ``debugger_timeout`` is in seconds. ``sass_by`` is auto, native, nvdisasm or both. ``logs`` and
    ``dmesg`` are paths of text evidence; ``environment`` are facts about the machine that had the crash.
    ``process`` tells which lines of a kernel log belong to it.
    """

    fast: bool = False
    debugger: str = "auto"
    debugger_timeout: float = 60.0
    nvdisasm: str | None = None
    sass_by: str = "auto"
    logs: tuple[str, ...] = ()
    dmesg: tuple[str, ...] = ()
    transcript: str | None = None
    environment: Mapping[str, EnvFact] | None = None
    process: CrashedProcess | None = None


SASS_BY = ("auto", "native", "nvdisasm", "both")
DEFAULTS = AnalyzeOptions()
