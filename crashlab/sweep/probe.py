"""What the server itself says that it can do: its help and its version. Nothing is assumed from a name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crashlab.errors import UsageError
from crashlab.sweep.lever import FLAG, OVERLAY, SWITCH, VARIABLE, Lever, Way

_VERSION = re.compile(r"(?<![\w.])(\d{1,4}\.\d{1,4}(?:\.\d{1,6})?)(?:[+.\-\w]{0,40})")
_TAIL = 8 << 20
_SECONDS = 180.0
_SUBCOMMANDS = ("serve",)


class Server(NamedTuple):
    """``options``: every option that its help names, None if it gave no help. ``version`` None: unknown."""

    options: frozenset[str] | None = None
    version: str | None = None


def ask(command: Sequence[str], environment: Mapping[str, str], seconds: float = _SECONDS) -> Server:
    """Run the command with ``--help=all``, ``--help`` and ``--version``; it must not start a server for these.

    The part up to its subcommand (``vllm serve``) or module (``python -m crashlab.demo``) is run, so that no
    model is loaded. A program that cannot be started at all raises UsageError.
    """
    stem = stem_of(command)
    text = None
    for option in ("--help=all", "--help"):
        code, said = _run([*stem, option], environment, seconds)
        if code == 0 and "--" in said:
            text = said
            break
    root = stem[:-1] if stem[-1] in _SUBCOMMANDS else stem
    code, said = _run([*root, "--version"], environment, seconds)
    return Server(options_in(text) if text else None, version_in(said) if code == 0 else None)


def stem_of(command: Sequence[str]) -> list[str]:
    """``vllm serve``, ``python -m package.module``, ``./server``: what asks for help without side effects."""
    words = list(command)
    for at, word in enumerate(words):
        if word == "-m" and at + 1 < len(words):
            return words[: at + 2]
        if word in _SUBCOMMANDS:
            return words[: at + 1]
    first = words[:1]
    if first and re.fullmatch(r"python[\d.]*", first[0].rpartition("/")[2]) and len(words) > 1:
        return words[:2]
    return first


def _run(argv: Sequence[str], environment: Mapping[str, str], seconds: float) -> tuple[int | None, str]:
    import subprocess

    try:
        done = subprocess.run(
            argv,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, ""
    except OSError as error:
        raise UsageError(
            f"{argv[0]} cannot be started: {error.strerror or error}.",
            hint="Check the plan's command; it is run as it stands, without a shell.",
        ) from error
    return done.returncode, done.stdout[-_TAIL:].decode("utf-8", "replace")


def options_in(text: str) -> frozenset[str]:
    """Every word of a help text that looks like an option."""
    return frozenset(re.findall(r"(?<![\w-])-{1,2}[A-Za-z][\w.-]*", text))


def version_in(text: str) -> str | None:
    """The last line that holds a version decides: warnings come before it."""
    for line in reversed(text.strip().splitlines()):
        if (found := _VERSION.search(line)) is not None:
            return found.group(1)
    return None


def way_for(lever: Lever, server: Server) -> Way:
    """How this server's lever is set. Raises UsageError if this server does not have it.

    Help decides for options. A variable has no help: the version decides, where it is known.
    """
    refused: list[str] = []
    for way in lever.ways:
        if way.kind == OVERLAY:
            return way
        if way.kind in (FLAG, SWITCH):
            if server.options is None:
                if within(server.version, way):
                    return way
            elif any(name in server.options for name in way.probe or (way.name,)):
                return way
            refused.append(f"{way.name} is not in its help")
        elif way.kind == VARIABLE:
            if within(server.version, way):
                return way
            refused.append(f"{way.name} is for other versions than {server.version}")
    raise UsageError(
        f"This server does not know the lever {lever.id!r}: {'; '.join(refused)}.",
        hint="Take it out of the plan, or describe how this server spells it in a [[lever]] table.",
    )


def within(version: str | None, way: Way) -> bool:
    """Whether a version lies in a way's range; an unknown version does."""
    if version is None:
        return True
    have = _parts(version)
    if way.since is not None and have < _parts(way.since):
        return False
    if way.until is not None:
        last = _parts(way.until)
        return have[: len(last)] <= last
    return True


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal() and len(part) < 10)
