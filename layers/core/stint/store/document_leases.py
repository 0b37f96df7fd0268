"""Leases of documents: the right to write their chunks to the index.

A vector index has no conditions, so a lease cannot keep a late writer from writing chunks. Generations make that
harmless: each attempt that begins anew writes the chunks of a generation of its own, and searches find only the one
that the document's record names. `complete` names it, in the write that releases the lease. Before its first chunk, an
attempt adds its generation to the record, so that a later one can remove the chunks of those that were not completed.

    document      acquire                       complete, fail    pause            update (attributes)
    in progress   notes the generation, takes   -                 -                409 `document_in_use`
                  the progress out
    held          409 `document_in_use`         by the holder     by the holder    409 `document_in_use`
    lapsed        takes over                    the last holder   the last holder  409, or takes over if completed
    completed     409 `document_ended`          Interrupted       -                changes them, and leases
    failed,       409 `document_ended`          Interrupted       the holder       409 `document_in_use`
    cancelled
    deleted       404                           Interrupted       Interrupted      404

An attempt that continues from the `progress` of the record adds to the generation of the one before. Its acquisition
removes the progress, so that of two messages for it one attempt continues and the other is refused. `update` leases a
completed document, because the index has its attributes, too: `unindexed` notes that they may differ, until
`complete_update`.
"""

import time
from typing import NoReturn

from stint.dataclasses import dataclass, replace
from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.domain.vector_stores import DocumentSettings, IngestionProgress, LastError, StoredContent
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.lease import Attempt, Lease, Leases
from stint.store.records import is_live
from stint.store.stored_documents import StoredDocument, to_document, to_generations, to_text
from stint.store.table import Table
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

    async def set_chunks(self, chunks: int) -> None:
        """Note the number of chunks of this generation before they are written. Raises Interrupted."""
        generations = to_generations(self.lease.item["generations"]) | {self.generation: chunks}
        await self.lease.update({"generations": to_text(generations)})

    async def pause(self, progress: IngestionProgress) -> None:
        """Note the progress, which the next attempt continues, and release the lease: one write.

        Raises Interrupted if the lease is lost, or the document was deleted or replaced.
        """
        assign = {"progress": progress.model_dump_json(), "queued_at": int(time.time()), "requeues": None}
        await self._write(assign, "lease_id = :held AND attribute_not_exists(deleted_at)", {})

    async def fail(self, error: LastError) -> StoredDocument:
        """End the ingestion as failed, and release the lease. Raises Interrupted as `complete`."""
        return await self._end({"doc_status": "failed", "last_error": error.model_dump_json()})

    async def _end(self, assign: Item) -> StoredDocument:
        condition = f"{OPEN} AND lease_id = :held AND settings = :written"
        return await self._write(assign, condition, IN_PROGRESS | {":written": self.lease.item["settings"]})

    async def _write(self, assign: Item, condition: str, values: Item) -> StoredDocument:
        """Change attributes, and release the lease."""
        kind = self.lease.kind
        final, held = assign | kind.released, {":held": self.lease.lease_id}
        try:
            item = await kind.table.update(self.lease.key, final, condition, values | held)
        except ConditionFailed as refused:
            item = refused.item or {}
            # The answer of this very write may have been lost.
            if not is_live(item) or any(item.get(name) != value for name, value in final.items()):
                raise Interrupted(f"{self.lease.resource} was cancelled, deleted, replaced, or taken over.") from None
        return to_document(item)


class DocumentLeases:
    """The leases in the records of documents."""

    def __init__(self, table: Table) -> None:
        released: Item = dict.fromkeys(("lease_id", "lease_until", "lease_seconds"))
        self._ingestions = Leases(table, "lease_id", "lease_until", OPEN, released=released, busy="document_in_use")
        self._updates = Leases(
            table,
            "lease_id",
            "lease_until",
            f"{LIVE} AND doc_status = :completed",
            released=released,
            busy="document_in_use",
        )

    async def acquire(
        self, tenant: str, store_id: str, found: StoredDocument, generation: str, chunks: int, seconds: float
    ) -> DocumentLease:
        """Acquire the lease of a document in progress, and note the generation that is to be written: one write.

        The same write takes the progress out of the record. If it is not that of `found`, the attempt is refused.

        Raises:
            NotFound: the document was deleted.
            Conflict: `document_in_use` while another process writes it; `document_ended` if it is not in progress.
            Interrupted: another attempt has continued the document.
        """
        resource, progress = f"File {found.key}", _progress_text(found)

        def attempt(item: Item) -> Attempt:
            generations = _with_generation(item.get("generations", ""), generation, chunks)
            same = _same(item, "generations", "progress")
            made = self._ingestions.attempt(item, {"generations": generations, "progress": None}, same)
            seen = {} if "lease_id" in item else _values(item, "generations", "progress")
            return replace(made, values=made.values | IN_PROGRESS | seen)

        async def next_attempt(item: Item | None) -> Attempt:
            if not is_live(item):
                raise NotFound("File", found.key)
            if item["doc_status"] != "in_progress":
                raise Conflict(f"{resource} is {item['doc_status']}.", code="document_ended")
            if self._ingestions.is_held(item):
                _refuse_held(resource)
            if item.get("progress") != progress:
                raise Interrupted(f"{resource} was continued by another attempt.")
            return attempt(item)

        read = {"generations": to_text(found.generations) or None, "progress": progress}
        first = attempt({name: value for name, value in read.items() if value is not None})
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
        # Noted before the index is written: an attempt that dies in between is found by the note, and repeated.
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


def _with_generation(before: str, generation: str, chunks: int) -> str:
    """Return the generations of a document, and another one of them, unless it is there."""
    generations = to_generations(before)
    # An attempt that continues another one adds to its generation.
    if generation in generations:
        return before
    return to_text(dict(list(generations.items())[1 - MAX_GENERATIONS :]) | {generation: chunks})


def _progress_text(found: StoredDocument) -> str | None:
    return None if found.progress is None else found.progress.model_dump_json()


def _same(item: Item, *names: str) -> str:
    """Return the condition that attributes are as they were read."""
    return " AND ".join(f"{one} = :seen_{one}" if one in item else f"attribute_not_exists({one})" for one in names)


def _values(item: Item, *names: str) -> Item:
    return {f":seen_{one}": item[one] for one in names if one in item}


def _refuse_held(resource: str) -> NoReturn:
    raise Conflict(f"{resource} is being ingested. Try again when it is completed.", code="document_in_use")
