"""Uploads in the table: a record, and one for each part. The contents of the parts are objects, which stay there.

The record of the file that an upload becomes names those objects, so that completing copies nothing.
"""

import time
from collections.abc import Sequence
from hashlib import sha256

from stint.dataclasses import dataclass, field
from stint.domain.errors import NotFound
from stint.domain.openai.files import FileObject
from stint.domain.openai.uploads import CreateUpload, Upload, UploadPart, UploadStatus
from stint.store import keys
from stint.store.blobs import Blobs
from stint.store.failures import ConditionFailed
from stint.store.files import StoredPart, pack_parts, unpack_parts
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.owners import add_entries, add_owners
from stint.store.parallel import map_concurrently
from stint.store.records import delete_partition, is_live
from stint.store.table import Table
from stint.store.transactions import Put, Transactions, Update

KEPT_SECONDS = 86_400
"""Time after its expiry for which the record of an upload stays, so that a repeated request is answered."""

PENDING = "phase = :pending AND expiry > :now"


@dataclass(frozen=True, slots=True)
class StoredUpload:
    """An upload as it is stored: its request, its status at present, its file and all of its parts, by their ids.

    `owners` has the hashes of its end users, to whom the file will belong.
    """

    upload_id: str
    request: CreateUpload
    created_at: int
    expires_at: int
    status: UploadStatus = "pending"
    file_id: str | None = None
    parts: dict[str, StoredPart] = field(default_factory=dict)
    owners: str = ""

    def describe(self, file: FileObject | None = None) -> Upload:
        """Return the upload as the API does."""
        return Upload(
            id=self.upload_id,
            bytes=self.request.bytes,
            created_at=self.created_at,
            expires_at=self.expires_at,
            filename=self.request.filename,
            purpose=self.request.purpose,
            status=self.status,
            file=file,
        )


class UploadStore:
    """Uploads. One that does not exist raises NotFound."""

    def __init__(self, table: Table, transactions: Transactions, blobs: Blobs) -> None:
        self._table = table
        self._transactions = transactions
        self._blobs = blobs

    async def create(self, tenant: str, upload: StoredUpload, users: Sequence[str] = ()) -> None:
        """Store an upload under its new id."""
        end = upload.expires_at + KEPT_SECONDS
        owned = await add_owners(self._table, tenant, users, "upload", upload.upload_id, expires_at=end)
        await self._table.put(
            {
                **keys.upload(tenant, upload.upload_id)._asdict(),
                "doc": upload.request.to_json().decode(),
                "created_at": upload.created_at,
                "expiry": upload.expires_at,
                "phase": upload.status,
                "expires_at": end,
                **owned,
            }
        )

    async def get(self, tenant: str, upload_id: str) -> StoredUpload:
        """Read an upload without its parts."""
        return _upload(upload_id, await self._table.get(keys.upload(tenant, upload_id)), {})

    async def get_with_parts(self, tenant: str, upload_id: str) -> StoredUpload:
        key = keys.upload(tenant, upload_id)
        own: Item | None = None
        parts: dict[str, StoredPart] = {}
        async for item in self._table.query(key.pk):
            if item["sk"] == key.sk:
                own = item
            else:
                parts[keys.part_of(item["sk"])] = StoredPart(item["blob"], item["length"], item["sha256"])
        return _upload(upload_id, own, parts)

    async def add_part(self, tenant: str, upload: StoredUpload, part: UploadPart, content: bytes) -> bool:
        """Store a part, and return whether the upload was still pending after that. If not, nothing is left.

        The upload is read after the write, so that whoever ends it later finds the part.
        """
        key = keys.upload_part(tenant, upload.upload_id, part.id)
        blob = await self._blobs.put(_prefix(tenant, upload), content)
        await self._table.put(
            {
                **key._asdict(),
                "blob": blob,
                "length": len(content),
                "sha256": sha256(content).digest(),
                "expires_at": upload.expires_at + KEPT_SECONDS,
            }
        )
        try:
            if (await self.get(tenant, upload.upload_id)).status == "pending":
                return True
        except NotFound:
            await self._delete_part(key, blob)
            raise
        await self._delete_part(key, blob)
        return False

    async def _delete_part(self, key: Key, blob: str) -> None:
        await self._table.delete(key)
        await self._blobs.delete(blob)

    async def complete(self, tenant: str, upload: StoredUpload, file: FileObject, parts: Sequence[StoredPart]) -> bool:
        """Make a file of the parts in one transaction, and return whether the upload was still pending."""
        owned = await add_entries(self._table, tenant, upload.owners, "file", file.id, expires_at=file.expires_at)
        item: Item = {**keys.file(tenant, file.id)._asdict(), **owned, "doc": file.to_json().decode()}
        item |= {"upload": upload.upload_id, "manifest": pack_parts(parts)}
        if file.expires_at is not None:
            item["expires_at"] = file.expires_at
        return await self._end(tenant, upload.upload_id, {"phase": "completed", "file_id": file.id}, item)

    async def cancel(self, tenant: str, upload_id: str) -> bool:
        """Cancel an upload, and return whether it was still pending."""
        return await self._end(tenant, upload_id, {"phase": "cancelled"})

    async def _end(self, tenant: str, upload_id: str, assign: Item, file: Item | None = None) -> bool:
        key, values = keys.upload(tenant, upload_id), {":pending": "pending", ":now": int(time.time())}
        try:
            if file is None:
                await self._table.update(key, assign, PENDING, values)
            else:
                await self._transactions.write([Update(key, assign, PENDING, values), Put(file)])
        except ConditionFailed:
            return False
        return True

    async def erase(self, tenant: str, upload_id: str) -> None:
        """Delete an upload with its record, unless it has become a file, whose deletion does this."""
        await self.cancel(tenant, upload_id)
        key = keys.upload(tenant, upload_id)
        item = await self._table.get(key)
        if item is None or item["phase"] == "completed":
            return
        for expires in (False, True):
            async for _ in self._blobs.delete_prefix(keys.upload_blobs(tenant, upload_id, expires=expires)):
                pass
        async for _ in delete_partition(self._table, key.pk, spare=[key.sk]):
            pass
        await self._table.delete(key)

    async def read_part(self, part: StoredPart) -> bytes:
        return await self._blobs.get(part.blob, part.length, part.digest)

    async def kept_blobs(self, tenant: str, upload: StoredUpload) -> frozenset[str]:
        """Return the objects that the file of an upload has."""
        if upload.file_id is None:
            return frozenset()
        item = await self._table.get(keys.file(tenant, upload.file_id))
        packed = item["manifest"] if item else b""
        return frozenset(part.blob for part in unpack_parts(_prefix(tenant, upload), packed))

    async def delete_parts(self, tenant: str, upload: StoredUpload, kept: frozenset[str] = frozenset()) -> None:
        """Delete the parts of an ended upload, and their objects unless they are `kept`. It may be repeated."""
        doomed = [(part_id, part) for part_id, part in upload.parts.items()]
        await map_concurrently(self._blobs.delete, [part.blob for _, part in doomed if part.blob not in kept])
        await self._table.delete_many([keys.upload_part(tenant, upload.upload_id, part_id) for part_id, _ in doomed])


def _prefix(tenant: str, upload: StoredUpload) -> str:
    return keys.upload_blobs(tenant, upload.upload_id, expires=upload.request.expires_after is not None)


def _upload(upload_id: str, item: Item | None, parts: dict[str, StoredPart]) -> StoredUpload:
    if not is_live(item):
        raise NotFound("Upload", upload_id)
    expired = item["phase"] == "pending" and item["expiry"] <= time.time()
    return StoredUpload(
        upload_id,
        CreateUpload.model_validate_json(item["doc"]),
        item["created_at"],
        item["expiry"],
        status="expired" if expired else item["phase"],
        file_id=item.get("file_id"),
        parts=parts,
        owners=item.get("end_users", ""),
    )
