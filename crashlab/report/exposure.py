"""How much a program was exposed to before it failed, in the words people use."""

from __future__ import annotations

from collections.abc import Mapping

_HOURS = "hours"
_MOST = 1e15
"""What is more, negative or no number was counted by nobody, and is shown as it stands."""


def words(exposure: Mapping[str, float]) -> str:
    """``{"hours": 0.0013, "engine_steps": 398}`` → ``5 s, 398 engine steps``."""
    return ", ".join(_amount(name, value) for name, value in exposure.items())


def _amount(name: str, value: float) -> str:
    if not 0 <= value <= _MOST:
        return f"{value:g} {name}"
    if name == _HOURS:
        return duration(value)
    noun = name.replace("_", " ")
    shown = f"{value:,.0f}" if value == int(value) else f"{value:,g}"
    return f"{shown} {noun.removesuffix('s') if value == 1 else noun}"


def duration(hours: float) -> str:
    """``5 s``, ``3 min 20 s``, ``1 h 2 min``, ``120 h``; less than a second as such."""
    seconds = round(hours * 3600)
    if seconds < 1:
        return "0 s" if hours == 0 else f"{hours * 3600:.1g} s"
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min" + (f" {seconds % 60} s" if seconds % 60 else "")
    minutes = seconds // 60
    if minutes < 100 * 60:
        return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")
    return f"{hours:,.0f} h"
