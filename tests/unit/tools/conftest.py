from collections.abc import Callable, Iterator

import httpx
import pytest
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

from stint.net.guard import Guard

LOOPBACK = ("127.0.0.0/8", "::1/128")


@pytest.fixture
def guard() -> Guard:
    return Guard(LOOPBACK)


@pytest.fixture
def seen(mcp_server: str) -> Callable[[str], int]:
    """Return a function that reads a counter of the MCP server's `/stats`."""

    def count(what: str) -> int:
        stats: dict[str, int] = httpx.get(f"{mcp_server}/stats", trust_env=False, timeout=120).json()
        return stats.get(what, 0)

    return count


@pytest.fixture
def server() -> Iterator[ScriptedHTTPServer]:
    def answer(received: Received) -> Reply:
        return Reply((received.body,))

    with ScriptedHTTPServer(answer) as server:
        yield server
