"""How a request can end. Errors are data: each record carries at most one of these."""

from __future__ import annotations

REFUSED = "refused"
RESET = "reset"
HTTP = "http"
REJECTED = "rejected"
TIMEOUT_CONNECT = "timeout-connect"
TIMEOUT_FIRST = "timeout-first-byte"
TIMEOUT_CHUNK = "timeout-chunk"
TIMEOUT_TOTAL = "timeout-total"
MALFORMED = "malformed"
STREAM_ERROR = "stream-error"
TRUNCATED = "truncated"
EMPTY = "empty"
CANCELLED = "cancelled"
STOPPED = "stopped"

MEANING = {
    REFUSED: "no connection: nobody listens",
    RESET: "the connection broke before or during the answer",
    HTTP: "an HTTP status of 400 or more, see status",
    REJECTED: "429 or 503: the server takes no more work now",
    TIMEOUT_CONNECT: "no connection in time",
    TIMEOUT_FIRST: "connected, but no first byte of the answer in time",
    TIMEOUT_CHUNK: "the answer began and then paused for too long",
    TIMEOUT_TOTAL: "the whole answer took too long",
    MALFORMED: "the stream is no server-sent events with JSON",
    STREAM_ERROR: "status 200, and an error object inside the stream",
    TRUNCATED: "the stream ended without a finish reason",
    EMPTY: "status 200, a proper end, and no text at all",
    CANCELLED: "the client hung up on purpose (cancel-churn)",
    STOPPED: "the client hung up because the run ended",
}

INNOCENT = frozenset((CANCELLED, STOPPED))
"""Ends that the client itself chose."""

ALIVE = frozenset((REJECTED, CANCELLED, STOPPED, EMPTY))
"""Ends that say nothing against the server being alive."""
