#!/usr/bin/env python3
"""Write ``docs/reference/cli.md``: every command and option, from the commands themselves.

usage: scripts/gen_cli_docs.py [--check]     exit status 1 with --check when the page is out of date
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

import click
from generated import ROOT, settle

from crashlab.cli.main import cli

TARGET = ROOT / "docs" / "reference" / "cli.md"
HEAD = """# Commands and options

What `crashlab COMMAND --help` prints, as one page. [Exit codes](exit-codes.md) and [the JSON report](report-json.md)
have pages of their own. `crashlab completion bash|zsh|fish` prints the completion script for a shell.
"""


def commands(
    command: click.Command, name: str = "crashlab", parent: click.Context | None = None
) -> Iterator[click.Context]:
    """A context for the command and for each below it, in the order of ``--help``."""
    context = click.Context(command, parent, name, **command.context_settings)
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from commands(below, name, context)


def prose(help_text: str) -> str:
    """Click's help text as Markdown: paragraphs joined, blocks marked ``\\b`` as code."""
    blocks = []
    for block in inspect.cleandoc(help_text).split("\n\n"):
        if not block.startswith("\b"):
            blocks.append(escape(" ".join(block.split())))
            continue
        head, *lines = block.removeprefix("\b").strip("\n").splitlines()
        if head.endswith(":") and lines:
            blocks += [escape(head), fenced(lines)]
        else:
            blocks.append(fenced([head, *lines]))
    return "\n\n".join(blocks)


def fenced(lines: list[str]) -> str:
    return "```\n" + inspect.cleandoc("\n" + "\n".join(lines)) + "\n```"


def escape(text: str) -> str:
    return text.replace("<", "&lt;").replace("|", "\\|").replace("*", "\\*")


def options(context: click.Context) -> list[str]:
    params = context.command.get_params(context)
    rows = [record for param in params if (record := param.get_help_record(context)) and record[1]]
    cells = [f"| `{names.replace('|', chr(92) + '|')}` | {escape(text)} |" for names, text in rows]
    return ["", "| option | |", "|--|--|", *cells] if cells else []


def section(context: click.Context) -> str:
    command, path = context.command, context.command_path
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    title = f"{'#' * min(len(path.split()) + 1, 4)} {path}"
    return "\n".join(["", title, "", f"`{usage}`", "", prose(command.help or ""), *options(context)])


def build() -> str:
    return HEAD + "\n".join(map(section, commands(cli))) + "\n"


if __name__ == "__main__":
    sys.exit(settle({TARGET: build()}))
