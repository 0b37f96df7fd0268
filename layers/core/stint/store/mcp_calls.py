"""The turns of MCP calls, by the ids that their clients gave the calls, so that a client can cancel a call.

A client cancels a call by the id of its JSON-RPC request, which is a small counter: many clients of one key have a call
with the id 1. The partition of an id is that of one caller (`digest`, which also covers the end user, the endpoint, the
source address and the client's name). Clients count from 1 again with each connection, so that it has ended calls, too.
They stay until they expire: who cancels reads which of them run, which is seldom, and a removal would cost a write in
each call.
"""

import time

from stint.domain.run_signals import TurnRef
from stint.store import keys
from stint.store.table import Table, take

KEPT_SECONDS = 900
"""Seconds for which a call is found: as long as a turn can run."""

MOST_CALLS = 25
"""Maximum calls with one id that are read. Of that many, none is cancelled: an older one may run, too."""


class McpCalls:
    """The calls of all tenants."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def put(self, tenant: str, digest: str, turn: TurnRef) -> None:
        """Note the turn of a call: one write of one unit."""
        key = keys.mcp_call(tenant, digest, turn.turn_id)
        values = {"agent_id": turn.agent_id, "session_id": turn.session_id}
        await self._table.put(key._asdict() | values | {"expires_at": int(time.time()) + KEPT_SECONDS})

    async def list(self, tenant: str, digest: str) -> list[TurnRef]:
        """Return the turns of the calls with an id, the newest first, also ended ones, up to MOST_CALLS: one Query."""
        partition = keys.mcp_calls(tenant, digest)
        found = await take(self._table.query(partition, newest_first=True, page=MOST_CALLS), MOST_CALLS)
        # DynamoDB removes expired records later.
        live = (each for each in found if each["expires_at"] > time.time())
        return [TurnRef(each["agent_id"], each["session_id"], each["sk"]) for each in live]
