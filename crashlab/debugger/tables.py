"""Rows of ``info cuda kernels|devices|warps|lanes`` and ``info registers``."""

from __future__ import annotations

import re

from crashlab.debugger.rows import DeviceRow, KernelRow, LaneRow, WarpRow
from crashlab.facts import Dim3, Hex

Scope = tuple[int | None, int | None, int | None]
"""Device, SM and warp of the ``Device 0 SM 124 Warp 3`` line above the rows."""

_DIM = r"\((\d{1,10}),(\d{1,10}),(\d{1,10})\)"
_KERNEL = re.compile(
    r"\s{0,8}(\*)?\s{0,12}(\d{1,12})\s{1,12}(-|\d{1,12})\s{1,12}(\d{1,6})\s{1,20}(-?\d{1,20})\s{1,20}(\w{1,32})"
    rf"\s{{1,64}}(0x[0-9a-fA-F]{{1,1024}})\s{{1,40}}{_DIM}\s{{1,40}}{_DIM}\s{{1,40}}(\S.*)"
)
_WARP = re.compile(
    r"\s{0,8}(\*)?\s{0,12}(\d{1,6})\s{1,40}(0x[0-9a-fA-F]{1,16})\s{1,40}(0x[0-9a-fA-F]{1,16})"
    r"\s{1,40}(0x[0-9a-fA-F]{1,16})\s{1,40}(\d{1,12})\s"
)
_LANE = re.compile(
    rf"\s{{0,8}}(\*)?\s{{0,12}}(\d{{1,4}})\s{{1,40}}(\w{{1,32}})\s{{1,40}}(0x[0-9a-fA-F]{{1,16}})\s{{1,40}}{_DIM}\s{{1,40}}(\S.*)"
)
_TRIPLE = re.compile(_DIM)
_SCOPE = re.compile(
    r"\s{0,8}Device\s{1,4}(\d{1,6})(?:\s{1,4}SM\s{1,4}(\d{1,6}))?(?:\s{1,4}Warp\s{1,4}(\d{1,6}))?\s*$"
)
_REGISTER = re.compile(
    r"\s{0,8}(pc|errorpc|R\d{1,3}|RZ|UR\d{1,3}|URZ|P\d|PT|UP\d|UPT|CC)\s{1,20}(0x[0-9a-fA-F]{1,16}|<unavailable>)(?:\s|$)"
)
_HEADERS = (
    ("kernels", ("Kernel", "Parent", "Grid", "Invocation")),
    ("devices", ("Dev", "SM", "Type", "Warps/SM")),
    ("warps", ("Wp", "Active", "Mask")),
    ("lanes", ("Ln", "State", "ThreadIdx")),
)
_OTHER_HEADERS = (
    ("Ln(s)", "Thread", "State"),
    ("BlockIdx", "Count", "State"),
    ("Context", "Dev", "State"),
    ("SM", "Active", "Warps"),
)


def table_of(line: str) -> str | None:
    """Which table a heading begins: kernels, devices, warps, lanes, ``other``, or None if it is none."""
    words = line.split()
    if not 3 <= len(words) <= 40:
        return None
    for name, needed in _HEADERS:
        if words[0] == needed[0] and all(word in words for word in needed):
            return name
    if any(words[0] == needed[0] and all(word in words for word in needed) for needed in _OTHER_HEADERS):
        return "other"
    return None


def parse_scope(line: str) -> Scope | None:
    """``Device 0 SM 124 Warp 3`` above the rows of a table."""
    match = _SCOPE.match(line)
    return tuple(int(n) if n else None for n in match.groups()) if match else None  # type: ignore[return-value]


def parse_kernel(line: str) -> KernelRow | None:
    """One grid; the invocation may hold blanks, commas and angle brackets and runs to the line's end."""
    match = _KERNEL.match(line)
    if match is None:
        return None
    n = [int(value) for value in match.groups()[7:13]]
    return KernelRow(
        focus=match[1] is not None,
        kernel=int(match[2]),
        parent=None if match[3] == "-" else int(match[3]),
        device=int(match[4]),
        grid=int(match[5]),
        status=match[6],
        sms=Hex(int(match[7], 16)),
        grid_dim=Dim3(*n[:3]),
        block_dim=Dim3(*n[3:]),
        invocation=match[14].rstrip(),
    )


def parse_device(line: str) -> DeviceRow | None:
    """One GPU. The columns are found from ``sm_NN``, because the name before it holds blanks."""
    words = line.split()
    focus = words[:1] == ["*"]
    words = words[1:] if focus else words
    at = next((i for i, word in enumerate(words) if word.startswith("sm_")), None)
    if at is None or at < 2 or len(words) != at + 6 or not words[0].isdecimal():
        return None
    numbers = words[at + 1 : at + 5]
    if not all(n.isdecimal() and len(n) <= 12 for n in numbers) or len(words[0]) > 12:
        return None
    try:
        mask = Hex(int(words[at + 5], 16))
    except ValueError:
        return None
    sms, warps, lanes, registers = (int(n) for n in numbers)
    return DeviceRow(
        focus=focus,
        device=int(words[0]),
        pci=words[1],
        name=" ".join(words[2 : at - 1]) or None,
        chip=words[at - 1] if at > 2 else None,
        sm_type=words[at],
        sm_count=sms,
        warps_per_sm=warps,
        lanes_per_warp=lanes,
        registers_per_lane=registers,
        active_sms=mask,
    )


def parse_warp(line: str, scope: Scope) -> WarpRow | None:
    """One warp. Block and first thread are the last two triples; newer versions may put a cluster before."""
    match = _WARP.match(line)
    if match is None:
        return None
    triples = _TRIPLE.findall(line, match.end() - 1)
    if len(triples) < 2:
        return None
    block, thread = (Dim3(*(int(n) for n in triple)) for triple in triples[-2:])
    active, divergent, pc = (Hex(int(match[i], 16)) for i in (3, 4, 5))
    focus, (device, sm, _) = match[1] is not None, scope
    kernel = int(match[6])
    return WarpRow(focus, device, sm, int(match[2]), active, divergent, pc, kernel, block, thread)


def parse_lane(line: str, scope: Scope) -> LaneRow | None:
    """One thread of a warp, with the exception it reports."""
    match = _LANE.match(line)
    if match is None:
        return None
    thread = Dim3(int(match[5]), int(match[6]), int(match[7]))
    said = match[8].rstrip()
    pc = Hex(int(match[4], 16))
    exception = None if said == "None" else said
    return LaneRow(match[1] is not None, *scope, int(match[2]), match[3], pc, thread, exception)


def parse_register(line: str) -> tuple[str, Hex | None] | None:
    """Name and value of a register; the value is None where cuda-gdb says ``<unavailable>``."""
    match = _REGISTER.match(line)
    if match is None:
        return None
    return match[1], None if match[2][0] == "<" else Hex(int(match[2], 16))
