"""Streamed responses over real connections: pieces, ends, limits, hostile servers, reuse."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from tests.clock import CLOCK
from tests.unit.aws.dynamodb_server import DynamoDBServer, Step, reply

from stint.http1 import connector
from stint.http1.client import HttpClient, HttpTimeouts
from stint.http1.connection import UNREAD_LIMIT, Connection
from stint.http1.parser import HEAD_LIMIT, ResponseParser
from stint.http1.pool import LoopPool, PoolOptions, TransportError
from stint.http1.proxies import InvalidProxy, Proxies, read_proxies
from stint.http1.urls import InvalidURL

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
async def server() -> AsyncIterator[DynamoDBServer]:
    async with DynamoDBServer() as server:
        yield server


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    client = HttpClient(Proxies({}), HttpTimeouts())
    yield client
    await client.close()


async def fetch(client: HttpClient, server: DynamoDBServer, **headers: str) -> bytes:
    async with client.stream("POST", f"{server.url}/path", headers, b"{}") as response:
        return await response.read()


async def fails(client: HttpClient, server: DynamoDBServer, *steps: Step) -> TransportError:
    server.script(steps)
    with pytest.raises(TransportError) as raised:
        await fetch(client, server)
    return raised.value


async def pass_turns(count: int = 30) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_response_in_single_bytes_is_read_and_its_connection_kept(
    server: DynamoDBServer, client: HttpClient
) -> None:
    data = b"HTTP/1.1 103 Early Hints\r\n\r\n" + CHUNKED + b'6;x="y"\r\nabcdef\r\n0\r\nTrailer: x\r\n\r\n'
    server.script(tuple(data[at : at + 1] for at in range(len(data))))

    assert await fetch(client, server) == b"abcdef"
    await fetch(client, server)
    assert server.connections == 1


async def test_a_body_is_yielded_as_it_arrives(server: DynamoDBServer, client: HttpClient) -> None:
    gate = asyncio.Event()
    server.script((CHUNKED + b"1\r\na\r\n", gate, b"1\r\nb\r\n0\r\n\r\n"))

    async with client.stream("GET", server.url, {}, b"") as response:
        pieces = aiter(response)
        first = await anext(pieces)
        gate.set()
        rest = [piece async for piece in pieces]

    assert (first, rest) == (b"a", [b"b"])


async def test_a_body_without_a_length_ends_with_its_connection(server: DynamoDBServer, client: HttpClient) -> None:
    server.script((b"HTTP/1.1 200 OK\r\n\r\nabc", None))

    assert await fetch(client, server) == b"abc"
    await fetch(client, server)
    assert server.connections == 2


async def test_what_arrived_before_the_connection_broke_is_read_first(
    server: DynamoDBServer, client: HttpClient
) -> None:
    server.script((CHUNKED + b"1\r\na\r\n", None))

    async with client.stream("GET", server.url, {}, b"") as response:
        await server.until_received(1)
        await pass_turns()
        pieces = aiter(response)
        first = await anext(pieces)
        with pytest.raises(TransportError, match="before the end"):
            await anext(pieces)

    assert first == b"a"


@pytest.mark.parametrize(
    "hostile",
    [
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * HEAD_LIMIT,
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * HEAD_LIMIT,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 4000,
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}\r\n\r\n",
        CHUNKED + b"1\r\nab\r\n",
        CHUNKED + b"1;" + b"x" * 300,
        CHUNKED + b"0\r\n" + b"X: y\r\n" * HEAD_LIMIT,
        b"SSH-2.0-OpenSSH\r\n\r\n",
    ],
    ids=[
        *("field", "fields", "interim", "switch", "lengths", "both", "coding", "line breaks", "chunk", "extension"),
        *("trailers", "ssh"),
    ],
)
async def test_a_hostile_answer_is_an_error_and_closes_the_connection(
    server: DynamoDBServer, client: HttpClient, hostile: bytes
) -> None:
    error = await fails(client, server, hostile, asyncio.Event())

    assert (error.sent, error.stale, error.timed_out) == (True, False, False)
    await fetch(client, server)
    assert server.connections == 2


async def test_a_whole_body_has_a_limit(server: DynamoDBServer, client: HttpClient) -> None:
    server.script(reply(200, b"x" * 101))

    async with client.stream("GET", server.url, {}, b"") as response:
        with pytest.raises(TransportError, match="more than 100 bytes"):
            await response.read(100)


async def test_a_server_does_not_fill_the_memory_of_a_slow_reader(server: DynamoDBServer, client: HttpClient) -> None:
    size = 64 * 1024 * 1024
    server.script((b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size, b"x" * size))

    async with client.stream("GET", server.url, {}, b"") as response:
        for _ in range(2000):
            await asyncio.sleep(0)
        waiting = len(cast("Any", response)._connection._parser.body)
        total = sum([len(piece) async for piece in response])

    assert UNREAD_LIMIT < waiting < 4 * UNREAD_LIMIT
    assert total == size


async def test_a_body_that_was_not_read_to_its_end_answers_no_other_request(
    server: DynamoDBServer, client: HttpClient
) -> None:
    server.script((CHUNKED + b"1\r\na\r\n", asyncio.Event()))
    async with client.stream("GET", server.url, {}, b"") as response:
        await anext(aiter(response))

    assert await fetch(client, server) == b"{}"
    assert server.connections == 2


async def test_a_dropped_idle_connection_is_told_from_a_failing_server(
    server: DynamoDBServer, client: HttpClient
) -> None:
    first = await fails(client, server, None)
    await fetch(client, server)
    reused = await fails(client, server, None)

    assert (first.sent, first.stale) == (True, False)
    assert (reused.sent, reused.stale) == (True, True)


async def test_a_server_that_cannot_be_reached_was_not_asked(client: HttpClient) -> None:
    async with DynamoDBServer() as server:
        url = server.url

    with pytest.raises(TransportError) as raised:
        async with client.stream("GET", url, {}, b""):
            pass

    assert not raised.value.sent


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\n", CHUNKED, CHUNKED + b"1\r\na"])
async def test_silence_times_out(server: DynamoDBServer, client: HttpClient, sent: bytes) -> None:
    failing = asyncio.create_task(fails(client, server, sent, asyncio.Event()))
    await server.until_received(1)
    await pass_turns()
    CLOCK.move(61)

    error = await failing

    assert (error.sent, error.timed_out) == (True, True)


async def test_a_reader_that_pauses_does_not_time_out(server: DynamoDBServer, client: HttpClient) -> None:
    gate = asyncio.Event()
    server.script((CHUNKED + b"1\r\na\r\n", gate, b"0\r\n\r\n"))

    async with client.stream("GET", server.url, {}, b"") as response:
        pieces = aiter(response)
        await anext(pieces)
        CLOCK.move(3600)
        await pass_turns()
        gate.set()
        assert [piece async for piece in pieces] == []


async def test_a_cancelled_reader_closes_its_connection(server: DynamoDBServer, client: HttpClient) -> None:
    server.script((CHUNKED, asyncio.Event()))
    reading = asyncio.create_task(fetch(client, server))
    await server.until_received(1)
    await pass_turns()
    reading.cancel()
    await asyncio.wait([reading])
    await pass_turns()

    assert server.readers[0].at_eof()


async def test_redirects_are_not_followed(server: DynamoDBServer, client: HttpClient) -> None:
    server.script(reply(302, b"", Location=f"{server.url}/other"))

    async with client.stream("GET", server.url, {}, b"") as response:
        assert response.status == 302

    assert len(server.requests) == 1


async def test_a_request_has_what_was_asked_for(server: DynamoDBServer, client: HttpClient) -> None:
    url = server.url.replace("//", "//ann%40a:p%C3%A9@") + "/a b/ü?q=1 2&r=%20#fragment"
    async with client.stream("POST", url, {"X-One": "1"}, b"body") as response:
        await response.read()

    [request] = server.requests
    assert request.line == "POST /a%20b/%C3%BC?q=1%202&r=%20 HTTP/1.1"
    assert request.body == b"body"
    assert request.headers == {
        "host": f"127.0.0.1:{server.port}",
        "x-one": "1",
        "authorization": "Basic YW5uQGE6cMOp",
        "content-length": "4",
    }


async def test_the_user_of_a_url_replaces_a_given_authorization(server: DynamoDBServer, client: HttpClient) -> None:
    async with client.stream("GET", server.url.replace("//", "//a:b@"), {"Authorization": "Bearer k"}, b"") as response:
        await response.read()

    assert server.requests[0].headers["authorization"] == "Basic YTpi"


async def test_a_response_cannot_be_read_after_its_connection_was_returned(
    server: DynamoDBServer, client: HttpClient
) -> None:
    async with client.stream("GET", server.url, {}, b"") as first:
        await first.read()
    async with client.stream("GET", server.url, {}, b""):
        with pytest.raises(RuntimeError, match="closed"):
            await first.read()


async def test_unasked_bytes_that_the_loop_has_not_read_answer_no_request(
    server: DynamoDBServer, client: HttpClient
) -> None:
    gate = asyncio.Event()
    server.script((reply(200, b"1"), gate, reply(408, b"stray")))
    await fetch(client, server)
    [(_, pools)] = client._servers.values()
    idle = (await pools.pool())._idle[0]
    assert idle.transport is not None
    gate.set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle, "data_received", lambda _: None)  # the loop has had no time for it
        idle.transport.pause_reading()
        CLOCK.move(1)
        await pass_turns()
        assert await fetch(client, server) == b"{}"

    assert server.connections == 2


async def test_a_large_request_over_tls_has_time_while_it_is_sent() -> None:
    connection = Connection()
    connection.connection_made(FullTransport())
    connection.connection_made(IdleTransport())

    assert connection._count_unsent() == 1_000_000


async def test_two_writers_both_continue_when_the_server_reads(server: DynamoDBServer) -> None:
    connection = Connection()
    connection.connection_made(FullTransport())
    connection.start(b"", None, ResponseParser())
    connection.pause_writing()
    writers = [asyncio.create_task(connection.write(b"x")) for _ in range(3)]
    await pass_turns()
    writers[1].cancel()
    await pass_turns()
    connection.resume_writing()

    await asyncio.gather(*writers, return_exceptions=True)
    assert [writer.cancelled() for writer in writers] == [False, True, False]


async def test_the_end_of_a_connection_ends_a_write_that_waits() -> None:
    connection = Connection()
    connection.connection_made(transport := FullTransport())
    connection.start(b"", None, ResponseParser())
    connection.pause_writing()
    writer = asyncio.create_task(connection.write(b"x"))
    await pass_turns()
    connection.eof_received()

    await writer
    assert transport.closing
    with pytest.raises(ConnectionResetError):
        await connection.read_response()


async def test_a_host_is_reached_at_any_of_its_addresses(
    server: DynamoDBServer, client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find(_: str, __: int) -> list[str]:
        return ["::1", "127.0.0.1"]  # nothing listens at the first one

    monkeypatch.setattr(connector, "find_addresses", find)
    async with client.stream("GET", f"http://model.test:{server.port}/", {}, b"") as response:
        assert await response.read() == b"{}"


@pytest.mark.parametrize("value", ["a\r\nX-Admin: 1", "a\nb", "a\rb", "a\0b"])
async def test_a_header_of_several_lines_is_not_sent(server: DynamoDBServer, client: HttpClient, value: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        await fetch(client, server, x=value)

    assert server.connections == 0


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://h/",
        "http://",
        "http://h:x/",
        "http://h:99999/",
        "http://[::1/",
        "http://a b/",
        "http://ü..x/",
        "http://a..b/",
        "http://.a/",
        f"http://{'a' * 64}/",
        "http://h:0/",
        "http://a\0b/",
    ],
)
async def test_what_is_no_url_is_refused_without_quoting_it(client: HttpClient, url: str) -> None:
    with pytest.raises(InvalidURL) as raised:
        async with client.stream("GET", url, {}, b""):
            pass

    assert not url or url not in str(raised.value)


async def test_a_proxy_of_all_schemes_gets_the_whole_url(server: DynamoDBServer) -> None:
    proxies = Proxies.of({"ALL_PROXY": server.url.replace("//", "//u:p@"), "NO_PROXY": "other.test"}, ("http", "all"))
    client = HttpClient(proxies, HttpTimeouts())
    async with client.stream("GET", "http://model.test:8080/v1", {}, b"") as response:
        await response.read()
    await client.close()

    assert server.requests[0].line == "GET http://model.test:8080/v1 HTTP/1.1"
    assert server.requests[0].headers["proxy-authorization"] == "Basic dTpw"
    assert proxies.choose("https", "other.test", 443) is None


async def test_a_proxy_of_another_kind_is_refused() -> None:
    client = HttpClient(Proxies.of({"all_proxy": "socks5://p"}, ("all",)), HttpTimeouts())
    with pytest.raises(InvalidProxy, match="ALL_PROXY"):
        async with client.stream("GET", "http://h/", {}, b""):
            pass


class IdleTransport(asyncio.Transport):
    """A transport of a connection that was opened, and of which nothing is read or written."""

    closing = False

    def write(self, data: Any) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        self.closing = True

    def is_closing(self) -> bool:
        return self.closing


class FullTransport(IdleTransport):
    """A transport whose peer reads nothing."""

    def get_write_buffer_size(self) -> int:
        return 1_000_000


async def test_10000_idle_connections_make_a_request_no_slower_and_are_closed_in_time() -> None:
    async def connect() -> Connection:
        connection = Connection()
        connection.connection_made(IdleTransport())
        return connection

    async def count_calls() -> int:
        """Return the calls of functions that a connection costs, from the pool and back."""
        calls = 0

        def count(_: Any, event: str, __: Any) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count)
        pool.release(await pool.acquire())
        sys.setprofile(None)
        return calls

    pool = LoopPool(connect, PoolOptions(size=None, clock=lambda: time.monotonic()))
    pool.release(await pool.acquire())
    with_one = await count_calls()
    opened = [await pool.acquire(fresh=True) for _ in range(10_000)]
    for connection in opened:
        pool.release(connection)

    assert await count_calls() == with_one
    CLOCK.move(31)
    await pass_turns()
    assert not any(connection.reusable for connection in opened)
    pool.close()


async def test_several_requests_at_once_have_connections_of_their_own(
    server: DynamoDBServer, client: HttpClient
) -> None:
    gate = asyncio.Event()
    server.script(*[(gate, reply(200, b"%d" % number)) for number in range(100)])
    fetches = [asyncio.create_task(fetch(client, server)) for _ in range(100)]
    await server.until_received(100)
    gate.set()

    assert sorted(int(body) for body in await asyncio.gather(*fetches)) == list(range(100))
    assert server.connections == 100


def test_a_star_in_a_list_of_hosts_excludes_all_of_them_from_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy:1")
    monkeypatch.setenv("no_proxy", "localhost, *")

    assert read_proxies().choose("http", "model.test", 80) is None
