"""Finds the slots of a class: which bits are which number in the text.

Every bit of a few base words is flipped. Where only a number changes, by a power of two, the bit belongs
to that number, and the power is its position in it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from tokens import Token, tokenize
from words import runs

from crashlab.sass.decode.literals import FLOAT_KINDS, Segment, gather, signed, value_bits
from crashlab.sass.decode.model import segments_mask

LIMIT = 26  # slots are named a to z
_TWINS = {
    "hex": "shex",
    "shex": "hex",
    "f16": "bf16",
    "bf16": "f16",
    "f32": "f64",
    "f64": "f32",
    "UR": "UR+1",
}
_FLOATS = (("f32", 32), ("f64", 32), ("f16", 16), ("bf16", 16))


class SlotAtom(NamedTuple):
    """A number in the text: its kind (as in the tables) and where its bits are."""

    kind: str
    segments: tuple[Segment, ...]
    mask: int

    @classmethod
    def at(cls, kind: str, segments: tuple[Segment, ...]) -> SlotAtom:
        return cls(kind, segments, segments_mask(segments))

    def value(self, word: int) -> int:
        """Returns the unsigned number stored in ``word``."""
        return gather(word, self.segments)

    def width(self) -> int:
        """Returns the bits of the number, its scale included."""
        return value_bits(self.segments)

    def text(self, word: int) -> str:
        """Returns how the number reads (branch targets as ``§distance``, floats without blank)."""
        value = self.value(word)
        if self.kind == "hex":
            return hex(value)
        if self.kind == "shex":
            return hex(signed(value, self.width()))
        if self.kind == "target":
            return "§" + hex(signed(value, self.width()))
        if self.kind in FLOAT_KINDS:
            return FLOAT_KINDS[self.kind](value).strip()
        if self.kind.endswith("+1"):
            return f"{self.kind[:-2]}{value + 1}"
        if self.kind.endswith("~"):
            return f"{self.kind[:-1]}{value ^ ((1 << self.width()) - 1)}"
        return f"{self.kind}{value}"

    def variants(self) -> list[SlotAtom]:
        """Returns other readings of the same bits: other sign or float format, fewer top bits."""
        found = [self._replace(kind=_TWINS[self.kind])] if self.kind in _TWINS else []
        low, width, place = self.segments[-1]
        for cut in range(1, min(5, width) if self.kind == "shex" else 1):
            found.append(SlotAtom.at("hex", (*self.segments[:-1], (low, width - cut, place))))
        return found

    def specials(self) -> list[int | str]:
        """Returns the values that do not read as a number, to begin with: RZ, PT, hidden zero."""
        if self.kind in ("R", "P", "UP", "UR"):
            return [(1 << self.width()) - 1]
        return [0] if self.kind in ("hex", "shex") or self.kind.endswith("~") else []


class _Change(NamedTuple):
    """Bits that change one number of a base word, with the change each makes."""

    bits: dict[int, int]
    word: int
    number: int


class SlotFinder:
    """Collects flips of base words and derives slots from them."""

    def __init__(self, body: list[int], urz: int) -> None:
        self.body = body
        self.urz = urz
        self.effect: dict[int, set[str]] = {bit: set() for bit in body}
        self._changes: dict[str, list[_Change]] = defaultdict(list)
        self._floats: list[tuple[int, str]] = []

    def add(self, word: int, text: str, flips: list[tuple[int, str | None]]) -> list[int]:
        """Takes in a base word and its flips (in order of ``body``); returns flips that changed words."""
        base = tokenize(text)
        fresh = []
        moved: dict[tuple[str, tuple[int, ...]], dict[int, int]] = defaultdict(dict)
        for bit, (flipped, other) in zip(self.body, flips, strict=True):
            if other is None or other == text:
                self.effect[bit].add("bad" if other is None else "none")
                continue
            changed = self._changed_number(base, tokenize(other))
            if changed is None:
                self.effect[bit].add("word")
                fresh.append(flipped)
                continue
            self.effect[bit].add("slot")
            kind, at, delta = changed
            moved[kind, at][bit] = -delta if word >> bit & 1 and kind in ("hex", "target") else delta
        for (kind, at), bits in moved.items():
            number = 0 if kind == "float" else self._numbered(base[at[0]]).number
            self._changes[kind].append(_Change(bits, word, number))
            if kind == "float":
                self._floats.append((word, base[at[0]].text.strip()))
        return fresh

    def _numbered(self, token: Token) -> Token:
        """Returns RZ, PT, ... as the register number they stand for."""
        numbers = {"RZ": ("R", 255), "PT": ("P", 7), "UPT": ("UP", 7), "URZ": ("UR", self.urz)}
        if token.text in numbers:
            kind, number = numbers[token.text]
            return Token(kind, f"{kind}{number}")
        return token

    def _changed_number(
        self, base: list[Token], other: list[Token]
    ) -> tuple[str, tuple[int, ...], int] | None:
        """Returns (kind, positions, change) where one number changed by a power of two, else None."""
        if len(base) != len(other):
            return None
        at = [i for i in range(len(base)) if base[i] != other[i]]
        old, new = [self._numbered(base[i]) for i in at], [self._numbered(other[i]) for i in at]
        kinds = {token.kind for token in old} | {token.kind for token in new}
        if len(kinds) != 1 or "" in kinds:
            return None
        kind = kinds.pop()
        if kind == "float":
            return (kind, tuple(at), 0) if len({token.text for token in old}) == 1 else None
        # a register may be shown twice, or with the next one
        if len({b.number - a.number for a, b in zip(old, new, strict=True)}) != 1:
            return None
        first, second = old[0].number, new[0].number
        delta = second - first if kind in ("hex", "target") else first ^ second
        size = abs(delta)
        return (kind, tuple(at), delta) if size & (size - 1) == 0 else None

    def slots(self, demoted: int) -> list[SlotAtom]:
        """Returns the slots found, those without bits of ``demoted``."""
        found: list[SlotAtom] = []
        for kind, changes in self._changes.items():
            for bits in self._merged(kind, changes):
                for slot in self._float_slots(bits) if kind == "float" else self._slot(kind, bits, changes):
                    known = any(old.kind == slot.kind and _same_place(old, slot) for old in found)
                    if not known and not slot.mask & demoted and len(found) < LIMIT:
                        found.append(slot)
        return found

    @staticmethod
    def _merged(kind: str, changes: list[_Change]) -> list[dict[int, int]]:
        """Joins the changes that agree on a shared bit; the widest first."""
        merged: list[dict[int, int]] = []
        for bits, _, _ in changes:
            for old in merged:
                shared = old.keys() & bits.keys()
                if shared and all(old[bit] == bits[bit] for bit in shared):
                    places = [abs(value) for value in (old | bits).values()]
                    if kind == "float" or len(places) == len(set(places)):
                        old.update(bits)
                        break
            else:
                merged.append(dict(bits))
        return sorted(merged, key=len, reverse=True)

    def _slot(self, kind: str, bits: dict[int, int], changes: list[_Change]) -> list[SlotAtom]:
        bits = self._complete(kind, bits)
        order = sorted(bits, key=lambda bit: abs(bits[bit]))
        segments: list[Segment] = []
        for bit in order:
            place = abs(bits[bit]).bit_length() - 1
            low, width, position = segments[-1] if segments else (0, 0, 0)
            if segments and low + width == bit and position + width == place:
                segments[-1] = (low, width + 1, position)
            else:
                segments.append((bit, 1, place))
        if kind in ("hex", "target"):
            if any(bits[bit] < 0 for bit in order[:-1]):
                return []
            kind = "shex" if kind == "hex" and bits[order[-1]] < 0 else kind
            return [SlotAtom.at(kind, tuple(segments))]
        slot = SlotAtom.at(kind, tuple(segments))
        apart = [
            change.number ^ slot.value(change.word) for change in changes if change.bits.keys() <= bits.keys()
        ]
        return [slot._replace(kind=kind + "~") if apart and all(apart) else slot]

    def _complete(self, kind: str, bits: dict[int, int]) -> dict[int, int]:
        """Adds bits that no base could show, because the number vanished when they were flipped."""
        places = {bit: abs(delta).bit_length() - 1 for bit, delta in bits.items()}
        offsets = {bit - place for bit, place in places.items()}
        if len(offsets) != 1:
            return bits
        offset = offsets.pop()
        width = {"R": 8, "P": 3, "UP": 3, "UR": self.urz.bit_length()}.get(kind, 0)
        lowest, highest = min(places.values()), max(places.values())
        span = range(width) if highest < width else range(lowest, highest)
        return {offset + place: bits.get(offset + place, 1 << place) for place in {*span, *places.values()}}

    def _float_slots(self, bits: dict[int, int]) -> list[SlotAtom]:
        """Returns the float formats in which the bits read as a float of some base word."""
        found = []
        for low, width in runs(sum(1 << bit for bit in bits)):
            for kind, size in _FLOATS:
                start = low + width - size if width <= size else low
                slot = SlotAtom.at(kind, ((start, size, 0),))
                if any(slot.value(word) and slot.text(word) == text for word, text in self._floats):
                    found.append(slot)
        return found


def _same_place(one: SlotAtom, two: SlotAtom) -> bool:
    """True where two slots read a bit of the word as the same bit of the number."""
    places = {low + i: at + i for low, width, at in one.segments for i in range(width)}
    return any(places.get(low + i) == at + i for low, width, at in two.segments for i in range(width))
