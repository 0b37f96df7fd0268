"""The turns of MCP calls, by the ids that their clients gave the calls, so that a client can cancel a call.

A client cancels a call by the id of its JSON-RPC request, which is a small counter: many clients of one key have a call
with the id 1. The partition of an id is that of one caller (`digest`, which also covers the end user, the endpoint, the
source address and the client's name). If it has two calls, nobody knows which one is meant.
"""

import time

from stint.domain.run_signals import TurnRef
from stint.store import keys
from stint.store.table import Table, take

KEPT_SECONDS = 900
"""Seconds for which a call is found: as long as a turn can run."""


class McpCalls:
    """The calls of all tenants."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def put(self, tenant: str, digest: str, turn: TurnRef) -> None:
        """Note the turn of a call: one write of one unit."""
        key = keys.mcp_call(tenant, digest, turn.turn_id)
        values = {"agent_id": turn.agent_id, "session_id": turn.session_id}
        await self._table.put(key._asdict() | values | {"expires_at": int(time.time()) + KEPT_SECONDS})

    async def find(self, tenant: str, digest: str) -> TurnRef | None:
        """Return the turn of the only call with an id; None if there is none, or more than one: one Query."""
        found = await take(self._table.query(keys.mcp_calls(tenant, digest), newest_first=True, page=10), 10)
        # DynamoDB removes expired records later.
        live = [each for each in found if each["expires_at"] > time.time()]
        return TurnRef(live[0]["agent_id"], live[0]["session_id"], live[0]["sk"]) if len(live) == 1 else None
