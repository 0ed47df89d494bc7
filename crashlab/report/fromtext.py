"""Reports without a dump: from a cuda-gdb transcript, or from logs alone."""

from __future__ import annotations

import os

from crashlab import __version__, facts
from crashlab.debugger.transcript import parse
from crashlab.errors import UnreadableInput
from crashlab.postmortem.from_transcript import from_transcript
from crashlab.report.clock import now
from crashlab.report.jsonio import SCHEMA
from crashlab.report.options import AnalyzeOptions
from crashlab.report.witnesses import Witnesses


def _empty(verdict: facts.Verdict, inputs: tuple[facts.Input, ...]) -> facts.Report:
    return facts.Report(SCHEMA, facts.Tool("crashlab", __version__), now(), inputs, verdict, readers={})


def analyze_transcript(content: bytes, name: str, options: AnalyzeOptions) -> facts.Report:
    """The verdict that a transcript supports, at its lower confidence.

    Raises UnreadableInput when the text holds nothing of cuda-gdb.
    """
    transcript = parse(content)
    if not transcript.says_anything:
        raise UnreadableInput(
            "This text holds no line of a cuda-gdb session.",
            hint="Paste what cuda-gdb printed from 'Opening GPU coredump' on; server logs go to --log.",
        )
    found = from_transcript(transcript)
    label = "standard input" if name == "-" else os.path.basename(name)
    report = _empty(found.verdict, (facts.Input(label, None, len(content), None),))
    status = facts.ReaderStatus(
        "aborted" if transcript.aborted else "ok", version=transcript.version, detail=transcript.abort_reason
    )
    report = report._replace(
        faults=found.faults,
        bystanders=found.bystanders,
        readers={"cuda_gdb": status},
        provenance=("All facts come from the text of a debugger session; no dump was read.",),
    )
    return Witnesses(options).join(report)


def analyze_logs(options: AnalyzeOptions) -> facts.Report:
    """The verdict that logs alone support; kind ``inconclusive`` when they hold no fault."""
    verdict = facts.Verdict(
        "inconclusive",
        "The logs hold no GPU fault",
        confidence=facts.Confidence("low", ("no dump was given, only text",)),
        does_not_mean=(
            "It does not mean that nothing failed: without a dump only what was printed is known.",
        ),
    )
    inputs = tuple(facts.Input(os.path.basename(path)) for path in (*options.logs, *options.dmesg))
    return Witnesses(options).join_without_dump(_empty(verdict, inputs))
