"""What every learner asks first: how one class of instructions has to be asked at all."""

from __future__ import annotations

from collections.abc import Generator

from words import Answers, clean, distances

from crashlab.sass.decode.model import ClassModel

Texts = list[tuple[int, str | None]]  # (word, text without guard, branch targets as distances)
Asking = Generator[list[int], Answers, Texts]
Step = Generator[list[int], Answers, None]
GUARD = 15 << 12
UNGUARDED = 7 << 12


class Asker:
    """Asks for texts of one class, and takes guard predicate and address out of the answers."""

    def __init__(self) -> None:
        self.guard = "-"  # P, UP, or - where bits 12 to 15 are no guard predicate
        self.relative = False

    def ask(self, words: list[int]) -> Asking:
        """Asks for texts; branch targets come back as ``§`` and their distance."""
        if not self.relative:
            answers = yield words
            return [(w, self._strip(text)) for w, (_, text) in zip(words, answers, strict=True)]
        answers = yield [w for word in words for w in (word, word)]
        pairs = zip(words, answers[::2], answers[1::2], strict=True)
        return [(w, self._strip(distances(one, pc, two, pc2))) for w, (pc, one), (pc2, two) in pairs]

    def _strip(self, text: str | None) -> str | None:
        text = clean(text)
        guarded = text is not None and self.guard != "-" and text.startswith("@")
        return text.split(" ", 1)[1] if text is not None and guarded else text

    @staticmethod
    def agrees(model: ClassModel, word: int, text: str) -> bool:
        """Says whether the model predicts ``text`` (at the address where a distance is the target)."""
        return model.text(word, -16) == text.replace("§", "")

    def find_relative(self, probe: list[int]) -> Step:
        """Finds out whether a number in the text depends on the address."""
        answers = yield [w for word in probe for w in (word, word)]
        self.relative = any(a[1] != b[1] for a, b in zip(answers[::2], answers[1::2], strict=True))

    def find_guard(self, probe: list[int]) -> Step:
        """Finds out whether bits 12 to 15 print as a guard predicate before the instruction."""
        answers = yield from self.ask([w & ~GUARD | g << 12 for w in probe for g in range(16)])
        texts = [[text for _, text in answers[at : at + 16]] for at in range(0, len(answers), 16)]
        texts = [sixteen for sixteen in texts if sixteen[7] is not None]
        for kind in ("P", "UP"):
            names = [
                "" if g == 7 else f"@{'!' * (g >> 3)}{kind}{'T' if g & 7 == 7 else g & 7} " for g in range(16)
            ]
            if texts and all(mine == [f"{name}{mine[7]}" for name in names] for mine in texts):
                self.guard = kind
