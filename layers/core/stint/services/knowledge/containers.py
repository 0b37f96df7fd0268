"""Containers: create, list, read, delete.

Creations may be repeated with the same idempotency key. The ids of what they create are derived from the attempt
(`create_once`), so a repetition reads what the first request has stored, or stores it if that one died before. How
files are changed is in `container_files.py`.
"""

from functools import partial

from stint.caller import create_once, end_users_of
from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, NotFound
from stint.domain.ids import name_of
from stint.domain.openai.code_interpreter import MAX_CONTAINER_BYTES
from stint.domain.openai.containers import (
    AddContainerFile,
    Container,
    ContainerFile,
    ContainerFileList,
    ContainerList,
    CreateContainer,
    DeletedContainer,
    DeletedContainerFile,
)
from stint.services.deletions import Deletions
from stint.services.knowledge.container_files import NAMES, ContainerFiles, deletion_of, new_container, too_much
from stint.store.containers import ContainerStore, StoredContainer, StoredContainerFile
from stint.store.files import Order
from stint.tools.code_interpreter.files import is_file_name


@dataclass(frozen=True, slots=True)
class OpenContainerFile:
    """A file of a container with its content."""

    file: ContainerFile
    content: bytes


@dataclass(frozen=True, slots=True)
class Containers:
    """The containers of a tenant. Unknown, deleted and expired ids raise NotFound."""

    tenant: str
    store: ContainerStore
    contents: ContainerFiles
    deletions: Deletions

    async def create(self, request: CreateContainer) -> Container:
        """Store a container with copies of files. A repeated request with the same key returns the first one's.

        Raises:
            InvalidRequest: a file does not exist, or they are too large.
        """
        return await create_once(
            lambda object_id: self.get(name_of("cntr", object_id)),
            lambda object_id: self.create_as(name_of("cntr", object_id), request),
        )

    async def create_as(self, container_id: str, request: CreateContainer) -> Container:
        """Store a container under a new id."""
        await self.contents.check_files(request.file_ids or ())
        new = new_container(container_id, request.name, request.expires_after)
        given = await self.contents.load_files(request.file_ids or ())
        files = await self.contents.put_files(container_id, given, "user")
        return (await self.contents.store_new(new, files, end_users_of())).container

    async def get(self, container_id: str) -> Container:
        return (await self.store.get(self.tenant, container_id)).container

    async def list(self, after: str | None, limit: int, order: Order, name: str | None) -> ContainerList:
        """List containers by creation, starting after `after`. Raises NotFound if that does not exist."""
        page = await self.store.list(self.tenant, after=after, limit=limit, newest_first=order == "desc", name=name)
        return ContainerList.of(page.data, page.has_more)

    async def list_files(self, container_id: str, after: str | None, limit: int, order: Order) -> ContainerFileList:
        """List the files of a container by creation, starting after `after`. Raises NotFound if that does not exist."""
        stored = await self.store.get(self.tenant, container_id)
        files = sorted(stored.files, key=lambda file: file.id, reverse=order == "desc")
        if after is not None:
            files = files[files.index(find_file(stored, after)) + 1 :]
        return ContainerFileList.of([file.describe(container_id) for file in files[:limit]], len(files) > limit)

    async def get_file(self, container_id: str, file_id: str) -> ContainerFile:
        stored = await self.store.get(self.tenant, container_id)
        return find_file(stored, file_id).describe(container_id)

    async def open_file(self, container_id: str, file_id: str) -> OpenContainerFile:
        """Return a file with its content."""
        file = find_file(await self.store.get(self.tenant, container_id), file_id)
        return OpenContainerFile(file.describe(container_id), await self.store.read_file(file))

    async def add_file(self, container_id: str, request: AddContainerFile) -> ContainerFile:
        """Copy a stored file into a container, in the place of one with the same name.

        Raises:
            InvalidRequest: the file does not exist, or the container would have too many or too large files.
        """
        await self.store.get(self.tenant, container_id)
        await self.contents.check_files([request.file_id], "file_id")
        contents = await self.contents.load_files([request.file_id])
        return await self.put_file_once(container_id, contents, "file_id")

    async def upload_file(self, container_id: str, name: str, content: bytes) -> ContainerFile:
        """Store a file in a container, in the place of one with the same name.

        Raises:
            InvalidRequest: its name cannot be used, or the container would have too many or too large files.
        """
        if not is_file_name(name):
            raise InvalidRequest(f"The name {name[:100]!r} cannot be used in a container: {NAMES}.", param="file")
        await self.store.get(self.tenant, container_id)
        return await self.put_file_once(container_id, {name: content}, "file")

    async def put_file_once(self, container_id: str, contents: dict[str, bytes], param: str) -> ContainerFile:
        """Store a file of the user, or return that of the first request with the same key."""
        return await create_once(
            lambda object_id: self.get_file(container_id, name_of("cfile", object_id)),
            lambda object_id: self.put_file(container_id, name_of("cfile", object_id), contents, param),
        )

    async def put_file(self, container_id: str, file_id: str, contents: dict[str, bytes], param: str) -> ContainerFile:
        """Store a file of the user under a new id. Raises InvalidRequest if it does not fit."""
        if sum(map(len, contents.values())) > MAX_CONTAINER_BYTES:
            raise too_much(f"The container {container_id}", param)
        [made] = await self.contents.put_files(container_id, contents, "user")
        added = made.model_copy(update={"id": file_id})
        _, omitted = await self.contents.change(container_id, [added], (), end_users_of())
        # The content was written before the limits of the container's current files were known.
        if omitted:
            await self.store.delete_contents([added])
            raise too_much(f"The container {container_id}", param)
        return added.describe(container_id)

    async def delete_file(self, container_id: str, file_id: str) -> DeletedContainerFile:
        """Delete a file of a container."""
        file = find_file(await self.store.get(self.tenant, container_id), file_id)
        await self.contents.change(container_id, (), [file.name])
        return DeletedContainerFile(id=file_id)

    async def delete(self, container_id: str) -> DeletedContainer:
        """Delete a container with its files. When this returns, no reader can find it."""
        mark = partial(self.store.mark_deleted, self.tenant, container_id)
        await self.deletions.start_deletion(deletion_of(self.tenant, container_id), mark)
        return DeletedContainer(id=container_id)


def find_file(stored: StoredContainer, file_id: str) -> StoredContainerFile:
    """Return the file of a container with an id. Raises NotFound."""
    found = next((file for file in stored.files if file.id == file_id), None)
    if found is None:
        raise NotFound("Container file", file_id)
    return found
