"""Rows of an acceptance run: printed as they are known, kept for the JSON."""

from __future__ import annotations

from typing import Any


class Table:
    """``wrong`` is empty when a row is as it must be."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(self, name: str, wrong: list[str], seconds: float, **more: Any) -> None:
        """Print and keep one row."""
        self.rows.append(
            {"name": name, "ok": not wrong, "wrong": wrong, "seconds": round(seconds, 2), **more}
        )
        told = "; ".join(wrong) or str(more.get("headline") or more.get("measured") or "")
        print(f"{'ok ' if not wrong else 'BAD'}  {name:<18} {seconds:6.1f} s  {told[:150]}", flush=True)

    def summary(self) -> int:
        """Print how many rows are right; the exit code."""
        bad = [row["name"] for row in self.rows if not row["ok"]]
        rest = f"; wrong: {', '.join(bad)}" if bad else ""
        print(f"\n{len(self.rows) - len(bad)} of {len(self.rows)} right{rest}")
        return 1 if bad else 0
