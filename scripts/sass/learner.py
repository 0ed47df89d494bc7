"""Learns one class of instructions from questions to the oracle (:mod:`oracle`).

A learner is a generator: it yields lists of words and receives ``(pc, text or None)`` for each, so that
one nvdisasm process serves the questions of hundreds of classes. What it learns:

1. *Slots* (:mod:`slots`): bits that make up a number in the text.
2. *Parts* (:mod:`description`): other bits change words. Starting from one base word, every value of
   every bit is tried alone; the replaced ranges of the text say where the bit works. Bits that work at
   the same place become one part, whose values are tried together.
3. *Proof*: pairs of changes, random words and real words are predicted and compared. A wrong prediction
   is reduced to the smallest set of changes that shows it, and their parts become one.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Generator

from asking import GUARD, UNGUARDED, Asker, Step, Texts
from description import MAX_ROWS, Description, Part, Value
from oracle import CONTROL_MASK, NEUTRAL_CONTROL, YIELDING_CONTROL
from slots import SlotFinder
from tokens import tokenize
from words import BODY_BITS, REUSE_BITS, Answers, GaveUp, bits_of, subsets, varying

from crashlab.sass.decode.model import ClassModel

Blocks = list[list[str]]
Suspect = Part | int  # a part, or the number of a slot


class ClassLearner(Asker):
    """Learns the words of ``samples`` that agree on ``when`` (mask, value).

    ``strict``: only values that samples have, for a class whose other values are too entangled.
    """

    def __init__(
        self, opcode: int, samples: list[int], when: tuple[int, int], urz: int, strict: bool = False
    ) -> None:
        super().__init__()
        self.opcode, self.samples, self.when, self.urz = opcode, samples, when, urz
        self.strict = strict
        self.rng = random.Random(opcode)
        self.name = "?"
        self.hints: list[int] = []  # words that could not be explained: bases for the next attempt
        self.trouble: list[tuple[int, list[Suspect]]] = []
        self.demoted = 0  # bits of numbers whose every value is learned as a word of its own

    # -- bases and slots ------------------------------------------------------------------------------
    def pick_bases(self, texts: Texts, limit: int, known: set[str]) -> list[int]:
        """Returns a word of each new text shape, those with many operands first; extends ``known``."""
        by_shape: dict[str, list[int]] = defaultdict(list)
        for word, text in texts:
            if text is not None:
                by_shape["".join(t.kind or t.text for t in tokenize(text))].append(word)
        chosen = []
        for shape in sorted(by_shape, key=lambda shape: -sum(c in ",[" for c in shape)):
            if shape not in known and len(chosen) < limit:
                chosen.append(self.rng.choice(by_shape[shape]))
                known.add(shape)
        return chosen

    def describe(self, texts: Texts) -> Generator[list[int], Answers, Description]:
        """Flips bits of some bases, and starts a description with the slots found."""
        body = BODY_BITS if self.guard != "-" else [12, 13, 14, 15, *BODY_BITS]
        body = [bit for bit in body if not self.when[0] >> bit & 1]
        finder = SlotFinder(body, self.urz)
        known: set[str] = set()
        bases = self.pick_bases(texts, 10, known)
        bases = list(dict.fromkeys([*(w for w, text in texts if text and w in self.hints), *bases]))
        for _ in range(3):
            answers = yield from self.ask(
                [w for base in bases for w in [base, *(base ^ 1 << bit for bit in body)]]
            )
            step, fresh = len(body) + 1, []
            for at in range(0, len(answers), step):
                word, text = answers[at]
                if text is not None:
                    fresh += finder.add(word, text, answers[at + 1 : at + step])
            self.rng.shuffle(fresh)
            asked = yield from self.ask(fresh[:400])
            bases = self.pick_bases(asked, 8, known)
            if not bases:
                break
        slots = finder.slots(self.demoted)
        covered = 0
        for slot in slots:
            covered |= slot.mask
        loose = [bit for bit in body if not covered >> bit & 1]
        self.ignored = sum(1 << bit for bit in loose if finder.effect[bit] <= {"none"})
        refused = [bit for bit in REUSE_BITS if bit in loose and finder.effect[bit] <= {"bad"}]
        silent = yield from self.find_silent(texts, refused)
        free = sum(1 << bit for bit in loose) & ~self.ignored & ~silent
        constant = sum(1 << bit for bit in bits_of(free) if finder.effect[bit] <= {"bad"})
        if self.strict:  # bits that no sample sets are not ignored: they make a word unknown
            same = self.ignored & ~varying([word for word, text in texts if text is not None])
            self.ignored, free, constant = self.ignored & ~same, free | same, constant | same
        description = Description(slots, free, constant, self.rng, self.urz, self.strict)
        yield from self.pick_base(description, texts, free, constant)
        return description

    def find_silent(self, texts: Texts, bits: list[int]) -> Generator[list[int], Answers, int]:
        """Returns the reuse bits that are legal with another schedule, and never change the text.

        Compilers set them on a few instructions without register operands, DEPBAR for one.
        """
        words = [word & ~CONTROL_MASK | YIELDING_CONTROL for word, text in texts if text is not None][:4]
        masks = subsets(sum(1 << bit for bit in bits))
        answers = yield from self.ask([word | mask for word in words for mask in masks])
        plain = {word: text for word, text in answers if word in words}
        silent = 0
        for word, text in answers:
            mask = next(mask for mask in masks if word ^ mask in plain)
            if text is not None and text != plain[word ^ mask]:
                return 0
            silent |= mask if text is not None else 0
        return silent

    def legal(self, words: list[int], free: list[int]) -> Generator[list[int], Answers, list[int]]:
        """Returns how many single-bit changes of each word nvdisasm accepts."""
        answers = yield from self.ask([w ^ 1 << bit for w in words for bit in free])
        step = len(free)
        return [
            sum(text is not None for _, text in answers[i * step : i * step + step])
            for i in range(len(words))
        ]

    def pick_base(self, known: Description, texts: Texts, free: int, constant: int) -> Step:
        """Chooses the base word: many legal changes, many operands, many words."""
        bases = self.pick_bases(texts, 14, set())
        answers = yield from self.ask([known.spread(base) for base in bases for _ in range(3)] + bases)
        good = [(word, text) for word, text in answers if text is not None][:16]
        if not good:
            raise GaveUp("no base")
        bits = bits_of(free)
        scores = yield from self.legal([word for word, _ in good], bits)
        best, top = good[0][0], -1.0
        for (word, text), legal in zip(good, scores, strict=True):
            tokens = known.template(word, text)
            score = legal + 2.0 * len({token for token in tokens if token[0] == "$"}) + 0.3 * len(tokens)
            if score > top:
                best, top = word, score
        for _ in range(
            0 if self.strict else 8
        ):  # climb: words that are there are easier to place than words that are not
            answers = yield from self.ask([best, *(best ^ 1 << bit for bit in bits_of(free & ~constant))])
            length = len(tokenize(answers[0][1] or ""))
            longest, word = max(((len(tokenize(text)), w) for w, text in answers[1:] if text), default=(0, 0))
            if longest <= length:
                break
            before, after = yield from self.legal([best, word], bits)
            if after < before:
                break
            best = word
        ((_, text),) = yield from self.ask([best])
        if text is None:
            raise GaveUp("no base")
        known.base, known.base_tokens = best, known.template(best, text)

    # -- parts ------------------------------------------------------------------------------------------
    def fill(self, known: Description, parts: list[Part]) -> Step:
        """Asks for every value of ``parts`` alone, and derives where in the text each part works."""
        where: list[tuple[Part, Value, int]] = []
        for part in parts:
            values = known.possible(part)
            if len(values) > MAX_ROWS:
                raise GaveUp("too many values", part.mask)
            where += [(part, value, known.set_key(part, value, known.base)) for value in values]
        answers = yield from self.ask([word for _, _, word in where])
        found: dict[Part, list[tuple[Value, list[str]]]] = defaultdict(list)
        for (part, value, word), (_, text) in zip(where, answers, strict=True):
            if text is not None and known.key(part, word) == value:
                found[part].append((value, known.template(word, text)))
        for part in parts:
            known.place(part, found[part])

    def find_order(self, known: Description) -> Step:
        """Two parts that insert at the same gap: asks which comes first."""
        trials = []
        for a, b in itertools.combinations(known.parts, 2):
            gap = a.hulls[0] if len(a.hulls) == 1 and a.hulls == b.hulls else (0, 1)
            one = next((value for value, cells in a.cells.items() if cells and cells[0]), None)
            two = next((value for value, cells in b.cells.items() if cells and cells[0]), None)
            if (a, b) not in known.order and gap[0] == gap[1] and gap[0] % 2 == 0 and one and two:
                word = known.set_key(b, two, known.set_key(a, one, known.base))
                trials.append((word, a, b, a.cells[one][0], b.cells[two][0], gap[0] // 2))
        if not trials:
            return
        answers = yield from self.ask([trial[0] for trial in trials])
        for (word, a, b, cell, cell2, at), (_, text) in zip(trials, answers, strict=True):
            if text is None or cell == cell2:
                continue
            shown = "".join(known.template(word, text))
            head, tail = "".join(known.base_tokens[:at]), "".join(known.base_tokens[at:])
            if shown in (head + cell + cell2 + tail, head + cell2 + cell + tail):
                known.put_in_order(a, b, shown == head + cell + cell2 + tail)

    def block(self, known: Description) -> list[str]:
        """Returns the class as lines of a table."""
        return known.lines(f"@ {self.opcode:03x} {self.name} {self.guard} {self.when[0]:x} {self.when[1]:x}")

    def settle(self, known: Description) -> Generator[list[int], Answers, ClassModel]:
        """Fills what is not filled, and joins parts until no two claim the same part of the text."""
        for _ in range(16):
            pending = [part for part in known.parts if not part.cells]
            if pending:
                yield from self.fill(known, pending)
            yield from self.find_order(known)
            if not known.merge_overlaps() and all(part.cells for part in known.parts):
                return ClassModel(self.block(known))
        raise GaveUp("ranges do not settle", known.smallest_choice())

    # -- proof ------------------------------------------------------------------------------------------
    def random_words(self, known: Description, count: int) -> list[int]:
        """Returns words with random numbers and random proven values of all or of few parts."""
        words = []
        values = [(part, list(part.cells)) for part in known.parts if part.cells]
        for _ in range(count):
            word = known.base
            for i in range(len(known.slots)):
                word = known.random_slot(i, word, plain=self.rng.random() < 0.9)
            few = self.rng.random() < 0.5
            for part, options in values:
                if not few or self.rng.random() < 0.3:
                    word = known.set_key(part, self.rng.choice(options), word)
            words.append(word & ~self.ignored | self.rng.getrandbits(128) & self.ignored)
        return words

    def pair_words(self, known: Description, limit: int) -> list[int]:
        """Returns words that differ from the base in two parts, for every pair."""
        words = []
        for a, b in itertools.combinations([part for part in known.parts if len(part.cells) > 1], 2):
            for _ in range(2):
                word = known.set_key(a, self.rng.choice(list(a.cells)), known.base)
                words.append(known.set_key(b, self.rng.choice(list(b.cells)), word))
        self.rng.shuffle(words)
        return words[:limit]

    def check(self, model: ClassModel, words: list[int]) -> Generator[list[int], Answers, list[int]]:
        """Returns the words that nvdisasm prints otherwise than predicted."""
        answers = yield from self.ask(words)
        return [w for w, text in answers if text is not None and not self.agrees(model, w, text)]

    def differing(self, known: Description, word: int, fine: bool) -> list[Suspect]:
        """Returns what ``word`` changes against the base: parts, slots, ignored bits (``fine``: singly)."""
        out: list[Suspect] = [p for p in known.parts if known.key(p, word) != known.key(p, known.base)]
        out += [i for i, slot in enumerate(known.slots) if (word ^ known.base) & slot.mask]
        loose = (word ^ known.base) & self.ignored
        if fine:
            out += [Part(1 << bit) for bit in bits_of(loose)]
        elif loose:
            out.append(Part(loose))
        return out

    @staticmethod
    def revert(known: Description, word: int, what: Suspect) -> int:
        """Returns ``word`` with one change taken back."""
        mask = known.slots[what].mask if isinstance(what, int) else what.mask
        for i in () if isinstance(what, int) else what.slots:
            mask |= known.slots[i].mask
        return word & ~mask | known.base & mask

    def reduce(
        self, known: Description, model: ClassModel, failing: list[int], fine: bool = False
    ) -> Generator[list[int], Answers, list[tuple[int, list[Suspect]]]]:
        """Takes back change after change as long as the prediction stays wrong."""
        words = list(failing)
        suspects = [self.differing(known, word, fine) for word in words]
        for step in range(max(map(len, suspects), default=0)):
            trial = [
                (i, self.revert(known, words[i], mine[step]))
                for i, mine in enumerate(suspects)
                if step < len(mine)
            ]
            answers = yield from self.ask([word for _, word in trial])
            for (i, _), (word, text) in zip(trial, answers, strict=True):
                if text is not None and not self.agrees(model, word, text):
                    words[i] = word
        return [(word, self.differing(known, word, fine)) for word in words]

    def learn_from(self, known: Description, word: int, what: list[Suspect]) -> bool:
        """Changes the description so that the minimal failing ``word`` can be described."""
        parts = [item for item in what if isinstance(item, Part)]
        fresh = [part for part in parts if part not in known.parts]
        known.parts += fresh
        for part in fresh:
            self.ignored &= ~part.mask
        changed = bool(fresh)
        unseen = len(parts) == 1 and not fresh and known.key(parts[0], word) not in parts[0].cells
        if unseen and word not in known.seen:  # a value that neither the samples nor single bits show
            known.seen.add(word)
            changed = True
        for i in [item for item in what if isinstance(item, int)]:
            if known.add_special(i, word):
                changed = True
                parts += [p for p in known.parts if i in p.slots and p not in parts]
        if len(parts) > 1:
            known.join(parts)
            return True
        for part in parts if changed else ():
            part.hulls, part.cells = [], {}
        return changed

    def repair(self, known: Description, model: ClassModel, failing: list[int]) -> Step:
        """Changes the description so that at least one of the failing words can be described."""
        self.rng.shuffle(failing)
        minimal = yield from self.reduce(known, model, failing[:6])
        if any((word ^ known.base) & self.ignored for word, _ in minimal):
            minimal = yield from self.reduce(known, model, [word for word, _ in minimal], True)
        minimal.sort(key=lambda pair: len(pair[1]))
        if not minimal[0][1]:
            raise GaveUp("the base itself is not described")
        changed = False
        for word, what in minimal:
            stale = any(isinstance(item, Part) and item not in known.parts for item in what)
            if not (changed and stale) and not (len(what) > 4 and changed):
                changed = self.learn_from(known, word, what) or changed
        if changed:
            return
        self.trouble = minimal
        for item in minimal[0][1]:
            if isinstance(item, int) and known.slots[item].mask.bit_count() <= 5:
                self.demoted |= known.slots[item].mask
        masks = [
            item.mask for item in minimal[0][1] if isinstance(item, Part) and 0 < item.mask.bit_count() < 9
        ]
        raise GaveUp(f"cannot explain {minimal[0][0]:032x}", min(masks, default=0, key=int.bit_count))

    # -- the whole --------------------------------------------------------------------------------------
    def run(self) -> Generator[list[int], Answers, Blocks]:
        """Learns the class; where a wrong prediction cannot be explained, looks for slots in it first."""
        real = [w & ~CONTROL_MASK | NEUTRAL_CONTROL for w in self.samples]
        self.rng.shuffle(real)
        yield from self.find_relative(real[:60])
        yield from self.find_guard(real[:6])
        if self.guard != "-":
            real = list(dict.fromkeys(w & ~GUARD | UNGUARDED for w in real))
        attempts = 1 if self.when[0] else 3
        for attempt in range(attempts):
            try:
                return (yield from self.attempt(real))
            except GaveUp:
                hints = [word for word, _ in self.trouble]
                if attempt == attempts - 1 or set(hints) <= set(self.hints):
                    raise
                self.hints += hints
        return []

    def attempt(self, real: list[int]) -> Generator[list[int], Answers, Blocks]:
        """Learns the class from a fresh start."""
        self.trouble = []
        texts = yield from self.ask(list(dict.fromkeys([*self.hints, *real[:700]])))
        valid = [word for word, text in texts if text is not None]
        if not valid:
            raise GaveUp("nvdisasm knows none of the samples")
        self.name = next(text for _, text in texts if text is not None).split(" ")[0].split(".")[0]
        known = yield from self.describe(texts)
        known.seen.update(real)
        model = yield from self.settle(known)
        for round_ in range(40):
            pairs = self.pair_words(known, 1200 if round_ < 3 else 300)
            failing = yield from self.check(model, self.random_words(known, 350) + pairs + valid)
            if not failing:
                failing = yield from self.check(model, self.random_words(known, 1500) + real[700:3500])
            if not failing:
                return [self.block(known)]
            yield from self.repair(known, model, failing)
            model = yield from self.settle(known)
        raise GaveUp("does not converge", known.smallest_choice())


def learn(
    opcode: int, samples: list[int], urz: int, log: list[str], when: tuple[int, int] = (0, 0)
) -> Generator[list[int], Answers, Blocks]:
    """Learns ``opcode`` from real words.

    Where one description does not fit, divides the class by some bits; what still does not fit is learned
    strictly. ``urz`` is the number of the uniform register URZ. Difficulties are added to ``log``.
    """
    split = 0
    for strict in (False, True):
        learner = ClassLearner(opcode, samples, when, urz, strict)
        try:
            return (yield from learner.run())
        except GaveUp as problem:
            kind = " strictly" * strict
            log.append(f"{opcode:03x} {learner.name}{kind} when {when[0]:x}={when[1]:x}: {problem}")
            split = split or problem.split
        if split and not when[0]:
            break
    if not split or when[0] or split.bit_count() > 8:
        return []
    blocks: Blocks = []
    for value in sorted({w & split for w in samples}):
        chosen = [w for w in samples if w & split == value]
        blocks += yield from learn(opcode, chosen, urz, log, (split, value))
    return blocks
