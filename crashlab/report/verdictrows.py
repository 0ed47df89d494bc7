"""The verdict as rows of label and value, absent ones left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from crashlab import facts
from crashlab.report.text import launch_text, source_text, threads_text


class Row(NamedTuple):
    """One labelled value; ``mono`` for code, names and numbers that are compared by eye."""

    label: str
    value: str | None
    mono: bool = False


def verdict_rows(verdict: facts.Verdict) -> list[Row]:
    """All that is known of the verdict, most telling first."""
    return [row for row in _rows(verdict) if row.value]


def _rows(verdict: facts.Verdict) -> Iterator[Row]:
    kernel, function = verdict.kernel, verdict.function
    if verdict.exception:
        code = f" (code {verdict.exception.code})" if verdict.exception.code is not None else ""
        level = f", reported for the {verdict.exception.precision}" if verdict.exception.precision else ""
        yield Row("Exception", f"{verdict.exception.name}{code}{level}")
    if kernel:
        yield Row("Kernel", kernel.name or kernel.mangled, True)
    if function and (kernel is None or function.mangled != kernel.mangled):
        yield Row("Function", function.name or function.mangled, True)
    if verdict.instruction:
        yield Row("Instruction", verdict.instruction.text, True)
    if verdict.source:
        yield Row("Source", source_text(verdict.source), True)
    if verdict.pc is not None:
        offset = f" = function + {hex(function.offset)}" if function and function.offset is not None else ""
        yield Row("PC", f"{verdict.pc}{offset}, from {verdict.pc_source or 'an unnamed source'}", True)
    if verdict.library and verdict.library.name:
        sure = f" ({verdict.library.confidence} confidence)" if verdict.library.confidence else ""
        yield Row("Library", f"{verdict.library.name}{sure}")
    if kernel and kernel.launch:
        yield from _launch(kernel)
    yield from _where(verdict.where)
    if verdict.module:
        parts = [
            f"number {verdict.module.index}" if verdict.module.index is not None else "",
            verdict.module.arch or "",
            f"{verdict.module.bytes:,} bytes" if verdict.module.bytes is not None else "",
            verdict.module.compiler or "",
        ]
        yield Row("Module", ", ".join(p for p in parts if p))


def _launch(kernel: facts.Kernel) -> Iterator[Row]:
    launch = kernel.launch
    if launch is None:
        return
    inferred = " (inferred)" if kernel.launch_source == "inferred" else ""
    yield Row("Launch", f"{launch_text(launch).strip()}{inferred}" if launch.grid else None, True)
    if launch.shared_bytes is not None:
        yield Row("Shared memory of a block", f"{launch.shared_bytes:,} bytes, system-reserved ones included")
    if launch.registers is not None:
        yield Row("Registers of a thread", str(launch.registers))


def _where(where: facts.Where | None) -> Iterator[Row]:
    if where is None:
        return
    device = [
        f"number {where.device}" if where.device is not None else "",
        where.device_name or "",
        where.sm_arch or "",
    ]
    yield Row("GPU", ", ".join(p for p in device if p))
    place = []
    if where.sms:
        listed = ", ".join(str(sm) for sm in where.sms[:12])
        more = f" and {len(where.sms) - 12} more" if len(where.sms) > 12 else ""
        place.append(f"SM {listed}{more}")
    if where.block:
        place.append(f"block {where.block}")
    if where.warp is not None:
        place.append(f"warp {where.warp}")
    if where.threads:
        place.append(threads_text(where.threads))
    yield Row("Place", ", ".join(place))
