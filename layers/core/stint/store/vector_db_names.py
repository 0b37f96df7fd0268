"""The names of vector dbs. Each is that of a vector store."""

from collections.abc import Sequence

from stint.dataclasses import dataclass
from stint.domain.llama_stack.vector_dbs import MAX_IDENTIFIER_BYTES, VectorDB
from stint.store import knowledge_keys as keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.table import Table


@dataclass(frozen=True, slots=True)
class NamedVectorDB:
    """A vector db, and the vector store with its documents."""

    store_id: str
    resource: VectorDB


class VectorDBNames:
    """The vector dbs of a tenant by their identifiers, a partition of small records."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def create(self, tenant: str, named: NamedVectorDB) -> NamedVectorDB:
        """Store a vector db, unless there is one with its identifier. Return the one that is stored then."""
        key = keys.vector_db_name(tenant, named.resource.identifier)
        document = {"store_id": named.store_id, "resource": named.resource.model_dump_json()}
        try:
            await self._table.put_new(key._asdict() | document)
        except ConditionFailed as refused:
            return to_named(refused.found)
        return named

    async def find(self, tenant: str, identifiers: Sequence[str]) -> dict[str, NamedVectorDB]:
        """Read vector dbs in one call. Those that do not exist are omitted."""
        wanted = {keys.vector_db_name(tenant, one): one for one in identifiers if is_identifier(one)}
        found = await self._table.get_many(list(wanted)) if wanted else {}
        return {wanted[key]: to_named(item) for key, item in found.items()}

    async def list(self, tenant: str) -> list[NamedVectorDB]:
        """Return all vector dbs, sorted by identifier."""
        return [to_named(item) async for item in self._table.query(keys.vector_db_names(tenant))]

    async def remove(self, tenant: str, identifier: str, store_id: str) -> None:
        """Delete the name of a store. A missing one, or one of another store, is ignored."""
        key, values = keys.vector_db_name(tenant, identifier), {":store": store_id}
        await self._table.delete(key, condition="store_id = :store", values=values)


def is_identifier(text: str) -> bool:
    """Return whether a text can be the identifier of a vector db."""
    return 0 < len(text.encode()) <= MAX_IDENTIFIER_BYTES


def to_named(item: Item) -> NamedVectorDB:
    return NamedVectorDB(item["store_id"], VectorDB.model_validate_json(item["resource"]))
