"""Many questions asked of one experiment."""

from __future__ import annotations

from collections.abc import Sequence


def holm(probabilities: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted probabilities in the order given (Scandinavian Journal of Statistics 6, 1979).

    The chance that any of them falls to a level or below, when its own hypothesis is true, is at most
    that level, however they depend on each other.
    """
    order = sorted(range(len(probabilities)), key=lambda i: probabilities[i])
    out = [0.0] * len(probabilities)
    highest = 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(probabilities) - rank) * probabilities[i]))
        out[i] = highest
    return tuple(out)
