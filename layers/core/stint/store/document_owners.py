"""The end users to whom documents of vector stores belong."""

from collections.abc import Iterable, Sequence
from typing import Final

from stint.store import knowledge_keys as keys
from stint.store.items import Item
from stint.store.owners import add_owners, remove_owners
from stint.store.parallel import map_concurrently
from stint.store.stored_documents import StoredDocument
from stint.store.table import Table
from stint.store.vector_stores import LIVE

KIND: Final = "vector_store_document"


class DocumentOwners:
    """The entries of documents in the index of end users, and the hashes in the documents' records."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def add(self, tenant: str, store_id: str, documents: Iterable[str], users: Sequence[str]) -> Item:
        """Write the entries of documents, and return the attribute of their records. Nothing without users."""

        async def add(document: str) -> Item:
            return await add_owners(self._table, tenant, users, KIND, store_id, document)

        owners = await map_concurrently(add, list(documents)) if users else []
        return owners[0] if owners else {}

    async def merge(self, tenant: str, store_id: str, found: StoredDocument, owners: Item) -> None:
        """Let a document belong to further end users. Raises ConditionFailed if another request changes them."""
        merged = " ".join(sorted({*found.end_users.split(), *owners["end_users"].split()}))
        if merged != found.end_users:
            key, seen = keys.vector_store_document(tenant, store_id, found.key), found.end_users
            unchanged = "end_users = :seen" if seen else "attribute_not_exists(end_users)"
            values = {":seen": seen} if seen else None
            await self._table.update(key, {"end_users": merged}, f"{LIVE} AND {unchanged}", values)

    async def remove(self, tenant: str, store_id: str, found: StoredDocument) -> None:
        """Delete the entries of a marked document."""
        await remove_owners(self._table, tenant, {"end_users": found.end_users}, KIND, store_id, found.key)
