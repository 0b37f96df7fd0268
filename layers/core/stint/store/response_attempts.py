"""Attempts to create responses: the list entry of a response has the fingerprint of its request."""

import secrets
import time
from uuid import UUID

from stint.caller import RequestAttempt
from stint.domain.ids import hex_of, name_of, new_name
from stint.store import keys
from stint.store.items import Item
from stint.store.table import Table, take

FOUND_SECONDS = 600
"""Seconds after its creation in which a response is found by a retry."""

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
