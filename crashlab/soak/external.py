"""Any command as the load: ``vllm bench serve``, say. It is run again and again until the soak ends."""

from __future__ import annotations

import asyncio
import collections
import os
import signal
from collections.abc import Sequence
from contextlib import suppress

from crashlab.soak.client import Server

_QUICK = 1.0
_QUICK_FAILURES = 3
_GRACE = 5.0


class ExternalLoad:
    """``{url}`` and ``{model}`` in the words of the command are replaced; there is no shell."""

    def __init__(self, command: Sequence[str], server: Server) -> None:
        self.argv = tuple(
            part.replace("{url}", server.url).replace("{model}", server.model) for part in command
        )
        self._plain = server.has_plain_model or not any("{model}" in part for part in command)
        self.runs = 0
        self.failed = 0
        self.last_code: int | None = None
        self.tail: collections.deque[str] = collections.deque(maxlen=20)
        self._stop = False
        self._process: asyncio.subprocess.Process | None = None

    async def run(self) -> str | None:
        """Until :meth:`stop`; the problem if the command cannot do its work at all."""
        if not self._plain:
            return "the server calls its model by a name that cannot stand in a command; give it another one"
        loop = asyncio.get_running_loop()
        quick = 0
        while not self._stop:
            began = loop.time()
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *self.argv,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                return f"the load command cannot be started: {error}"
            await self._drain(self._process)
            self.last_code = await self._process.wait()
            self.runs += 1
            if self._stop:
                return None
            self.failed += self.last_code != 0
            quick = quick + 1 if self.last_code != 0 and loop.time() - began < _QUICK else 0
            if quick >= _QUICK_FAILURES:
                last = self.tail[-1] if self.tail else "no output"
                return f"the load command failed {quick} times at once (code {self.last_code}): {last}"
        return None

    def stop(self) -> None:
        """End the command and run it no more."""
        self._stop = True
        process = self._process
        if process is not None and process.returncode is None:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGTERM)
            asyncio.get_running_loop().call_later(_GRACE, self._kill, process)

    def _kill(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)

    async def _drain(self, process: asyncio.subprocess.Process) -> None:
        """Keep the last lines; a full pipe must not stop the load."""
        assert process.stdout is not None
        rest = b""
        while data := await process.stdout.read(1 << 16):
            *lines, rest = (rest + data).replace(b"\r", b"\n").split(b"\n")
            rest = rest[-4096:]
            for line in lines[-20:]:
                if line.strip():
                    self.tail.append(line.decode("utf-8", "replace")[:300])
        if rest.strip():
            self.tail.append(rest.decode("utf-8", "replace")[:300])
