"""The requests that wait for a session or a conversation, in order of acceptance: one small record each."""

import time
from dataclasses import dataclass

from stint.domain.errors import Conflict
from stint.domain.ids import new_id
from stint.store.keys import Key
from stint.store.table import Table, take

MAX_WAITING = 20
"""Maximum requests that wait for one session or conversation."""

ALIVE_SECONDS = 10.0
"""Seconds after its last sign of life for which a waiting request keeps its place."""

RECORD_SECONDS = 86_400
"""Lifetime of a record whose process died."""


@dataclass(frozen=True, slots=True)
class WaitingLine:
    """The waiting requests of one partition. Each write costs one unit."""

    table: Table
    pk: str

    async def read(self) -> list[str]:
        """Return the waiting requests in order. Those whose process died are omitted."""
        now = time.time() * 1000
        found = await take(self.table.query(self.pk, page=2 * MAX_WAITING), 2 * MAX_WAITING)
        return [item["sk"] for item in found if item["alive_until"] > now]

    async def join(self) -> str:
        """Add a request to the end, and return its place. Raises Conflict if too many wait."""
        if len(await self.read()) >= MAX_WAITING:
            raise Conflict(
                f"{MAX_WAITING} requests wait already, the maximum. Try again later.", code="too_many_waiting"
            )
        place = new_id()
        await self.renew(place)
        return place

    async def renew(self, place: str) -> None:
        """Keep a place for ALIVE_SECONDS more."""
        now = time.time()
        life = {"alive_until": round((now + ALIVE_SECONDS) * 1000), "expires_at": int(now + RECORD_SECONDS)}
        await self.table.put(Key(self.pk, place)._asdict() | life)

    async def leave(self, place: str) -> None:
        """Remove a place from the line."""
        await self.table.delete(Key(self.pk, place))
