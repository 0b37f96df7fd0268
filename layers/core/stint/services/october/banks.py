"""Memory banks of October 2024: vector dbs whose metadata says what kind of bank they are."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pydantic import ValidationError

from stint.domain.errors import Conflict, NotFound, NotSupported
from stint.domain.ids import new_id
from stint.domain.llama_stack.october_2024_memory import (
    BankCreateRequest,
    BankDefinition,
    BankDocument,
    BankSettings,
    CreatedBank,
    GraphBank,
    KeyValueBank,
    KeywordBank,
    MemoryInsertRequest,
    VectorBank,
)
from stint.domain.llama_stack.rag import RAGDocument
from stint.domain.llama_stack.vector_dbs import VectorDBRegisterRequest
from stint.domain.vector_stores import WindowChunking
from stint.services.knowledge.rag_insertion import RAGInsertion
from stint.services.knowledge.store_documents import StoreDocuments
from stint.services.knowledge.vector_dbs import VectorDBs
from stint.services.october.contents import read_source
from stint.store.knowledge_keys import document_key
from stint.store.vector_stores import StoredVectorStore

BANK = "memory_bank"
"""Key of a vector store's metadata for the settings of a bank, as JSON. A store without it is a vector bank."""


class StoredBank(BankSettings):
    """The settings of a bank as they are stored. `name` and `url` are those of client 0.0.40."""

    provider_id: str = ""
    name: str = ""
    url: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryBanks:
    """The memory banks of a tenant. `embedding_model` is that of banks which name none."""

    vector_dbs: VectorDBs
    insertion: RAGInsertion
    documents: StoreDocuments
    embedding_model: str

    async def register(self, bank: BankDefinition) -> None:
        """Create a bank. The same request may be repeated.

        Raises:
            NotSupported: it is a graph bank.
            InvalidRequest: the embedding model does not exist.
            Conflict: there is another bank with its identifier.
        """
        await self.create_stored(bank.identifier, to_stored(bank))

    async def create(self, request: BankCreateRequest) -> CreatedBank:
        """Create a bank with a new id. Raises as `register`."""
        url = request.url if isinstance(request.url, str) or request.url is None else request.url.uri
        given = request.config.model_dump()
        bank, identifier = StoredBank(**given, name=request.name, url=url), new_id()
        await self.create_stored(identifier, bank)
        return to_created(identifier, bank)

    async def create_stored(self, identifier: str, bank: StoredBank) -> None:
        if bank.type == "graph":
            raise NotSupported("Graph banks are not supported. Register a vector or keyword bank.", param="memory_bank")
        model = bank.embedding_model or self.embedding_model
        request = VectorDBRegisterRequest(vector_db_id=identifier, embedding_model=model)
        await self.vector_dbs.register(request, {BANK: bank.model_dump_json(exclude_none=True)})
        found = read_stored(await self.vector_dbs.open(identifier))
        if found.type != bank.type:
            message = f"Bank {identifier!r} exists with the type {found.type}. Drop it first, or choose another id."
            raise Conflict(message, code="memory_bank_exists")

    async def list_banks(self) -> list[BankDefinition]:
        """Return all banks, sorted by identifier."""
        return [to_definition(stored) for stored in await self.vector_dbs.list_stores()]

    async def list_created(self) -> list[CreatedBank]:
        """Return all banks in the form of client 0.0.40."""
        stores = await self.vector_dbs.list_stores()
        return [to_created(name_of(stored), read_stored(stored)) for stored in stores]

    async def get(self, identifier: str) -> BankDefinition:
        """Return a bank. Raises NotFound."""
        return to_definition(await self.vector_dbs.open(identifier))

    async def get_created(self, bank_id: str) -> CreatedBank:
        """Return a bank in the form of client 0.0.40. Raises NotFound."""
        return to_created(bank_id, read_stored(await self.vector_dbs.open(bank_id)))

    async def insert(self, request: MemoryInsertRequest, deadline: float) -> None:
        """Insert documents, and wait until they can be found. One with the id of another replaces it.

        Raises:
            NotFound: the bank does not exist.
            InvalidRequest: a document cannot be read. The message names it, and nothing was inserted.
            DeadlineExceeded: the worker still ingests documents, and goes on.
        """
        stored = await self.vector_dbs.open(request.bank_id)
        texts = await self.insertion.read([to_rag_document(document) for document in request.documents])
        if not texts:
            return
        await self.delete_expired(stored.id, [document_key(text.document_id) for text in texts])
        expires_at = None if request.ttl_seconds is None else int(time.time()) + request.ttl_seconds
        insertions, bank = self.insertion.insertions, read_stored(stored)
        chunking = WindowChunking(size=bank.chunk_size_in_tokens, overlap=bank.overlap_size_in_tokens)
        keys = await insertions.insert_texts(stored.id, texts, chunking, expires_at)
        await insertions.wait(stored.id, keys, deadline)

    async def delete_expired(self, store_id: str, keys: Sequence[str]) -> None:
        """Delete documents that have expired, so that others can have their ids."""
        records = self.vector_dbs.store.vector_store_documents
        found = await records.find_all(self.vector_dbs.tenant, [(store_id, key) for key in keys])
        for (_, key), document in found.items():
            if document.expired:
                await self.documents.delete_document(store_id, key)

    async def drop(self, bank_id: str) -> None:
        """Delete a bank with its documents. Raises NotFound."""
        await self.vector_dbs.unregister(bank_id)

    async def read_documents(self, bank_id: str, document_ids: Sequence[str]) -> list[BankDocument]:
        """Return the documents of a bank as texts, in the order of their ids. Raises NotFound for an unknown one."""
        stored = await self.vector_dbs.open(bank_id)
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
                content="".join(await self.documents.read_texts(document)),
                mime_type="text/plain",
                metadata=document.settings.metadata,
            )
            for key, document in found.items()
        }

    async def delete_documents(self, bank_id: str, document_ids: Sequence[str]) -> None:
        """Delete documents of a bank. When this returns, no query finds them. Raises NotFound for an unknown one."""
        stored = await self.vector_dbs.open(bank_id)
        found = await self.find_documents(stored, document_ids)
        for document_id in document_ids:
            if document_id not in found:
                raise NotFound("Document", document_id)
            with suppress(NotFound):
                await self.documents.delete_document(stored.id, document_key(document_id))


def to_rag_document(document: BankDocument) -> RAGDocument:
    """Convert a document for the insertion."""
    return RAGDocument(
        document_id=document.document_id,
        content=read_source(document.content),
        mime_type=document.mime_type,
        metadata=document.metadata,
    )


def to_stored(bank: BankDefinition) -> StoredBank:
    if not isinstance(bank, VectorBank):
        return StoredBank(type=bank.type, provider_id=bank.provider_id)
    return StoredBank(
        type="vector",
        provider_id=bank.provider_id,
        embedding_model=bank.embedding_model,
        chunk_size_in_tokens=bank.chunk_size_in_tokens,
        overlap_size_in_tokens=bank.overlap_size_in_tokens,
    )


def read_stored(stored: StoredVectorStore) -> StoredBank:
    """Return the settings of the bank of a vector store. A caller may have replaced the metadata."""
    settings = stored.settings
    try:
        found = StoredBank.model_validate_json(settings.metadata.get(BANK, "{}"))
    except ValidationError:
        found = StoredBank()
    return found.model_copy(
        update={
            "embedding_model": found.embedding_model or settings.embedding.name,
            "provider_id": found.provider_id or settings.provider_id or "",
        }
    )


def name_of(stored: StoredVectorStore) -> str:
    return stored.settings.identifier or stored.id


def to_definition(stored: StoredVectorStore) -> BankDefinition:
    """Return the definition of a bank."""
    bank, identifier = read_stored(stored), name_of(stored)
    match bank.type:
        case "keyword":
            return KeywordBank(type="keyword", identifier=identifier, provider_id=bank.provider_id)
        case "keyvalue":
            return KeyValueBank(type="keyvalue", identifier=identifier, provider_id=bank.provider_id)
        case "graph":
            return GraphBank(type="graph", identifier=identifier, provider_id=bank.provider_id)
        case "vector":
            size, overlap = bank.chunk_size_in_tokens, bank.overlap_size_in_tokens
            return VectorBank(
                identifier=identifier,
                provider_id=bank.provider_id,
                embedding_model=bank.embedding_model,
                chunk_size_in_tokens=size,
                overlap_size_in_tokens=size // 4 if overlap is None else overlap,
            )


def to_created(bank_id: str, bank: StoredBank) -> CreatedBank:
    """Return a bank in the form of client 0.0.40."""
    config = BankSettings(
        type=bank.type,
        embedding_model=bank.embedding_model,
        chunk_size_in_tokens=bank.chunk_size_in_tokens,
        overlap_size_in_tokens=bank.overlap_size_in_tokens,
    )
    return CreatedBank(bank_id=bank_id, name=bank.name or bank_id, config=config, url=bank.url)
