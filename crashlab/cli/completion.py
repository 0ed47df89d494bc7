"""``crashlab completion``: the script that lets a shell complete commands, options and file names."""

from __future__ import annotations

import click

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", required=False, metavar="{bash|zsh|fish}", type=click.Choice(_SHELLS))
def completion(shell: str | None) -> None:
    """Print the completion script for SHELL.

    \b
    Examples:
      crashlab completion bash > \\
        ~/.local/share/bash-completion/completions/crashlab
      crashlab completion zsh > ~/.zfunc/_crashlab  (on your fpath)
      crashlab completion fish > ~/.config/fish/completions/crashlab.fish
    """
    if shell is None:
        # click's own words for a missing choice hold a tab for each.
        raise click.UsageError("Which shell? 'crashlab completion bash', zsh or fish.")
    from click.shell_completion import get_completion_class

    from crashlab.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None, shell  # click brings all three
    click.echo(kind(cli, {}, "crashlab", "_CRASHLAB_COMPLETE").source().strip())
