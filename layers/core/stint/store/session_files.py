"""The files of a session for its code: objects of the bucket, and a list of them that the session's record names.

The list is an object, too, and is never changed: a run writes new objects and a new list, and then lets the record name
it, so a reader sees the files of one moment. Afterwards the objects that the new list does not have are deleted. A
reader that still has the old list then finds nothing, and reads the record again.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import TypeAlias

from pydantic import ConfigDict, TypeAdapter

from stint.domain.errors import Interrupted, NotFound, StoreUnavailable
from stint.domain.schema import Schema
from stint.store import keys
from stint.store.blobs import Blobs
from stint.store.failures import BlobMissing
from stint.store.parallel import map_concurrently
from stint.store.session_leases import SessionLease
from stint.store.sessions import SessionPlace

FilesPlace: TypeAlias = SessionLease | SessionPlace
"""The session whose files they are, and what its record names as their list."""


class StoredSessionFile(Schema):
    """A file, and the object that has its content. Its key ends with `blob`."""

    name: str
    bytes: int
    sha256: str
    blob: str


FILES: TypeAdapter[list[StoredSessionFile]] = TypeAdapter(list[StoredSessionFile], config=ConfigDict(defer_build=True))


class SessionFiles:
    """The files of sessions. They are deleted with their session. All methods raise StoreUnavailable."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def list(self, place: FilesPlace) -> list[StoredSessionFile]:
        """Return the files of a session, the oldest first. Raises NotFound if it was deleted."""
        if place.files is None:
            return []
        blob, size, digest = place.files.split(":")
        return FILES.validate_json(await self._get(place, blob, int(size), digest))

    async def read(self, lease: SessionLease) -> dict[str, bytes]:
        """Return the contents of a session's files by their names. Raises NotFound if it was deleted."""
        files = await self.list(lease)
        contents = await map_concurrently(lambda file: self._get(lease, file.blob, file.bytes, file.sha256), files)
        return {file.name: content for file, content in zip(files, contents, strict=True)}

    async def copy(self, source: SessionPlace, target: SessionPlace) -> str | None:
        """Copy the files of a session, and return what the record of the other one is to name; None without files.

        The other session has no record yet. Raises NotFound if the first one was deleted.
        """
        if source.files is None:
            return None
        files = await self.list(source)
        contents = await map_concurrently(lambda file: self._get(source, file.blob, file.bytes, file.sha256), files)
        written = await map_concurrently(lambda content: self._put(target, content), contents)
        copies = [file.model_copy(update={"blob": blob}) for file, blob in zip(files, written, strict=True)]
        return await self._put_list(target, copies)

    async def replace(
        self,
        lease: SessionLease,
        kept: Sequence[StoredSessionFile],
        added: Mapping[str, bytes],
        dropped: Sequence[StoredSessionFile] = (),
    ) -> None:
        """Store new files after those that are kept, and delete the contents of those that are dropped.

        Raises:
            Interrupted: the session was deleted, or taken over by another request. Nothing is left of the new files.
        """
        before = lease.files
        written = await map_concurrently(lambda content: self._put(lease, content), list(added.values()))
        files = [*kept]
        files += [
            StoredSessionFile(name=name, bytes=len(content), sha256=sha256(content).hexdigest(), blob=blob)
            for (name, content), blob in zip(added.items(), written, strict=True)
        ]
        # Contents, then the list, then its name in the session's record: a reader finds all files of a list or an older
        # list. The record is written under the lease, so a process that has lost the session changes nothing.
        listed = await self._put_list(lease, files)
        written.append(listed.split(":")[0])
        try:
            await lease.set_files(listed)
        except Interrupted:
            await self._delete(lease, written)
            raise
        with suppress(StoreUnavailable):  # they are deleted with the session, too
            await self._delete(lease, [*(file.blob for file in dropped), *([before.split(":")[0]] if before else [])])

    async def _delete(self, lease: SessionLease, blobs: Sequence[str]) -> None:
        await map_concurrently(self._blobs.delete, [prefix_of(lease) + blob for blob in blobs])

    async def _put_list(self, place: FilesPlace, files: Sequence[StoredSessionFile]) -> str:
        """Store a list of files, and return what the session's record names: its object, bytes and SHA-256."""
        listed = FILES.dump_json([*files])
        return f"{await self._put(place, listed)}:{len(listed)}:{sha256(listed).hexdigest()}"

    async def _put(self, place: FilesPlace, body: bytes) -> str:
        return (await self._blobs.put(prefix_of(place), body)).removeprefix(prefix_of(place))

    async def _get(self, place: FilesPlace, blob: str, size: int, digest: str) -> bytes:
        try:
            return await self._blobs.get(prefix_of(place) + blob, size, bytes.fromhex(digest))
        except BlobMissing as error:
            raise NotFound("Session", place.session_id) from error


def prefix_of(place: FilesPlace) -> str:
    """Return the prefix of the objects of a session's files."""
    ephemeral = place.expires_at is not None
    return keys.session_files(place.tenant, place.agent_id, place.session_id, expires=ephemeral)
