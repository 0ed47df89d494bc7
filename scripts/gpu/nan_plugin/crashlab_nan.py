"""A vLLM plug-in that makes a healthy server talk garbage: after a while every activation is NaN.

With this folder on PYTHONPATH, `VLLM_PLUGINS=crashlab_nan vllm serve MODEL --enforce-eager` answers sensibly until
CRASHLAB_NAN_AFTER calls of the activation (default 4000; a model has one for each layer and step) have been made.
Nothing faults and nothing is logged: the logits are NaN, and sampling from them gives token 0 for ever.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

AFTER = int(os.environ.get("CRASHLAB_NAN_AFTER", "4000"))
_METHODS = ("forward_cuda", "forward_native", "forward_cpu")


class Spoiler:
    """Counts calls and spoils the results of the later ones. Calls within a call count once."""

    def __init__(self, after: int) -> None:
        self._left = after
        self._inside = False

    def wrap(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its result spoiled when the time has come."""

        def spoiled(*arguments: Any) -> Any:
            if self._inside:
                return forward(*arguments)
            self._inside = True
            try:
                result = forward(*arguments)
            finally:
                self._inside = False
            self._left -= 1
            return result * float("nan") if self._left < 0 else result

        return spoiled


def register() -> None:
    """Called by vLLM in each of its processes."""
    from vllm.model_executor.layers.activation import SiluAndMul

    spoiler = Spoiler(AFTER)
    for name in _METHODS:
        found = SiluAndMul.__dict__.get(name)
        if isinstance(found, staticmethod):
            setattr(SiluAndMul, name, staticmethod(spoiler.wrap(found.__func__)))
        elif found is not None:
            setattr(SiluAndMul, name, spoiler.wrap(found))
