"""HTTP proxy that forwards every request and drops the answer of every third one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

import httpx

PERIOD = 3
HOP_BY_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}


class DroppingProxy(ThreadingHTTPServer):
    """Forwards requests to `target`.

    Of two answers that are dropped, one is read to its end before the connection is closed, and the other one after
    that, so that the client's retry meets a request that has ended, or one that may still run.
    """

    daemon_threads = True

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), Forwarding)
        self.target = target
        self.numbers = count(1)
        self.dropped: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Forwarding(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: DroppingProxy

    def forward(self) -> None:
        number = next(self.server.numbers)
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        url = self.server.target + self.path
        with (
            httpx.Client(trust_env=False, timeout=120) as client,
            client.stream(self.command, url, content=body, headers=headers) as answer,
        ):
            if number % PERIOD:
                self.send_answer(answer)
            else:
                self.drop(answer, first=number % (2 * PERIOD) == 0)

    def send_answer(self, answer: httpx.Response) -> None:
        self.send_response(answer.status_code)
        for name, value in answer.headers.items():
            if name not in HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("connection", "close")
        self.end_headers()
        for chunk in answer.iter_raw():
            self.wfile.write(chunk)
            self.wfile.flush()
        self.close_connection = True

    def drop(self, answer: httpx.Response, *, first: bool) -> None:
        self.server.dropped.append(f"{self.command} {self.path}")
        if first:
            self.close()
        answer.read()
        if not first:
            self.close()

    def close(self) -> None:
        self.close_connection = True
        self.connection.shutdown(2)

    def log_message(self, *_: object) -> None:
        pass

    do_GET = do_POST = do_DELETE = forward  # noqa: N815 - the names that http.server calls


@contextmanager
def dropping_proxy(target: str) -> Iterator[DroppingProxy]:
    """Serve a proxy in threads."""
    with DroppingProxy(target) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        yield proxy
        proxy.shutdown()
        thread.join()
