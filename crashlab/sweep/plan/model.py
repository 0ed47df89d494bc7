"""A sweep's plan: what is run, which levers are turned, how much exposure is spent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from crashlab.sweep.facts import Arm
from crashlab.sweep.lever import Lever
from crashlab.sweep.plan.budget import Budget
from crashlab.sweep.plan.remote import Remote


class About(NamedTuple):
    """What the server may be asked about itself: ``info``: its /server_info while it runs; ``help``: its
    command's --help before. ``version``: what the plan says of it, which need not be asked then."""

    info: bool = False
    version: str | None = None
    help: bool = True


class Plan(NamedTuple):
    """``sha256`` is that of the text, by which a sweep's folder knows its plan again.

    ``target``: which outcome counts (fault, stall, garbage). ``key``: the signature key that counts,
    None: the one that the baseline shows most. ``load``: options of soak. ``arms`` hold the baseline first.
    """

    name: str
    kind: str
    command: tuple[str, ...]
    levers: Mapping[str, Lever]
    arms: tuple[Arm, ...]
    budget: Budget
    load: Mapping[str, str]
    environment: Mapping[str, str]
    seed: int
    mode: str
    target: str
    key: str | None
    replay_first: bool
    server: About
    prepare: Mapping[str, tuple[tuple[str, ...], ...]]
    remote: Remote
    sha256: str
    text: str
    params_text: str | None = None

    @property
    def turned(self) -> tuple[str, ...]:
        """Ids of the levers that any arm names."""
        return tuple(dict.fromkeys(s.lever for arm in self.arms for s in arm.levers))

    def arm(self, name: str) -> Arm:
        """An arm by its name."""
        return next(arm for arm in self.arms if arm.name == name)
