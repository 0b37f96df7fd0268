"""Objects that were put into the inbox of the bucket."""

import asyncio
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from stint.domain.errors import NotFound
from stint.domain.vector_stores import ObjectContent
from stint.store.failures import BlobMissing, translated

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

INBOX = "inbox/"


class Inbox:
    """Objects whose keys begin with `inbox/`. `connect` makes the client when first used."""

    def __init__(self, connect: "Callable[[], S3Client]", bucket: str) -> None:
        self._connect = connect
        self._bucket = bucket

    @cached_property
    def _client(self) -> "S3Client":
        return self._connect()

    async def read(self, content: ObjectContent) -> bytes:
        """Return the body of an object. Raises NotFound if it was deleted or replaced."""
        return await asyncio.to_thread(self._read, content)

    def _read(self, content: ObjectContent) -> bytes:
        try:
            with translated("bucket"):
                answer = self._client.get_object(Bucket=self._bucket, Key=content.key)
                if answer["ETag"].strip('"') != content.etag:
                    raise NotFound("Object", content.key)
                return answer["Body"].read()
        except BlobMissing as error:
            raise NotFound("Object", content.key) from error

    async def find(self, key: str) -> ObjectContent | None:
        """Return an object as it is now; None if there is none."""
        return await asyncio.to_thread(self._find, key)

    def _find(self, key: str) -> ObjectContent | None:
        from botocore.exceptions import ClientError  # noqa: PLC0415 - loaded with the client

        try:
            with translated("bucket"):
                try:
                    answer = self._client.head_object(Bucket=self._bucket, Key=key)
                except ClientError as error:
                    if error.response["ResponseMetadata"].get("HTTPStatusCode") == 404:
                        return None
                    raise
        except BlobMissing:
            return None
        return ObjectContent(key=key, etag=answer["ETag"].strip('"'), size=answer["ContentLength"])
