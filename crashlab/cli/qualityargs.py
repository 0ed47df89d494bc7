"""The command line of ``crashlab quality``: two servers behind ``--a`` and ``--b``, in any of the spellings.

``--a URL``, ``--a 'vllm serve M'``, and ``--a -- vllm serve M … --b -- vllm serve M …``. click knows only
one ``--``, so groups are taken out by hand before it looks.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from crashlab.errors import UsageError

_ARMS = {"--a": "A", "--b": "B"}


class Groups(NamedTuple):
    """``rest`` is what click gets, ``commands`` the words behind ``--a --`` and ``--b --``."""

    rest: list[str]
    commands: dict[str, tuple[str, ...]]


def split_groups(args: Sequence[str]) -> Groups:
    """Take the groups out. A group ends where the next one begins. Raises UsageError for an empty or
    doubled one, and for options behind the last group, which cannot be told from the server's own."""
    rest: list[str] = []
    commands: dict[str, tuple[str, ...]] = {}
    starts = [i for i, word in enumerate(args[:-1]) if word in _ARMS and args[i + 1] == "--"]
    if not starts:
        if "--" in args:
            # one command without a name is arm A
            at = list(args).index("--")
            commands["A"] = _group("--", args[at + 1 :])
            return Groups(list(args[:at]), commands)
        return Groups(list(args), commands)
    rest = list(args[: starts[0]])
    for position, start in enumerate(starts):
        end = starts[position + 1] if position + 1 < len(starts) else len(args)
        name = _ARMS[args[start]]
        if name in commands:
            raise UsageError(f"{args[start]} is given twice.")
        commands[name] = _group(args[start], args[start + 2 : end])
    return Groups(rest, commands)


def _group(flag: str, words: Sequence[str]) -> tuple[str, ...]:
    if not words:
        raise UsageError(f"There is no command behind {flag}.", hint="For example --a -- vllm serve MODEL.")
    return tuple(words)


class Target(NamedTuple):
    """One arm as the user named it: a running server's ``url``, or a command to start."""

    url: str
    argv: tuple[str, ...] = ()


def targets(commands: Mapping[str, tuple[str, ...]], options: Mapping[str, Any]) -> dict[str, Target]:
    """Arms A and, where one is named, B. Raises UsageError if an arm is named twice, or B without A."""
    from crashlab.soak.serverurl import plain_url, url_of

    out: dict[str, Target] = {}
    for name in ("A", "B"):
        flag = name.lower()
        text, url = options[flag], options[f"{flag}_url"]
        argv = commands.get(name, ())
        if sum(bool(one) for one in (text, argv)) > 1:
            raise UsageError(f"--{flag} is given twice.")
        if text and text.startswith(("http://", "https://")):
            if url:
                raise UsageError(f"--{flag} and --{flag}-url both name a URL.")
            url, text = text, None
        if text:
            argv = _words(flag, text)
        if argv or url is not None:
            out[name] = Target(plain_url(url if url is not None else url_of(argv)), argv)
    if "B" in out and "A" not in out:
        raise UsageError("Arm B has nothing to be compared with.", hint="Name the control arm with --a.")
    both = len(out) == 2 and out["A"].url == out["B"].url
    if both and not (out["A"].argv and out["B"].argv):
        raise UsageError(
            f"Both arms are at {out['A'].url}.",
            hint="Give each server a --port, or name its URL with --b-url.",
        )
    return out


def _words(flag: str, text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--{flag} cannot be read: {error}.", hint="Quote it for the shell.") from error
    return _group(f"--{flag}", words)


def pairs(flag: str, texts: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` of a repeatable option."""
    out = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{flag} takes NAME=VALUE, not {text!r}.")
        out[name] = value
    return out
