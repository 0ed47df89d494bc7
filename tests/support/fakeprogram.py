"""A program that behaves as a GPU program under driver 580 does, from real recordings, without a GPU.

``python -m tests.support.fakeprogram STEP…``; each step is ``verb`` or ``verb:argument``. Steps run in
order; ``fork:STEPS`` (steps joined with ``;``) runs them in a child that is not waited for.
"""

from __future__ import annotations

import lzma
import mmap
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data"


def dump_bytes(name: str) -> bytes:
    """A recorded dump."""
    return lzma.decompress((DATA / "dumps" / f"{name}.core.xz").read_bytes())


def driver_lines(name: str) -> list[str]:
    """The driver's lines of a recording."""
    text = lzma.decompress((DATA / "logs" / "driver" / f"{name}.txt.xz").read_bytes()).decode()
    return [line for line in text.splitlines() if "coredump: " in line]


def expand(pattern: str) -> str:
    """%h, %p and %t as the driver expands them."""
    values = {"h": socket.gethostname(), "p": str(os.getpid()), "t": str(int(time.time()))}
    return re.sub("%(.)", lambda found: values.get(found.group(1), found.group(1)), pattern)


def _err(text: str) -> None:
    os.write(2, text.encode() + b"\n")


def _write_dump(name: str, pieces: int, pause: float, *, loud: bool = True, cut: bool = False) -> None:
    """The driver's words and the file, in pieces with pauses between them."""
    path = expand(os.environ.get("CUDA_COREDUMP_FILE", "core_%t_%h_%p.nvcudmp"))
    data = dump_bytes(name)
    lines = driver_lines(name)
    written = next(i for i, line in enumerate(lines) if "Writing ELF file" in line)
    lines[written] = re.sub(r"to \S+", f"to {path}", lines[written])
    if loud:
        for line in lines[: written + 2]:
            _err(line)
    try:
        with open(path, "wb", buffering=0) as file:
            size = len(data) // pieces + 1
            for at in range(0, len(data), size):
                file.write(data[at : at + size])
                if cut and at:
                    os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(pause)
    except OSError as error:
        _err(f"[00:00:00.000000] coredump: ERROR: Failed to open file {path} ({error.strerror})")
        return
    if loud:
        for line in lines[written + 2 :]:
            _err(line)


def _numbers(argument: str) -> tuple[str, int, float]:
    """``name,pieces,pause``."""
    parts = [*argument.split(","), "", ""]
    return parts[0], int(parts[1] or 1), float(parts[2] or 0)


def _await_trigger(name: str) -> None:
    """What a process with CUDA_COREDUMP_PIPE does: make the FIFO, read what comes, dump, abort."""
    pipe = expand(os.environ["CUDA_COREDUMP_PIPE"])
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    print("READY", flush=True)
    while True:
        select.select([reader], [], [], 0.2)
        try:
            got = os.read(reader, 1 << 20)
        except BlockingIOError:
            continue
        if got:
            break
        time.sleep(0.02)
    time.sleep(0.05)
    _write_dump(name, 2, 0.05)
    os.unlink(pipe)
    os.abort()


def _grow(seconds: float) -> None:
    """A dump that never ends."""
    _err(driver_lines("oob_load")[0])
    until = time.monotonic() + seconds
    with open(expand(os.environ["CUDA_COREDUMP_FILE"]), "wb", buffering=0) as file:
        while time.monotonic() < until:
            file.write(b"\x7fELF" + bytes(1 << 16))
            time.sleep(0.02)


def _print_much(megabytes: int) -> None:
    line = b"x" * 79 + b"\n"
    block = line * 800
    left = megabytes * 1_000_000
    while left > 0:
        left -= os.write(1, block)


def _count_lines(count: int) -> None:
    for number in range(count):
        os.write(1 + number % 2, b"line %d\n" % number)


def _short_children(count: int) -> None:
    for number in range(count):
        pid = os.fork()
        if pid == 0:
            if number % 2 == 0:
                os._exit(0)
            if os.fork() == 0:
                os.setsid()
                os._exit(0)
            os._exit(0)
        os.waitpid(pid, 0)


def _daemon(steps: str) -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            run(steps.split(";"))
            os._exit(0)
        os._exit(0)


_maps: list[mmap.mmap] = []


def _map_file(path: str) -> None:
    """Have a file in the memory map, as a loaded library is."""
    with open(path, "rb") as file:
        _maps.append(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))


def step(text: str) -> None:
    """Do one thing."""
    verb, _, argument = text.partition(":")
    if verb == "say":
        print(argument, flush=True)
    elif verb == "err":
        _err(argument)
    elif verb == "sleep":
        time.sleep(float(argument))
    elif verb == "exit":
        os._exit(int(argument))
    elif verb == "abort":
        os.abort()
    elif verb == "fault":
        _write_dump(*_numbers(argument))
        os.abort()
    elif verb == "dump":
        _write_dump(*_numbers(argument))
    elif verb == "silent-dump":
        _write_dump(*_numbers(argument), loud=False)
    elif verb == "cut-dump":
        _write_dump(*_numbers(argument), cut=True)
    elif verb == "driver-only":
        for line in driver_lines(argument):
            _err(line)
    elif verb == "hang":
        _await_trigger(argument or "hang")
    elif verb == "grow":
        _grow(float(argument))
    elif verb == "ignore":
        signal.signal(getattr(signal, argument), signal.SIG_IGN)
    elif verb == "print":
        _print_much(int(argument))
    elif verb == "lines":
        _count_lines(int(argument))
    elif verb == "bytes":
        os.write(1, bytes.fromhex(argument))
    elif verb == "long-line":
        os.write(1, b"y" * (int(argument) << 20) + b"\n")
    elif verb == "fork":
        if os.fork() == 0:
            run(argument.split(";"))
            os._exit(0)
    elif verb == "daemon":
        _daemon(argument)
    elif verb == "short-children":
        _short_children(int(argument))
    elif verb == "wait":
        while True:
            try:
                os.wait()
            except ChildProcessError:
                return
    elif verb == "write":
        name, _, content = argument.partition("=")
        Path(name).write_text(content)
    elif verb == "touch-env":
        Path(argument).write_text("\n".join(f"{k}={v}" for k, v in os.environ.items()))
    elif verb == "replay":
        sys.stdout.buffer.write(lzma.decompress((DATA / "logs" / argument).read_bytes()))
        sys.stdout.flush()
    elif verb == "map":
        _map_file(argument)
    elif verb == "shell":
        subprocess.run(argument, shell=True, check=False)
    else:
        raise SystemExit(f"unknown step {text!r}")


def run(steps: list[str]) -> None:
    for text in steps:
        step(text)


def main() -> None:
    run(sys.argv[1:])


if __name__ == "__main__":
    main()
