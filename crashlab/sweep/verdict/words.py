"""Numbers and settings as findings write them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from urllib.parse import unquote

from crashlab.gpucore import exceptions
from crashlab.signatures.key import VERSION as KEY_VERSION
from crashlab.sweep import facts

LIMITS = 0.05
"""Limits and bounds are printed at 95 %, whatever level the tests are made at."""
_KEY_LIMIT = 60
_FAULT_SLOTS, _HANG_SLOTS, _ABSENT = 5, 3, "-"
"""Of crashlab.signatures.key: kind, exception, family, access and space; kind, kernels and states."""
_ROUNDING = 1e-9
CAVEATS = (
    "Many short runs are not one long run when the hazard grows with uptime, and one long run is not many when "
    "faults come early or not at all.",
    "Levers that change speed or batch shapes change the exposure itself: another shape is another workload.",
    "A clean arm speaks for this workload, this GPU and this driver.",
    "Timing levers (blocking launches, sanitizers, allocators) hide races: their clean arms prove little.",
    "One arm of ten that works is weak evidence; run it and the baseline again, in turns, before you rely on it.",
    "These probabilities hold for exposure fixed beforehand or ended by the event; stopping as soon as a number "
    "looks good makes it worthless (the sequential test is made for looking in between).",
)


def figures(value: float, digits: int = 3) -> str:
    """A number with this many significant digits and no exponent where people write none."""
    if value >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    if value >= 1e-4:
        return f"{value:#.{digits}g}".removesuffix(".")
    if value == 0:
        return "0"
    return f"{value:.{digits - 1}e}"


def probability(value: float) -> str:
    """Two significant digits: ``0.32``, ``0.060``, ``0.0034``; ``below 0.0001``."""
    if value < 1e-4:
        return "below 0.0001"
    if value >= 0.995:
        return "1.0" if value >= 1 else "over 0.99"
    decimals = 1 - math.floor(math.log10(value))
    return f"{value:.{min(decimals, 5)}f}"


def amount(value: float, unit: str) -> str:
    """``1.31 M steps``, ``6.2 h``, ``23 min``, ``4,100 requests``."""
    if unit == facts.HOURS:
        return duration(value)
    noun = unit if value != 1 else unit.removesuffix("s")
    if value >= 1e6:
        return f"{figures(value / 1e6)} M {noun}"
    if value >= 1e4:
        return f"{figures(value / 1e3)} k {noun}"
    return f"{value:,.0f} {noun}"


def duration(hours: float) -> str:
    """Hours, below one hour minutes, below one minute seconds."""
    if hours >= 1 or hours == 0:
        return f"{hours:.1f} h" if 0 < hours < 100 else f"{hours:,.0f} h"
    if hours * 60 >= 1:
        return f"{f'{hours * 60:.1f}'.removesuffix('.0')} min"
    return f"{figures(hours * 3600, 2)} s"


def rate(value: float, unit: str) -> str:
    """``0.48/h``, ``2.3 per M steps``, ``0.7 per 1,000 requests``."""
    if math.isinf(value):
        return "no bound"
    if unit == facts.HOURS:
        return f"{figures(value, 2)}/h"
    if unit == facts.STEPS:
        return f"{figures(value * 1e6, 2)} per M steps"
    return f"{figures(value * 1e3, 2)} per 1,000 requests"


def exposure(value: float, unit: str, hours: float | None, steps: float | None) -> str:
    """An amount with the other clock in brackets: ``6.2 h (1.31 M steps)``."""
    said = amount(value, unit)
    if unit != facts.HOURS and hours is not None:
        return f"{said} ({duration(hours)})"
    if unit == facts.HOURS and steps is not None:
        return f"{said} ({amount(steps, facts.STEPS)})"
    return said


def reading(p: float, adjusted: float, level: float) -> str:
    """``evidence``, ``weak`` or ``not-yet``; an arm that ran for exactly what was asked of it has done enough."""
    enough = level * (1 + _ROUNDING)
    return "evidence" if adjusted <= enough else "weak" if p <= enough else "not-yet"


def holm(p: float | None, tried: int, what: str) -> str:
    """`` (0.15 after Holm over 5 arms)``; nothing where only one was tried."""
    return "" if p is None or tried < 2 else f" ({probability(p)} after Holm over {tried} {what})"


def key(text: str) -> str:
    """What a key stands for, short enough for a sentence: ``Warp Illegal Address in k (store, global)``.

    A key of another form, or of a headline's hash, stands for itself: ``key K``.
    """
    version, *slots = (unquote(slot, errors="replace") for slot in text.split("|"))
    if version == KEY_VERSION and len(slots) == _FAULT_SLOTS:
        kind, name, family, *more = slots
        found = kind if name == _ABSENT else exceptions.title(exceptions.code_of(name) or _code(name))
        found = name.replace("_", " ").title() if found.startswith("no exception") else found
        where = _where(family)
        known = ", ".join(_short(slot) for slot in more if slot != _ABSENT)
        return f"{found}{where}{f' ({known})' if known else ''}"
    if version == KEY_VERSION and len(slots) == _HANG_SLOTS and slots[0] == "hang":
        states = "" if slots[2] == _ABSENT else f" ({_short(slots[2].replace('+', ', '))})"
        return f"hang in {_short(slots[1].replace('+', ', '))}{states}"
    return f"key {_short(text)}"


def _where(family: str) -> str:
    """The kernel; where no symbol is known, the module's size or the last digits of the PC."""
    if family == _ABSENT:
        return ""
    if family.startswith("~"):
        return f" at a PC that ends in {_short(family[1:])}"
    size = family.removesuffix("bytes")
    return f" in a module of {_short(size)} bytes" if size.isdecimal() else f" in {_short(family)}"


def _code(name: str) -> int | None:
    """The number of an exception that has no name yet: ``CODE_99``."""
    digits = name.removeprefix("CODE_")
    return int(digits) if digits != name and digits.isdecimal() and len(digits) < 10 else None


def _short(text: str) -> str:
    return text if len(text) <= _KEY_LIMIT else f"{text[: _KEY_LIMIT - 1]}…"


def events(number: int, text: str) -> str:
    """``3 faults of Warp Illegal Address in k``; events without a key by their own name."""
    plural = "" if number == 1 else "s"
    if text == "fault without a key":
        return f"{number} fault{plural} without a key"
    if text in (facts.STALL, facts.GARBAGE):
        return f"{number} {text}{plural}" if text == facts.STALL else f"{number} garbage output{plural}"
    said = key(text)
    if said.startswith("hang in "):
        return f"{number} hang{plural}{said.removeprefix('hang')}"
    return f"{number} fault{plural} of {said}"


def setting(item: facts.Setting) -> str:
    """``lever = value`` or ``lever unset``."""
    return f"{item.lever} unset" if item.value is None else f"{item.lever} = {item.value}"


def against(items: Sequence[facts.Setting]) -> str:
    """`` against NONE``: the other values, for a sentence that has named the levers."""
    if not items:
        return ""
    said = ["unset" if item.value is None else item.value for item in items[:6]]
    return f" against {' and '.join(said)}"


def settings(items: Sequence[facts.Setting]) -> str:
    """Settings joined as a list in a sentence; at most six are named."""
    said = [setting(item) for item in items[:6]]
    if len(items) > 6:
        said.append(f"{len(items) - 6} more")
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}" if said else "nothing"
