"""Attempts to create agents, sessions and conversations, by the fingerprints of their requests."""

import time

from stint.caller import RequestAttempt
from stint.store import request_keys
from stint.store.table import Table, take

FOUND_SECONDS = 600
"""Seconds after its creation in which an object is found by a retry."""

MOST_FOUND = 100


class CreationAttempts:
    """The attempts of a tenant's callers. Each expires after FOUND_SECONDS."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def put(self, tenant: str, attempt: RequestAttempt, object_id: str) -> None:
        """Store the attempt that creates an object: one write of one unit."""
        key = request_keys.creation_attempt(tenant, attempt.fingerprint, object_id)
        entry = {"retry_count": attempt.retry_count, "expires_at": int(time.time()) + FOUND_SECONDS}
        await self._table.put(key._asdict() | entry)

    async def find(self, tenant: str, attempt: RequestAttempt) -> list[str]:
        """Return the ids of the objects that earlier attempts of a request created, the newest first: one Query."""
        pk = request_keys.creation_attempts(tenant, attempt.fingerprint)
        entries = await take(self._table.query(pk, newest_first=True, page=MOST_FOUND), MOST_FOUND)
        # DynamoDB removes expired records later. An attempt with the same or a higher count is of another request.
        now = time.time()
        return [
            entry["sk"] for entry in entries if entry["expires_at"] > now and entry["retry_count"] < attempt.retry_count
        ]
