"""HTTP servers of the local cloud."""

import asyncio
import contextlib
import secrets
import socket
from collections.abc import AsyncIterator, Generator
from typing import Any

import uvicorn
from infra.local.errors import LocalCloudError

PORTS = range(23100, 24000)
"""Ports of the local cloud's own services (engine, Lambda, Runtime APIs). They accept requests without authentication,
so functions refuse callers' URLs with these ports (STINT_REFUSED_PORTS). By default, systems do not use these as
ephemeral ports."""
# Seconds for open connections to end when the cloud stops.
GRACE_SECONDS = 1


class Server(uvicorn.Server):
    """uvicorn without its signal handlers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


@contextlib.asynccontextmanager
async def serving(app: Any, listener: socket.socket) -> AsyncIterator[None]:
    """Serve an ASGI app on a listening socket."""
    config = uvicorn.Config(
        app,
        lifespan="off",
        http="h11",
        ws="none",
        loop="asyncio",
        access_log=False,
        log_level="critical",
        date_header=True,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started:
            if task.done():
                task.result()
            await asyncio.sleep(0.005)
        yield
    finally:
        server.should_exit = True
        await task


def listen(port: int = 0) -> socket.socket:
    """Return a listening socket on 127.0.0.1; port 0 selects a free one. Raises OSError if the port is in use."""
    listener = socket.create_server(("127.0.0.1", port), backlog=256)
    # asyncio sets it only on sockets with an explicit protocol. Without it, a small event waits 40 ms for an ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def listen_apart() -> socket.socket:
    """Return a listening socket on a free port of PORTS. Raises LocalCloudError if all are in use."""
    first = secrets.randbelow(len(PORTS))
    for port in (*PORTS[first:], *PORTS[:first]):
        with contextlib.suppress(OSError):
            return listen(port)
    raise LocalCloudError(f"all ports of the local cloud are in use, 127.0.0.1:{PORTS[0]} to {PORTS[-1]}")
