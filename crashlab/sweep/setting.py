"""Put an arm's settings into a command line and an environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crashlab.errors import UsageError
from crashlab.sweep.lever import OVERLAY, SWITCH, VARIABLE, Lever, Way


class Launch(NamedTuple):
    """``argv`` of the server; ``variables`` to set, None: to take out of the environment."""

    argv: tuple[str, ...]
    variables: Mapping[str, str | None]


def apply(launch: Launch, lever: Lever, way: Way, value: str | None) -> Launch:
    """The launch with a lever turned. ``value`` None: unset, whatever the base command says.

    An option that is there already is replaced where it stands. Raises UsageError for a value that the
    lever does not have.
    """
    if value is not None and lever.values and value not in lever.values:
        raise UsageError(
            f"{lever.id} cannot be {value!r}.",
            hint=f"It can be {', '.join(lever.values)}, or 'unset'.",
        )
    written = way.means.get(value, value) if value is not None else None
    if way.kind == VARIABLE:
        return launch._replace(variables={**launch.variables, way.name: written})
    if way.kind == OVERLAY:
        return launch
    argv = list(launch.argv)
    if way.kind == SWITCH:
        return launch._replace(argv=tuple(_switch(argv, way, value)))
    return launch._replace(argv=tuple(_flag(argv, way, written)))


def _switch(argv: list[str], way: Way, value: str | None) -> list[str]:
    names = {way.name, *([way.off] if way.off else [])}
    kept = [word for word in argv if word not in names]
    wanted = {"on": way.name, "off": way.off}.get(value or "")
    return kept if wanted is None else [*kept, wanted]


def _flag(argv: list[str], way: Way, value: str | None) -> list[str]:
    """Without the option, or with its new value in the place of the old one."""
    out: list[str] = []
    place: int | None = None
    skip = False
    for at, word in enumerate(argv):
        if skip:
            skip = False
            continue
        if word == way.name:
            place = len(out)
            # what follows is its value, unless the option was used as a switch
            skip = at + 1 < len(argv) and not _is_option(argv[at + 1])
        elif word.startswith(f"{way.name}="):
            place = len(out)
        else:
            out.append(word)
    if value is None:
        return out
    new = [f"{way.name}={value}"] if way.joined else [way.name, value]
    place = len(out) if place is None else place
    return [*out[:place], *new, *out[place:]]


def _is_option(word: str) -> bool:
    return word.startswith("-") and not word[1:2].isdigit() and word != "-"


def present(launch: Launch, environment: Mapping[str, str], way: Way) -> bool:
    """Whether the command line or the environment sets the lever at all."""
    if way.kind == VARIABLE:
        given = launch.variables.get(way.name, environment.get(way.name))
        return given is not None
    if way.kind == OVERLAY:
        return False
    names = [name for name in (way.name, way.off) if name]
    return any(word == name or word.startswith(f"{name}=") for word in launch.argv for name in names)


def environment_of(base: Mapping[str, str], variables: Mapping[str, str | None]) -> dict[str, str]:
    """The environment of an arm."""
    out = dict(base)
    for name, value in variables.items():
        if value is None:
            out.pop(name, None)
        else:
            out[name] = value
    return out


def filled(words: Sequence[str], marks: Mapping[str, str]) -> tuple[str, ...]:
    """Words with ``{port}``, ``{overlay}`` and the like filled in; other braces (JSON) stay as they are."""
    out = []
    for word in words:
        for name, value in marks.items():
            word = word.replace("{" + name + "}", value)
        out.append(word)
    return tuple(out)
