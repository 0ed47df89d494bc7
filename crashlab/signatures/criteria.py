"""The vocabulary of the catalogue: every key that an entry may ask about, with its weight.

A criterion asks one question of what was observed and answers True, False or None (not captured).
Weights say how much a True answer tells; they are the same for every entry and are listed in
docs/signatures.md. To add a key, add one row to :data:`KEYS` and one to ``capture_hints``.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from crashlab.signatures import faultclass, versions
from crashlab.signatures.observed import Observed
from crashlab.signatures.patterns import exact, folded

Answer = bool | None
_NO_FAULT = frozenset(("hang", "stall", "garbage", "no-fault", "host-death"))


class Criterion(NamedTuple):
    """One question: ``key`` of :data:`KEYS`, ``sub`` for keys that are tables, the wanted value."""

    key: str
    sub: str | None
    want: Any


class Key(NamedTuple):
    """``shape`` says what an entry may write: see :mod:`~crashlab.signatures.schema`."""

    weight: int
    shape: str
    answer: Callable[[Criterion, Observed], Answer]
    circumstance: bool = False
    means: str = ""


def ask(criterion: Criterion, seen: Observed) -> Answer:
    """Put one question."""
    return KEYS[criterion.key].answer(criterion, seen)


def ask_all(criteria: tuple[Criterion, ...], seen: Observed) -> Answer:
    """True if all hold, False if any is known not to, else None."""
    unknown = False
    for criterion in criteria:
        answer = ask(criterion, seen)
        if answer is False:
            return False
        unknown = unknown or answer is None
    return None if unknown else True


def _member(field: str) -> Callable[[Criterion, Observed], Answer]:
    def answer(criterion: Criterion, seen: Observed) -> Answer:
        value = getattr(seen, field)
        return None if value is None else value in criterion.want

    return answer


def _flag(field: str) -> Callable[[Criterion, Observed], Answer]:
    def answer(criterion: Criterion, seen: Observed) -> Answer:
        value = getattr(seen, field)
        return None if value is None else value is criterion.want

    return answer


def _library(criterion: Criterion, seen: Observed) -> Answer:
    if seen.library is None:
        return None
    return seen.library.casefold() in {name.casefold() for name in criterion.want}


def _any_pattern(field: str) -> Callable[[Criterion, Observed], Answer]:
    def answer(criterion: Criterion, seen: Observed) -> Answer:
        value = getattr(seen, field)
        if not value:
            return None
        subjects = (value,) if isinstance(value, str) else value
        return any(exact(want).search(subject) for want in criterion.want for subject in subjects)

    return answer


def _kernel(criterion: Criterion, seen: Observed) -> Answer:
    """A kernel pattern may fit the entry or the innermost function: an inlined name is in either."""
    subjects = seen.names + seen.functions
    if not subjects:
        return None
    return any(exact(want).search(subject) for want in criterion.want for subject in subjects)


def _exception(criterion: Criterion, seen: Observed) -> Answer:
    if seen.code is not None:
        return seen.code in criterion.want
    if seen.kind in _NO_FAULT:
        return False
    if seen.errors and "launch-failure" not in seen.errors:
        fits = any(faultclass.host_error(code) in seen.errors for code in criterion.want)
        return None if fits else False
    return None


def _error(criterion: Criterion, seen: Observed) -> Answer:
    if seen.errors:
        return not seen.errors.isdisjoint(criterion.want)
    if seen.code is not None or seen.kind in _NO_FAULT:
        return False
    return None


def _address_below(criterion: Criterion, seen: Observed) -> Answer:
    return None if seen.address is None else seen.address < criterion.want


def _address_from(criterion: Criterion, seen: Observed) -> Answer:
    return None if seen.address is None else seen.address >= criterion.want


def _arch(criterion: Criterion, seen: Observed) -> Answer:
    if seen.arch is None:
        return None
    return any(arch_fits(want, seen.arch) for want in criterion.want)


def arch_fits(want: str, arch: int) -> bool:
    """``want`` is "sm_120", "sm_12x" (a family) or "sm_100+" (that one and later)."""
    stem = want.removeprefix("sm_")
    if stem.endswith("x"):
        return arch // 10 == int(stem[:-1])
    if stem.endswith("+"):
        return arch >= int(stem[:-1])
    return arch == int(stem.rstrip("af"))


def _xid(criterion: Criterion, seen: Observed) -> Answer:
    return None if seen.xids is None else not set(seen.xids).isdisjoint(criterion.want)


def _hang(criterion: Criterion, seen: Observed) -> Answer:
    if seen.hang is not None:
        return not seen.hang.isdisjoint(criterion.want)
    return False if seen.kind in ("gpu-fault", "device-assert", "trap", "garbage", "no-fault") else None


def _garbage(criterion: Criterion, seen: Observed) -> Answer:
    if seen.garbage is not None:
        return seen.garbage in criterion.want
    return False if seen.kind not in (None, "garbage") else None


def _log(criterion: Criterion, seen: Observed) -> Answer:
    if not seen.log:
        return None
    return any(seen.log.find(folded(want)) is not None for want in criterion.want)


def _log_all(criterion: Criterion, seen: Observed) -> Answer:
    if not seen.log:
        return None
    return all(seen.log.find(folded(want)) is not None for want in criterion.want)


def _run(criterion: Criterion, seen: Observed) -> Answer:
    found = seen.lever(criterion.sub or "")
    if found is None:
        return None
    return any(folded(want).search(found) for want in criterion.want)


def _versions(criterion: Criterion, seen: Observed) -> Answer:
    found = seen.version(criterion.sub or "")
    return None if found is None else versions.contains(criterion.want, found, seen.version)


# Order is the order of evaluation: cheap questions that rule most entries out come first.
KEYS: Mapping[str, Key] = {
    "verdict": Key(1, "strings", _member("kind"), means="kind of the verdict"),
    "exception": Key(3, "exceptions", _exception, means="number of the hardware exception"),
    "precision": Key(1, "strings", _member("precision"), means="precision of the exception"),
    "space": Key(2, "strings", _member("space"), means="memory space of the access"),
    "access": Key(1, "strings", _member("access"), means="load, store, atomic, …"),
    "width": Key(1, "integers", _member("width"), means="width of the access in bytes"),
    "arch": Key(1, "arches", _arch, means="GPU architecture"),
    "garbage": Key(6, "strings", _garbage, means="kind of garbage in the answers"),
    "hang": Key(3, "strings", _hang, means="what the resident warps were doing"),
    "error": Key(2, "errors", _error, means="error class that the host reported"),
    "finding": Key(3, "strings", _member("finding"), means="finding about the rebuilt address"),
    "address_below": Key(2, "number", _address_below, means="rebuilt address is below this"),
    "address_from": Key(2, "number", _address_from, means="rebuilt address is at least this"),
    "stray_lane": Key(2, "flag", _flag("stray_lane"), means="bad lanes far from others that are in place"),
    "pc_in_image": Key(3, "flag", _flag("pc_in_image"), means="whether any loaded code holds the PC"),
    "library": Key(2, "strings", _library, means="library that the kernel belongs to"),
    "opcode": Key(2, "patterns", _any_pattern("opcode"), means="opcode of the faulting instruction"),
    "family": Key(2, "names", _any_pattern("family"), means="normalised kernel family"),
    "kernel": Key(4, "names", _kernel, means="name of the kernel or of the function at the PC"),
    "function": Key(4, "names", _any_pattern("functions"), means="innermost function at the PC"),
    "xid": Key(5, "integers", _xid, means="Xid number in the kernel log"),
    "cuda_graph": Key(1, "flag", _flag("cuda_graph"), True, "CUDA graphs were in use"),
    "run": Key(2, "levers", _run, means="setting of the run"),
    "log": Key(8, "names", _log, means="any of these log lines"),
    "log_all": Key(8, "names", _log_all, means="all of these log lines"),
    "affected": Key(3, "ranges", _versions, True, "version inside the range that has the fault"),
    "seen": Key(1, "ranges", _versions, means="version among those it was seen with"),
}
ORDER = {name: position for position, name in enumerate(KEYS)}
