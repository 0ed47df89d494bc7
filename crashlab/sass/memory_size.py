"""How many bytes a lane moves, from the modifiers of a memory instruction."""

from __future__ import annotations

import re

_SIZES = {
    "U8": 1, "S8": 1, "8": 1, "U16": 2, "S16": 2, "16": 2, "32": 4, "U32": 4, "S32": 4, "F32": 4,
    "64": 8, "U64": 8, "S64": 8, "F64": 8, "96": 12, "128": 16, "256": 32,
}  # fmt: skip
_ELEMENT_BITS = {"E4M3": 8, "E5M2": 8, "F16": 16, "BF16": 16, "F32": 32, "F64": 64}
_VECTOR = re.compile(r"([A-Z0-9]{3,5})(?:x|_V)(\d{1,2})\Z")


def access_bytes(modifiers: tuple[str, ...], default: int = 4) -> int | None:
    """Bytes a lane; None when a modifier names a vector of an unknown element."""
    size = None
    for modifier in modifiers:
        if modifier in _SIZES:
            size = max(size or 0, _SIZES[modifier])
            continue
        vector = _VECTOR.match(modifier)
        if vector:
            bits = _ELEMENT_BITS.get(vector[1])
            if bits is None:
                return None
            size = max(size or 0, bits * int(vector[2]) // 8)
    return default if size is None else size


def registers_for(size: int) -> int:
    """32-bit registers that hold ``size`` bytes of one lane."""
    return max(1, (size + 3) // 4)
