"""The keys that sign opaque texts: one record for each tenant, made when first needed."""

import secrets

from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.table import Table

KEY_BYTES = 32


class SigningKeys:
    """Keys by tenant. A key never expires and is never deleted, because the texts that it signed must stay valid."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def get(self, tenant: str) -> bytes:
        """Return a tenant's key: one read, and for the tenant's first caller a conditional put of one unit."""
        key = keys.signing_key(tenant)
        item = await self._table.get(key)
        if item is None:
            item = key._asdict() | {"secret": secrets.token_bytes(KEY_BYTES)}
            try:
                await self._table.put_new(item)
            except ConditionFailed as refused:  # another process was first, and its key is used
                item = refused.found
        return bytes(item["secret"])
