"""Connections of the DynamoDB client: reuse, loss, timeouts, cancellation and event loops."""

import asyncio
import gc
import socket
import threading
import time
from collections.abc import AsyncIterator

import pytest
from tests.clock import CLOCK
from tests.servers.scripted_http import Reply, ScriptedHTTPServer
from tests.unit.aws.dynamodb_server import DynamoDBServer, Pauses, environment, make_client, ok, reply

from stint.aws.dynamodb import DynamoDBClient, NoResponse
from stint.aws.service_client import ClientOptions
from stint.http1.connection import Connection
from stint.http1.connector import Connector


@pytest.fixture
async def timed(server: DynamoDBServer, pauses: Pauses) -> AsyncIterator[DynamoDBClient]:
    """Yield a client whose timeouts follow the clock that tests move."""
    client = make_client(server, sleep=pauses, clock=lambda: time.monotonic())
    yield client
    await client.close()


async def test_a_connection_is_kept_and_used_again(server: DynamoDBServer, client: DynamoDBClient) -> None:
    for _ in range(3):
        await client.call("GetItem", {})
    await asyncio.gather(*(client.call("GetItem", {}) for _ in range(3)))
    await asyncio.gather(*(client.call("GetItem", {}) for _ in range(3)))

    assert server.connections == 3


async def test_there_are_no_more_connections_than_the_limit(server: DynamoDBServer) -> None:
    client = make_client(server, connections=2)
    gate = asyncio.Event()
    server.script((gate, ok()), (gate, ok()))
    calls = [asyncio.create_task(client.call("GetItem", {})) for _ in range(5)]
    await server.until_received(2)
    gate.set()
    await asyncio.gather(*calls)

    assert (server.connections, len(server.requests)) == (2, 5)
    await client.close()


async def test_a_connection_that_the_server_closed_while_idle_costs_no_attempt(
    server: DynamoDBServer, client: DynamoDBClient
) -> None:
    await client.call("GetItem", {})
    await server.drop()
    for _ in range(20):
        await asyncio.sleep(0)

    await client.call("GetItem", {})

    assert server.attempts == ["attempt=1; max=3"] * 2


async def test_a_reused_connection_that_fails_without_an_answer_is_replaced_at_once(
    server: DynamoDBServer, client: DynamoDBClient, pauses: Pauses
) -> None:
    await asyncio.gather(*(client.call("GetItem", {}) for _ in range(3)))
    server.script((None,))
    await client.call("PutItem", {})

    assert pauses.seconds == []
    assert server.connections == 4, "the other idle connections may be closed, too"
    assert server.attempts[3:] == ["attempt=1; max=3", "attempt=2; max=3"]
    await asyncio.gather(*(client.call("GetItem", {}) for _ in range(3)))
    assert sorted(request.connection for request in server.requests[-3:]) == [4, 5, 6]


async def test_a_new_connection_that_fails_is_retried_after_a_pause(
    server: DynamoDBServer, client: DynamoDBClient, pauses: Pauses
) -> None:
    server.script((None,), (None,))
    await client.call("PutItem", {})

    assert len(pauses.seconds) == 2


@pytest.mark.parametrize(
    "cut",
    [
        (b"HTTP/1.1 200", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}", None),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}", None),
    ],
)
async def test_an_answer_that_is_cut_is_retried_and_unsure(
    server: DynamoDBServer, client: DynamoDBClient, pauses: Pauses, cut: tuple[bytes, None]
) -> None:
    await client.call("GetItem", {})
    server.script(cut, cut, cut)

    with pytest.raises(NoResponse, match="closed the connection") as raised:
        await client.call("PutItem", {})

    assert raised.value.unsure
    assert len(pauses.seconds) == 2


@pytest.mark.parametrize(
    "hostile",
    [
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 4000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1;" + b"x" * 300,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + (b"100000\r\n%b\r\n" % (b" " * 2**20)) * 33,
        b"HTTP/1.1 200 OK\r\n\r\n{}",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
    ],
    ids=["head", "interim", "length", "lengths", "both", "chunk line", "endless", "no length", "switch", "ssh"],
)
async def test_a_hostile_answer_closes_the_connection(
    server: DynamoDBServer, client: DynamoDBClient, hostile: bytes
) -> None:
    server.script((hostile, asyncio.Event()))
    assert await client.call("GetItem", {}) == {}

    assert server.connections == 2


@pytest.mark.parametrize(
    "last",
    [
        reply(200, b"{}", Connection="close"),
        reply(200, b"{}", connection="keep-alive, Close"),
        reply(200, b"{}").replace(b"HTTP/1.1", b"HTTP/1.0"),
        reply(200, b"{}") + b"HTTP/1.1 200 OK\r\n",
    ],
    ids=["close", "token", "version", "surplus"],
)
async def test_a_connection_is_not_reused_after_its_last_answer(
    server: DynamoDBServer, client: DynamoDBClient, last: bytes
) -> None:
    server.script(last)
    await client.call("GetItem", {})
    await client.call("GetItem", {})

    assert server.connections == 2


async def test_bytes_that_nobody_asked_for_never_answer_the_next_call(
    server: DynamoDBServer, client: DynamoDBClient
) -> None:
    gate = asyncio.Event()
    server.script((ok(), gate, ok({"Item": "smuggled"})))
    await client.call("GetItem", {})
    gate.set()
    await server.left.wait()

    assert await client.call("GetItem", {}) == {}


async def test_interim_responses_are_skipped(server: DynamoDBServer, client: DynamoDBClient) -> None:
    server.script(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok({"Item": {}}))

    assert await client.call("GetItem", {}) == {"Item": {}}


async def test_a_chunked_answer_in_small_pieces_is_read(server: DynamoDBServer, client: DynamoDBClient) -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n"
    parts = head + b'3\r\n{"a\r\nB;x=y\r\n": "bbbbb"}\r\n0\r\nTrailer: x\r\n\r\n'
    server.script(tuple(parts[at : at + 1] for at in range(len(parts))))

    assert await client.call("GetItem", {}) == {"a": "bbbbb"}
    await client.call("GetItem", {})
    assert server.connections == 1


async def test_a_silent_server_times_out(server: DynamoDBServer, timed: DynamoDBClient, pauses: Pauses) -> None:
    never = asyncio.Event()
    server.script((never,), (b"HTTP/1.1 200 OK\r\n", never), (ok()[:-1], never))
    call = asyncio.create_task(timed.call("PutItem", {}))
    for attempt in (1, 2, 3):
        await server.until_received(attempt)
        for _ in range(20):  # the client receives the beginning of the answer
            await asyncio.sleep(0)
        CLOCK.move(5.1)

    with pytest.raises(NoResponse, match="in time") as raised:
        await call

    assert raised.value.unsure
    assert len(pauses.seconds) == 2


async def test_a_retry_after_a_timeout_uses_a_new_connection(server: DynamoDBServer, timed: DynamoDBClient) -> None:
    await asyncio.gather(*(timed.call("GetItem", {}) for _ in range(3)))
    server.script((asyncio.Event(),))
    call = asyncio.create_task(timed.call("GetItem", {}))
    await server.until_received(4)
    CLOCK.move(5.1)
    await call

    assert server.requests[-1].connection == 4


async def test_a_slow_answer_does_not_time_out(server: DynamoDBServer, timed: DynamoDBClient) -> None:
    gates = [asyncio.Event() for _ in range(3)]
    answer = ok({"Item": {}})
    server.script(tuple(step for at, gate in enumerate(gates) for step in (gate, answer[at * 20 : at * 20 + 20])))
    server._replies[0] = (*server._replies[0], answer[60:])
    call = asyncio.create_task(timed.call("GetItem", {}))
    await server.until_received(1)
    for gate in gates:
        CLOCK.move(4)
        gate.set()
        for _ in range(20):
            await asyncio.sleep(0)

    assert await call == {"Item": {}}
    assert len(server.requests) == 1


async def test_a_timer_that_fires_early_is_not_a_timeout(server: DynamoDBServer) -> None:
    client = make_client(server, clock=lambda: 0.0)
    gate = asyncio.Event()
    server.script((gate, ok({"Item": {}})))
    call = asyncio.create_task(client.call("GetItem", {}))
    await server.until_received(1)
    CLOCK.move(3600)
    await asyncio.sleep(0)
    gate.set()

    assert await call == {"Item": {}}
    await client.close()


async def test_a_server_that_cannot_be_reached_was_surely_not_asked(pauses: Pauses) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        client = DynamoDBClient(
            environment(f"http://127.0.0.1:{unused.getsockname()[1]}"), options=ClientOptions(sleep=pauses)
        )
        with pytest.raises(NoResponse, match="cannot be reached") as raised:
            await client.call("PutItem", {})

    assert not raised.value.unsure
    assert len(pauses.seconds) == 2


async def test_a_handshake_that_does_not_end_times_out(pauses: Pauses) -> None:
    opened = asyncio.Queue[asyncio.StreamWriter]()
    plain = await asyncio.start_server(lambda _, writer: opened.put_nowait(writer), "127.0.0.1", 0)
    url = f"https://127.0.0.1:{plain.sockets[0].getsockname()[1]}"
    client = DynamoDBClient(environment(url), options=ClientOptions(sleep=pauses, clock=lambda: time.monotonic()))
    call = asyncio.create_task(client.call("PutItem", {}))
    writers = []
    for _ in range(3):
        writers.append(await opened.get())
        CLOCK.move(2.1)
    with pytest.raises(NoResponse, match="in time") as raised:
        await call

    assert not raised.value.unsure
    plain.close()
    for writer in writers:
        writer.close()
        await asyncio.wait_for(writer.wait_closed(), 5)


async def test_idle_connections_are_closed(server: DynamoDBServer, timed: DynamoDBClient) -> None:
    await timed.call("GetItem", {})
    CLOCK.move(31)
    await server.left.wait()
    await timed.call("GetItem", {})

    assert server.connections == 2


async def test_a_connection_that_was_idle_for_too_long_is_not_used(
    server: DynamoDBServer, timed: DynamoDBClient
) -> None:
    await timed.call("GetItem", {})
    CLOCK.move(31)
    await timed.call("GetItem", {})

    assert server.attempts == ["attempt=1; max=3"] * 2
    assert server.connections == 2


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{"])
async def test_a_cancelled_call_closes_its_connection(
    server: DynamoDBServer, client: DynamoDBClient, sent: bytes
) -> None:
    await client.call("GetItem", {})
    gate = asyncio.Event()
    server.script((sent, gate, ok({"Item": "of the cancelled call"})))
    call = asyncio.create_task(client.call("GetItem", {}))
    await server.until_received(2)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    for _ in range(20):
        await asyncio.sleep(0)
    assert server.readers[0].at_eof()
    gate.set()

    assert await client.call("GetItem", {}) == {}
    assert server.connections == 2


async def test_a_call_that_is_cancelled_when_its_connection_is_open_closes_it(
    server: DynamoDBServer, client: DynamoDBClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Connection] = []
    open_to = Connector._open_to

    async def open_and_cancel(connector: Connector, host: str, port: int, tls: bool) -> Connection:
        opened.append(await open_to(connector, host, port, tls))
        asyncio.get_running_loop().call_soon(call.cancel)  # after the task has ended, before its caller continues
        return opened[0]

    monkeypatch.setattr(Connector, "_open_to", open_and_cancel)
    call = asyncio.create_task(client.call("GetItem", {}))
    with pytest.raises(asyncio.CancelledError):
        await call

    assert [connection.reusable for connection in opened] == [False]
    await server.left.wait()


async def test_a_client_is_usable_after_close(server: DynamoDBServer, client: DynamoDBClient) -> None:
    await client.call("GetItem", {})
    await client.close()
    await server.left.wait()
    await client.call("GetItem", {})

    assert server.connections == 2


async def test_a_call_that_runs_while_the_client_is_closed_leaves_no_connection(
    server: DynamoDBServer, client: DynamoDBClient
) -> None:
    gate = asyncio.Event()
    server.script((gate, ok()))
    call = asyncio.create_task(client.call("GetItem", {}))
    await server.until_received(1)
    await client.close()
    gate.set()
    await call

    await server.left.wait()


def serve_calls(server: ScriptedHTTPServer, client: DynamoDBClient, calls: int = 3) -> None:
    """Make calls in an event loop of their own, and leave their connections open."""

    async def call_all() -> None:
        await asyncio.gather(*(client.call("GetItem", {}) for _ in range(calls)))

    asyncio.run(call_all())


def test_event_loops_share_a_client_but_no_connection() -> None:
    with ScriptedHTTPServer(lambda _: Reply((b"{}",))) as server:
        client = DynamoDBClient(environment(server.url))
        for _ in range(3):
            serve_calls(server, client)
        threads = [threading.Thread(target=serve_calls, args=(server, client)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()  # a transport that was not closed would warn

        assert len(server.requests) == 21
        assert len({request.connection for request in server.requests}) == 21
        assert client._pools._pools == {}
        assert len({request.headers["amz-sdk-invocation-id"] for request in server.requests}) == 21


def test_a_loop_that_is_closed_without_an_end_is_forgotten() -> None:
    with ScriptedHTTPServer(lambda _: Reply((b"{}",))) as server:
        client = DynamoDBClient(environment(server.url))
        loop = asyncio.new_event_loop()
        loop.run_until_complete(client.call("GetItem", {}))
        loop.run_until_complete(client.close())
        loop.run_until_complete(client.call("GetItem", {}))
        [(pool, _)] = client._pools._pools.values()
        pool.close()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

        serve_calls(server, client)

        assert client._pools._pools == {}
