"""Make one run: ``crashlab soak`` (or ``run``) in a process of its own, and read what it left.

A process for each run keeps arms apart: whatever an arm does to its supervisor, the sweep goes on, and
whatever happens to the sweep, the run goes on and is found again.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from crashlab.errors import CrashlabError, ToolFailed, UsageError
from crashlab.sweep import overlay
from crashlab.sweep.facts import INCONCLUSIVE, ArmRun
from crashlab.sweep.job import TOKEN, Job
from crashlab.sweep.outcome import finished, refused, result_of, server_info_file
from crashlab.sweep.plan import RUN
from crashlab.sweep.setting import environment_of, filled

_POLL = 0.1
_LOOK = 1.0
_TAIL = 1200
_INFO_BYTES = 16 << 20
_USAGE = (2, 3)


class Stop(NamedTuple):
    """``wanted()`` says how often the user has asked to stop: once is passed on, twice kills."""

    wanted: Callable[[], int]


def run_job(job: Job, stop: Stop | None = None, machine: str | None = None) -> ArmRun:
    """Make the run and judge it. Raises UsageError when the options themselves are refused (each other arm
    would end in the same way), ToolFailed when the run left no result."""
    environment, marks = _environment(job), _marks(job)
    before: tuple[str, ...] = ()
    if job.overlay is not None:
        try:
            path = overlay.prepared(
                os.path.join(job.folder, overlay.FOLDER, job.overlay), job.prepare, marks, environment
            )
        except ToolFailed as error:
            return _unprepared(job, error, machine)
        before = overlay.prefix(environment, path)
        marks = {**marks, "overlay": path}
    argv = (*before, *filled(job.argv, marks))
    rundir = os.path.join(job.folder, job.rundir)
    for place in (os.path.dirname(rundir), os.path.join(job.folder, "side")):
        os.makedirs(place, exist_ok=True)
    _keep(job, environment)
    code, said = _supervise(job, argv, environment, rundir, stop)
    if not finished(rundir, job.mode):
        if code in _USAGE:
            raise UsageError(
                f"'crashlab {job.mode}' refused the run of arm {job.arm!r}: {said}",
                hint="Mend [load] or command in the plan; nothing was recorded for this arm.",
            )
        raise ToolFailed(f"the run of arm {job.arm!r} left no result (exit code {code}): {said}")
    return result_of(job, rundir, environment, machine)


def kept_environment(job: Job) -> dict[str, str]:
    """The environment that an earlier process started the run with, as far as levers need it."""
    try:
        with open(_side(job, "environment.json"), encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return {k: v for k, v in value.items() if isinstance(v, str)} if isinstance(value, dict) else {}


def _keep(job: Job, environment: Mapping[str, str]) -> None:
    """Only the variables of the levers: the rest may hold secrets."""
    names = [check.way.name for check in job.checks if check.way.name in environment]
    with open(_side(job, "environment.json"), "w", encoding="utf-8") as file:
        json.dump({name: environment[name] for name in names}, file)


def _environment(job: Job) -> dict[str, str]:
    return {**environment_of(os.environ, job.variables), TOKEN: job.token}


def _marks(job: Job) -> dict[str, str]:
    marks = {"run": str(job.run)}
    if any("{port}" in word for word in (*job.argv, *job.options)):
        marks["port"] = str(free_port())
    if len(job.values) == 1:
        marks["value"] = next(iter(job.values.values()))
    return {**marks, **job.values}


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _supervise(
    job: Job, argv: tuple[str, ...], environment: Mapping[str, str], rundir: str, stop: Stop | None
) -> tuple[int, str]:
    """(exit code, end of what it said). Passes a stop on, and asks /server_info while it runs."""
    options = filled(job.options, {"port": _option(argv, "--port") or ""})
    quiet = ("--json", "-q") if job.mode != RUN else ("-q",)
    words = [sys.executable, "-m", "crashlab", job.mode, *options, *quiet, "--out", rundir, "--", *argv]
    said = _side(job, "stderr")
    with open(said, "wb") as err:
        process = subprocess.Popen(
            words,
            cwd=job.cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=err,
            start_new_session=True,  # Ctrl-C at the terminal is for the sweep, which passes it on
        )
        asker = _Asker(job, argv) if job.server_info else None
        look = _Look(job, rundir, environment)
        began, passed = time.monotonic(), 0
        while process.poll() is None:
            time.sleep(_POLL)
            over = job.mode == RUN and time.monotonic() - began > job.seconds
            asked = max(stop.wanted() if stop is not None else 0, int(over or look.refused()))
            if asked > passed:
                passed = asked
                with suppress(OSError):
                    process.send_signal(signal.SIGINT)
            if asker is not None:
                asker.step()
    return process.returncode, _tail(said)


class _Look:
    """Looks into the log once the server is ready: an arm whose lever did not take is not worth its time."""

    def __init__(self, job: Job, rundir: str, environment: Mapping[str, str]) -> None:
        self._job, self._rundir, self._environment = job, rundir, environment
        self._answer: bool | None = None if any(check.asked for check in job.checks) else False
        self._next = 0.0

    def refused(self) -> bool:
        """Whether the run should end."""
        if self._answer is None and time.monotonic() >= self._next:
            self._next = time.monotonic() + _LOOK
            self._answer = refused(self._job, self._rundir, self._environment)
        return self._answer is True


class _Asker:
    """Asks the server for its configuration, once it answers at all."""

    def __init__(self, job: Job, argv: tuple[str, ...]) -> None:
        from crashlab.soak.serverurl import url_of

        self._url = f"{url_of(argv)}/server_info?config_format=json"
        self._file = server_info_file(job.folder, job.run)
        self._next, self._done = time.monotonic() + 1.0, False

    def step(self) -> None:
        """One question every two seconds until there is an answer."""
        if self._done or time.monotonic() < self._next:
            return
        import http.client
        import urllib.error
        import urllib.request

        class Stay(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *_: object) -> None:
                """The server is asked, and nobody that it names."""

        self._next = time.monotonic() + 2.0
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), Stay)  # it is on this machine
        try:
            with opener.open(self._url, timeout=10.0) as answer:
                raw = answer.read(_INFO_BYTES)
        except urllib.error.HTTPError:
            self._done = True  # it answers, and does not tell
            return
        except (OSError, ValueError, http.client.HTTPException):
            return
        self._done = True
        with suppress(OSError), open(self._file, "wb") as file:
            file.write(raw)


def _unprepared(job: Job, error: CrashlabError, machine: str | None) -> ArmRun:
    note = f"its overlay could not be prepared: {error}"[:500]
    return ArmRun(job.arm, job.number, INCONCLUSIVE, requested=job.requested, note=note, machine=machine)


def _side(job: Job, name: str) -> str:
    return os.path.join(job.folder, "side", f"{job.run:04d}.{name}")


def _option(argv: tuple[str, ...], name: str) -> str | None:
    for at, word in enumerate(argv[:-1]):
        if word == name:
            return argv[at + 1]
    return next((word.partition("=")[2] for word in argv if word.startswith(f"{name}=")), None)


def _tail(path: str) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - _TAIL))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return " ".join(text.split())[-_TAIL:]
