"""The client against servers that misbehave: whatever they do becomes data, at the right stage."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time

import pytest

from crashlab.soak import classes, wirewords
from crashlab.soak.ask import COMPLETIONS, Ask
from crashlab.soak.board import Board
from crashlab.soak.client import Client, Reply, Server, open_session
from crashlab.soak.deadlines import Deadlines, sweep
from crashlab.soak.probe import Probe
from crashlab.soak.ready import NotReady, Ready, ask_ready
from tests.unit.soak.rawserver import CLOSE, END, HEAD, RESET, Script, chunk, plain, raw_server
from tests.unit.soak.test_answer import DONE, GOOD, USAGE, event, token

ASK = Ask(0, 0, "fresh", COMPLETIONS, ("hello there",), 16)
STREAM = HEAD + chunk(GOOD + USAGE + DONE) + END


async def _ask(url: str, ask: Ask, deadlines: Deadlines | None) -> tuple[Reply, Board]:
    board = Board()
    async with open_session() as session:
        client = Client(session, Server(url, "m", "key"), board)
        task = asyncio.ensure_future(client.ask(ask))
        while deadlines is not None and not task.done():
            for flight in sweep(list(board.flights.values()), deadlines, time.monotonic()):
                flight.task.cancel()  # type: ignore[attr-defined]
            await asyncio.sleep(0.01)
        return await task, board


def send(script: Script, ask: Ask = ASK, deadlines: Deadlines | None = None) -> tuple[Reply, Board]:
    async def main() -> tuple[Reply, Board]:
        async with raw_server(script) as url:
            return await _ask(url, ask, deadlines)

    return asyncio.run(main())


def test_a_proper_answer_is_recorded_with_its_times() -> None:
    (record, text), board = send((HEAD, 0.15, chunk(GOOD), 0.2, chunk(USAGE + DONE) + END))
    assert (text, record.tokens, record.prompt_tokens) == ("one two", 9, 7)
    assert (record.error, record.status, record.finish) == (None, 200, "length")
    assert record.first is not None
    assert record.last is not None
    assert 0.14 <= record.first < record.last <= (record.total or 0.0)
    assert record.gap is not None
    assert record.gap >= 0.15
    assert board.flights == {}
    assert board.bytes == record.bytes > 0


@pytest.mark.parametrize(
    ("script", "error", "status"),
    [
        ((RESET,), classes.RESET, None),
        ((CLOSE,), classes.RESET, None),
        ((HEAD, chunk(token("one")), 0.05, RESET), classes.RESET, 200),
        ((HEAD, chunk(token("one")), 0.05, CLOSE), classes.RESET, 200),
        ((HEAD + chunk(token("one")) + END,), classes.TRUNCATED, 200),
        ((HEAD + chunk(event(error={"message": "gone"})) + END,), classes.STREAM_ERROR, 200),
        ((HEAD + chunk(token("", "stop") + DONE) + END,), classes.EMPTY, 200),
        ((HEAD + chunk(b"<html>\n") + END,), classes.MALFORMED, 200),
        ((HEAD + b"zz\r\nnot a chunk\r\n", CLOSE), classes.MALFORMED, None),
        ((b"SSH-2.0-nothing\r\n\r\n", CLOSE), classes.MALFORMED, None),
        ((plain("500 Internal Server Error", b'{"error": "EngineDeadError"}'),), classes.HTTP, 500),
        ((plain("400 Bad Request", b""),), classes.HTTP, 400),
        ((plain("429 Too Many Requests", b""),), classes.REJECTED, 429),
        ((plain("503 Service Unavailable", b""),), classes.REJECTED, 503),
        ((plain("302 Found", b""),), classes.HTTP, 302),
    ],
)
def test_each_misbehaviour_has_its_class(script: Script, error: str, status: int | None) -> None:
    (record, _), board = send(script)
    assert (record.error, record.status) == (error, status)
    assert board.flights == {}


def test_the_servers_words_of_an_http_error_are_kept() -> None:
    (record, _), _ = send((plain("500 x", b'{"error":\n "EngineDeadError"}'),))
    assert record.detail == '{"error": "EngineDeadError"}'


def test_nobody_listening_is_refused() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (record, _), _ = asyncio.run(_ask(f"http://127.0.0.1:{port}", ASK, None))
    assert (record.error, record.detail) == (classes.REFUSED, f"nobody listens on 127.0.0.1:{port}")


@pytest.mark.parametrize("script", [(RESET,), (CLOSE,), (HEAD, chunk(token("one")), 0.05, CLOSE)])
def test_what_the_network_did_is_told_in_plain_words(script: Script) -> None:
    (record, _), _ = send(script)
    assert record.detail
    assert not re.search(r"Error|Client|\[|<|ssl", record.detail)


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ((5.0,), classes.TIMEOUT_CONNECT),
        ((HEAD, 5.0), classes.TIMEOUT_FIRST),
        ((HEAD, chunk(token("one")), 5.0), classes.TIMEOUT_CHUNK),
        ((HEAD, *(chunk(token("x")), 0.05) * 60), classes.TIMEOUT_TOTAL),
    ],
)
def test_each_stage_that_takes_too_long_is_cut_off_there(script: Script, error: str) -> None:
    began = time.monotonic()
    (record, _), board = send(script, deadlines=Deadlines(connect=0.3, first=0.5, chunk=0.5, total=1.0))
    assert record.error == error
    assert time.monotonic() - began < 4.8
    assert board.flights == {}


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_client_that_hangs_up_on_purpose_is_no_error_of_the_server(after: int) -> None:
    script = (HEAD, *(chunk(token("x")), 0.02) * 50)
    (record, text), _ = send(script, ASK._replace(cancel_after=after))
    assert record.error == classes.CANCELLED
    assert after <= len(text) <= after + 5


def test_a_request_names_itself_to_the_server() -> None:
    heads: list[bytes] = []

    async def main() -> None:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(STREAM)
            await writer.drain()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        await _ask(f"http://127.0.0.1:{port}", ASK._replace(lane=3, number=17), None)
        server.close()

    asyncio.run(main())
    assert b"X-Request-Id: crashlab-3-17" in heads[0]
    assert b"Authorization: Bearer key" in heads[0]


MODELS = plain("200 OK", b'{"data": [{"id": "m", "max_model_len": 99}], "choices": [{}], "count": 500}')


def ready(script: Script, model: str = "") -> Ready | NotReady:
    async def main() -> Ready | NotReady:
        async with raw_server(script) as url, open_session() as session:
            return await ask_ready(session, Server(url, model), first=1.0)

    return asyncio.run(main())


def test_readiness_needs_a_real_answer_and_learns_model_context_and_token_counts() -> None:
    found = ready((MODELS,))
    assert isinstance(found, Ready)
    assert (found.model, found.context, found.counted_by) == ("m", 99, "tokenize")
    assert found.tokens_a_word is not None
    assert found.tokens_a_word > 1


@pytest.mark.parametrize(("context", "words"), [(64, 6), (4, 1), (512, 51), (131072, 115)])
def test_the_question_fits_the_context_of_the_smallest_model(context: int, words: int) -> None:
    """One token a character is the worst that a tokenizer does."""
    bodies: list[bytes] = []

    async def main() -> None:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"Content-Length: (\d+)", head)
                bodies.append(await reader.readexactly(int(length.group(1))) if length else b"")
                answer = f'{{"data": [{{"id": "m", "max_model_len": {context}}}], "choices": [{{}}]}}'
                writer.write(plain("200 OK", answer.encode()))
                await writer.drain()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with open_session() as session:
            assert isinstance(await ask_ready(session, Server(f"http://127.0.0.1:{port}", ""), 5.0), Ready)
        server.close()

    asyncio.run(main())
    prompts = [json.loads(body)["prompt"] for body in bodies if body]
    assert {len(prompt.split()) for prompt in prompts} == {words}
    assert len(prompts) == 2  # the question, and how many tokens it has


def test_without_tokenize_the_usage_of_the_answer_counts() -> None:
    body = b'{"data": [{"id": "m"}], "choices": [{}], "usage": {"prompt_tokens": 250}}'
    found = ready((plain("200 OK", body),))
    assert isinstance(found, Ready)
    assert (found.context, found.counted_by) == (None, "usage")


@pytest.mark.parametrize(
    ("script", "final"),
    [
        ((RESET,), False),
        ((plain("503 Service Unavailable", b"loading"),), False),
        ((plain("404 Not Found", b"no"),), True),
        ((plain("401 Unauthorized", b"no"),), True),
        ((plain("200 OK", b"[]"),), False),
        ((plain("200 OK", b'{"data": []}'),), False),
        ((plain("200 OK", b'{"data": [{"id": "m"}]}'),), False),
        ((plain("200 OK", b"{nonsense"),), False),
    ],
)
def test_what_is_not_ready_says_why_and_whether_waiting_helps(script: Script, final: bool) -> None:
    found = ready(script)
    assert isinstance(found, NotReady)
    assert found.why
    assert found.final is final


PAGE = b"<!DOCTYPE HTML>\n<html><body><h1>Error response</h1><p>Error code: 404</p></body></html>"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (
            (plain("404 File not found", PAGE),),
            "it answers HTTP 404 to /v1/models: no OpenAI-compatible server",
        ),
        ((plain("502 Bad Gateway", PAGE),), "it answers HTTP 502 to /v1/models: a web page"),
        (
            (plain("401 Unauthorized", b'{"error": {"message": "no key", "code": 401}}'),),
            "it answers HTTP 401 to /v1/models: no key",
        ),
        (
            (plain("500 x", b'{"message": "of an older server"}'),),
            "it answers HTTP 500 to /v1/models: of an older server",
        ),
        ((plain("503 x", b""),), "it answers HTTP 503 to /v1/models"),
    ],
)
def test_a_refusal_is_told_without_the_page_that_came_with_it(script: Script, why: str) -> None:
    found = ready(script)
    assert isinstance(found, NotReady)
    assert found.why == why


def test_a_host_without_an_address_is_not_waited_for() -> None:
    below = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    assert wirewords.is_unknown_host(below)
    assert not wirewords.is_unknown_host(socket.gaierror(socket.EAI_AGAIN, "Temporary failure"))
    assert not wirewords.is_unknown_host(ConnectionRefusedError())


def probe(script: Script) -> tuple[Probe, list[dict[str, object]]]:
    notes: list[dict[str, object]] = []

    async def main() -> Probe:
        async with raw_server(script) as url, open_session() as session:
            one = Probe(session, Server(url), notes.append)
            await one.once()
            return one

    return asyncio.run(main()), notes


def test_a_probe_remembers_counters_and_health_and_notes_them() -> None:
    found, notes = probe((plain("200 OK", b"vllm:generation_tokens_total 7\nvllm:num_requests_running 2\n"),))
    assert found.latest is not None
    assert found.latest.health == 200
    assert found.latest.counters is not None
    assert found.latest.counters.primary == (7.0,)
    assert notes[0]["generation_tokens"] == 7.0


@pytest.mark.parametrize("script", [(RESET,), (plain("404 Not Found", b""),), (plain("200 OK", b"hello"),)])
def test_a_probe_that_gets_nothing_says_so_and_goes_on(script: Script) -> None:
    found, notes = probe(script)
    assert found.latest is not None
    assert found.latest.counters is None
    assert notes[0]["problem"]
