"""The time as reports write it."""

from __future__ import annotations

import time


def now() -> str:
    """UTC, to the second, as RFC 3339 writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
