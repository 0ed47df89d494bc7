"""When do odd answers mean garbage? A window of recent answers against the server's own beginning.

A model with random weights talks nonsense from its first answer, and a small one loops under
ignore_eos: kinds that are common at the beginning are muted, and said to be. One thing no model with
sane logits does is to answer different prompts with the same single token although tokens are
sampled at temperature 1: that is garbage from the first answer on.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import NamedTuple

from crashlab.postmortem.words import counted
from crashlab.soak.garbage import EMPTY, KINDS, ONE_TOKEN, look_at

BASELINE = 40
WINDOW = 40
_ENOUGH = 20
_SAME = 12
_MIN_TOKENS = 12
_COMMON = 0.15
_HIGH = 0.6
_EXAMPLE = 160
_SHIFT = 0.6


class Sample(NamedTuple):
    """One answer as judged. ``id`` is lane/number of the request."""

    id: str
    time: str
    tokens: int
    temperature: float
    kinds: tuple[str, ...]
    unit: str | None
    finish: str | None
    example: str | None


class GarbageFinding(NamedTuple):
    """Why the answers count as garbage. ``first`` is the first bad request (lane/number and time);
    ``examples`` are beginnings of answers. ``certain`` False: worth telling, no verdict."""

    kind: str
    what: str
    first: str | None = None
    examples: tuple[str, ...] = ()
    certain: bool = True


class GarbageWatch:
    """Feed every proper or empty answer; :attr:`findings` grows when something is wrong."""

    def __init__(self) -> None:
        self.findings: list[GarbageFinding] = []
        self.seen = 0
        self._base: list[Sample] = []
        self._window: collections.deque[Sample] = collections.deque(maxlen=WINDOW)
        self._since: dict[str, Sample] = {}
        self._told: set[str] = set()
        self._corrupted: float | None = None

    @property
    def certain(self) -> bool:
        """Whether a finding is one to stop for."""
        return any(finding.certain for finding in self.findings)

    @property
    def muted(self) -> Mapping[str, float]:
        """Kinds that were common at the beginning, with their share: they are not judged."""
        return {kind: share for kind in KINDS if (share := self._share(kind, self._base)) > _COMMON}

    def see(
        self, id: str, time: str, text: str, tokens: int, temperature: float, finish: str | None
    ) -> tuple[str, ...]:
        """Judge one answer; the kinds it shows."""
        look = look_at(text, tokens)
        example = text[:_EXAMPLE] if look.kinds else None
        sample = Sample(id, time, tokens, temperature, look.kinds, look.unit, finish, example)
        self.seen += 1
        if len(self._base) < BASELINE:
            self._base.append(sample)
        self._window.append(sample)
        self._same_token()
        if self.seen >= BASELINE + _ENOUGH:
            self._more_than_at_first()
            self._finish_shift()
        return look.kinds

    def metrics(self, corrupted: float | None) -> None:
        """vLLM's count of requests with NaN logits (VLLM_COMPUTE_NANS_IN_LOGITS=1)."""
        if corrupted is None:
            return
        if self._corrupted is not None and corrupted > self._corrupted:
            count = corrupted - self._corrupted
            self._tell(
                GarbageFinding(
                    "corrupted", f"the server counts {counted(int(count), 'request')} with NaN logits"
                )
            )
        self._corrupted = corrupted

    def _same_token(self) -> None:
        """The same single token for different prompts, although sampled."""
        recent = [s for s in self._window if s.tokens >= _MIN_TOKENS][-_SAME:]
        if len(recent) < _SAME or any(s.temperature <= 0 for s in recent):
            return
        units = collections.Counter(_mark(s) for s in recent if _mark(s) is not None)
        unit, count = units.most_common(1)[0] if units else (None, 0)
        if count >= 0.9 * _SAME:
            bad = [s for s in self._window if _mark(s) == unit]
            what = (
                f"{count} of the last {_SAME} answers are {_name(unit)} repeated, sampled at temperature > 0"
            )
            self._tell(GarbageFinding(ONE_TOKEN, what, _where(bad[0]), _examples(bad)))

    def _more_than_at_first(self) -> None:
        for kind in KINDS:
            bad = [s for s in self._window if kind in s.kinds]
            share, base = len(bad) / len(self._window), self._share(kind, self._base)
            if bad and kind not in self._since:
                self._since[kind] = bad[0]
            if share <= base + 0.1:
                self._since.pop(kind, None)
            if base <= _COMMON and share >= _HIGH:
                what = f"{share:.0%} of recent answers show '{kind}', of the first {len(self._base)} {base:.0%} did"
                first = self._since.get(kind, bad[0])
                self._tell(GarbageFinding(kind, what, _where(first), _examples(bad)))

    def _finish_shift(self) -> None:
        """Answers suddenly end in another way. Worth telling; load and limits can do that, too."""
        first, now = _finishes(self._base), _finishes(self._window)
        distance = sum(abs(first.get(k, 0.0) - now.get(k, 0.0)) for k in {*first, *now}) / 2
        if distance >= _SHIFT:
            what = f"finish reasons shifted from {_shares(first)} to {_shares(now)}"
            self._tell(GarbageFinding("finish-shift", what, certain=False))

    def _share(self, kind: str, samples: list[Sample]) -> float:
        return sum(kind in s.kinds for s in samples) / len(samples) if samples else 0.0

    def _tell(self, finding: GarbageFinding) -> None:
        if finding.kind not in self._told:
            self._told.add(finding.kind)
            self.findings.append(finding)


def _mark(sample: Sample) -> str | None:
    """What an answer consists of, if that is one thing only."""
    if ONE_TOKEN in sample.kinds:
        return sample.unit
    return "" if EMPTY in sample.kinds else None


def _name(unit: str | None) -> str:
    return f"{unit!r}" if unit else "nothing visible"


def _where(sample: Sample) -> str:
    return f"request {sample.id} sent {sample.time}"


def _examples(samples: list[Sample]) -> tuple[str, ...]:
    return tuple(s.example for s in samples[-3:] if s.example is not None)


def _finishes(samples: collections.deque[Sample] | list[Sample]) -> dict[str, float]:
    counts = collections.Counter(s.finish or "none" for s in samples)
    return {reason: count / len(samples) for reason, count in counts.items()}


def _shares(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{reason} {share:.0%}" for reason, share in sorted(shares.items()))
