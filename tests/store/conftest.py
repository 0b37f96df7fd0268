import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from infra.local.engine import Engine
from tests.store.dynamodb_proxy import DynamoDBProxy
from tests.store.tenant_records import list_blobs, note_partitions, read_records

from stint.aws.environment import AwsEnvironment
from stint.aws.s3_reader import S3Object, S3Reader
from stint.domain.ids import new_id
from stint.store.bucket import Bucket
from stint.store.clients import make_dynamodb, make_s3
from stint.store.items import Item, encode
from stint.store.keys import KeyLayout
from stint.store.store import Store
from stint.store.table import Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient as BotoClient
    from mypy_boto3_s3 import S3Client

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_DEFAULT_REGION": "us-east-1"}


class CountedReader(S3Reader):
    """Counts reads of objects."""

    def __init__(self, environment: AwsEnvironment, bucket: str, calls: Counter[str]) -> None:
        super().__init__(environment, bucket)
        self.calls = calls

    async def get(self, key: str, *, part: str = "", known: str = "") -> S3Object | None:
        self.calls["GetObject"] += 1
        return await super().get(key, part=part, known=known)


class Cloud:
    """A store whose calls pass a proxy, and clients of the engine itself.

    `calls` and `units` count the requests of the store, and the capacity units that they consumed. The calls of
    `dynamodb` are not counted.
    """

    def __init__(self, proxy: DynamoDBProxy, dynamodb: "BotoClient", s3: "S3Client", table: str, bucket: str) -> None:
        self.proxy, self.dynamodb, self.s3, self.bucket = proxy, dynamodb, s3, bucket
        self.table_name = table
        self.client = make_dynamodb()
        self.table = Table(self.client, table)
        environment = AwsEnvironment(dict(os.environ))
        self.objects = Bucket(bucket, lambda: s3, lambda: CountedReader(environment, bucket, self.calls))
        self.store = Store(self.client, table, self.objects)
        self.calls: Counter[str] = proxy.calls
        self.units: Counter[str] = proxy.units
        proxy.observers.append(note_partitions)
        s3.meta.events.register("before-call", self._count)

    def other_process(self, key_layout: KeyLayout = "spread") -> Store:
        """Return the store of a process that remembers nothing of this one."""
        return Store(self.client, self.table_name, self.objects, key_layout)

    def forget(self) -> None:
        self.proxy.forget()

    def write(self, items: Iterable[Item]) -> None:
        """Write many items at once without the store."""
        requests = [{"PutRequest": {"Item": encode(item)}} for item in items]
        for at in range(0, len(requests), 25):
            self.dynamodb.batch_write_item(RequestItems={self.table_name: requests[at : at + 25]})  # type: ignore[dict-item]  # the stubs want their own class

    def items(self, tenant: str) -> list[dict[str, Any]]:
        """Read all records of a tenant."""
        return read_records(self.dynamodb, self.table_name, tenant)

    def blobs(self, tenant: str) -> list[str]:
        return list_blobs(self.s3, self.bucket, tenant)

    def _count(self, model: Any, **_: Any) -> None:
        self.calls[model.name] += 1


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    """Serve moto, an implementation of DynamoDB that supports only one caller and does not count capacity."""
    from moto.server import ThreadedMotoServer  # when used: it is slow to import

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def mocked(moto_url: str, tenant: str) -> Iterator[Cloud]:
    """Yield a store in moto."""
    with connected({"AWS_ENDPOINT_URL": moto_url} | CREDENTIALS, f"table-{tenant}", f"bucket-{tenant}") as cloud:
        cloud.dynamodb.create_table(
            TableName=cloud.table_name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        )
        cloud.s3.create_bucket(Bucket=cloud.bucket)
        yield cloud


@pytest.fixture(scope="session")
def engine_cloud(engine: Engine) -> Iterator[Cloud]:
    yield from connect(engine)


@pytest.fixture
def cloud(engine_cloud: Cloud) -> Cloud:
    """Return a store in the local AWS engine, whose conditions are safe with threads and which counts capacity."""
    engine_cloud.forget()
    return engine_cloud


@pytest.fixture
def own_cloud(engine: Engine) -> Iterator[Cloud]:
    """Yield a store in the same engine with the test's own clients, which it may break."""
    yield from connect(engine)


def connect(engine: Engine) -> Iterator[Cloud]:
    with connected(engine.environment(), engine.outputs["TableName"], engine.outputs["BucketName"]) as cloud:
        yield cloud


@contextmanager
def connected(environment: Mapping[str, str], table: str, bucket: str) -> Iterator[Cloud]:
    """Create clients of an endpoint, and yield a store after its environment is removed again."""
    endpoint = environment.get("AWS_ENDPOINT_URL_DYNAMODB") or environment["AWS_ENDPOINT_URL"]
    with DynamoDBProxy(endpoint) as proxy, pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        dynamodb, s3 = boto3.client("dynamodb"), make_s3()
        for name, value in proxy.environment().items():
            patch.setenv(name, value)
        cloud = Cloud(proxy, dynamodb, s3, table, bucket)
        patch.undo()
        yield cloud
        dynamodb.close()
        s3.close()


@pytest.fixture
def store(cloud: Cloud) -> Store:
    return cloud.store


@pytest.fixture
def tenant() -> str:
    """Return a new tenant, for which the shared engine has no data yet."""
    return f"t{new_id()[-12:]}"
