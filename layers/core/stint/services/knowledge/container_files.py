"""The files of containers: those that code reads and writes, and copies of stored files.

A container's record lists its files, and each content is an object with a key of its own that is never written again.
So a change has three steps: write the new objects, replace the record if nobody has changed it meanwhile, and delete
the objects that it does not list any more. A process that dies leaves objects without a record, never a record without
its objects; they are deleted with the container.

  container of a response   stored
  named by the request      already; it must exist
  `auto`                    with the first run of code, or by another attempt of the same response

The task that deletes an expired container is sent before the container is stored. It waits until the container has
expired, so no other process has to look for expired ones.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, InvalidRequest, NotFound
from stint.domain.openai.code_interpreter import MAX_CONTAINER_BYTES, MAX_CONTAINER_FILES
from stint.domain.openai.containers import Container, ContainerExpiry
from stint.domain.openai.files import FileObject
from stint.domain.tasks import DeletionTask, SendTask
from stint.store.containers import ContainerStore, Source, StoredContainer, StoredContainerFile, with_files
from stint.store.failures import ConditionFailed
from stint.store.files import FileStore
from stint.store.parallel import map_concurrently
from stint.tools.code_interpreter.files import is_file_name

ATTEMPTS = 8
"""Maximum attempts to change a container that other runs change at the same time."""

NAMES = "it begins with a dot, has more than 200 bytes or characters that cannot be printed"
"""Faults of names of files."""

UNUSED_SECONDS = 86_400
"""Time for which an end user's entry of a container stays whose response runs no code."""


@dataclass(frozen=True, slots=True)
class ContainerFiles:
    """The files of a tenant's containers. Unknown, deleted and expired containers raise NotFound."""

    tenant: str
    store: ContainerStore
    files: FileStore
    send: SendTask

    async def check(self, container_id: str, file_ids: Sequence[str] | None, users: Sequence[str]) -> None:
        """Check a container before its response runs. `file_ids` of None name a container that exists.

        Raises:
            NotFound: there is no such container.
            InvalidRequest: a file does not exist, or they are too large.
        """
        if file_ids is None:
            await self.store.get(self.tenant, container_id)
            return
        await self.check_files(file_ids)
        await self.store.add_owners(self.tenant, container_id, users, int(time.time()) + UNUSED_SECONDS)

    async def open(
        self,
        container_id: str,
        earlier: Sequence[str],
        file_ids: Sequence[str] | None,
        files: Mapping[str, bytes],
        users: Sequence[str],
    ) -> str | None:
        """Return the container of a response that exists before its code runs; see `ContainerAccess`."""
        found = None if file_ids is None else await self.find_active(earlier)
        if found is None and not files:
            return None
        given = {**await self.load_files(file_ids or ()), **files}
        target = found or container_id
        if found is None and file_ids is not None:
            if len(given) > MAX_CONTAINER_FILES or sum(map(len, given.values())) > MAX_CONTAINER_BYTES:
                raise too_much(f"The container {target}", "input")
            await self.ensure(target, given, users)
        elif given:
            made = await self.put_files(target, given, "user")
            _, omitted = await self.change(target, made, (), users)
            if omitted:
                await self.store.delete_contents([file for file in made if file.name in omitted])
                raise too_much(f"The container {target}", "input")
        return target

    async def find_active(self, container_ids: Sequence[str]) -> str | None:
        """Return the first container that exists."""
        for container_id in container_ids:
            with suppress(NotFound):
                return (await self.store.get(self.tenant, container_id)).container.id
        return None

    async def read(self, container_id: str, file_ids: Sequence[str] | None) -> dict[str, bytes]:
        """Return the contents of a container's files by their names: copies of `file_ids` for one that is not stored.

        Raises:
            NotFound: it has expired, or it or a file was deleted.
        """
        try:
            stored = await self.store.get(self.tenant, container_id)
        except NotFound:
            if file_ids is None:
                raise
            return await self.load_files(file_ids)
        contents = await map_concurrently(self.store.read_file, stored.files)
        return {file.name: content for file, content in zip(stored.files, contents, strict=True)}

    async def write(
        self,
        container_id: str,
        given: Mapping[str, bytes],
        written: Mapping[str, bytes],
        removed: Sequence[str],
        /,
        *,
        new: bool,
        users: Sequence[str],
    ) -> tuple[dict[str, str], list[str]]:
        """Store the files that code wrote. Return their ids by their names, and the names of those over the limits.

        `given` are the files that it started with. `new`: the container is stored unless it is. It belongs to `users`,
        too.

        Raises:
            NotFound: the container has expired, or was deleted.
            Conflict: other runs changed it all the time.
        """
        if new:
            await self.ensure(container_id, given, users)
        made = await self.put_files(container_id, written, "assistant")
        kept, omitted = await self.change(container_id, made, removed, users)
        await self.store.delete_contents([file for file in made if file.name in omitted])
        return {file.name: file.id for file in kept if file in made}, omitted

    async def ensure(self, container_id: str, given: Mapping[str, bytes], users: Sequence[str]) -> None:
        """Store the container of a response with its given files, unless another run has done it."""
        try:
            await self.store.get(self.tenant, container_id)
            return
        except NotFound:
            files = await self.put_files(container_id, given, "user")
        try:
            await self.store_new(new_container(container_id, container_id), files, users)
        # Another run has stored it first, with the same files.
        except ConditionFailed:
            await self.store.delete_contents(files)

    async def change(
        self,
        container_id: str,
        written: Sequence[StoredContainerFile],
        removed: Sequence[str],
        users: Sequence[str] = (),
    ) -> tuple[tuple[StoredContainerFile, ...], list[str]]:
        """Replace, add and remove files of a container, which belongs to `users`, too.

        Return its files, and the names of those over the limits.
        """
        for _ in range(ATTEMPTS):
            stored = await self.store.get(self.tenant, container_id)
            files, omitted = merge_files(stored.files, written, removed)
            try:
                await self.store.save(self.tenant, with_files(stored, files), users)
            except ConditionFailed:
                continue
            # After the record, which does not name them any more.
            kept = {file.blob for file in files}
            await self.store.delete_contents([file for file in stored.files if file.blob not in kept])
            return tuple(files), omitted
        raise Conflict(f"Container {container_id} is being changed by other requests. Try again.")

    async def check_files(self, file_ids: Sequence[str], param: str | None = None) -> None:
        """Raise InvalidRequest unless stored files with these ids exist and fit into a container."""
        found = await self.find_files(file_ids)
        for file_id in file_ids:
            if file_id not in found:
                raise InvalidRequest(f"File {file_id!r} does not exist. Upload it with POST /v1/files.", param=param)
            if not is_file_name(found[file_id].filename):
                raise InvalidRequest(
                    f"The name of the file {file_id!r} cannot be used in a container: {NAMES}. Upload it under another "
                    "name.",
                    param=param,
                )
        if sum(found[file_id].bytes for file_id in set(file_ids)) > MAX_CONTAINER_BYTES:
            raise too_much("The container", param)

    async def find_files(self, file_ids: Sequence[str]) -> dict[str, FileObject]:
        return await self.files.get_many(self.tenant, list(dict.fromkeys(file_ids))) if file_ids else {}

    async def load_files(self, file_ids: Sequence[str]) -> dict[str, bytes]:
        """Return the contents of stored files by their names; of two with the same name the last one's."""

        async def load(file_id: str) -> tuple[str, bytes]:
            stored = await self.files.open(self.tenant, file_id)
            return stored.file.filename, b"".join([piece async for piece in self.files.read(stored)])

        return dict(await map_concurrently(load, list(dict.fromkeys(file_ids))))

    async def put_files(
        self, container_id: str, contents: Mapping[str, bytes], source: Source
    ) -> list[StoredContainerFile]:
        """Store the contents of files."""

        async def put(name: str) -> StoredContainerFile:
            return await self.store.put_file(self.tenant, container_id, name, contents[name], source=source)

        return await map_concurrently(put, list(contents))

    async def store_new(
        self, new: StoredContainer, files: Sequence[StoredContainerFile], users: Sequence[str]
    ) -> StoredContainer:
        """Store a new container of end users. The task that will delete it after its expiry is sent first."""
        # First, so that no container stays if this process dies.
        await self.send(deletion_of(self.tenant, new.container.id))
        stored = with_files(new, files)
        await self.store.save(self.tenant, stored, users)
        return stored


def deletion_of(tenant: str, container_id: str) -> DeletionTask:
    """Return the task that deletes a container that is marked or has expired, and waits for that."""
    return DeletionTask(kind="delete_container", tenant=tenant, container_id=container_id)


def new_container(container_id: str, name: str, expiry: ContainerExpiry | None = None) -> StoredContainer:
    now = int(time.time())
    made = Container(
        id=container_id, created_at=now, last_active_at=now, name=name, expires_after=expiry or ContainerExpiry()
    )
    return StoredContainer(made)


def merge_files(
    files: Sequence[StoredContainerFile], written: Sequence[StoredContainerFile], removed: Sequence[str]
) -> tuple[list[StoredContainerFile], list[str]]:
    """Return the files after a change, and the names of those that do not fit. Their old contents stay."""
    merged = {file.name: file for file in files if file.name not in removed}
    omitted = []
    for file in written:
        others = [other for other in merged.values() if other.name != file.name]
        if len(others) >= MAX_CONTAINER_FILES or sum(o.bytes for o in others) + file.bytes > MAX_CONTAINER_BYTES:
            omitted.append(file.name)
        else:
            merged[file.name] = file
    return list(merged.values()), omitted


def too_much(subject: str, param: str | None) -> InvalidRequest:
    return InvalidRequest(
        f"{subject} can have {MAX_CONTAINER_FILES} files of {MAX_CONTAINER_BYTES:,} bytes together. "
        "Remove files, or use smaller ones.",
        code="container_full",
        param=param,
    )
