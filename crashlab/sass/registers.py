"""Register names as SASS writes them, and runs of consecutive registers.

Files: ``R`` general (per lane), ``UR`` uniform (per warp), ``P`` and ``UP`` predicates, ``B``
convergence barriers. ``RZ``, ``URZ``, ``PT`` and ``UPT`` are constants: they are never defined and
never used, so no function here returns them.
"""

from __future__ import annotations

# The highest index that names a register, by file: what comes after it is the constant.
_HIGHEST = {"R": 254, "UR": 254, "P": 6, "UP": 6, "B": 15}


def split(name: str) -> tuple[str, int] | None:
    """``UR12`` as ``("UR", 12)``; None for constants and for what is no register."""
    digits = name.lstrip("RUPB")
    prefix = name[: len(name) - len(digits)]
    if prefix not in _HIGHEST or not (digits.isascii() and digits.isdigit()) or len(digits) > 3:
        return None
    index = int(digits)
    return (prefix, index) if index <= _HIGHEST[prefix] else None


def run(first: str, count: int) -> tuple[str, ...]:
    """``count`` consecutive registers from ``first``: ``run("R2", 2)`` is ``("R2", "R3")``.

    Empty for a constant register, whatever the count.
    """
    found = split(first)
    if found is None:
        return ()
    prefix, index = found
    last = min(index + count - 1, _HIGHEST[prefix])
    return tuple(f"{prefix}{number}" for number in range(index, last + 1))
