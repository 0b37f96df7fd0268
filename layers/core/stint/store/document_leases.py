"""Leases of documents: the right to write their chunks to the index."""

from dataclasses import dataclass, replace
from typing import NoReturn

from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.domain.vector_stores import DocumentSettings, LastError, StoredContent
from stint.store import knowledge_keys as keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.lease import Attempt, Lease, Leases
from stint.store.stored_documents import StoredDocument, to_document, to_generations, to_text
from stint.store.table import Table
from stint.store.tombstones import is_live
from stint.store.vector_store_documents import IN_PROGRESS, OPEN
from stint.store.vector_stores import LIVE

MAX_GENERATIONS = 16
"""Maximum generations that a record names. The oldest are dropped."""


@dataclass(frozen=True, slots=True)
class DocumentLease:
    """The right to write the chunks of one generation of a document."""

    lease: Lease
    generation: str

    @property
    def document(self) -> StoredDocument:
        """Return the document as it was when the lease was acquired."""
        return to_document(self.lease.item)

    async def renew(self, seconds: float) -> Item:
        """Extend the lease. Raises Interrupted if it is lost, or the document was cancelled or deleted."""
        return await self.lease.renew(seconds)

    async def release(self) -> None:
        """Release the lease, also of a deleted document; do nothing if it is lost."""
        await self.lease.release()

    async def complete(self, usage_bytes: int, text: StoredContent | None) -> StoredDocument:
        """Make searches find this generation, and release the lease: one write.

        Raises Interrupted if the lease is lost, or the document was cancelled, deleted or replaced.
        """
        assign = {"doc_status": "completed", "generation": self.generation, "usage_bytes": usage_bytes}
        stored: Item = {"doc_text": text.model_dump_json() if text else None, "unindexed": None}
        return await self._end(assign | stored)

    async def complete_update(self) -> None:
        """Note that the index has the attributes of the settings, and release the lease. Raises Interrupted."""
        await self.lease.update({"unindexed": None} | self.lease.kind.released)

    async def fail(self, error: LastError) -> StoredDocument:
        """End the ingestion as failed, and release the lease. Raises Interrupted as `complete`."""
        return await self._end({"doc_status": "failed", "last_error": error.model_dump_json()})

    async def _end(self, assign: Item) -> StoredDocument:
        kind, condition = self.lease.kind, f"{OPEN} AND lease_id = :held AND settings = :written"
        final, held = assign | kind.released, {":held": self.lease.lease_id, ":written": self.lease.item["settings"]}
        try:
            item = await kind.table.update(self.lease.key, final, condition, IN_PROGRESS | held)
        except ConditionFailed as refused:
            item = refused.item or {}
            # The answer of this very write may have been lost.
            if not is_live(item) or any(item.get(name) != value for name, value in final.items()):
                raise Interrupted(f"{self.lease.resource} was cancelled, deleted, replaced, or taken over.") from None
        return to_document(item)


class DocumentLeases:
    """The leases in the records of documents."""

    def __init__(self, table: Table) -> None:
        released = {"lease_id": None, "lease_until": None}
        self._ingestions = Leases(table, "lease_id", "lease_until", OPEN, released, busy="document_in_use")
        self._updates = Leases(
            table, "lease_id", "lease_until", f"{LIVE} AND doc_status = :completed", released, busy="document_in_use"
        )

    async def acquire(
        self, tenant: str, store_id: str, found: StoredDocument, generation: str, chunks: int, seconds: float
    ) -> DocumentLease:
        """Acquire the lease of a document in progress, and note the generation that is to be written: one write.

        Raises:
            NotFound: the document was deleted.
            Conflict: `document_in_use` while another process writes it; `document_ended` if it is not in progress.
        """
        new, resource = {generation: chunks}, f"File {found.key}"

        def attempt(item: Item) -> Attempt:
            before = to_generations(item.get("generations", ""))
            kept = dict(list(before.items())[1 - MAX_GENERATIONS :]) | new
            made = self._ingestions.attempt(item, {"generations": to_text(kept)}, _same_generations(item))
            unleased = "generations" in item and "lease_id" not in item
            seen = {":written": item["generations"]} if unleased else {}
            return replace(made, values=made.values | IN_PROGRESS | seen)

        async def next_attempt(item: Item | None) -> Attempt:
            if not is_live(item):
                raise NotFound("File", found.key)
            if item["doc_status"] != "in_progress":
                raise Conflict(f"{resource} is {item['doc_status']}.", code="document_ended")
            if self._ingestions.is_held(item):
                _refuse_held(resource)
            return attempt(item)

        first = attempt({"generations": to_text(found.generations)} if found.generations else {})
        key = keys.vector_store_document(tenant, store_id, found.key)
        lease = await self._ingestions.acquire(key, resource, seconds, first, next_attempt)
        return DocumentLease(lease, generation)

    async def update(
        self, tenant: str, store_id: str, found: StoredDocument, settings: DocumentSettings, seconds: float
    ) -> DocumentLease:
        """Change the attributes of a completed document, and acquire its lease in the same write.

        Until `complete_update`, the record notes that the index may have other attributes.

        Raises:
            NotFound: the document was deleted.
            Conflict: it is being ingested, or changed by another request.
        """
        resource, completed = f"File {found.key}", {":completed": "completed"}
        assign: Item = {"settings": settings.model_dump_json(), "unindexed": 1, "requeues": None}

        def attempt(item: Item) -> Attempt:
            made = self._updates.attempt(item, assign)
            condition = f"{made.condition} AND settings = :before"
            before = {":before": item.get("settings", found.settings.model_dump_json())}
            return replace(made, condition=condition, values=made.values | completed | before)

        async def next_attempt(item: Item | None) -> Attempt:
            if not is_live(item):
                raise NotFound("File", found.key)
            if item["doc_status"] != "completed" or self._updates.is_held(item):
                _refuse_held(resource)
            if not only_attributes_differ(to_document(item).settings, settings):
                raise Conflict(f"{resource} was changed by another request. Try again.", code="document_in_use")
            return attempt(item)

        key = keys.vector_store_document(tenant, store_id, found.key)
        lease = await self._updates.acquire(key, resource, seconds, attempt({}), next_attempt)
        return DocumentLease(lease, to_document(lease.item).generation or "")


def only_attributes_differ(one: DocumentSettings, other: DocumentSettings) -> bool:
    return one == other.model_copy(update={"attributes": one.attributes})


def _same_generations(item: Item) -> str:
    return "generations = :written" if "generations" in item else "attribute_not_exists(generations)"


def _refuse_held(resource: str) -> NoReturn:
    raise Conflict(f"{resource} is being ingested. Try again when it is completed.", code="document_in_use")
