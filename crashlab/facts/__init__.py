"""Facts that cross room borders: immutable, typed, without any input or output.

They are ``NamedTuple`` classes rather than frozen dataclasses because creating one dataclass costs
about 1 ms at import (0.17 ms for a named tuple) and ``crashlab analyze --fast`` has a budget of tens
of milliseconds: see docs/adr/0001-named-tuples.md.

Two conventions hold everywhere. *Absent is None*, never 0 and never an empty string. Addresses, PCs
and masks are :class:`Hex`, which is an ``int`` that every output format writes as ``0x…``.
"""

from __future__ import annotations

from crashlab.facts.report import (
    Bystander,
    Case,
    EnvFact,
    Gpu,
    Host,
    HostReported,
    Hypothesis,
    Inconsistency,
    Input,
    Landmark,
    ReaderStatus,
    Report,
    Run,
    SignatureKey,
    SignatureMatch,
    SmState,
    Tool,
    WarpState,
    XidEvent,
)
from crashlab.facts.values import (
    Dim3,
    Hex,
)
from crashlab.facts.verdict import (
    Address,
    Confidence,
    Fault,
    Function,
    GpuException,
    Hang,
    HangGroup,
    InlineFrame,
    Instruction,
    Kernel,
    LaneAddress,
    Launch,
    Library,
    Module,
    Source,
    Verdict,
    Where,
    WindowLine,
)

__all__ = [
    "Address",
    "Bystander",
    "Case",
    "Confidence",
    "Dim3",
    "EnvFact",
    "Fault",
    "Function",
    "Gpu",
    "GpuException",
    "Hang",
    "HangGroup",
    "Hex",
    "Host",
    "HostReported",
    "Hypothesis",
    "Inconsistency",
    "InlineFrame",
    "Input",
    "Instruction",
    "Kernel",
    "Landmark",
    "LaneAddress",
    "Launch",
    "Library",
    "Module",
    "ReaderStatus",
    "Report",
    "Run",
    "SignatureKey",
    "SignatureMatch",
    "SmState",
    "Source",
    "Tool",
    "Verdict",
    "WarpState",
    "Where",
    "WindowLine",
    "XidEvent",
]
