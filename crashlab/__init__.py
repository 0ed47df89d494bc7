"""crashlab: CUDA crash forensics.

``crashlab.analyze(path)`` gives a typed :class:`crashlab.facts.Report`; ``crashlab.load_report(path)``
reads one that was written before. Nothing heavy is imported until one of them is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    from crashlab.facts import Report
    from crashlab.report.options import AnalyzeOptions

__version__ = "0.1.0"
__all__ = ["__version__", "analyze", "load_report"]


def analyze(*paths: str | os.PathLike[str], options: AnalyzeOptions | None = None) -> Report:
    """Post-mortem of one or several GPU core dumps of one crash.

    An unreadable dump gives a report of kind ``unreadable``. Raises :class:`crashlab.errors.CrashlabError`
    for options that cannot be met, and UsageError without any path.
    """
    from crashlab.errors import UsageError
    from crashlab.report import build
    from crashlab.report.options import AnalyzeOptions

    if not paths:
        raise UsageError("analyze() needs at least one dump.")
    return build.analyze(paths, options or AnalyzeOptions())


def load_report(path: str | os.PathLike[str]) -> Report:
    """A report.json that crashlab wrote. Raises UnreadableInput when it is none."""
    from crashlab.inputfile import open_regular
    from crashlab.report import jsonio

    with open_regular(path, "report") as file:
        return jsonio.loads(file.read())
