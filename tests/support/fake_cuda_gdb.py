"""Stand-ins for cuda-gdb: real programs on disk that behave well, badly, or not at all.

Each answers ``--version`` like the real one (unless that is what it is bad at) and does its trick when
it is given a dump. ``log`` in the program's folder gets the pids it knows of, one a line.
"""

from __future__ import annotations

import sys
from pathlib import Path

_HEAD = """#!{python}
import os, signal, sys, time
HERE = os.path.dirname(os.path.abspath(__file__))
if "--version" in sys.argv and not {mute}:
    print({version!r})
    sys.exit(0)
def note(text):
    with open(os.path.join(HERE, "log"), "a") as log:
        log.write(text + "\\n")
def say(text):
    sys.stdout.write(text)
    sys.stdout.flush()
note(str(os.getpid()))
"""

BEHAVIOURS: dict[str, str] = {
    "answers": """
say(open(os.path.join(HERE, "transcript"), errors="surrogateescape").read())
say("==end\\n")
""",
    "stops-early": """
say(open(os.path.join(HERE, "transcript"), errors="surrogateescape").read())
sys.exit(3)
""",
    "aborts": """
sys.stdout.write(open(os.path.join(HERE, "transcript"), errors="surrogateescape").read())
if sys.stdout.isatty():
    sys.stdout.flush()
os.write(2, b"terminate called after throwing an instance of 'std::bad_alloc'\\n  what():  std::bad_alloc\\n")
os.abort()
""",
    "killed": """
say("Opening GPU coredump: core\\n")
os.kill(os.getpid(), signal.SIGKILL)
""",
    "sleeps": """
say(open(os.path.join(HERE, "transcript"), errors="surrogateescape").read())
time.sleep(3600)
""",
    "deaf": """
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
os.close(1); os.close(2)
time.sleep(3600)
""",
    "floods": """
while True:
    os.write(1, b"CUDA Exception: Warp Illegal Address\\n" * 1000)
""",
    "garbage": """
import random
os.write(1, random.Random(7).randbytes(200000) + b"\\n==end\\n")
""",
    "breeds": """
for own_session in (False, True):
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if own_session:
            os.setsid()
            if os.fork():
                os._exit(0)
        note(str(os.getpid()))
        time.sleep(3600)
        os._exit(0)
time.sleep(0.3)
say("Opening GPU coredump: core\\n==end\\n")
""",
    "silent": "",
    "hungry": """
block = bytearray(64 << 20)
keep = []
try:
    while True:
        keep.append(bytearray(256 << 20))
        if len(keep) > 400:
            say("never limited\\n")
            break
except MemoryError:
    say("Opening GPU coredump: core\\nout of memory\\n")
    os.abort()
""",
    "looks-around": """
import resource
say("argv " + repr(sys.argv[1:]) + "\\n")
say("cwd " + os.getcwd() + "\\n")
say("env " + repr(dict(os.environ)) + "\\n")
say("core " + repr(open("core", "rb").read()) + "\\n")
say("tools " + repr(sorted(os.listdir("tools"))) + "\\n")
say("stdin " + repr(sys.stdin.read()) + "\\n")
say("limits " + repr([resource.getrlimit(k)[0] for k in (resource.RLIMIT_CORE, resource.RLIMIT_AS)]) + "\\n")
say("session " + repr(os.getsid(0) == os.getpid()) + "\\n")
open("litter", "w").write("x")
say("==end\\n")
""",
}

VERSION_12_4 = "NVIDIA (R) cuda-gdb 12.4\nPortions Copyright (C) 2007-2023 NVIDIA Corporation\n"
VERSION_11_8 = "NVIDIA (R) CUDA Debugger\n11.8 release\nPortions Copyright (C) 2007-2022 NVIDIA Corporation\n"


def version_text(version: str) -> str:
    """What a 12.x or 13.x prints for ``--version``."""
    return f"NVIDIA (R) cuda-gdb {version}\nBased on GNU gdb 14.2\n"


def install(
    folder: Path,
    behaviour: str,
    *,
    transcript: str = "",
    version: str = VERSION_12_4,
    mute: bool = False,
) -> str:
    """Write a fake cuda-gdb below ``folder`` and return its path. ``mute``: it runs its trick even for
    ``--version``."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "cuda-gdb"
    head = _HEAD.format(python=sys.executable, version=version, mute=mute)
    program.write_text(head + BEHAVIOURS[behaviour])
    program.chmod(0o755)
    (folder / "transcript").write_text(transcript)
    return str(program)


def install_broken(folder: Path) -> str:
    """An executable file that is no program for this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "cuda-gdb"
    program.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(57))
    program.chmod(0o755)
    return str(program)


def pids(program: str) -> list[int]:
    """Every process that a fake told of."""
    log = Path(program).parent / "log"
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
