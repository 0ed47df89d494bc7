"""A lever: something that can be turned in a server's configuration, and how to see that it took."""

# No "from __future__ import annotations" here: typing.NamedTuple would compile every annotation string at
# import, which doubles the cost of these classes (docs/adr/0001-named-tuples.md).

from collections.abc import Mapping
from typing import NamedTuple

UNSET = "unset"
"""The word in plans for a lever that is left alone; a value of its own (a default may differ from it)."""

FLAG, SWITCH, VARIABLE, OVERLAY = "flag", "switch", "variable", "overlay"
LOG, CONFIG, SERVER_INFO, LIBRARY, ENVIRONMENT = "log", "config", "server_info", "library", "environment"
SOURCES = (LOG, CONFIG, SERVER_INFO, LIBRARY, ENVIRONMENT)


class Way(NamedTuple):
    """One way to set a lever. ``kind``: ``flag`` (name and value), ``switch`` (a name for each of on and
    off), ``variable`` (environment) or ``overlay`` (what a prepare command fills).

    ``name``: ``--moe-backend``, ``VLLM_USE_DEEP_GEMM``. ``joined``: written as ``name=value`` in one word.
    ``off``: the switch for "off", None when leaving it away means off. ``means`` maps a value of the lever
    to what is written. ``probe``: options of which one must be in the server's help (default: the name).
    ``since`` and ``until``: versions, both included; the part that ``until`` names is compared (0.14 holds
    for 0.14.3).
    """

    kind: str
    name: str = ""
    off: str | None = None
    joined: bool = False
    means: Mapping[str, str] = {}
    probe: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None


class Show(NamedTuple):
    """Where the effective value can be read.

    ``read``: a regular expression with one group, for log and config; ``path``: dotted, for /server_info;
    ``library``: a key of the report's environment. ``means`` maps a requested value to what is read then;
    a value that it does not name is that of ``"*"``, or itself. ``only``: requested values this rule is for.
    ``begins``: what is read only begins with the requested value (a kernel's name with its backend's).
    """

    source: str
    read: str | None = None
    path: str | None = None
    library: str | None = None
    means: Mapping[str, str] = {}
    only: tuple[str, ...] = ()
    begins: bool = False


class Lever(NamedTuple):
    """``id`` is how plans call it; ``suggest`` are values that take something out of the picture.

    ``values`` empty: any. ``excludes``: levers that cannot be turned in the same arm. ``denies``: regular
    expressions of log lines which say that it was ignored; ``{name}`` is the option or variable.
    ``confounds`` are sentences; ``cost`` says what it costs; ``slowdown`` is a factor for estimates.
    ``timing``: it changes timing, so that an absence of faults proves little. ``prepare``: commands that
    fill an arm's own overlay.
    """

    id: str
    title: str
    family: str
    ways: tuple[Way, ...]
    values: tuple[str, ...] = ()
    suggest: tuple[str, ...] = ()
    shows: tuple[Show, ...] = ()
    denies: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    confounds: tuple[str, ...] = ()
    cost: str | None = None
    slowdown: float = 1.0
    timing: bool = False
    prepare: tuple[tuple[str, ...], ...] = ()
