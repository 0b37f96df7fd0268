"""Memory banks of October 2024: vector dbs whose metadata says what kind of bank they are.

All kinds have the same records, so a bank of any kind is listed, searched and deleted as a vector db by the other APIs.
Only graph banks have more: a link from each entity to the documents that name it. A document is stored before its links
are made, and the links of entities that it no longer names are removed last. If the process dies in between, the same
request makes the rest.

A document with the id of another replaces it. One that has expired, and that DynamoDB has not deleted yet, is deleted
before its id is used again.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from stint.caller import next_object_id
from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, NotFound, error_param
from stint.domain.llama_stack.rag import RAGDocument
from stint.domain.llama_stack.vector_dbs import VectorDBRegisterRequest
from stint.domain.vector_stores import WindowChunking
from stint.october_2024.contents import read_source
from stint.october_2024.entity_extraction import EntityExtraction
from stint.october_2024.schemas.memory import (
    BankCreateRequest,
    BankDefinition,
    BankDocument,
    CreatedBank,
    MemoryInsertRequest,
)
from stint.october_2024.stored_banks import (
    BANK,
    StoredBank,
    name_of,
    read_stored,
    to_created,
    to_definition,
    to_stored,
)
from stint.services.knowledge.insertions import NewText
from stint.services.knowledge.rag_insertion import RAGInsertion
from stint.services.knowledge.store_documents import StoreDocuments, read_texts
from stint.services.knowledge.vector_dbs import VectorDBs
from stint.store.keys import document_key
from stint.store.parallel import map_concurrently
from stint.store.stored_documents import StoredDocument
from stint.store.vector_stores import StoredVectorStore


@dataclass(frozen=True, slots=True)
class MemoryBanks:
    """The memory banks of a tenant. `embedding_model` is that of banks which name none."""

    vector_dbs: VectorDBs
    insertion: RAGInsertion
    documents: StoreDocuments
    embedding_model: str
    extraction: EntityExtraction

    async def register(self, bank: BankDefinition) -> None:
        """Create a bank. The same request may be repeated.

        Raises:
            InvalidRequest: the embedding model, or that of a graph bank, does not exist.
            Conflict: there is another bank with its identifier.
        """
        await self.create_stored(bank.identifier, to_stored(bank))

    async def create(self, request: BankCreateRequest) -> CreatedBank:
        """Create a bank with a new id, which is that of the request's idempotency key. Raises as `register`."""
        url = request.url if isinstance(request.url, str) or request.url is None else request.url.uri
        given = request.config.model_dump()
        bank, identifier = StoredBank(**given, name=request.name, url=url), next_object_id()
        await self.create_stored(identifier, bank)
        return to_created(identifier, bank)

    async def create_stored(self, identifier: str, bank: StoredBank) -> None:
        if bank.model is not None:
            with error_param("model"):
                await self.extraction.models.check(bank.model)
        model = bank.embedding_model or self.embedding_model
        provider = bank.provider_id if bank.provider_id in self.vector_dbs.indexes else None
        request = VectorDBRegisterRequest(vector_db_id=identifier, embedding_model=model, provider_id=provider)
        await self.vector_dbs.register(request, {BANK: bank.model_dump_json(exclude_none=True)})
        found = read_stored(await self.open(identifier))
        if found.type != bank.type:
            message = f"Bank {identifier!r} exists with the type {found.type}. Drop it first, or choose another id."
            raise Conflict(message, code="memory_bank_exists")

    async def open(self, identifier: str) -> StoredVectorStore:
        """Return the vector store of a bank. Raises NotFound."""
        with named_bank(identifier):
            return await self.vector_dbs.open(identifier)

    async def list_banks(self) -> list[BankDefinition]:
        """Return all banks, sorted by identifier."""
        return [to_definition(stored) for stored in await self.vector_dbs.list_stores()]

    async def list_created(self) -> list[CreatedBank]:
        """Return all banks in the form of client 0.0.40."""
        stores = await self.vector_dbs.list_stores()
        return [to_created(name_of(stored), read_stored(stored)) for stored in stores]

    async def get(self, identifier: str) -> BankDefinition:
        """Return a bank. Raises NotFound."""
        return to_definition(await self.open(identifier))

    async def get_of_session(self, session_id: str, vector_db_id: str) -> BankDefinition:
        """Return the own bank of a session. Raises NotFound."""
        stored = await self.vector_dbs.store.vector_stores.get(self.vector_dbs.tenant, vector_db_id)
        if stored.settings.owner != session_id:
            raise NotFound("Memory bank", vector_db_id)
        return to_definition(stored)

    async def get_created(self, bank_id: str) -> CreatedBank:
        """Return a bank in the form of client 0.0.40. Raises NotFound."""
        return to_created(bank_id, read_stored(await self.open(bank_id)))

    async def insert(self, request: MemoryInsertRequest, deadline: float) -> None:
        """Insert documents, and wait until they can be found. One with the id of another replaces it.

        Raises:
            NotFound: the bank does not exist.
            InvalidRequest: a document cannot be read. The message names it, and nothing was inserted.
            DeadlineExceeded: the worker is still ingesting documents, and continues.
        """
        stored = await self.open(request.bank_id)
        bank, texts = read_stored(stored), await self.read_texts(request)
        if not texts:
            return
        if bank.type == "graph":
            places = {document.document_id: place for place, document in enumerate(request.documents)}
            texts = await self.extraction.add_entities(texts, places, bank.model, deadline)
        earlier = await self.read_earlier(stored.id, [document_key(text.document_id) for text in texts])
        expires_at = None if request.ttl_seconds is None else int(time.time()) + request.ttl_seconds
        chunking = WindowChunking(size=bank.chunk_size_in_tokens, overlap=bank.overlap_size_in_tokens)
        insertions = self.insertion.insertions
        keys = await insertions.insert_texts(stored.id, texts, chunking, expires_at)
        await self.link_entities(stored.id, texts, earlier)
        await insertions.wait(stored.id, keys, deadline)

    async def read_texts(self, request: MemoryInsertRequest) -> list[NewText]:
        """Return the texts of documents by their ids, the last one of each id. Empty ones are omitted."""
        texts = await self.insertion.read([to_rag_document(document) for document in request.documents])
        return list({text.document_id: text for text in texts}.values())

    async def read_earlier(self, store_id: str, keys: Sequence[str]) -> dict[str, StoredDocument]:
        """Return the documents that will be replaced. Delete those that have expired, so that others have their ids."""
        records = self.vector_dbs.store.vector_store_documents
        found = await records.find_all(self.vector_dbs.tenant, [(store_id, key) for key in keys])
        for (_, key), document in found.items():
            if document.expired:
                await self.documents.delete_document(store_id, key)
        return {key: document for (_, key), document in found.items() if not document.deleted}

    async def link_entities(
        self, store_id: str, texts: Sequence[NewText], earlier: Mapping[str, StoredDocument]
    ) -> None:
        """Link entities to the documents that name them, and no longer to those that have named them."""
        links, tenant = self.vector_dbs.store.entity_links, self.vector_dbs.tenant

        async def link(text: NewText) -> None:
            key, entities = document_key(text.document_id), text.entities or ()
            before = earlier[key].settings.entities if key in earlier else None
            await links.add(tenant, store_id, key, entities)
            await links.remove(tenant, store_id, key, [name for name in before or () if name not in entities])

        await map_concurrently(link, [text for text in texts if text.entities is not None])

    async def drop(self, bank_id: str) -> None:
        """Delete a bank with its documents. Raises NotFound."""
        with named_bank(bank_id):
            await self.vector_dbs.unregister(bank_id)

    async def read_documents(self, bank_id: str, document_ids: Sequence[str]) -> list[BankDocument]:
        """Return the documents of a bank as texts, in the order of their ids. Raises NotFound for an unknown one."""
        stored = await self.open(bank_id)
        found = await self.find_documents(stored, document_ids)
        if missing := [document_id for document_id in document_ids if document_id not in found]:
            raise NotFound("Document", missing[0])
        return [found[document_id] for document_id in document_ids]

    async def find_documents(
        self, stored: StoredVectorStore, document_ids: Sequence[str]
    ) -> Mapping[str, BankDocument]:
        """Return those of the documents that a bank has, by their ids."""
        keys = {document_key(document_id): document_id for document_id in document_ids}
        records = self.vector_dbs.store.vector_store_documents
        found = await records.find(self.vector_dbs.tenant, stored.id, list(keys))
        return {
            keys[key]: BankDocument(
                document_id=keys[key],
                content="".join(await read_texts(self.documents.store.vector_store_contents, document)),
                mime_type="text/plain",
                metadata=document.settings.metadata,
            )
            for key, document in found.items()
        }

    async def delete_documents(self, bank_id: str, document_ids: Sequence[str]) -> None:
        """Delete documents of a bank. When this returns, no query finds them. Raises NotFound for an unknown one."""
        stored = await self.open(bank_id)
        found = await self.find_documents(stored, document_ids)
        for document_id in document_ids:
            if document_id not in found:
                raise NotFound("Document", document_id)
            with suppress(NotFound):
                await self.documents.delete_document(stored.id, document_key(document_id))


@contextmanager
def named_bank(identifier: str) -> Iterator[None]:
    """Raise NotFound of a vector db as that of the memory bank which a caller named."""
    try:
        yield
    except NotFound as error:
        raise NotFound("Memory bank", identifier) from error


def to_rag_document(document: BankDocument) -> RAGDocument:
    """Convert a document for the insertion."""
    return RAGDocument(
        document_id=document.document_id,
        content=read_source(document.content),
        mime_type=document.mime_type,
        metadata=document.metadata,
    )
