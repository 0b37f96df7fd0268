"""Documents of vector stores in the table: one record each. Their chunks are in the index of their store.

    state          changes to
    in progress    completed or failed by its lease's holder; failed by a reader, if its worker is dead; cancelled
    completed      in progress, if it is added again with other settings: its chunks are found until the new ones are
    failed         in progress, if it is added again
    cancelled      in progress, if it is added again
    deleted        nothing; its record is removed after its chunks

Documents are added and marked as deleted in a transaction with their store's record, which must exist. So no document
is added to a store after its deletion was announced, and the usage in the store's record is removed in the moment in
which it changes. Workers change only the document, under its lease (`stint.store.document_leases`).
"""

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress

from stint.dataclasses import replace
from stint.domain.errors import NotFound
from stint.domain.vector_stores import DocumentSettings, LastError
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.lease import settle
from stint.store.records import delete_partition, is_live, mark_deleted
from stint.store.stored_documents import StoredDocument, to_document
from stint.store.table import Table
from stint.store.transactions import MAX_WRITES, Put, TransactionCancelled, Transactions, Update
from stint.store.vector_stores import LIVE, changed

OPEN = f"{LIVE} AND doc_status = :in_progress"
"""The condition that a document is to be ingested."""

IN_PROGRESS = {":in_progress": "in_progress"}
ENDED: Item = dict.fromkeys(("last_error", "requeues", "progress", "lease_id", "lease_until", "lease_seconds"))
"""Attributes of an ingestion that a new one replaces. Its writer loses the lease."""


class VectorStoreDocuments:
    """The documents of vector stores. A marked document does not exist for readers."""

    def __init__(self, table: Table, transactions: Transactions) -> None:
        self._table = table
        self._transactions = transactions

    async def add(
        self,
        tenant: str,
        store_id: str,
        documents: Mapping[str, DocumentSettings],
        batch_id: str | None = None,
        batch: Item | None = None,
        owners: Item | None = None,
    ) -> dict[str, StoredDocument]:
        """Add new documents to be ingested, 98 per transaction, and at last the record of their batch, if it is passed.

        `owners` is what `DocumentOwners.add` returned. Two units for each small record, and two for the store.

        Raises:
            NotFound: the store does not exist.
            TransactionCancelled: one of them exists already. Those of earlier transactions are added.
        """
        now = int(time.time())
        shared: Item = {"doc_status": "in_progress", "created_at": now, "queued_at": now} | (owners or {})
        if batch_id is not None:
            shared["batch_id"] = batch_id
        items = {
            key: keys.vector_store_document(tenant, store_id, key)._asdict()
            | shared
            | {"settings": settings.model_dump_json()}
            for key, settings in documents.items()
        }
        writes = [Put(item) for item in items.values()]
        # Two places of each transaction are for the store and the batch. The batch comes last, so that one which is
        # stored has all its documents.
        for at in range(0, len(writes), MAX_WRITES - 2) or [0]:
            last = [Put(batch)] if batch is not None and at + MAX_WRITES - 2 >= len(writes) else []
            await self._change(tenant, store_id, [*writes[at : at + MAX_WRITES - 2], *last])
        return {key: to_document(item) for key, item in items.items()}

    async def replace(
        self,
        tenant: str,
        store_id: str,
        found: StoredDocument,
        settings: DocumentSettings,
        batch_id: str | None = None,
    ) -> StoredDocument:
        """Ingest a document again with other settings. Its chunks are found until the new ones are.

        Raises NotFound if the store or the document does not exist, or is replaced by another request.
        """
        now = int(time.time())
        assign: Item = {"doc_status": "in_progress", "settings": settings.model_dump_json(), "queued_at": now}
        again = Update(
            keys.vector_store_document(tenant, store_id, found.key),
            assign | ENDED | {"batch_id": batch_id},
            # As it was read: of two requests that add it with different settings, one is refused.
            f"{LIVE} AND settings = :old AND doc_status = :old_status",
            {":old": found.settings.model_dump_json(), ":old_status": found.status},
        )
        await self._change(tenant, store_id, [again])
        return replace(
            found, status="in_progress", settings=settings, last_error=None, queued_at=now, batch_id=batch_id
        )

    async def set_batch(self, tenant: str, store_id: str, document: str, batch_id: str) -> None:
        """Count a document that the store has already in another batch."""
        key = keys.vector_store_document(tenant, store_id, document)
        await self._table.update(key, {"batch_id": batch_id}, LIVE)

    async def mark_deleted(self, tenant: str, store_id: str, document: str, *, by_user: bool = True) -> None:
        """Hide a document from all reads at once. It may be repeated. Raises NotFound if it does not exist."""
        key = keys.vector_store_document(tenant, store_id, document)
        mark = Update(key, {"deleted_at": int(time.time())}, "attribute_exists(pk)")
        try:
            await self._change(tenant, store_id, [mark], by_user=by_user)
        except TransactionCancelled:
            raise NotFound("File", document) from None

    async def _change(
        self, tenant: str, store_id: str, writes: Sequence[Put | Update], *, by_user: bool = True
    ) -> None:
        """Write records of a store that exists, and forget its usage."""
        store = Update(keys.vector_store(tenant, store_id), changed(by_user=by_user), LIVE)
        try:
            await self._transactions.write([*writes, store])
        except TransactionCancelled as cancelled:
            if cancelled.place == len(writes):
                raise NotFound("Vector store", store_id) from None
            raise

    async def get(self, tenant: str, store_id: str, document: str) -> StoredDocument:
        found = await self.find(tenant, store_id, [document])
        if document not in found:
            raise NotFound("File", document)
        return found[document]

    async def find(self, tenant: str, store_id: str, documents: Sequence[str]) -> dict[str, StoredDocument]:
        """Read documents. Those that do not exist are omitted."""
        found = await self.find_all(tenant, [(store_id, one) for one in documents])
        return {document: each for (_, document), each in found.items() if not each.deleted}

    async def find_all(
        self, tenant: str, documents: Sequence[tuple[str, str]], stores: Sequence[str] = ()
    ) -> dict[tuple[str, str], StoredDocument]:
        """Read documents of several stores in one call, also marked ones.

        Raises NotFound if one of `stores` does not exist, or has been emptied.
        """
        wanted = {
            keys.vector_store_document(tenant, store_id, one): (store_id, one)
            for store_id, one in dict.fromkeys(documents)
        }
        checked = {keys.vector_store(tenant, one): one for one in stores}
        found = await self._table.get_many([*wanted, *checked])
        for key, store_id in checked.items():
            if not is_live(item := found.get(key)) or "emptied_at" in item:
                raise NotFound("Vector store", store_id)
        # Each read may find that a lease lapses, so that its reader sends the task of a dead worker again.
        settled = {key: await self._settle(item) for key, item in found.items() if key in wanted}
        return {wanted[key]: document for key, document in settled.items() if document is not None}

    async def get_marked(self, tenant: str, store_id: str, document: str) -> StoredDocument | None:
        """Read a document, also a marked one; None if there is none."""
        return await self._settle(await self._table.get(keys.vector_store_document(tenant, store_id, document)))

    async def read(
        self, tenant: str, store_id: str, *, after: str | None = None, newest_first: bool = False
    ) -> AsyncGenerator[StoredDocument, None]:
        """Read the documents of a store by key, also marked ones. `after` is a key in the requested order."""
        start = None if after is None else keys.vector_store_document(tenant, store_id, after).sk
        pk = keys.vector_store_records(tenant, store_id)
        async for item in self._table.query(pk, prefix=keys.DOCUMENTS, after=start, newest_first=newest_first):
            if (document := await self._settle(item)) is not None:
                yield document

    async def _settle(self, item: Item | None) -> StoredDocument | None:
        """Return a document; None if there is none. The lease of a dead process lapses."""
        settled = await settle(self._table, item, "lease_id", "lease_until")
        return None if settled is None else to_document(settled)

    async def cancel(self, tenant: str, store_id: str, document: str) -> bool:
        """Cancel the ingestion of a document, and return whether it was in progress."""
        key = keys.vector_store_document(tenant, store_id, document)
        try:
            await self._table.update(key, {"doc_status": "cancelled"}, OPEN, IN_PROGRESS)
        except ConditionFailed:
            return False
        return True

    async def fail(self, tenant: str, store_id: str, found: StoredDocument, error: LastError) -> None:
        """Mark an ingestion that no worker runs as failed.

        Do nothing if it has ended, its lease is held, or the document is not what was `found`.
        """
        key, now = keys.vector_store_document(tenant, store_id, found.key), round(time.time() * 1000)
        # Whoever has added it again since it was read has sent a task, which must not find it failed.
        free = "(attribute_not_exists(lease_until) OR lease_until <= :now) AND settings = :read"
        failed = {"doc_status": "failed", "last_error": error.model_dump_json()}
        read = {":now": now, ":read": found.settings.model_dump_json()}
        try:
            await self._table.update(key, failed, f"{OPEN} AND {free}", IN_PROGRESS | read)
        except ConditionFailed:
            return

    async def claim_requeue(self, tenant: str, store_id: str, found: StoredDocument) -> bool:
        """Return whether the caller must send the task of a document again. One of several callers must."""
        unfinished = f"{LIVE} AND (doc_status = :in_progress OR attribute_exists(unindexed))"
        key = keys.vector_store_document(tenant, store_id, found.key)
        assign = {"queued_at": int(time.time()), "requeues": found.requeues + 1}
        try:
            seen = IN_PROGRESS | {":seen": found.queued_at}
            # By the time that was read: one of several readers changes it, and sends the task.
            await self._table.update(key, assign, f"{unfinished} AND queued_at = :seen", seen)
        except ConditionFailed:
            return False
        return True

    async def claim_deletion(self, tenant: str, store_id: str, found: StoredDocument) -> None:
        """Note that the deletion of a marked document was sent again, unless another reader has."""
        key = keys.vector_store_document(tenant, store_id, found.key)
        with suppress(ConditionFailed):
            seen = {":seen": found.deleted_at}
            await self._table.update(key, {"deleted_at": int(time.time())}, "deleted_at = :seen", seen)

    async def end(self, tenant: str, store_id: str, error: LastError, document: str) -> StoredDocument | None:
        """Let a document fail if it is in progress, and return it; None if it does not exist.

        Its writer keeps the lease, and cannot complete the document.
        """
        key = keys.vector_store_document(tenant, store_id, document)
        failed = {"doc_status": "failed", "last_error": error.model_dump_json()}
        try:
            item: Item | None = await self._table.update(key, failed, OPEN, IN_PROGRESS)
        except ConditionFailed as refused:
            item = refused.item
        return await self._settle(item)

    async def mark_in_deleted_store(self, tenant: str, store_id: str, document: str) -> StoredDocument | None:
        """Hide a document of a store that is being deleted, and return it; None if it does not exist."""
        key = keys.vector_store_document(tenant, store_id, document)
        return await self._settle(await mark_deleted(self._table, key))

    async def mark_detached(self, tenant: str, store_id: str, document: str) -> StoredDocument | None:
        """Hide a document whose file is being deleted, and return it; None if it or its store does not exist."""
        with suppress(NotFound):
            await self.mark_deleted(tenant, store_id, document, by_user=False)
        found = await self.get_marked(tenant, store_id, document)
        return found if found is not None and found.deleted else None

    async def remove_all(self, tenant: str, store_id: str) -> AsyncGenerator[None, None]:
        """Delete the records of all documents and batches of a marked store, a batch per step."""
        async for _ in delete_partition(self._table, keys.vector_store_records(tenant, store_id)):
            yield

    async def remove(self, tenant: str, store_id: str, document: str) -> None:
        """Delete the record of a marked document, the last step of its deletion."""
        await self._table.delete(keys.vector_store_document(tenant, store_id, document))
