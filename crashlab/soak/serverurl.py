"""Where a server listens: its address as the user gave it, or out of the command line that starts it."""

from __future__ import annotations

from collections.abc import Sequence

from crashlab.errors import UsageError

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


def plain_url(text: str) -> str:
    """The address without a trailing slash or ``/v1``; ``http`` where no scheme but a port is named.

    Raises UsageError for what cannot be the address of a server.
    """
    from urllib.parse import urlsplit

    url = text.strip().rstrip("/").removesuffix("/v1").rstrip("/")
    bare = "://" not in url and not url.endswith(":")
    if bare:
        url = f"http://{url}"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise _no_url(text, f"{str(error)[:1].lower()}{str(error)[1:]}") from error
    if parts.scheme not in ("http", "https"):
        raise _no_url(text, f"a server is asked over http or https, not {parts.scheme or 'nothing'}")
    if not host:
        raise _no_url(text, "it names no host")
    if bare and port is None:
        raise _no_url(text, "it names neither http:// nor a port")
    if port == 0:
        raise _no_url(text, "port 0 is no server's")
    if parts.query or parts.fragment or any(c.isspace() or ord(c) < 32 for c in url):
        raise _no_url(text, "nothing may follow the path, and no space may stand in it")
    return url


def _no_url(text: str, why: str) -> UsageError:
    hint = "Write it as http://HOST:PORT, for example --url http://127.0.0.1:8000."
    return UsageError(f"{text!r} is not the URL of a server: {why}.", hint=hint)


def place_of(url: str) -> str:
    """``HOST:PORT``, for people."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def listens(url: str, seconds: float = 0.5) -> str | None:
    """``HOST:PORT`` of ``url`` when something on this machine or another accepts a connection there."""
    import socket
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        with socket.create_connection((parts.hostname or "", port), seconds):
            return f"{parts.hostname}:{port}"
    except (OSError, ValueError):
        return None


def _option(argv: Sequence[str], names: Sequence[str]) -> str | None:
    for at, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name in names:
            if equals:
                return value
            if at + 1 < len(argv):
                return argv[at + 1]
    return None
