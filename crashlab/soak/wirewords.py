"""What went wrong between client and server, in plain words instead of aiohttp's."""

from __future__ import annotations

import json
import socket

_MOST = 200


def words_of(error: Exception) -> str:
    """One line for whatever a request raised."""
    if isinstance(error, OSError) and getattr(error, "host", None) is not None:  # aiohttp's wrapping
        return _no_connection(error)
    if isinstance(error, ConnectionError):
        return f"no connection: {error.strerror or error}"[:_MOST]
    if isinstance(error, OSError) and error.strerror:
        return f"the connection failed: {error.strerror}"[:_MOST]
    if type(error).__module__.partition(".")[0] == "aiohttp":
        return _http_words(error)
    if isinstance(error, ValueError):
        return f"the answer cannot be read: {error}"[:_MOST]
    return (" ".join(str(error).split()) or "the request failed")[:_MOST]


def is_unknown_host(error: Exception) -> bool:
    """The name has no address, and will have none in a moment either."""
    below = getattr(error, "os_error", error)
    return isinstance(below, socket.gaierror) and below.errno == socket.EAI_NONAME


def body_words(raw: bytes) -> str:
    """What the body of an HTTP error says: its own message where it is JSON, nothing of a web page."""
    text = raw.decode("utf-8", "replace")
    if text.lstrip()[:1] == "<":
        return "a web page"
    return " ".join((_message(text) or text).split())[:_MOST]


def _message(text: str) -> str | None:
    """OpenAI's form: ``{"error": {"message": …}}``; older vLLM without the outer object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    inner = value.get("error") if isinstance(value, dict) else None
    for one in (inner, value):
        if isinstance(one, dict) and isinstance(one.get("message"), str):
            return str(one["message"])
    return None


def _no_connection(error: OSError) -> str:
    """aiohttp keeps host, port and the system's own error."""
    host, port = getattr(error, "host", ""), getattr(error, "port", "")
    below = getattr(error, "os_error", error)
    if isinstance(below, socket.gaierror):
        return f"the host {host} is not known"
    if isinstance(below, ConnectionRefusedError):
        return f"nobody listens on {host}:{port}"
    return f"no connection to {host}:{port}: {below.strerror or below}"[:_MOST]


def _http_words(error: Exception) -> str:
    import aiohttp

    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server hung up"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the answer broke off"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"the answer is not HTTP: {' '.join(error.message.split())}"[:_MOST]
    return f"the request failed: {' '.join(str(error).split()) or 'no reason given'}"[:_MOST]
