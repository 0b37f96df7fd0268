"""Parts of vector stores beside the records of stores and documents.

class                  has                                                   in
VectorStoreContents    the texts of documents                                the bucket
DocumentOwners         the end users to whom documents belong                the index of end users
EntityLinks            the entities of graph banks, and their documents      a record for each entity and link
VectorDBNames          the identifiers of vector dbs, each a vector store    a small partition of the tenant
"""

import secrets
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final, Literal

from stint.dataclasses import dataclass
from stint.domain.errors import NotFound
from stint.domain.llama_stack.vector_dbs import MAX_IDENTIFIER_BYTES, VectorDB
from stint.domain.vector_stores import StoredContent
from stint.store import keys
from stint.store.blobs import Blobs
from stint.store.failures import BlobMissing, ConditionFailed
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.owners import add_owners, remove_owners
from stint.store.parallel import map_concurrently
from stint.store.stored_documents import StoredDocument
from stint.store.table import Table, take
from stint.store.vector_stores import LIVE


class VectorStoreContents:
    """Objects below the prefix of their document, which its deletion empties."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def put(
        self, tenant: str, store_id: str, document: str, body: bytes, kind: Literal["text", "chunks"] = "text"
    ) -> StoredContent:
        """Store a body, and return what its document's record has of it."""
        return await self._put(keys.document_blobs(tenant, store_id, document), body, kind, None)

    async def put_text(self, tenant: str, store_id: str, document: str, generation: str, body: bytes) -> StoredContent:
        """Store the text that an attempt extracted, under the name of its generation."""
        return await self._put(keys.document_blobs(tenant, store_id, document), body, "text", generation)

    async def delete_text(self, tenant: str, store_id: str, document: str, generation: str) -> None:
        """Delete the text that an attempt extracted, if there is one."""
        await self._blobs.delete(keys.document_blobs(tenant, store_id, document) + generation)

    async def _put(self, prefix: str, body: bytes, kind: Literal["text", "chunks"], name: str | None) -> StoredContent:
        key = await self._blobs.put(prefix, body, name)
        return StoredContent(type=kind, blob=key, length=len(body), sha256=sha256(body).hexdigest())

    async def get(self, content: StoredContent) -> bytes:
        """Return a body. Raises NotFound if it was deleted."""
        try:
            return await self._blobs.get(content.blob, content.length, bytes.fromhex(content.sha256))
        except BlobMissing as error:
            raise NotFound("Document", content.blob) from error

    async def delete(self, content: StoredContent) -> None:
        await self._blobs.delete(content.blob)

    async def delete_document(self, tenant: str, store_id: str, document: str) -> None:
        """Delete all objects of a document."""
        async for _ in self._blobs.delete_prefix(keys.document_blobs(tenant, store_id, document)):
            pass

    async def delete_store(self, tenant: str, store_id: str) -> None:
        """Delete all objects of a store."""
        async for _ in self._blobs.delete_prefix(keys.vector_store_blobs(tenant, store_id)):
            pass


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
