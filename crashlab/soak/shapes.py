"""The shapes of a load. A shape decides whether a server crashes, so each run says which it used.

A :class:`Lane` is one simulated client: the same seed, shape, lane and sizes give the same requests.
Only a growing conversation also holds what the server answered.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from crashlab.soak.ask import CHAT, COMPLETIONS, Ask
from crashlab.soak.prompts import Source

MIXED, REPLAY = "mixed", "replay"
_PREFIXES = 8
_MAX_TURNS = 12


class Sizes(NamedTuple):
    """Token counts from-to, and the most that prompt and answer together may have (None: no limit)."""

    input: tuple[int, int] = (64, 1024)
    output: tuple[int, int] = (16, 256)
    context: int | None = None
    temperature: float = 1.0
    ignore_eos: bool = False
    endpoint: str = COMPLETIONS

    def room(self, output: int) -> int:
        """The most prompt tokens beside ``output``; an eighth is left free, as prompts are estimates."""
        if self.context is None:
            return max(self.input)
        return max(1, int((self.context - output) * 0.875) - 8)


class Lane:
    """One client's requests in order. Give each answer's text to :meth:`answered`."""

    def __init__(self, shape: str, seed: int, lane: int, sizes: Sizes, source: Source) -> None:
        self.shape = shape
        self.lane = lane
        self.number = 0
        self._seed, self._sizes, self._source = seed, sizes, source
        self._talk: list[str] = []
        self._talk_tokens = 0
        self._said: tuple[str, int] | None = None
        self._mix = [name for name in SHAPES if name not in (MIXED, "prefill-storm")]

    def next(self) -> Ask:
        """The next request."""
        rng = random.Random(f"{self._seed}/{self.shape}/{self.lane}/{self.number}")
        self._said = None
        ask = _MAKERS[self.shape](self, rng)._replace(lane=self.lane, number=self.number)
        self.number += 1
        return ask

    def answered(self, text: str | None, tokens: int) -> None:
        """The answer to the last request; None if there was none: a conversation then starts anew."""
        if self._said is None:
            return
        if text is None or not text.strip():
            self._talk, self._talk_tokens = [], 0
        else:
            said, said_tokens = self._said
            self._talk += [said, text]
            self._talk_tokens += said_tokens + tokens

    def _ask(
        self,
        shape: str,
        rng: random.Random,
        tokens: int,
        output: int,
        *,
        prefix: str = "",
        endpoint: str = "",
    ) -> Ask:
        sizes = self._sizes
        output = max(1, min(output, (sizes.context or output + 16) - 16))
        text = prefix + self._source.text(rng, max(1, min(tokens, sizes.room(output))))
        return Ask(
            self.lane,
            self.number,
            shape,
            endpoint or sizes.endpoint,
            (text,),
            output,
            sizes.temperature,
            sizes.ignore_eos,
        )

    def fresh(self, rng: random.Random) -> Ask:
        """Independent prompts: nothing can be reused."""
        return self._ask("fresh", rng, rng.randint(*self._sizes.input), rng.randint(*self._sizes.output))

    def growing(self, rng: random.Random) -> Ask:
        """Conversations over many turns: the prefix cache is hit and the context grows."""
        sizes = self._sizes
        output = rng.randint(*sizes.output)
        tokens = max(4, rng.randint(*sizes.input) // 4)
        full = self._talk_tokens + tokens > sizes.room(output)
        if full or len(self._talk) >= 2 * _MAX_TURNS:
            self._talk, self._talk_tokens = [], 0
        ask = self._ask("growing", rng, tokens, output, endpoint=CHAT)
        self._said = ask.messages[0], tokens
        return ask._replace(messages=(*self._talk, ask.messages[0]), turn=len(self._talk) // 2)

    def shared_prefix(self, rng: random.Random) -> Ask:
        """A few long beginnings that all clients share, each with an end of its own."""
        sizes = self._sizes
        which = rng.randrange(_PREFIXES)
        output = rng.randint(*sizes.output)
        whole = min(max(sizes.input), sizes.room(output))
        shared = self._source.text(random.Random(f"{self._seed}/prefix/{which}"), whole * 3 // 4)
        return self._ask(
            "shared-prefix", rng, rng.randint(1, max(1, whole // 4)), output, prefix=shared + " "
        )

    def prefill_storm(self, rng: random.Random) -> Ask:
        """Long prompts from every client at the same moment, and hardly any output."""
        ask = self._ask("prefill-storm", rng, max(self._sizes.input), rng.randint(1, 8))
        return ask._replace(together=True)

    def decode_heavy(self, rng: random.Random) -> Ask:
        """Short prompts and the longest answers: the decode path and its CUDA graphs."""
        ask = self._ask("decode-heavy", rng, rng.randint(4, 32), max(self._sizes.output))
        return ask._replace(ignore_eos=True)

    def json(self, rng: random.Random) -> Ask:
        """Structured output: grammar masks are applied to the logits."""
        ask = self._ask("json", rng, rng.randint(*self._sizes.input), max(self._sizes.output), endpoint=CHAT)
        return ask._replace(structured=True, ignore_eos=False)

    def cancel_churn(self, rng: random.Random) -> Ask:
        """Clients that hang up in mid-stream, or before the first byte."""
        ask = self.fresh(rng)
        # an answer counts at most one chunk a token, so this is always before its end
        after = 0 if rng.random() < 0.2 else rng.randrange(max(1, ask.max_tokens))
        return ask._replace(shape="cancel-churn", cancel_after=after)

    def mixed(self, rng: random.Random) -> Ask:
        """Each request of another shape; conversations are taken up again in between."""
        return _MAKERS[rng.choice(self._mix)](self, rng)


_MAKERS: dict[str, Callable[[Lane, random.Random], Ask]] = {
    "fresh": Lane.fresh,
    "growing": Lane.growing,
    "shared-prefix": Lane.shared_prefix,
    "prefill-storm": Lane.prefill_storm,
    "decode-heavy": Lane.decode_heavy,
    "json": Lane.json,
    "cancel-churn": Lane.cancel_churn,
    MIXED: Lane.mixed,
}
SHAPES = tuple(_MAKERS)
"""Names of the shapes that make requests; ``replay`` takes them from a log."""
