"""Which options a person wrote, so that none of them is ignored without a word."""

from __future__ import annotations

from collections.abc import Iterable

import click

from crashlab.errors import UsageError
from crashlab.report.safe import one_line


class Given:
    """The options of the command line of the command that runs, by parameter name."""

    def __init__(self, context: click.Context) -> None:
        source = click.core.ParameterSource.COMMANDLINE
        self._values = context.params
        self._flags = {
            parameter.name: max(parameter.opts, key=len)
            for parameter in context.command.params
            if isinstance(parameter, click.Option)
            and parameter.name is not None
            and context.get_parameter_source(parameter.name) is source
        }

    def names(self) -> frozenset[str]:
        """Parameter names of the options that were written."""
        return frozenset(self._flags)

    def value(self, name: str) -> object:
        """The parameter's value, whoever gave it."""
        return self._values[name]

    def refuse(self, names: Iterable[str], why: str, hint: str) -> None:
        """UsageError when one of ``names`` was written: it contradicts something else."""
        for name in names:
            if name in self._flags:
                raise UsageError(f"{self._flags[name]} {why}", hint=hint)

    def idle(self, names: Iterable[str], why: str) -> None:
        """One line on standard error for each of ``names`` that was written: it changes nothing here."""
        for name in names:
            if name in self._flags:
                click.echo(f"crashlab: {self._flags[name]} changes nothing: {one_line(why)}", err=True)


def seconds(_context: click.Context, parameter: click.Parameter, value: float) -> float:
    """A time limit as click's callback: a number from 0.1 to a day; nan and inf are none."""
    if not 0.1 <= value <= 86_400:
        raise click.BadParameter(
            f"{value} is no time limit; give seconds from 0.1 to 86400.", param=parameter
        )
    return value
