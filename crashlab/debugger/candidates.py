"""Which cuda-gdb programs there are, what they can read, and which one to use for a dump."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from crashlab.debugger.process import Limits, Runner, run
from crashlab.debugger.room import bare_room
from crashlab.debugger.version import (
    Version,
    cuda_of_driver,
    first_version_for,
    has_dropped,
    parse_version,
    spell,
)
from crashlab.errors import MissingTool

PROGRAM = "cuda-gdb"
OPTION = "option"
MAX_CANDIDATES = 12

INSTALL_HINT = (
    "install the package cuda-gdb of NVIDIA's CUDA repository or of Debian non-free, or give one as"
    " --debugger PATH (scripts/install-cuda-gdb of crashlab's source tree unpacks one without root)"
)

_PROBE = Limits(seconds=10.0, output_bytes=64 << 10, memory_bytes=8 << 30)
_TOOLKITS = "/usr/local"


class Candidate(NamedTuple):
    """A cuda-gdb. ``source`` says where it was found; ``problem`` why it cannot be used, or None."""

    path: str
    source: str
    version: Version | None = None
    problem: str | None = None


class Choice(NamedTuple):
    """The debugger to use and one sentence why; ``candidate`` is None when there is none to use.

    ``misfits`` are reasons to doubt what it will say, such as a driver newer than the debugger.
    """

    candidate: Candidate | None
    why: str
    hint: str | None = None
    misfits: tuple[str, ...] = ()


def find(
    option: str | None = None,
    *,
    env: Mapping[str, str] | None = None,
    toolkits: str = _TOOLKITS,
    runner: Runner = run,
) -> tuple[Candidate, ...]:
    """All cuda-gdb programs: the option alone when given, else PATH, CUDA_HOME and toolkits in that order.

    Each is asked for its version, with a time limit. The same program under two names counts once.
    """
    env = os.environ if env is None else env
    seen: set[str] = set()
    found: list[Candidate] = []
    for path, source in _paths(option, env, toolkits):
        real = os.path.realpath(path)
        if real in seen or len(found) >= MAX_CANDIDATES:
            continue
        seen.add(real)
        found.append(probe(path, source, runner=runner))
    return tuple(found)


def require(option: str) -> None:
    """MissingTool unless the program (or the folder of a cuda-gdb) that ``option`` names can be run."""
    path, _ = next(_paths(option, {}, ""))
    if not (os.path.isfile(path) and os.access(path, os.X_OK)):
        raise MissingTool(
            f"--debugger: {path} is no program that can be run.",
            hint="Check the path, or leave it out: a cuda-gdb that is installed is found.",
        )


def _paths(option: str | None, env: Mapping[str, str], toolkits: str) -> Iterator[tuple[str, str]]:
    if option is not None:
        path = os.path.join(option, PROGRAM) if os.path.isdir(option) else option
        yield os.path.abspath(path), OPTION
        return
    places = [(part, "PATH") for part in env.get("PATH", "").split(os.pathsep) if os.path.isabs(part)]
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if env.get(name):
            places.append((os.path.join(os.path.abspath(env[name]), "bin"), name))
    places += [(place, toolkits) for place in toolkit_bins(toolkits)]
    for place, source in places:
        path = os.path.join(place, PROGRAM)
        if os.path.isfile(path):
            yield path, source


def toolkit_bins(toolkits: str = _TOOLKITS) -> tuple[str, ...]:
    """The ``bin`` folders of the CUDA toolkits installed side by side, as ``/usr/local/cuda-13.0/bin``."""
    try:
        names = sorted(name for name in os.listdir(toolkits) if name.startswith("cuda"))
    except OSError:
        return ()
    return tuple(os.path.join(toolkits, name, "bin") for name in names)


def probe(path: str, source: str = OPTION, *, runner: Runner = run) -> Candidate:
    """Ask one program for its version."""
    with bare_room() as room:
        outcome = runner((path, "--version"), room.env, room.root, _PROBE, None)
    if outcome.missing:
        return Candidate(path, source, problem="no such program")
    if outcome.error is not None:
        return Candidate(path, source, problem=f"cannot be started: {outcome.error}")
    if outcome.timed_out or outcome.flooded:
        return Candidate(path, source, problem="does not answer --version")
    text = outcome.output.decode("utf-8", "replace")
    if outcome.exit_code != 0:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "no output")
        return Candidate(path, source, problem=f"--version failed ({outcome.exit_code}): {first[:200]}")
    version = parse_version(text)
    problem = None if version else "does not say that it is cuda-gdb"
    return Candidate(path, source, version, problem)


def choose(
    candidates: Sequence[Candidate],
    driver: tuple[int, ...] | None = None,
    sm: tuple[int, ...] | None = None,
) -> Choice:
    """The newest that fits the dump's driver, ``(580, 159)``, and chip, ``(9, 0)``.

    When none fits, the newest is taken all the same and the misfit named: an older debugger reads most
    of a newer dump (12.4 opens dumps of driver 580).
    """
    usable = [c for c in candidates if c.problem is None]
    if not usable:
        return _nothing(candidates)
    fitting = [c for c in usable if not misfits(c.version, driver, sm)]
    best = max(fitting or usable, key=lambda c: c.version or ())
    doubts = misfits(best.version, driver, sm)
    what = f"cuda-gdb {spell(best.version)} ({best.path})"
    if best.source == OPTION:
        why = f"{what} was asked for"
    elif len(usable) == 1:
        why = f"{what} is the only one found"
    else:
        fits = " that fits" if 0 < len(fitting) < len(usable) else ""
        why = f"{what} is the newest of {len(usable)} found{fits}"
    if doubts:
        why += ", although " + " and ".join(doubts)
    elif driver or sm:
        why += f" and knows {_described(driver, sm)}"
    return Choice(best, why, misfits=doubts)


def misfits(
    version: Version | None, driver: tuple[int, ...] | None, sm: tuple[int, ...] | None
) -> tuple[str, ...]:
    """Why a version may not understand a dump; empty when it should."""
    if version is None:
        return ("its version is unknown",)
    out = []
    if sm:
        chip = f"sm_{''.join(map(str, sm))}"
        needed = first_version_for(sm)
        if needed is not None and version < needed:
            out.append(f"{chip} needs {spell(needed)} or newer")
        elif has_dropped(version, sm):
            out.append(f"CUDA {version[0]} no longer supports {chip}")
    cuda = cuda_of_driver(driver) if driver else None
    if cuda is not None and version < cuda:
        out.append(f"the dump's driver {spell(driver)} belongs to CUDA {spell(cuda)}")
    return tuple(out)


def _described(driver: tuple[int, ...] | None, sm: tuple[int, ...] | None) -> str:
    parts = [f"sm_{''.join(map(str, sm))}"] if sm else []
    if driver:
        parts.append(f"dumps of driver {spell(driver)}")
    return " and ".join(parts)


def _nothing(candidates: Sequence[Candidate]) -> Choice:
    if not candidates:
        return Choice(None, "no cuda-gdb was found on PATH, in CUDA_HOME or under /usr/local", INSTALL_HINT)
    problems = "; ".join(f"{c.path}: {c.problem}" for c in candidates)
    return Choice(None, f"no usable cuda-gdb: {problems}", INSTALL_HINT)
