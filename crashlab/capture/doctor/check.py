"""One question about the machine and its answer."""

from __future__ import annotations

from typing import NamedTuple

OK, WARN, FAIL, UNKNOWN = "ok", "warn", "fail", "unknown"


class Check(NamedTuple):
    """``status``: ok, warn (evidence will be poorer), fail (no evidence), unknown (cannot be told here).

    ``found`` is what was seen, ``why`` why it matters, ``fix`` the command or setting that mends it.
    """

    name: str
    status: str
    found: str
    why: str
    fix: str | None = None


def ok(name: str, found: str, why: str) -> Check:
    """All is well."""
    return Check(name, OK, found, why)


def worst(checks: list[Check]) -> str:
    """The most serious status of all."""
    order = (FAIL, WARN, UNKNOWN, OK)
    return min((check.status for check in checks), key=order.index, default=OK)
