"""The vector stores of sessions, which have the large documents of their turns."""

from collections.abc import Sequence
from contextlib import suppress

from stint.dataclasses import dataclass
from stint.domain.content import DocumentText
from stint.domain.vector_stores import VectorStoreSettings, WindowChunking
from stint.services.knowledge.embedding_models import EmbeddingModels
from stint.services.knowledge.insertions import Insertions, NewText
from stint.store.failures import ConditionFailed
from stint.store.store import Store

CHUNK_TOKENS = 512


@dataclass(frozen=True, slots=True)
class SessionStores:
    """The stores of a tenant's sessions."""

    tenant: str
    store: Store
    models: EmbeddingModels
    insertions: Insertions

    async def create(self, session_id: str, vector_db_id: str) -> None:
        """Create the store of a session, unless it exists, or the session was deleted."""
        settings = VectorStoreSettings(
            name=f"session {session_id}",
            embedding=await self.models.choose_for_store(),
            chunking=WindowChunking(size=CHUNK_TOKENS),
            owner=session_id,
        )
        with suppress(ConditionFailed):
            await self.store.vector_stores.create(self.tenant, vector_db_id, settings)

    async def insert(self, vector_db_id: str, documents: Sequence[tuple[str, DocumentText]], deadline: float) -> None:
        """Insert documents by their ids. When this returns, they can be found.

        Raises:
            InvalidRequest: a document cannot be ingested. The message has the reason.
            DeadlineExceeded: the worker still ingests documents.
        """
        texts = [NewText(document_id, each.text, {}) for document_id, each in documents]
        keys = await self.insertions.insert_texts(vector_db_id, texts, WindowChunking(size=CHUNK_TOKENS))
        await self.insertions.wait(vector_db_id, keys, deadline)
