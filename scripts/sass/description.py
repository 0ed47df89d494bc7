"""What a learner believes about a class: slots, parts, and where in the text each part works.

Positions in the text: token *i* of the base text is position 2i+1, the gap before it 2i.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter

from slots import LIMIT, SlotAtom
from tokens import Hunk, Token, diff, tokenize
from words import GaveUp, bits_of, runs, subsets

from crashlab.sass.decode.literals import FLOAT_KINDS
from crashlab.sass.decode.model import scatter

MAX_ROWS = 2500
_MANY_BITS = 8
_PLAIN_FLOATS = [0, 0x3F800000, 0xBF800000, 0x80000000, 0x7F800000, 0x7FC00000]
Value = tuple[int, ...]  # bits of a part, then the category of each of its slots


class Part:
    """Bits and slots that choose words together; ``hulls`` are the text ranges, ``cells`` their words."""

    def __init__(self, mask: int, slots: tuple[int, ...] = ()) -> None:
        self.mask, self.slots = mask, tuple(sorted(slots))
        self.hulls: list[tuple[int, int]] = []
        self.cells: dict[Value, list[str]] = {}


def _span(hunk: Hunk) -> tuple[int, int]:
    """Returns the first and last position that a replaced range covers."""
    if hunk.low == hunk.high:
        return 2 * hunk.low, 2 * hunk.low
    return 2 * hunk.low + 1, 2 * hunk.high - 1


def _cell(hull: tuple[int, int], tokens: list[str], changes: list[Hunk]) -> str:
    """Returns what a range of the base text reads in ``tokens``."""
    start, stop = hull[0] // 2, (hull[1] + 1) // 2
    for hunk in changes:
        first, last = _span(hunk)
        grown = (hunk.high2 - hunk.low2) - (hunk.high - hunk.low)
        if last < hull[0]:
            start += grown
        if first <= hull[1]:
            stop += grown
    return "".join(tokens[start:stop])


class Description:
    """The slots and parts of one class, relative to one base word."""

    def __init__(
        self,
        slots: list[SlotAtom],
        free: int,
        constant: int,
        rng: random.Random,
        urz: int,
        strict: bool = False,
    ) -> None:
        self.slots = slots
        self.strict = strict  # take only values of the samples
        self.special = [slot.specials() for slot in slots]
        self.rng, self.urz = rng, urz
        self.order: dict[tuple[Part, Part], bool] = {}  # at a shared gap, does the first come first?
        self.base = 0
        self.base_tokens: list[str] = []
        self.seen: set[int] = set()  # words whose values of wide parts are tried
        self.parts = [Part(1 << bit) for bit in bits_of(free & ~constant)]
        for low, width in runs(constant):
            mask = ((1 << width) - 1) << low
            near = next((p for p in self.parts if p.mask & (mask << 1 | mask >> 1)), None)
            if width <= 3 and near:  # a value of several bits may be legal where each alone is not
                near.mask |= mask
            else:
                self.parts.append(Part(mask))
        self.parts += [Part(0, (i,)) for i in range(len(slots)) if self.special[i]]

    # -- words and values ---------------------------------------------------------------------------
    def code(self, index: int, word: int) -> int:
        """Returns the category of slot ``index`` in ``word``: 0 reads as a number."""
        value = self.slots[index].value(word)
        for code, special in enumerate(self.special[index], 1):
            if value == special or (special == "pow2" and value & (value - 1) == 0 and 2 <= value < 2**31):
                return code
        return 0

    def power_code(self, index: int) -> int:
        """Returns the category of powers of two of a slot, 0 if it has none."""
        return self.special[index].index("pow2") + 1 if "pow2" in self.special[index] else 0

    def key(self, part: Part, word: int) -> Value:
        """Returns the value of ``part`` in ``word``."""
        return (word & part.mask, *(self.code(i, word) for i in part.slots))

    def _number(self, slot: SlotAtom) -> int:
        """Returns a random number for ``slot``, often a telling one."""
        width = sum(segment[1] for segment in slot.segments)
        shift = min(segment[2] for segment in slot.segments)
        roll = self.rng.random()
        if slot.kind == "f32" and roll < 0.6:
            return self.rng.choice(_PLAIN_FLOATS)
        value = self.rng.getrandbits(width)
        if slot.kind in ("hex", "shex", "target") and roll < 0.5:
            single, small = 1 << self.rng.randrange(width), self.rng.getrandbits(min(8, width))
            value = self.rng.choice([1, 2, 3, 4, 8, 16, 255, single, small, -1]) & (1 << width) - 1
        return value << shift

    def random_slot(self, index: int, word: int, plain: bool = True) -> int:
        """Returns ``word`` with another number in a slot; ``plain``: one that reads as a number."""
        slot = self.slots[index]
        for _ in range(50):
            new = word & ~slot.mask | scatter(self._number(slot), slot.segments)
            if not plain or self.code(index, new) == 0:
                return new
        return word

    def set_key(self, part: Part, value: Value, word: int) -> int:
        """Returns ``word`` with the value of a part (overlapping slots may keep it from getting it)."""
        word = word & ~part.mask | value[0]
        for i, code in zip(part.slots, value[1:], strict=True):
            if code == self.code(i, word):
                continue
            if code == 0:
                word = self.random_slot(i, word)
                continue
            special = self.special[i][code - 1]
            number = 1 << self.rng.randrange(1, 31) if isinstance(special, str) else special
            word = word & ~self.slots[i].mask | scatter(number, self.slots[i].segments)
        return word

    def spread(self, word: int) -> int:
        """Returns ``word`` with distinct, plain numbers in all slots."""
        taken = {"0x0", "0x1", "0x2", "0x3"}
        for i, slot in enumerate(self.slots):
            if any(other.mask & slot.mask for other in self.slots[:i]):
                continue
            for _ in range(40):
                word = self.random_slot(i, word)
                if slot.kind == "shex":  # negative, so that signed and unsigned spelling differ
                    word |= scatter(1 << (slot.width() - 1), slot.segments)
                if slot.text(word) not in taken:
                    break
            taken.add(slot.text(word))
        return word

    def possible(self, part: Part) -> list[Value]:
        """Returns the values to try: all of few bits; of many bits (or if strict) those of words seen."""
        if self.strict:
            masks = sorted({word & part.mask for word in (self.base, *self.seen)})
        elif part.mask.bit_count() <= _MANY_BITS:
            masks = subsets(part.mask)
        else:
            near = {self.base & part.mask ^ 1 << bit for bit in bits_of(part.mask)}
            masks = sorted({word & part.mask for word in (self.base, *self.seen)} | near)
        codes = [range(len(self.special[i]) + 1) for i in part.slots]
        return [(mask, *rest) for mask in masks for rest in itertools.product(*codes)]

    # -- texts --------------------------------------------------------------------------------------
    def template(self, word: int, text: str) -> list[str]:
        """Returns the tokens of ``text`` with the numbers of slots replaced by ``$name``."""
        out = []
        used: Counter[int] = Counter()
        for token in tokenize(text):
            hits = self._slots_that_read(word, token) if token.kind else []
            if not hits:
                out.append(token.text)
                continue
            best = min(hits, key=lambda i: used[i])
            used[best] += 1
            out.append(f"${chr(97 + best)}")
        return out

    def _slots_that_read(self, word: int, token: Token) -> list[int]:
        shown = token.text.strip()
        hits = [
            i
            for i, slot in enumerate(self.slots)
            if (slot.kind in FLOAT_KINDS) == (token.kind == "float")
            and slot.text(word) == shown
            and self.code(i, word) == 0
        ]
        if hits or token.kind not in ("hex", "UR", "float"):
            return hits
        for twin in [variant for slot in self.slots for variant in slot.variants()]:
            new = twin not in self.slots and len(self.slots) < LIMIT
            if new and twin.value(word) and twin.text(word) == shown:
                self.slots.append(twin)
                self.special.append([self.urz - 1] if twin.kind == "UR+1" else [])
                if twin.kind == "UR+1":
                    self.parts.append(Part(0, (len(self.slots) - 1,)))
                return [len(self.slots) - 1]
        return []

    def place(self, part: Part, found: list[tuple[Value, list[str]]]) -> None:
        """Derives ranges and words of ``part`` from the templates of its values."""
        hunks = [(value, tokens, diff(self.base_tokens, tokens)) for value, tokens in found]
        merged: list[tuple[int, int]] = []
        for low, high in sorted(_span(hunk) for _, _, changes in hunks for hunk in changes):
            if merged and low <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], high))
            else:
                merged.append((low, high))
        part.hulls = merged
        part.cells = {
            value: [_cell(hull, tokens, changes) for hull in merged] for value, tokens, changes in hunks
        }

    # -- joining ------------------------------------------------------------------------------------
    def _clash(self, a: Part, b: Part) -> bool:
        for x in a.hulls:
            for y in b.hulls:
                ordered = x == y and x[0] == x[1] and x[0] % 2 == 0 and (a, b) in self.order
                if x[0] <= y[1] and y[0] <= x[1] and not ordered:
                    return True
        return False

    def merge_overlaps(self) -> bool:
        """Joins parts whose text ranges overlap; says whether there were any."""
        merged = False
        while True:
            pair = next(((a, b) for a, b in itertools.combinations(self.parts, 2) if self._clash(a, b)), None)
            if pair is None:
                return merged
            self.join(list(pair))
            merged = True

    def join(self, parts: list[Part]) -> None:
        """Makes one part of several. Raises GaveUp where it would have too many values."""
        mask = 0
        slots: tuple[int, ...] = ()
        for part in parts:
            mask |= part.mask
            slots += part.slots
        joined = Part(mask, slots)
        # Ranges stay known, so that a chain of overlaps is found before anything is asked again.
        joined.hulls = sorted(hull for part in parts for hull in part.hulls)
        if len(self.possible(joined)) > MAX_ROWS:
            smallest = min((p.mask for p in parts if p.mask), key=int.bit_count, default=0)
            raise GaveUp("too many values together", smallest)
        self.parts = [p for p in self.parts if p not in parts]
        for other in self.parts:  # an order that all members share with another part stays known
            known = {self.order.get((part, other)) for part in parts}
            if len(known) == 1 and None not in known:
                self.put_in_order(joined, other, bool(known.pop()))
        self.parts.append(joined)

    def put_in_order(self, a: Part, b: Part, first: bool) -> None:
        """Records whether the words of ``a`` come before those of ``b`` at their common gap."""
        self.order[a, b], self.order[b, a] = first, not first

    def add_special(self, index: int, word: int) -> bool:
        """Makes the number of a slot in ``word`` (or all powers of two) a category; says if it is new."""
        slot, special = self.slots[index], self.special[index]
        value = slot.value(word)
        overlaid = any(other.mask & slot.mask for other in self.slots[:index])
        plain = self.code(index, word) in (0, self.power_code(index))
        if slot.kind not in ("hex", "shex") or overlaid or not plain or value >> 32 or len(special) > 6:
            return False
        power = value & (value - 1) == 0 and 2 <= value < 2**31
        new: int | str = "pow2" if power and "pow2" not in special else value
        if new in special:
            return False
        # exact values come before the powers of two
        special.insert(special.index("pow2") if "pow2" in special else len(special), new)
        if not any(index in part.slots for part in self.parts):
            self.parts.append(Part(0, (index,)))
        return True

    def smallest_choice(self) -> int:
        """Returns the bits of the smallest part with a choice, to divide the class on."""
        masks = [
            p.mask for p in self.parts if p.mask and len(p.cells) > 1 and p.mask.bit_count() <= _MANY_BITS
        ]
        return min(masks, default=0, key=int.bit_count)

    # -- the block of lines ----------------------------------------------------------------------------
    def lines(self, header: str) -> list[str]:
        """Returns the block of the class as :class:`crashlab.sass.decode.model.ClassModel` reads it."""
        lines = [header]
        for i, slot in enumerate(self.slots):
            where = ",".join(f"{low}:{width}:{place}" for low, width, place in slot.segments)
            lines.append(" ".join(["s", chr(97 + i), slot.kind, where, *map(str, self.special[i])]))
        for part in self.parts:
            members = [f"{low}:{width}" for low, width in runs(part.mask)]
            lines.append(" ".join(["g", *members, *(chr(97 + i) for i in part.slots)]))
            lines += ["\t".join([_row(part, value), *cells]) for value, cells in sorted(part.cells.items())]
        return [*lines, "t " + self._text()]

    def _text(self) -> str:
        places = sorted(
            (hull[0], p, h) for p, part in enumerate(self.parts) for h, hull in enumerate(part.hulls)
        )
        out: list[str] = []
        at = 0
        for position, same in itertools.groupby(places, key=lambda place: place[0]):
            out += self.base_tokens[at : position // 2]
            group: list[tuple[int, int]] = []
            for _, p, h in same:
                after = (
                    i for i, (q, _) in enumerate(group) if self.order.get((self.parts[p], self.parts[q]))
                )
                group.insert(next(after, len(group)), (p, h))
            at = position // 2
            for p, h in group:
                out.append(f"<{p}.{h}>")
                at = max(at, (self.parts[p].hulls[h][1] + 1) // 2)
        return "".join([*out, *self.base_tokens[at:]])


def _row(part: Part, value: Value) -> str:
    """Returns the key of a row: the part's bits as one number, then the category of each slot."""
    number = shift = 0
    for low, width in runs(part.mask):
        number |= (value[0] >> low & ((1 << width) - 1)) << shift
        shift += width
    return "/".join([f"{number:x}" if part.mask else "", *map(str, value[1:])])
