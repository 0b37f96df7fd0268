"""Attempts to create objects, by the fingerprints of their requests, and claims of retries.

Most clients retry without an idempotency key. A retry is recognized by a fingerprint of its request. The attempt to
create an agent, a session or a conversation is a record; that to create a response is in its list entry.

Equal requests share a fingerprint: two of them that are retried at the same time must not both get the object of the
first one. Each created object answers one retry per retry count, so a retry claims the object that it found, by a key
with its retry count. The same client's next retry has a higher count, and may claim the object again. Such a record
also decides which retry runs a failed response again.
"""

import secrets
import time
from uuid import UUID

from stint.caller import RequestAttempt
from stint.domain.ids import hex_of, name_of, new_name
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.table import Table, take

KEPT_SECONDS = 3_600
"""Seconds for which a claim is known, longer than any retry of a client takes."""


class RetryClaims:
    """The claims of a tenant's retries."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def put(self, tenant: str, object_id: str, retry_count: int) -> bool:
        """Claim an object for a retry, with one unit. Return whether no other retry of this count has it."""
        item = keys.retry_claim(tenant, object_id, retry_count)._asdict()
        try:
            await self._table.put_new(item | {"expires_at": int(time.time()) + KEPT_SECONDS})
        except ConditionFailed:
            return False
        return True


FOUND_SECONDS = 600
"""Seconds after its creation in which an object is found by a retry."""

MOST_FOUND = 100


class CreationAttempts:
    """The attempts of a tenant's callers. Each expires after FOUND_SECONDS."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def put(self, tenant: str, attempt: RequestAttempt, object_id: str) -> None:
        """Store the attempt that creates an object: one write of one unit."""
        key = keys.creation_attempt(tenant, attempt.fingerprint, object_id)
        entry = {"retry_count": attempt.retry_count, "expires_at": int(time.time()) + FOUND_SECONDS}
        await self._table.put(key._asdict() | entry)

    async def find(self, tenant: str, attempt: RequestAttempt) -> list[str]:
        """Return the ids of the objects that earlier attempts of a request created, the newest first: one Query."""
        pk = keys.creation_attempts(tenant, attempt.fingerprint)
        entries = await take(self._table.query(pk, newest_first=True, page=MOST_FOUND), MOST_FOUND)
        # DynamoDB removes expired records later. An attempt with the same or a higher count is of another request.
        now = time.time()
        return [
            entry["sk"] for entry in entries if entry["expires_at"] > now and entry["retry_count"] < attempt.retry_count
        ]


MOST_ENTRIES = 1_000
"""Maximum entries that a search reads, the newest first. That is up to 150 KB."""


def new_response_id(attempt: RequestAttempt) -> str:
    """Make the id of a response. Its list entry is in the shard of its attempt's fingerprint.

    A request with an idempotency key has the id already.
    """
    if attempt.object_id:
        return name_of("resp", attempt.object_id)
    name = new_name("resp")
    if not attempt.fingerprint:
        return name
    # The last digit chooses the shard of the list entry. So a retry, which has the fingerprint, reads one shard.
    shard = keys.shard_of(attempt.fingerprint)
    return f"{name[:-1]}{shard + keys.SHARDS * secrets.randbelow(16 // keys.SHARDS):x}"


def attempt_attributes(attempt: RequestAttempt) -> Item:
    """Return what the list entry of a response has of the attempt that creates it."""
    if not attempt.fingerprint:
        return {}
    return {"fingerprint": attempt.fingerprint, "retry_count": attempt.retry_count}


class ResponseAttempts:
    """Finds the responses of earlier attempts."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def find(self, tenant: str, attempt: RequestAttempt) -> list[str]:
        """Return the ids of the last minutes' responses that earlier attempts of a request created, newest first.

        One Query reads the new entries of one shard.
        """
        # Ids sort by creation. One whose shard digit was replaced keeps its time, which is in the first digits.
        first = UUID(int=(time.time_ns() // 1_000_000 - FOUND_SECONDS * 1000) << 80)  # the clock of ids
        oldest = time.time() - FOUND_SECONDS
        entries = self._table.query(
            keys.responses(tenant)[keys.shard_of(attempt.fingerprint)],
            since=f"resp_{hex_of(str(first))}",
            newest_first=True,
            attributes="sk, created_at, fingerprint, retry_count",
            page=MOST_ENTRIES,
        )
        return [
            entry["sk"]
            for entry in await take(entries, MOST_ENTRIES)
            if entry.get("fingerprint") == attempt.fingerprint
            and entry["retry_count"] < attempt.retry_count
            and entry["created_at"] >= oldest
        ]
