"""Vector dbs: register, read, list, delete. Each is a vector store with a name.

The name is a record of its own, which points to the id of a store. It is written first: of two requests for the same
name, one stores it, and the other gets the same store. The id is in the name, so whichever of them creates the store,
it is this one.

  name      store     is                                     a registration
  none      none      free                                   writes both
  written   none      a registration that died in between    writes the store, with the same id
  written   exists    registered                             returns it, if the model and the index are the same
  written   marked    being deleted                          replaces the name, and writes a new store

A vector db may also be named by the id of its store, so that no name may have the form of such an id.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from stint.caller import end_users_of
from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, InvalidRequest, NotFound, error_param
from stint.domain.ids import is_name, new_name
from stint.domain.llama_stack.registrations import Owner
from stint.domain.llama_stack.vector_dbs import VectorDB, VectorDBRegisterRequest
from stint.domain.vector_stores import EmbeddingChoice, VectorStoreSettings, WindowChunking
from stint.services.knowledge.embedding_models import EmbeddingModels
from stint.services.knowledge.index_provider import choose_index
from stint.services.registry.folded_names import fold_name
from stint.store.failures import ConditionFailed
from stint.store.store import Store
from stint.store.vector_store_contents import NamedVectorDB
from stint.store.vector_stores import StoredVectorStore

CHUNK_TOKENS = 512
"""Tokens of a chunk of a vector db, as in Llama Stack."""


@dataclass(frozen=True, slots=True)
class VectorDBs:
    """The vector dbs of a tenant. `indexes` are the providers that a new one can name, the default one first."""

    tenant: str
    store: Store
    models: EmbeddingModels
    indexes: Sequence[str]
    delete_store: Callable[[str], Awaitable[None]]

    async def register(self, request: VectorDBRegisterRequest, metadata: Mapping[str, str] | None = None) -> VectorDB:
        """Create a vector store with a name. The same request may be repeated. A new store has the metadata.

        Raises:
            InvalidRequest: the provider or the embedding model does not exist.
            Conflict: the name is that of a vector db with another embedding model, or in another index.
        """
        index = self.check_names(request)
        with error_param("embedding_model"):
            choice = await self.models.choose_for_store(request.embedding_model)
        resource = VectorDB(
            identifier=request.vector_db_id,
            provider_resource_id=request.provider_vector_db_id or request.vector_db_id,
            provider_id=index or self.indexes[0],
            owner=Owner(),
            embedding_model=request.embedding_model,
            embedding_dimension=choice.dimension,
        )
        # The new id is dropped if the name exists.
        named = await self.add_name(NamedVectorDB(new_name("vs"), resource))
        if named.resource.embedding_model != request.embedding_model:
            raise Conflict(
                f"Vector DB {request.vector_db_id!r} exists with the embedding model "
                f"{named.resource.embedding_model!r}. Unregister it first, or choose another name.",
                code="vector_db_exists",
            )
        if index is not None and named.resource.provider_id != index:
            raise Conflict(
                f"Vector DB {request.vector_db_id!r} exists in the index {named.resource.provider_id!r}. Unregister it "
                "first, or choose another name.",
                code="vector_db_exists",
            )
        await self.create_store(named, choice, index, metadata or {})
        return named.resource

    def check_names(self, request: VectorDBRegisterRequest) -> str | None:
        """Return the index of a new vector db, None for the default one.

        Raises InvalidRequest for an identifier or a provider that cannot be used.
        """
        if is_name("vs", fold_name(request.vector_db_id)):
            raise InvalidRequest(
                "vector_db_id has the form of a vector store's id (vs_...). Choose another name.",
                param="vector_db_id",
            )
        return choose_index(request.provider_id, self.indexes)

    async def add_name(self, new: NamedVectorDB) -> NamedVectorDB:
        """Store a name, unless there is one. The name of a deleted store is replaced. Return the one that is stored."""
        names, identifier = self.store.vector_db_names, new.resource.identifier
        named = await names.create(self.tenant, new)
        if named.store_id != new.store_id and await self.store.vector_stores.is_marked(self.tenant, named.store_id):
            await names.remove(self.tenant, identifier, named.store_id)
            named = await names.create(self.tenant, new)
        return named

    async def create_store(
        self, named: NamedVectorDB, choice: EmbeddingChoice, index: str | None, metadata: Mapping[str, str]
    ) -> None:
        """Create the store of a vector db, unless an earlier request has."""
        settings = VectorStoreSettings(
            name=named.resource.identifier[:256],
            metadata=dict(metadata),
            embedding=choice,
            chunking=WindowChunking(size=CHUNK_TOKENS),
            identifier=named.resource.identifier,
            provider_id=named.resource.provider_id,
            index=index,
        )
        # An earlier request has created it.
        with suppress(ConditionFailed):
            await self.store.vector_stores.create(self.tenant, named.store_id, settings, end_users_of())

    async def get(self, identifier: str) -> VectorDB:
        """Return a vector db, by its name or the id of its store. Raises NotFound."""
        named = (await self.store.vector_db_names.find(self.tenant, [identifier])).get(identifier)
        with named_vector_db(identifier):
            stored = await self.open_store(named.store_id if named else identifier)
        return named.resource if named else self.describe(stored)

    async def list(self) -> list[VectorDB]:
        """Return the registered vector dbs, sorted by name."""
        named = await self.store.vector_db_names.list(self.tenant)
        existing = await self.store.vector_stores.existing(self.tenant, [one.store_id for one in named])
        return [one.resource for one in named if one.store_id in existing]

    async def list_stores(self) -> Sequence[StoredVectorStore]:
        """Return the stores of the registered vector dbs, sorted by name."""
        named = await self.store.vector_db_names.list(self.tenant)
        existing = await self.store.vector_stores.existing(self.tenant, [one.store_id for one in named])
        found = await self.store.vector_stores.get_many(self.tenant, list(existing)) if existing else {}
        return [found[one.store_id] for one in named if one.store_id in found]

    async def unregister(self, identifier: str) -> None:
        """Delete a vector db with its documents. It may be repeated until it succeeds. Raises NotFound."""
        named = (await self.store.vector_db_names.find(self.tenant, [identifier])).get(identifier)
        if named is None:
            with named_vector_db(identifier):
                await self.open_store(identifier)
                await self.delete_store(identifier)
            return
        with suppress(NotFound):
            await self.delete_store(named.store_id)
        # After the mark: without its name, nobody would find a store that is not marked.
        await self.store.vector_db_names.remove(self.tenant, identifier, named.store_id)

    async def open(self, identifier: str) -> StoredVectorStore:
        """Return the store of a vector db that documents are inserted into. Raises NotFound."""
        [store_id] = await self.resolve([identifier])
        with named_vector_db(identifier):
            return await self.open_store(store_id)

    async def resolve(self, identifiers: Sequence[str]) -> Sequence[str]:
        """Return the ids of the stores of vector dbs, which may be named by these ids, too. Raises NotFound."""
        found = await self.store.vector_db_names.find(self.tenant, identifiers)
        for identifier in identifiers:
            if identifier not in found and not is_name("vs", identifier):
                raise NotFound("Vector DB", identifier)
        return [found[one].store_id if one in found else one for one in identifiers]

    async def open_store(self, store_id: str) -> StoredVectorStore:
        """Return a store that is not a session's own. Raises NotFound."""
        stored = await self.store.vector_stores.get(self.tenant, store_id)
        if stored.settings.owner is not None:
            raise NotFound("Vector store", store_id)
        return stored

    def describe(self, stored: StoredVectorStore) -> VectorDB:
        """Return a vector store as a vector db."""
        embedding = stored.settings.embedding
        return VectorDB(
            identifier=stored.id,
            provider_resource_id=stored.id,
            provider_id=stored.settings.index or self.indexes[0],
            owner=Owner(),
            embedding_model=embedding.name,
            embedding_dimension=embedding.dimension,
        )


@contextmanager
def named_vector_db(identifier: str) -> Iterator[None]:
    """Raise the NotFound of a store under the name of its vector db."""
    try:
        yield
    except NotFound:
        raise NotFound("Vector DB", identifier) from None
