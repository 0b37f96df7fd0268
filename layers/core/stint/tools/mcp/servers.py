"""MCP servers of any revision: each is spoken to as it was found to be.

    the server is              what is sent
    unknown                    `server/discover`: if it names 2026-07-28, requests without a session; whatever else it
                               answers, a session (a server that cannot be reached answers nothing)
    known to be stateless      the request. If the server refuses it as one of no session, a session, in the same call.
                               A call of a tool needs proof: the error -32022, or a new answer to `server/discover`
    known to have sessions     a session. If the server refuses to begin it, `server/discover`, in the same call

What was found is kept with the tool lists, for each server and caller, and as long as these. A request is sent again
only after an answer which shows that nothing has run: that of a server that does not know its revision.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import httpx

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest
from stint.net.guard import Guard
from stint.tools.list_budget import ListBudget
from stint.tools.mcp.lists import McpRevision, ToolLists
from stint.tools.mcp.session import Conversation, McpSessions
from stint.tools.mcp.stateless import DISCOVERY_SECONDS, NotStateless, StatelessClient, open_client
from stint.tools.port import SERVER_REFUSED

T = TypeVar("T")
Exchange = Callable[[StatelessClient], Awaitable[T]]


@dataclass(frozen=True, slots=True)
class McpPlace:
    """A server as one caller reaches it. `key` is that of its cached list."""

    key: str
    url: str
    headers: Mapping[str, str]


class McpServers:
    """Exchanges messages with servers. `lists` remembers their revisions; `max_bytes` limits what one exchange gets."""

    def __init__(self, guard: Guard, lists: ToolLists, *, max_bytes: int) -> None:
        self._guard = guard
        self._lists = lists
        self._max_bytes = max_bytes
        self._sessions = McpSessions(guard, max_bytes=max_bytes)

    async def run(
        self,
        place: McpPlace,
        exchange: Exchange[T],
        conversation: Conversation[T],
        timeout: float,
        budget: ListBudget | None = None,
    ) -> T:
        """Run an exchange without a session, or a conversation in one; `timeout` (seconds) covers all of it.

        Raises as `McpSessions.run_session`.
        """
        deadline = asyncio.get_running_loop().time() + timeout
        known = self._lists.revision(place.key)
        if known is not McpRevision.sessions:
            try:
                return await self._exchange(place, exchange, deadline, budget, asks=known is None)
            except NotStateless:
                self._lists.forget_revision(place.key)
        left = max(deadline - asyncio.get_running_loop().time(), 0.001)
        try:
            result = await self._sessions.run_session(place.url, dict(place.headers), conversation, left, budget)
        except InvalidRequest as refused:
            if known is not McpRevision.sessions or refused.code != SERVER_REFUSED:
                raise
            self._lists.forget_revision(place.key)
            try:
                return await self._exchange(place, exchange, deadline, budget, asks=True)
            except NotStateless:
                raise refused from None
        self._lists.put_revision(place.key, McpRevision.sessions)
        return result

    async def _exchange(
        self, place: McpPlace, exchange: Exchange[T], deadline: float, budget: ListBudget | None, *, asks: bool
    ) -> T:
        """Run an exchange. With `asks`, the server is asked for its revision before. Raises NotStateless."""
        opening = open_client(self._guard, place.url, place.headers, self._max_bytes, deadline, budget)
        async with opening as client:
            if asks and not await discover(client):
                raise NotStateless
            self._lists.put_revision(place.key, McpRevision.stateless)
            return await exchange(client)


async def discover(client: StatelessClient) -> bool:
    """Return whether a server serves requests without a session. One that breaks off the connection does not."""
    try:
        async with asyncio.timeout(DISCOVERY_SECONDS):
            return await client.discover()
    except (TimeoutError, httpx.ReadError, httpx.RemoteProtocolError):
        return False
