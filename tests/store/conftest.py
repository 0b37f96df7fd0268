from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ConnectionClosedError
from infra.local.engine import Engine
from moto import mock_aws
from tests.store.tenant_records import list_blobs, note_partitions, read_records

from stint.domain.ids import new_id
from stint.store.clients import make_dynamodb, make_s3
from stint.store.items import Item, encode
from stint.store.store import Store

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client


class Cloud:
    """A store and its clients, with counters of their requests and consumed capacity units."""

    def __init__(self, dynamodb: "DynamoDBClient", s3: "S3Client", table: str, bucket: str) -> None:
        self.dynamodb, self.s3, self.table, self.bucket = dynamodb, s3, table, bucket
        self.store = Store(dynamodb, table, lambda: s3, bucket)
        self.calls: Counter[str] = Counter()
        self.units: Counter[str] = Counter()
        note_partitions(dynamodb)
        for client in (dynamodb, s3):
            client.meta.events.register("before-call", self._count)
        dynamodb.meta.events.register("before-parameter-build", self._ask_for_units)
        dynamodb.meta.events.register("after-call", self._charge)

    def forget(self) -> None:
        self.calls.clear()
        self.units.clear()

    def write(self, items: Iterable[Item]) -> None:
        """Write many items at once without the store."""
        requests = [{"PutRequest": {"Item": encode(item)}} for item in items]
        for at in range(0, len(requests), 25):
            self.dynamodb.batch_write_item(RequestItems={self.table: requests[at : at + 25]})  # type: ignore[dict-item]  # the stubs want their own class

    def items(self, tenant: str) -> list[dict[str, Any]]:
        """Read all records of a tenant."""
        return read_records(self.dynamodb, self.table, tenant)

    def blobs(self, tenant: str) -> list[str]:
        return list_blobs(self.s3, self.bucket, tenant)

    def _count(self, model: Any, **_: Any) -> None:
        self.calls[model.name] += 1

    def _ask_for_units(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        if "ReturnConsumedCapacity" in model.input_shape.members:
            params["ReturnConsumedCapacity"] = "TOTAL"

    def _charge(self, parsed: dict[str, Any], model: Any, **_: Any) -> None:
        capacity = parsed.get("ConsumedCapacity", [])
        for consumed in capacity if isinstance(capacity, list) else [capacity]:
            self.units[model.name] += consumed["CapacityUnits"]


def lose_first_answer(cloud: Cloud, operation: str, after: int | None = None) -> list[int]:
    """Lose a response to an operation that took effect: the first one, or the first with the status `after`.

    Returns the statuses of all responses, including the lost one.
    """
    sent: list[int] = []
    session: Any = cloud.dynamodb._endpoint.http_session  # type: ignore[attr-defined]  # the wire itself
    send = session.send

    def lose(request: Any) -> Any:
        answer = send(request)
        if operation in str(request.headers["X-Amz-Target"]):
            lost = after not in sent if after else not sent
            sent.append(answer.status_code)
            if lost and after in (None, answer.status_code):
                raise ConnectionClosedError(endpoint_url=request.url)
        return answer

    session.send = lose
    return sent


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "local")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


@pytest.fixture
def mocked() -> Iterator[Cloud]:
    """Yield a store in moto, which supports only one thread and does not count capacity."""
    with mock_aws():
        dynamodb, s3 = make_dynamodb(), make_s3()
        dynamodb.create_table(
            TableName="table",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        )
        s3.create_bucket(Bucket="bucket")
        yield Cloud(dynamodb, s3, "table", "bucket")
        dynamodb.close()
        s3.close()


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
    """Create clients of the engine, and yield a store after the environment of the engine is removed again."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in engine.environment().items():
            environment.setenv(name, value)
        dynamodb, s3 = make_dynamodb(), make_s3()
    yield Cloud(dynamodb, s3, engine.outputs["TableName"], engine.outputs["BucketName"])
    dynamodb.close()
    s3.close()


@pytest.fixture
def store(cloud: Cloud) -> Store:
    return cloud.store


@pytest.fixture
def tenant() -> str:
    """Return a new tenant, for which the shared engine has no data yet."""
    return f"t{new_id()[-12:]}"
