"""What a target is, and the fixtures that cases are made from."""

from __future__ import annotations

import io
import json
import lzma
import random
import tarfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).resolve().parents[2] / "data"
KNOWN = Path(__file__).resolve().parents[3] / "crashlab" / "signatures" / "known"


class Target(NamedTuple):
    """One parser under attack.

    ``make`` gives the bytes of one case from its random numbers; ``run`` feeds them to the parser (with a
    folder of its own, in which files may be written) and returns when it survived. Only CrashlabError may
    leave the library; ``run`` suppresses it, so whatever leaves ``run`` is a finding.
    """

    name: str
    says: str
    make: Callable[[random.Random], bytes]
    run: Callable[[bytes, Path], None]


def unpacked(path: Path) -> bytes:
    """A fixture's bytes."""
    raw = path.read_bytes()
    return lzma.decompress(raw) if path.suffix == ".xz" else raw


@lru_cache(maxsize=64)
def fixtures(pattern: str) -> tuple[bytes, ...]:
    """All fixtures below tests/data that match a pattern, by name."""
    found = tuple(unpacked(path) for path in sorted(DATA.glob(pattern)) if path.is_file())
    assert found, pattern
    return found


@lru_cache(maxsize=16)
def archived(pattern: str) -> tuple[dict[str, bytes], ...]:
    """The files of each tar archive that matches."""
    out = []
    for raw in fixtures(pattern):
        with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
            files = {m.name: tar.extractfile(m) for m in tar.getmembers() if m.isfile()}
            out.append({name: stream.read() for name, stream in files.items() if stream is not None})
    return tuple(out)


@lru_cache(maxsize=1)
def reports() -> tuple[bytes, ...]:
    """The report.json of some real dumps, as crashlab writes them."""
    from crashlab.report import build, jsonio
    from crashlab.report.byhand import with_commands
    from crashlab.report.options import AnalyzeOptions
    from tests.support import corpus

    options = AnalyzeOptions(sass_by="native", debugger="never")
    out = []
    for name in ("oob_load", "shared_oob", "hang", "tma", "two_devices", "torch_triton"):
        found = build.analyze([corpus.path(name)], options)
        out.append(jsonio.dumps(with_commands(found, [f"{name}.core"])).encode())
    assert all(json.loads(one) for one in out)
    return tuple(out)
