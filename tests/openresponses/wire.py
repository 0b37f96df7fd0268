"""Check of the exchanges between a client and a server. Bytes and disconnects are forwarded unchanged."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import h11
from tests.openresponses.watch import Exchange


class Tap:
    """Proxy with its own port that forwards everything to the server at `port` and checks it."""

    def __init__(self, port: int) -> None:
        self.server_port = port
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()
        assert self.ready.wait(10)

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.server = self.loop.run_until_complete(asyncio.start_server(self._pass, "127.0.0.1", 0))
        self.port: int = self.server.sockets[0].getsockname()[1]
        self.ready.set()
        self.loop.run_forever()
        self.server.close()
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.loop.close()

    def close(self) -> None:
        """Close every connection and stop listening."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)

    def hear_request(self, exchange: Exchange) -> None:
        """Do nothing with a request that has been read: those of tests may be wrong on purpose."""

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self.server_port)
        except OSError:
            writer.transport.abort()
            return
        conversation = Conversation(self.hear_request)
        up = asyncio.create_task(_pump(reader, server_writer, conversation.hear_client))
        down = asyncio.create_task(_pump(server_reader, writer, conversation.hear_server))
        try:
            await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            conversation.end()
            for task in (up, down):
                task.cancel()
            for each in (writer, server_writer):
                each.close()
                with suppress(OSError):
                    await each.wait_closed()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hear: Callable[[bytes], None]) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            hear(data)
            writer.write(data)
            await writer.drain()


class Conversation:
    """The exchanges on one connection: requests in order, each with its response.

    `hear_request` is called when the request of an exchange has been read.
    """

    def __init__(self, hear_request: Callable[[Exchange], None]) -> None:
        self.hear_request = hear_request
        self.client = h11.Connection(h11.SERVER)
        self.server = h11.Connection(h11.CLIENT)
        self.exchange: Exchange | None = None
        self.deaf = False

    def hear_client(self, data: bytes) -> None:
        """Process bytes of the client."""
        if self.deaf:
            return
        with self._giving_up():
            self.client.receive_data(data)
            self._hear_request()

    def _hear_request(self) -> None:
        for event in _events(self.client):
            if isinstance(event, h11.Request):
                self.exchange = Exchange.of(event.method.decode(), event.target.decode())
                if self.exchange is not None:
                    self.exchange.hear_headers(event.headers)
                bare = h11.Request(method=event.method, target=event.target, headers=[("host", "watched")])
                self.server.send(bare)
                self.server.send(h11.EndOfMessage())
            elif self.exchange is None:
                continue
            elif isinstance(event, h11.Data):
                self.exchange.request += event.data
            elif isinstance(event, h11.EndOfMessage):
                self.hear_request(self.exchange)

    def hear_server(self, data: bytes) -> None:
        """Process bytes of the server."""
        if self.deaf:
            return
        with self._giving_up():
            self.server.receive_data(data)
            for event in _events(self.server):
                self._hear_answer(event)

    def _hear_answer(self, event: h11.Event) -> None:
        if isinstance(event, h11.EndOfMessage):
            if self.exchange is not None:
                self.exchange.finish()
            self._turn_over()
        elif self.exchange is None:
            return
        elif isinstance(event, h11.Response):
            self.exchange.status = event.status_code
            self.exchange.media_type = dict(event.headers).get(b"content-type", b"").decode().split(";")[0]
        elif isinstance(event, h11.Data):
            self.exchange.body += event.data

    def _turn_over(self) -> None:
        rest, _ = self.client.trailing_data
        self.exchange, self.client, self.server = None, h11.Connection(h11.SERVER), h11.Connection(h11.CLIENT)
        if rest:
            self.client.receive_data(rest)
            self._hear_request()

    def end(self) -> None:
        """End the connection: a response in progress was cut off."""
        if self.exchange is not None and not self.deaf:
            self.exchange.finish(whole=False)

    @contextmanager
    def _giving_up(self) -> Iterator[None]:
        """Stop checking once the bytes are not HTTP: an upgrade, or a test of malformed requests."""
        try:
            yield
        except h11.ProtocolError:
            self.deaf = True


def _events(connection: h11.Connection) -> Iterator[h11.Event]:
    while (event := connection.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
        assert isinstance(event, h11.Event)
        if isinstance(event, h11.ConnectionClosed):
            return
        yield event
        if isinstance(event, h11.EndOfMessage):
            return
