"""Claims of retries: each created object answers one retry per retry count.

Most clients retry without an idempotency key. A retry is recognized by a fingerprint of its request, which equal
requests share: two of them that are retried at the same time must not both get the object of the first one. So a retry
claims the object that it found, by a key with its retry count. The same client's next retry has a higher count, and may
claim the object again. Such a record also decides which retry runs a failed response again.
"""

import time

from stint.store import request_keys
from stint.store.failures import ConditionFailed
from stint.store.table import Table

KEPT_SECONDS = 3_600
"""Seconds for which a claim is known, longer than any retry of a client takes."""


class RetryClaims:
    """The claims of a tenant's retries."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def put(self, tenant: str, object_id: str, retry_count: int) -> bool:
        """Claim an object for a retry, with one unit. Return whether no other retry of this count has it."""
        item = request_keys.retry_claim(tenant, object_id, retry_count)._asdict()
        try:
            await self._table.put_new(item | {"expires_at": int(time.time()) + KEPT_SECONDS})
        except ConditionFailed:
            return False
        return True
