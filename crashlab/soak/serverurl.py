"""Where a server that is being started will listen, out of its command line."""

from __future__ import annotations

from collections.abc import Sequence

# the defaults of each server's own command line
_DEFAULT_PORTS = (("sglang", 30000), ("llama-server", 8080), ("vllm", 8000))
_PORT_OPTIONS = ("--port", "-p")
_HOST_OPTIONS = ("--host",)


def url_of(argv: Sequence[str]) -> str:
    """``http://127.0.0.1:8000`` for ``vllm serve MODEL``; --port and --host are heard."""
    port = _option(argv, _PORT_OPTIONS)
    host = _option(argv, _HOST_OPTIONS) or "127.0.0.1"
    if port is None or not port.isdigit():
        words = " ".join(argv)
        port = str(next((number for name, number in _DEFAULT_PORTS if name in words), 8000))
    if host in ("0.0.0.0", "::", "[::]"):  # it listens everywhere: ask it here
        host = "127.0.0.1"
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"http://{host}:{port}"


def _option(argv: Sequence[str], names: Sequence[str]) -> str | None:
    for at, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name in names:
            if equals:
                return value
            if at + 1 < len(argv):
                return argv[at + 1]
    return None
