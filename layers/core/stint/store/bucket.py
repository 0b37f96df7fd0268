"""The bucket of a stack: reads by a client of our own, and everything else by botocore's.

botocore takes a third of a second to load, and many processes only read. So its client is made at its first use.
"""

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from stint.domain.errors import StintError
from stint.store.failures import object_errors

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

    from stint.aws.s3_reader import S3Object, S3Reader


class Bucket:
    """A bucket. `connect` and `connect_reader` make the clients when they are first used."""

    def __init__(self, name: str, connect: "Callable[[], S3Client]", connect_reader: "Callable[[], S3Reader]") -> None:
        self.name = name
        self._connect, self._connect_reader = connect, connect_reader
        self._lock = threading.Lock()
        self._made: S3Client | None = None

    @cached_property
    def _reader(self) -> "S3Reader":
        return self._connect_reader()

    @property
    def client(self) -> "S3Client":
        """Return botocore's client. Its calls wait, so they run in threads."""
        with self._lock:
            if self._made is None:
                self._made = self._connect()
            return self._made

    def delete_objects(self, keys: Sequence[str]) -> None:
        """Delete up to 1,000 objects. It waits. Raises StintError."""
        objects: list[ObjectIdentifierTypeDef] = [{"Key": key} for key in keys]
        answer = self.client.delete_objects(Bucket=self.name, Delete={"Objects": objects, "Quiet": True})
        if answer.get("Errors"):
            raise StintError(f"{len(answer['Errors'])} objects could not be deleted. Try again.")

    async def get(self, service: str, key: str, *, part: str = "", known: str = "") -> "S3Object | None":
        """Return an object, or None if its ETag is the known one. `part` is a range such as `bytes=0-9`.

        `service` is the name in messages. Raises BlobMissing, StoreUnavailable and StintError.
        """
        with object_errors(service):
            return await self._reader.get(key, part=part, known=known)
