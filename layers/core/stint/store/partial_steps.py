"""Parts of unfinished steps in the table. They expire, because the step's own record replaces them.

A step is stored when it ends. Readers who rejoin the stream of a long one get its events from these parts, which its
process writes every few seconds. They prove nothing: no run continues from them, so their writes have no condition, and
a part that a late writer adds is one that no reader needs. They are in partitions of their own, so that a read of a
history does not pay for them, and in no object of the bucket, because nothing would delete it when they expire.
"""

import time

from stint.domain.partial_steps import PartialStep
from stint.store.documents import Documents
from stint.store.keys import PartialPlace
from stint.store.records import is_expired
from stint.store.table import Table

LIFE_SECONDS = 3_600
"""Seconds after which a part expires. Readers get the events of a step whose process died as long."""

MAX_PART = 250_000
"""Maximum bytes of a part, so that it is not stored in the bucket. A longer one is omitted with those after it."""


class PartialStepStore:
    """The parts of unfinished steps, in order."""

    def __init__(self, table: Table, documents: Documents) -> None:
        self._table = table
        self._documents = documents

    async def put(self, place: PartialPlace, number: int, part: PartialStep, expires_at: int | None = None) -> bool:
        """Store a part, or replace it by a longer one, and return whether it is small enough.

        `expires_at` is that of the session or response, in seconds of the epoch.
        """
        if len(part.to_json()) > MAX_PART:
            return False
        latest = int(time.time()) + LIFE_SECONDS
        item = place.part(part.step_id, number)._asdict() | {"expires_at": min(expires_at or latest, latest)}
        await self._table.put(await self._documents.pack(item, part, prefix=""))
        return True

    async def delete(self, place: PartialPlace, step_id: str, count: int) -> None:
        """Delete the first `count` parts of a step."""
        await self._table.delete_many([place.part(step_id, number) for number in range(count)])

    async def read(self, place: PartialPlace, since: str) -> list[tuple[str, PartialStep]]:
        """Read the parts from a sort key on, each with its own."""
        query = self._table.query(place.pk, since=since, before=place.end)
        items = [item async for item in query if not is_expired(item)]
        documents = await self._documents.read(items)
        return [(item["sk"], PartialStep.model_validate_json(raw)) for item, raw in zip(items, documents, strict=True)]
