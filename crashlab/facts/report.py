"""The report and what stands beside the verdict: witnesses, signatures, environment, run."""

# No "from __future__ import annotations" here: typing.NamedTuple would compile every annotation string at
# import, which doubles the cost of these classes (docs/adr/0001-named-tuples.md).

from collections.abc import Mapping
from typing import NamedTuple

from crashlab.facts.values import Dim3, Hex
from crashlab.facts.verdict import Fault, Verdict


class Inconsistency(NamedTuple):
    """Two sources that disagree. ``sources`` maps native, cuda_gdb, driver_log, … to what each says."""

    what: str
    sources: Mapping[str, str | None]
    resolution: str


class HostReported(NamedTuple):
    """What the host side blamed: error text, kernel or call site, and where it was printed."""

    text: str | None
    kernel_blamed: str | None = None
    where: str | None = None


class Host(NamedTuple):
    """The host traceback in its place. ``relation``: "asynchronous: not causal" or "agrees"."""

    reported: HostReported | None
    relation: str | None = None


class Bystander(NamedTuple):
    """A kernel that was resident, or blamed, and is not the culprit."""

    kernel: str
    why: str


class Hypothesis(NamedTuple):
    """One possible cause of a known failure with the evidence for and against it."""

    cause: str
    supporting: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


class SignatureMatch(NamedTuple):
    """A catalogue entry held against this crash. ``status``: match, possible or contradicted.

    ``kind``: cause, classification or symptom; only a cause names a culprit. ``reads_as`` is how an
    entry of the other kinds says to read the verdict. ``confidence`` is that of the entry itself.
    """

    id: str
    title: str
    score: float
    status: str
    hypotheses: tuple[Hypothesis, ...] = ()
    fix: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    discriminating_tests: tuple[str, ...] = ()
    kind: str | None = None
    reads_as: str | None = None
    confidence: str | None = None


class SignatureKey(NamedTuple):
    """De-duplication keys, versioned in their own text."""

    coarse: str | None = None
    fine: str | None = None


class ReaderStatus(NamedTuple):
    """How one reader fared. ``status``: ok, aborted, timed-out, missing, refused, failed or skipped."""

    status: str
    ms: float | None = None
    version: str | None = None
    argv: tuple[str, ...] = ()
    exit_code: int | None = None
    tail: str | None = None
    detail: str | None = None


class XidEvent(NamedTuple):
    """One NVRM Xid line of the kernel log. ``address`` is page-granular (Xid 31)."""

    code: int
    meaning: str | None = None
    time: str | None = None
    pid: int | None = None
    relevant: bool | None = None
    pci: str | None = None
    address: Hex | None = None
    text: str | None = None


class EnvFact(NamedTuple):
    """One fact about the environment and where it was read."""

    value: str
    source: str


class Input(NamedTuple):
    """One file that was analysed. ``path`` is the base name only; ``complete`` None = cannot tell."""

    path: str
    sha256: str | None = None
    bytes: int | None = None
    complete: bool | None = None


class Run(NamedTuple):
    """The run that produced the evidence; ``exposure`` has hours, engine_steps, requests, tokens."""

    argv: tuple[str, ...] = ()
    started: str | None = None
    ended: str | None = None
    exposure: Mapping[str, float] | None = None
    outcome: str | None = None
    exit_code: int | None = None
    signal: str | None = None


class Tool(NamedTuple):
    """Who wrote a report."""

    name: str
    version: str


class Case(NamedTuple):
    """One of several dumps analysed together.

    ``role``: origin, sympathetic, bystander, apart (written minutes from the origin's) or unreadable.
    """

    input: str
    role: str
    kind: str
    headline: str
    time: str | None = None
    kernel: str | None = None
    pc: Hex | None = None


class WarpState(NamedTuple):
    """A warp that reports a fault, with the dump's own lane masks: bit n is lane n.

    ``valid`` lanes exist, ``active`` ones were executing, ``exception`` ones carry an exception.
    """

    sm: int
    warp: int | None
    block: Dim3 | None = None
    valid: Hex | None = None
    active: Hex | None = None
    exception: Hex | None = None


class SmState(NamedTuple):
    """An SM with blocks on it or with an exception. ``kernels`` are positions in ``Gpu.kernels``."""

    sm: int
    blocks: int = 0
    warps: int = 0
    kernels: tuple[int, ...] = ()
    exception: str | None = None


class Landmark(NamedTuple):
    """Memory a bad address can be measured against: a dumped allocation, or where an argument points.

    ``size`` in bytes; None for a pointer, whose buffer's size the dump does not tell.
    """

    label: str
    start: Hex
    size: int | None = None


class Gpu(NamedTuple):
    """One GPU as the dump shows it. ``sm_count`` counts all its SMs, ``sms`` lists the busy and the faulting.

    ``warps`` are faulting warps only. ``landmarks`` belong to the verdict's kernel and are given for
    its device only.
    """

    device: int | None
    name: str | None = None
    arch: str | None = None
    sm_count: int | None = None
    kernels: tuple[str, ...] = ()
    sms: tuple[SmState, ...] = ()
    warps: tuple[WarpState, ...] = ()
    landmarks: tuple[Landmark, ...] = ()


class Report(NamedTuple):
    """The whole of ``crashlab.report/1``; every renderer reads only this."""

    schema: str
    tool: Tool
    created: str
    inputs: tuple[Input, ...]
    verdict: Verdict
    host: Host | None = None
    bystanders: tuple[Bystander, ...] = ()
    faults: tuple[Fault, ...] = ()
    signatures: tuple[SignatureMatch, ...] = ()
    inconsistencies: tuple[Inconsistency, ...] = ()
    readers: Mapping[str, ReaderStatus] | None = None
    xid: tuple[XidEvent, ...] = ()
    environment: Mapping[str, EnvFact] | None = None
    run: Run | None = None
    signature_key: SignatureKey | None = None
    provenance: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    cases: tuple[Case, ...] = ()
    gpus: tuple[Gpu, ...] = ()
