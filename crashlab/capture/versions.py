"""Versions that no file name tells: the loaded library is asked, in a process of its own with a time limit."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from crashlab.capture.libraries import Loaded
from crashlab.debugger.process import Limits, Runner, run

ASKABLE = ("cudnn", "cublas", "nccl", "cudart", "nvrtc", "cufft", "cusolver")
_LIMITS = Limits(seconds=15.0, output_bytes=4096)
ASKED = "the loaded file itself"


def complete(found: Sequence[Loaded], *, runner: Runner = run) -> tuple[Loaded, ...]:
    """The same rows, with versions asked for where the file can be loaded again.

    What pip says of a file is replaced too when the file itself says something else.
    """
    answers: dict[tuple[str, str], str | None] = {}
    out = []
    for one in found:
        if one.key in ASKABLE and os.path.isfile(one.path):
            key = (one.key, os.path.realpath(one.path))
            if key not in answers:
                answers[key] = _ask(one.key, one.path, runner)
            version = answers[key]
            if version is not None and not (one.version or "").startswith(version):
                one = one._replace(version=version, source=ASKED)
        out.append(one)
    return tuple(out)


def _ask(key: str, path: str, runner: Runner) -> str | None:
    from crashlab.debugger.room import bare_room

    script = os.path.join(os.path.dirname(__file__), "asklibrary.py")
    with bare_room() as room:
        # Its own folder and those beside it (nvidia/*/lib) hold what it needs.
        beside = os.path.dirname(os.path.dirname(os.path.dirname(path)))
        folders = [os.path.dirname(path)]
        if os.path.basename(beside) == "nvidia":
            folders += [os.path.join(beside, name, "lib") for name in sorted(os.listdir(beside))[:40]]
        inherited = room.env.get("LD_LIBRARY_PATH")
        env = {**room.env, "LD_LIBRARY_PATH": ":".join([*folders, *([inherited] if inherited else [])])}
        outcome = runner((sys.executable, "-I", "-S", script, key, path), env, room.root, _LIMITS, None)
    text = outcome.output.decode("utf-8", "replace").strip()
    return text if outcome.exit_code == 0 and text[:1].isdigit() and len(text) < 40 else None
