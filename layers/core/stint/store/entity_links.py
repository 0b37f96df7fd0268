"""The entities of graph banks in the table: a record for each entity, and one for each of its documents."""

import secrets
from collections.abc import Sequence

from stint.store import knowledge_keys as keys
from stint.store.keys import Key
from stint.store.parallel import map_concurrently
from stint.store.table import Table, take


class EntityLinks:
    """The links from entities to the documents of a vector store. Documents name their entities in their records.

    A link may outlive the naming, so readers compare it with the document.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    async def add(self, tenant: str, store_id: str, document: str, entities: Sequence[str]) -> None:
        """Link entities to a document: two units for each. It may be repeated.

        The record of an entity gets a new version after the link, so that no deletion removes it (see `remove`).
        """
        names = [keys.entity_document(tenant, store_id, entity, document) for entity in entities]
        await self._table.put_many([name._asdict() for name in names])
        version = secrets.token_bytes(6)
        own = [keys.entity(tenant, store_id, entity) for entity in entities]
        await self._table.put_many([key._asdict() | {"version": version} for key in own])

    async def remove(self, tenant: str, store_id: str, document: str, entities: Sequence[str]) -> None:
        """Remove the links from entities to a document, and the records of entities that link no other."""
        links = [keys.entity_document(tenant, store_id, entity, document) for entity in entities]
        await self._table.delete_many(links)
        found = await self._table.get_many([keys.entity(tenant, store_id, entity) for entity in entities])

        async def remove_unused(key: Key) -> None:
            if not await take(self._table.query(key.pk, prefix=keys.links_of(key), page=1), 1):
                await self._table.delete(key, condition="version = :read", values={":read": found[key]["version"]})

        await map_concurrently(remove_unused, list(found))

    async def find_known(self, tenant: str, store_id: str, entities: Sequence[str]) -> list[str]:
        """Return the entities that link documents."""
        wanted = {keys.entity(tenant, store_id, entity): entity for entity in entities}
        found = await self._table.get_many(list(wanted), "version")
        return [entity for key, entity in wanted.items() if key in found]

    async def find_documents(
        self, tenant: str, store_id: str, entities: Sequence[str], limit: int
    ) -> list[Sequence[str]]:
        """Return the keys of the documents of each entity, at most `limit` of each."""

        async def find(entity: str) -> Sequence[str]:
            key = keys.entity(tenant, store_id, entity)
            items = self._table.query(key.pk, prefix=keys.links_of(key), attributes="sk", page=limit)
            return [keys.linked_document(item["sk"]) for item in await take(items, limit)]

        return await map_concurrently(find, entities)
