"""The one question that a sweep asks outside the load client: only the server itself, whatever it answers."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crashlab.sweep.execute import _Asker


def serve(answer: bytes, asked: list[str]) -> int:
    """The port of a server that gives this answer to one connection."""
    server = socket.create_server(("127.0.0.1", 0))

    def work() -> None:
        with server:
            connection, _ = server.accept()
            with connection:
                asked.append(connection.recv(4096).decode("latin-1").split("\r\n")[0])
                connection.sendall(answer)

    threading.Thread(target=work, daemon=True).start()
    return int(server.getsockname()[1])


def ask(answer: bytes, place: Path) -> tuple[list[str], list[str]]:
    asked: list[str] = []
    job: Any = SimpleNamespace(folder=str(place), run=1)
    (place / "side").mkdir()
    asker = _Asker(job, ("vllm", "serve", "m", "--port", str(serve(answer, asked))))
    asker._next = time.monotonic()
    asker.step()
    return asked, [path.read_text() for path in (place / "side").iterdir()]


def test_the_answer_is_kept(tmp_path: Path) -> None:
    asked, kept = ask(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", tmp_path)
    assert asked == ["GET /server_info?config_format=json HTTP/1.1"]
    assert kept == ["{}"]


def test_a_proxy_of_the_environment_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert ask(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", tmp_path)[1] == ["{}"]


def test_nobody_whom_the_server_names_is_asked(tmp_path: Path) -> None:
    elsewhere: list[str] = []
    port = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret", elsewhere)
    moved = f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{port}/\r\nContent-Length: 0\r\n\r\n".encode()
    assert ask(moved, tmp_path)[1] == []
    assert elsewhere == []


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", b"\xff" * 3000]
)
def test_what_is_no_http_is_survived(answer: bytes, tmp_path: Path) -> None:
    ask(answer, tmp_path)
