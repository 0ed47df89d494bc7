"""``crashlab``: the command group. Commands are imported only when called, so that starting stays cheap."""

from __future__ import annotations

import contextlib
import sys

import click

from crashlab import __version__
from crashlab.report.safe import one_line

_COMMANDS = {
    "run": ("crashlab.cli.run", "run", "Wrap any CUDA program and bring the evidence home."),
    "soak": ("crashlab.cli.soak", "soak", "Load a server until it faults, stalls or talks garbage."),
    "sweep": ("crashlab.cli.sweep", "sweep", "Which lever decides? Arms in turn, with exact statistics."),
    "quality": ("crashlab.cli.quality", "quality", "Does it talk sense? Silent garbage, one server or two."),
    "analyze": ("crashlab.cli.analyze", "analyze", "Post-mortem of GPU core dumps: what really failed."),
    "inspect": (
        "crashlab.cli.inspect",
        "inspect",
        "Look around in a dump: kernels, warps, registers, SASS, memory.",
    ),
    "report": ("crashlab.cli.report", "report", "Render a report again, or compare two crashes."),
    "bundle": (
        "crashlab.cli.bundle",
        "bundle",
        "Write the redacted attachment for an issue, or look into one.",
    ),
    "doctor": ("crashlab.cli.doctor", "doctor", "Is this machine ready to catch a GPU fault?"),
    "demo": ("crashlab.cli.demo", "demo", "The whole pipeline without a GPU: load, recorded crash, report."),
    "signatures": ("crashlab.cli.signatures", "signatures", "The catalogue of known failures."),
    "completion": ("crashlab.cli.completion", "completion", "Completion for bash, zsh or fish."),
}


class _LazyGroup(click.Group):
    """A group whose commands live in modules of their own, imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = _COMMANDS.get(cmd_name)
        if entry is None:
            return None
        import importlib

        command = getattr(importlib.import_module(entry[0]), entry[1])
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry[2]) for name, entry in _COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and name not in _COMMANDS and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, _COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else " 'crashlab --help' lists them."
            raise click.UsageError(f"No such command '{one_line(name, 60)}'.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="crashlab")
def cli() -> None:
    """CUDA crash forensics: names the kernel and the SASS instruction that really failed.

    \b
    Examples:
      crashlab analyze core.nvcudmp            what failed, in one screen
      crashlab analyze --json --fast *.nvcudmp > report.json
      crashlab inspect core.nvcudmp kernels
    """


def invoke(arguments: list[str]) -> int:
    """Run the command that the arguments name; its exit code. A mistake in them is told, and leaves."""
    try:
        code = cli.main(args=arguments, prog_name="crashlab", standalone_mode=False)
    except click.ClickException as error:
        _show(error)
        sys.exit(error.exit_code)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.Abort:
        raise KeyboardInterrupt from None
    except SystemExit:
        # click turns a closed pipe into exit 1 and wraps the streams so that nothing is flushed any more.
        if type(sys.stdout).__name__.endswith("PacifyFlushWrapper"):
            sys.exit(0)
        raise
    return code if isinstance(code, int) else 0


def _show(error: click.ClickException) -> None:
    """click's message, which quotes what was given: nothing in it may act on the terminal."""
    import io

    said = io.StringIO()
    error.show(file=said)
    with contextlib.suppress(OSError, ValueError):
        click.echo("\n".join(map(one_line, said.getvalue().split("\n"))), err=True, nl=False)
