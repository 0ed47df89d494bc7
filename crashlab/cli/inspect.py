"""``crashlab inspect``: look around in a dump without cuda-gdb."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from crashlab.cli.given import Given
from crashlab.cli.width import table_width
from crashlab.errors import UsageError
from crashlab.gpucore.dump import CoreDump
from crashlab.inspection import state
from crashlab.inspection.scope import check_options, check_place
from crashlab.inspection.select import Focus, parse_dim3
from crashlab.inspection.table import Table
from crashlab.report.jsontext import written
from crashlab.report.options import SASS_BY
from crashlab.report.safe import one_line

_STATE: dict[str, Callable[[CoreDump, Focus], Table]] = {
    "kernels": state.kernels,
    "devices": state.devices,
    "contexts": state.contexts,
    "sms": state.sms,
    "blocks": state.blocks,
    "warps": state.warp_table,
    "lanes": state.lane_table,
    "registers": state.registers,
    "backtrace": state.backtraces,
}
_VIEWS = (*_STATE, "modules", "params", "constants", "sass", "memory", "sections", "meta", "cubin")


def _number(text: str) -> int:
    """An integer in decimal or with 0x."""
    try:
        return int(text, 0)
    except ValueError:
        raise click.BadParameter(f"{one_line(text, 40)!r} is no number; write 4096 or 0x1000.") from None


@click.command()
@click.argument("core", type=click.Path(readable=False))
@click.argument("view", metavar="VIEW", type=click.Choice(_VIEWS), required=False)
@click.option("--json", "as_json", is_flag=True, help="Rows as JSON; absent values are null.")
@click.option("--device", type=int, help="Only this device.")
@click.option("--sm", type=int, help="Only this SM.")
@click.option("--grid", type=int, help="Only this grid id.")
@click.option("--block", metavar="X,Y,Z", help="Only this block.")
@click.option("--warp", type=int, help="Only this warp (hardware id, as in the warps view).")
@click.option("--lane", type=int, help="Only this lane.")
@click.option("--faulting", is_flag=True, help="Only warps that report a fault.")
@click.option("--pc", type=_number, metavar="N", help="sass: the address to show (default: the faulting PC).")
@click.option("--address", type=_number, metavar="N", help="memory: bytes at this global address.")
@click.option(
    "--space", type=click.Choice(["shared", "local"]), help="memory: bytes of a block's or thread's memory."
)
@click.option(
    "--offset", type=_number, metavar="N", default="0", show_default=True, help="memory: where to start."
)
@click.option(
    "--length",
    type=_number,
    metavar="N",
    default="256",
    show_default=True,
    help="memory: bytes to show (at most 4096 at a time).",
)
@click.option("--module", type=int, help="cubin: which module (default: the faulting one).")
@click.option(
    "--sass-by", type=click.Choice(SASS_BY), default="auto", help="sass: who reads the instructions."
)
@click.option("--nvdisasm", type=click.Path(readable=False), help="sass: the nvdisasm to use.")
@click.option(
    "-o", "--output", type=click.Path(readable=False), help="cubin: the file to write (must not exist)."
)
def inspect(core: str, view: str | None, as_json: bool, output: str | None, **options: object) -> int:
    """Show one view of a dump as a table or as JSON.

    \b
    Views: kernels, devices, contexts, sms, blocks, warps, lanes, registers,
           backtrace, modules, params, constants, sass, memory, sections, meta,
           cubin
    \b
    Examples:
      crashlab inspect core.nvcudmp kernels
      crashlab inspect core.nvcudmp lanes --faulting
      crashlab inspect core.nvcudmp registers --sm 124 --warp 3 --lane 5
      crashlab inspect core.nvcudmp sass
      crashlab inspect core.nvcudmp memory --address 0x7fe5cbe00000
      crashlab inspect core.nvcudmp cubin -o module.cubin
    """
    if view is None:
        raise click.UsageError(f"Which view? One of {', '.join(_VIEWS)}: 'crashlab inspect CORE kernels'.")
    given = Given(click.get_current_context())
    check_options(view, given.names(), options.get("space"))
    if options.get("sass_by") == "native":
        given.refuse(("nvdisasm",), "names a program that --sass-by native never asks.", "Leave it out.")
    dump = CoreDump.open(core)
    if view == "cubin":
        return _carve(dump, options.get("module"), output)
    shown = _view(dump, view, options)
    if as_json:
        sys.stdout.write(written(shown.as_json()) + "\n")
    else:
        for line in shown.as_text(table_width()):
            click.echo(line)
    for problem in dump.problems:
        click.echo(f"crashlab: {problem}", err=True)
    return 0


def _carve(dump: CoreDump, module: object, output: str | None) -> int:
    from crashlab.inspection import code

    if output is None:
        raise UsageError(
            "Where should the cubin go?",
            hint="Name a new file: 'crashlab inspect CORE cubin -o module.cubin'.",
        )
    index, size = code.carve(dump, module if isinstance(module, int) else None, output)
    click.echo(f"module {index}: {size:,} bytes written to {output}", err=True)
    return 0


def _noted(shown: Table, focus: Focus) -> Table:
    """An empty table says so when it was narrowed."""
    if shown.rows or shown.note or focus == Focus():
        return shown
    return shown._replace(note="nothing in this dump matches all of these options")


def _view(dump: CoreDump, view: str, options: dict[str, object]) -> Table:
    from crashlab.inspection import code, layout_views, memory

    def number(name: str) -> int | None:
        value = options.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    block = options.get("block")
    focus = Focus(
        device=number("device"),
        sm=number("sm"),
        block=parse_dim3(block) if isinstance(block, str) else None,
        warp=number("warp"),
        lane=number("lane"),
        grid=number("grid"),
        faulting=bool(options.get("faulting")),
    )
    check_place(dump, focus)
    if view in _STATE:
        return _noted(_STATE[view](dump, focus), focus)
    if view == "memory":
        offset, length = number("offset") or 0, number("length")
        if offset < 0 or length is None or length <= 0:
            raise UsageError("--offset counts from 0 up, --length from 1.", hint="Write 4096 or 0x1000.")
        address, space = number("address"), options.get("space")
        if address is not None:
            return memory.at_address(dump, address, length)
        if space is not None:
            return (memory.shared if space == "shared" else memory.local)(dump, focus, offset, length)
        return memory.ranges(dump, focus)
    if view == "sass":
        from crashlab.postmortem.disassembly import Disassembly

        tool = options.get("nvdisasm")
        reader = Disassembly(
            sass_by=str(options["sass_by"]), tool_path=tool if isinstance(tool, str) else None
        )
        return code.sass(dump, number("pc"), reader)
    simple: dict[str, Callable[[CoreDump, Focus], Table]] = {
        "modules": code.modules,
        "params": code.params,
        "constants": layout_views.constants,
        "sections": layout_views.sections,
        "meta": layout_views.meta,
    }
    return simple[view](dump, focus)
