"""Processes that are killed at a chosen call to the table, the bucket or the index."""

from collections.abc import Sequence
from typing import Any

from tests.services.knowledge.list_index import ListIndex
from tests.store.conftest import Cloud

from stint.domain.filters import Attributes
from stint.retrieval.port import Entry, Hit, IndexQuery
from stint.store.bucket import Bucket
from stint.store.store import Store


class Killed(BaseException):
    """The process is dead. Whatever it still tries raises this, too."""


class Death:
    """Kills a process at a moment. Each call has two: before it takes effect, and after it, with its answer lost."""

    def __init__(self, moment: int) -> None:
        self.moment = moment
        self.passed = 0

    def pass_moment(self) -> None:
        self.passed += 1
        if self.passed >= self.moment:
            raise Killed

    @property
    def reached(self) -> bool:
        return self.passed >= self.moment


class KillableClient:
    """A client of DynamoDB."""

    def __init__(self, client: Any, death: Death) -> None:
        self.client, self.death = client, death

    async def call(self, operation: str, request: Any, **options: Any) -> Any:
        self.death.pass_moment()
        answer = await self.client.call(operation, request, **options)
        self.death.pass_moment()
        return answer


class KillableReader:
    """A client of S3 that reads."""

    def __init__(self, objects: Bucket, death: Death) -> None:
        self.objects, self.death = objects, death

    async def get(self, key: str, **options: str) -> Any:
        self.death.pass_moment()
        found = await self.objects._reader.get(key, **options)
        self.death.pass_moment()
        return found


class KillableS3:
    """A client of S3."""

    def __init__(self, client: Any, death: Death) -> None:
        self.client, self.death = client, death

    def __getattr__(self, name: str) -> Any:
        def call(**request: Any) -> Any:
            self.death.pass_moment()
            answer = getattr(self.client, name)(**request)
            self.death.pass_moment()
            return answer

        return call


class KillableIndex:
    """A VectorIndex."""

    def __init__(self, index: ListIndex, death: Death) -> None:
        self.index, self.death = index, death

    async def create(self, index: str, dimension: int) -> None:
        self.death.pass_moment()
        await self.index.create(index, dimension)
        self.death.pass_moment()

    async def upsert(self, index: str, entries: Sequence[Entry]) -> None:
        self.death.pass_moment()
        await self.index.upsert(index, entries)
        self.death.pass_moment()

    async def update_attributes(self, index: str, keys: Sequence[str], attributes: Attributes) -> None:
        self.death.pass_moment()
        await self.index.update_attributes(index, keys, attributes)
        self.death.pass_moment()

    async def delete(self, index: str, keys: Sequence[str]) -> None:
        self.death.pass_moment()
        await self.index.delete(index, keys)
        self.death.pass_moment()

    async def get(self, index: str, keys: Sequence[str]) -> dict[str, Hit]:
        return await self.index.get(index, keys)

    async def query(self, index: str, query: IndexQuery) -> list[Hit]:
        return await self.index.query(index, query)

    async def drop(self, index: str) -> None:
        self.death.pass_moment()
        await self.index.drop(index)
        self.death.pass_moment()


def killable_store(cloud: Cloud, death: Death) -> Store:
    client: Any = KillableClient(cloud.client, death)
    return Store(client, cloud.table_name, killable_bucket(cloud, death))


def killable_bucket(cloud: Cloud, death: Death) -> Bucket:
    s3: Any = KillableS3(cloud.s3, death)
    reader: Any = KillableReader(cloud.objects, death)
    return Bucket(cloud.bucket, lambda: s3, lambda: reader)
