"""Views of the code: modules, SASS, kernel parameters, and carving a module out of the dump."""

from __future__ import annotations

import contextlib
import os

from crashlab.cubin.demangle import demangle
from crashlab.cubin.nvinfo import Parameter
from crashlab.errors import CrashlabError, MalformedCubin, UsageError
from crashlab.facts import Hex
from crashlab.gpucore.dump import CoreDump
from crashlab.inspection.select import Focus
from crashlab.inspection.state import hexed, table
from crashlab.inspection.table import Table
from crashlab.postmortem.codemap import CodeMap
from crashlab.postmortem.disassembly import Disassembly
from crashlab.postmortem.evidence import collect
from crashlab.postmortem.words import counted


def modules(dump: CoreDump, _focus: Focus) -> Table:
    """One row a code image of the dump."""
    codemap = CodeMap(dump)
    rows = []
    for module in dump.modules:
        view = dump.image(module)
        cubin = codemap.cubin(module)
        context = dump.context_of(module)
        arch = compiler = kernels = None
        if cubin is not None:
            with contextlib.suppress(MalformedCubin):
                arch, compiler, kernels = cubin.arch, cubin.compiler, cubin.symbols.kernel_count()
        rows.append(
            (
                module.row,
                hexed(context.context_id) if context else None,
                hexed(module.handle),
                len(view) if view is not None else None,
                arch,
                kernels,
                compiler,
            )
        )
    return table("module context handle bytes arch kernels compiler", rows)


def sass(dump: CoreDump, pc: int | None, disassembly: Disassembly) -> Table:
    """The code section around a PC (the faulting one by default), with source lines."""
    if pc is None:
        groups = collect(dump)
        pc = groups[0].pc if groups else None
    if pc is None:
        raise UsageError(
            "The dump records no fault, so there is no instruction to start from.",
            hint="Give an address with --pc; 'crashlab inspect CORE warps' shows where the warps stand.",
        )
    hit = CodeMap(dump).at(pc)
    if hit is None:
        raise UsageError(
            f"No module of the dump holds PC {hex(pc)}.",
            hint="'crashlab inspect CORE warps' shows the PCs of the resident warps.",
        )
    lines = disassembly.lines(hit)
    if lines is None:
        raise CrashlabError(
            f"No disassembler could read the code: {disassembly.missing}.",
            hint="pip install nvidia-cuda-nvdisasm, or give one with --nvdisasm PATH.",
        )
    ranges = {}
    with contextlib.suppress(MalformedCubin):
        for item in hit.cubin.line_map(pc):
            for address in range(item.start, item.end, 16):
                ranges[address] = f"{os.path.basename(item.file)}:{item.line}"
    rows = [("=>" if line.pc == pc else "", Hex(line.pc), line.text, ranges.get(line.pc)) for line in lines]
    return table("at pc instruction source", rows)


def params(dump: CoreDump, focus: Focus) -> Table:
    """Kernel arguments by the layout in ``.nv.info``; raw words when the module does not give one."""
    codemap = CodeMap(dump)
    rows: list[tuple[object, ...]] = []
    missing = 0
    for grid in dump.grids:
        if focus.grid not in (None, grid.grid_id):
            continue
        data = dump.parameters(grid)
        if data is None:
            missing += 1
            continue
        mangled = codemap.kernel_of(grid)
        hit = codemap.at(grid.function_entry, grid)
        layout_: tuple[Parameter, ...] = ()
        if hit is not None and mangled:
            try:
                layout_ = hit.cubin.parameters(mangled)
            except MalformedCubin:
                layout_ = ()
        name = demangle(mangled) if mangled else None
        for item in layout_:
            raw = bytes(data[item.offset : item.offset + item.size])
            value = Hex(int.from_bytes(raw, "little")) if len(raw) == item.size and item.size <= 8 else None
            rows.append((grid.grid_id, name, item.ordinal, item.offset, item.size, value, raw[:64].hex()))
        if not layout_:
            for offset in range(0, len(data) - 3, 4):
                raw = bytes(data[offset : offset + 4])
                rows.append(
                    (grid.grid_id, name, None, offset, 4, Hex(int.from_bytes(raw, "little")), raw.hex())
                )
    note = f"{counted(missing, 'grid')} without parameters in this dump" if missing else None
    return table("grid kernel parameter offset size value bytes", rows, note)


def carve(dump: CoreDump, module: int | None, target: str) -> tuple[int, int]:
    """Write a module's image to a new file; returns its index and size in bytes.

    The file must not exist: a name never comes from the dump and nothing is overwritten.
    """
    index = module
    if index is None:
        groups = collect(dump)
        hit = CodeMap(dump).at(groups[0].pc, groups[0].reports[0].grid) if groups else None
        index = hit.module.row if hit else None
    rows = [m for m in dump.modules if m.row == index]
    if not rows:
        raise UsageError(
            "No such module." if module is not None else "The faulting PC lies in no module.",
            hint="'crashlab inspect CORE modules' lists them; choose one with --module N.",
        )
    view = dump.image(rows[0]) or dump.unrelocated_image(rows[0])
    if view is None:
        raise UsageError(f"Module {index} has no image in this dump.")
    try:
        with open(target, "xb") as out:
            out.write(view)
    except FileExistsError as error:
        raise UsageError(f"{target} exists already.", hint="Choose another name with -o.") from error
    except OSError as error:
        raise UsageError(
            f"Cannot write {target}: {error.strerror}.", hint="Choose another place with -o."
        ) from error
    return rows[0].row, len(view)
