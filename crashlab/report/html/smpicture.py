"""The GPU's SMs as a grid: which were idle, which ran what, which faulted."""

from __future__ import annotations

from markupsafe import Markup

from crashlab import facts
from crashlab.postmortem.words import counted
from crashlab.report.html import svg

_COLUMNS = 12
_CELL = 27
_SHOWN = 528
KERNEL_COLOURS = 6


def sm_picture(gpu: facts.Gpu) -> Markup | None:
    """One cell for each SM, numbered; None when the dump does not say how many there are."""
    count = gpu.sm_count or (max((s.sm for s in gpu.sms), default=-1) + 1)
    if not count:
        return None
    states = {state.sm: state for state in gpu.sms}
    shown = min(count, _SHOWN)
    out = []
    for sm in range(shown):
        x, y = sm % _COLUMNS * _CELL + 1, sm // _COLUMNS * _CELL + 1
        out.append(_cell(gpu, sm, states.get(sm), x, y))
    rows = -(-shown // _COLUMNS)
    width, height = _COLUMNS * _CELL + 2, rows * _CELL + 2
    return svg.element(
        "svg",
        *out,
        class_="pic smmap",
        role="img",
        aria_label=summary(gpu),
        viewBox=f"0 0 {width} {height}",
        width="100%",
    )


def _cell(gpu: facts.Gpu, sm: int, state: facts.SmState | None, x: float, y: float) -> Markup:
    size = _CELL - 3
    css, tip = "sm idle", f"SM {sm}: nothing resident"
    if state is not None:
        css = f"sm k{state.kernels[0] % KERNEL_COLOURS}" if state.kernels else "sm busy"
        names = ", ".join(gpu.kernels[k] for k in state.kernels[:3] if k < len(gpu.kernels))
        tip = f"SM {sm}: {counted(state.blocks, 'block')}, {counted(state.warps, 'warp')}" + (
            f" of {names}" if names else ""
        )
        if state.exception:
            css += " fault"
            tip += f"; {state.exception}"
    parts = [
        svg.title(tip),
        svg.element("rect", x=x, y=y, width=size, height=size, rx=3),
        svg.element("text", str(sm), x=x + size / 2, y=y + size / 2 + 3.5, text_anchor="middle"),
    ]
    if state is not None and state.exception:
        parts.append(svg.element("path", d=f"M{x + size - 8} {y}h8v8z", class_="corner"))
    return svg.element("g", *parts, class_=css)


def summary(gpu: facts.Gpu) -> str:
    """What the picture shows, in a sentence."""
    faulting = [s.sm for s in gpu.sms if s.exception]
    busy = sum(1 for s in gpu.sms if s.blocks)
    total = f" of {gpu.sm_count}" if gpu.sm_count else ""
    sentence = f"{busy}{total} SMs held blocks when the dump was taken"
    if faulting:
        listed = ", ".join(str(sm) for sm in faulting[:8]) + (", …" if len(faulting) > 8 else "")
        sentence += f"; {len(faulting)} reported the fault (SM {listed})"
    return sentence
