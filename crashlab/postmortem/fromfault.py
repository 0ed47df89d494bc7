"""The verdict on a fault, before anybody has put it into words."""

from __future__ import annotations

from crashlab import facts


def verdict_of(kind: str, fault: facts.Fault) -> facts.Verdict:
    """A verdict of that kind with all that the fault says and no headline yet: whoever read the fault adds
    headline, address, confidence and caveats."""
    return facts.Verdict(
        kind=kind,
        headline="",
        exception=fault.exception,
        kernel=fault.kernel,
        function=fault.function,
        pc=fault.pc,
        pc_source=fault.pc_source,
        instruction=fault.instruction,
        source=fault.source,
        module=fault.module,
        where=fault.where,
    )
