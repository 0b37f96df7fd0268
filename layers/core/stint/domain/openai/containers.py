"""Containers: the files that the code of responses reads and writes."""

from typing import Annotated, Literal

from pydantic import Field

from stint.domain.expiry import MAX_SECONDS
from stint.domain.fields import Nothing, Omitted, UnsupportedField
from stint.domain.openai.code_interpreter import ContainerFileIds, MemoryLimit, NoNetwork
from stint.domain.openai.lists import ListObject
from stint.domain.schema import Request, Schema

CONTAINER_MINUTES = 20
"""Minutes after the last activity at which a container expires, also the maximum."""


class ContainerExpiry(Request):
    """The time from the last activity in a container to its expiry."""

    anchor: Literal["last_active_at"] = "last_active_at"
    minutes: Annotated[int, Field(ge=1, le=CONTAINER_MINUTES)] = CONTAINER_MINUTES


class CreateContainer(Request):
    name: Annotated[str, Field(min_length=1, max_length=256)]
    file_ids: Omitted[ContainerFileIds] = None
    expires_after: Omitted[ContainerExpiry] = None
    memory_limit: MemoryLimit = None
    network_policy: Annotated[Omitted[NoNetwork], Field(exclude=True)] = None
    skills: Annotated[Nothing, UnsupportedField("Skills are not supported. Remove them")] = None


class AddContainerFile(Request):
    """A stored file to copy into a container."""

    file_id: Annotated[str, Field(min_length=1, max_length=200)]


class Container(Schema):
    """A container as the API returns it and the store keeps it. Times are in seconds since 1970."""

    id: str
    object: Literal["container"] = "container"
    created_at: int
    last_active_at: int
    status: Literal["running"] = "running"
    name: str
    expires_after: ContainerExpiry = Field(default_factory=ContainerExpiry)

    @property
    def expires_at(self) -> int:
        last = self.created_at + MAX_SECONDS  # the bucket keeps its files for a day longer
        return min(self.last_active_at + 60 * self.expires_after.minutes, last)


class ContainerFile(Schema):
    """A file of a container. `source` is who wrote it: `user` or `assistant`."""

    id: str
    object: Literal["container.file"] = "container.file"
    container_id: str
    created_at: int
    bytes: int
    path: str
    source: Literal["user", "assistant"]


class ContainerList(ListObject[Container]):
    """A page of containers."""


class ContainerFileList(ListObject[ContainerFile]):
    """The files of a container."""


class DeletedContainer(Schema):
    id: str
    object: Literal["container.deleted"] = "container.deleted"
    deleted: Literal[True] = True


class DeletedContainerFile(Schema):
    id: str
    object: Literal["container.file.deleted"] = "container.file.deleted"
    deleted: Literal[True] = True
