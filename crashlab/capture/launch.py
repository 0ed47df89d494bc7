"""Start the program of an attempt, with its output going to the recording."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping

from crashlab.capture.config import RunConfig
from crashlab.capture.recording import Recording
from crashlab.errors import MissingTool


def launch(
    config: RunConfig,
    recording: Recording,
    environment: Mapping[str, str],
    not_started: Callable[[str], None],
) -> subprocess.Popen[bytes]:
    """The running program, leader of a session of its own. Raises MissingTool if it cannot be started, after
    ``not_started`` was told why.
    """
    try:
        return subprocess.Popen(
            list(config.argv),
            stdin=None if _usable_stdin() else subprocess.DEVNULL,
            stdout=recording.stdout,
            stderr=recording.stderr,
            env=environment,
            cwd=config.cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        not_started(reason)
        raise MissingTool(
            f"{config.argv[0]} cannot be started: {reason}.",
            hint="Check the command after '--'; it is started without a shell.",
        ) from error
    finally:
        recording.opened()


def _usable_stdin() -> bool:
    """A terminal is not: a process of another session that reads from it gets an error at best."""
    try:
        return not os.isatty(sys.stdin.fileno())
    except (AttributeError, OSError, ValueError):
        return False
