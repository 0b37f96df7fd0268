"""The proxy counts each call once, and injects each kind of fault."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, HTTPClientError
from botocore.session import get_session
from infra.local.engine import Engine
from tests.faults.fault_proxy import PERFORMED, Fault, FaultKind, FaultProxy, ProxyPort

from stint.aws.dynamodb import DynamoDBClient, DynamoDBError, NoResponse
from stint.aws.environment import AwsEnvironment
from stint.aws.service_client import ClientOptions

Item = dict[str, Any]
KEY: Item = {"pk": {"S": "proxy#test"}, "sk": {"S": "one"}}
OTHER: Item = {"pk": {"S": "proxy#test"}, "sk": {"S": "two"}}


async def at_once(_: float) -> None:
    """Do not wait before a retry."""


class Caller:
    """A client behind the proxy, and the process that would be killed."""

    def __init__(self, engine: Engine, proxy: FaultProxy) -> None:
        self.proxy, self.kills = proxy, 0
        self.table = engine.outputs["TableName"]
        self.port: ProxyPort = proxy.open_port(self.count_kill, observed=True)
        environment = engine.environment() | {"AWS_ENDPOINT_URL_DYNAMODB": self.port.url}
        self.client = DynamoDBClient(
            AwsEnvironment(environment), options=ClientOptions(read_timeout=0.2, sleep=at_once)
        )

    def count_kill(self) -> None:
        self.kills += 1

    def call(self, operation: str, **request: Any) -> Any:
        async def call_and_close() -> Any:
            try:
                return await self.client.call(operation, request)
            finally:
                await self.client.close()

        return asyncio.run(call_and_close())

    def put(self, item: Item = KEY) -> Any:
        return self.call("PutItem", TableName=self.table, Item=item)

    def has(self, item: Item = KEY) -> bool:
        return "Item" in self.call("GetItem", TableName=self.table, Key=item, ConsistentRead=True)


@pytest.fixture
def caller(engine: Engine) -> Iterator[Caller]:
    with FaultProxy(engine.endpoint) as proxy:
        caller = Caller(engine, proxy)
        for item in (KEY, OTHER):
            caller.call("DeleteItem", TableName=caller.table, Key=item)
        yield caller
        proxy.end()
        proxy.close_port(caller.port)


def test_a_call_and_its_retries_count_as_one(caller: Caller) -> None:
    observed = caller.proxy.begin(Fault(FaultKind.server_error, 0))

    with pytest.raises(DynamoDBError):
        caller.put()
    caller.has()

    assert observed.calls == ["dynamodb.PutItem", "dynamodb.GetItem"]
    assert observed.injected == 3


@pytest.mark.parametrize(
    "kind", [FaultKind.throttled, FaultKind.server_error, FaultKind.timeout, FaultKind.reset, FaultKind.death_before]
)
def test_these_faults_have_no_effect(caller: Caller, kind: FaultKind) -> None:
    caller.proxy.begin(Fault(kind, 0))

    with pytest.raises((DynamoDBError, NoResponse)):
        caller.put()

    assert not caller.has()


@pytest.mark.parametrize("kind", [FaultKind.lost, FaultKind.death_after])
def test_these_faults_come_after_the_effect(caller: Caller, kind: FaultKind) -> None:
    caller.proxy.begin(Fault(kind, 0))

    with pytest.raises(NoResponse):
        caller.put()

    assert caller.has()


@pytest.mark.parametrize("kind", [FaultKind.death_before, FaultKind.death_after])
def test_a_death_kills_the_process(caller: Caller, kind: FaultKind) -> None:
    caller.proxy.begin(Fault(kind, 1))

    caller.put()
    with pytest.raises(NoResponse):
        caller.has()

    assert caller.kills == 3, "once for each attempt of a client that is still there"


def test_a_lost_answer_is_followed_by_the_answer_to_the_retry(caller: Caller) -> None:
    observed = caller.proxy.begin(Fault(FaultKind.lost_once, 0))

    caller.put()

    assert observed.injected == 1
    assert caller.has()


def test_a_half_of_a_batch_is_left_out(caller: Caller) -> None:
    caller.proxy.begin(Fault(FaultKind.partial, 0))
    requests = [{"PutRequest": {"Item": item}} for item in (KEY, OTHER)]

    answer = caller.call("BatchWriteItem", RequestItems={caller.table: requests})

    assert caller.has(KEY)
    assert not caller.has(OTHER)
    assert json.dumps(answer["UnprocessedItems"]) == json.dumps({caller.table: requests[1:]})


def test_calls_of_other_processes_are_not_counted(engine: Engine, caller: Caller) -> None:
    port = caller.proxy.open_port(caller.count_kill, observed=False)
    environment = engine.environment() | {"AWS_ENDPOINT_URL_DYNAMODB": port.url}
    caller.client = DynamoDBClient(AwsEnvironment(environment))
    observed = caller.proxy.begin(Fault(FaultKind.reset, 0))

    caller.put()

    assert observed.calls == []
    caller.proxy.close_port(port)


class ObjectCaller:
    """Clients of S3 and SQS behind the proxy, each with one attempt, and others that see the effects."""

    def __init__(self, engine: Engine, proxy: FaultProxy) -> None:
        self.proxy = proxy
        port = proxy.open_port(lambda: None, observed=True)
        once = Config(retries={"total_max_attempts": 1}, read_timeout=0.2, s3={"addressing_style": "path"})
        session, keys = get_session(), {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        options: Any = {"endpoint_url": port.url, "region_name": "us-east-1", "config": once, **keys}
        self.s3: Any = session.create_client("s3", **options)
        self.sqs: Any = session.create_client("sqs", **options)
        self.seen_s3, self.seen_sqs = (engine.running.client(name) for name in ("s3", "sqs"))
        self.bucket, self.queue = engine.outputs["BucketName"], engine.outputs["WorkQueueUrl"]

    def call(self, service: str) -> None:
        if service == "s3":
            self.s3.put_object(Bucket=self.bucket, Key="proxy-test", Body=b"x")
        else:
            self.sqs.send_message(QueueUrl=self.queue, MessageBody="{}")

    def has_effect(self, service: str) -> bool:
        """Return whether a call had an effect, and undo it."""
        if service == "s3":
            listed = self.seen_s3.list_objects_v2(Bucket=self.bucket, Prefix="proxy-test").get("Contents", [])
            for found in listed:
                self.seen_s3.delete_object(Bucket=self.bucket, Key=found["Key"])
            return bool(listed)
        messages = self.seen_sqs.receive_message(QueueUrl=self.queue).get("Messages", [])
        for message in messages:
            self.seen_sqs.delete_message(QueueUrl=self.queue, ReceiptHandle=message["ReceiptHandle"])
        return bool(messages)


@pytest.fixture
def object_caller(engine: Engine) -> Iterator[ObjectCaller]:
    with FaultProxy(engine.endpoint) as proxy:
        caller = ObjectCaller(engine, proxy)
        yield caller
        for client in (caller.s3, caller.sqs, caller.seen_s3, caller.seen_sqs):
            client.close()


@pytest.mark.parametrize("service", ["s3", "sqs"])
@pytest.mark.parametrize("kind", [kind for kind in FaultKind if kind is not FaultKind.partial])
def test_other_services_fail_before_or_after_the_effect(
    object_caller: ObjectCaller, service: str, kind: FaultKind
) -> None:
    observed = object_caller.proxy.begin(Fault(kind, 0))

    with pytest.raises((ClientError, HTTPClientError)) as failed:
        object_caller.call(service)

    assert observed.injected == 1
    assert object_caller.has_effect(service) is (kind in PERFORMED)
    if kind in (FaultKind.throttled, FaultKind.server_error):
        assert isinstance(failed.value, ClientError)
        assert is_throttled(failed.value) is (kind is FaultKind.throttled)


def is_throttled(error: ClientError) -> bool:
    return error.response["Error"]["Code"] in ("SlowDown", "RequestThrottled")


def test_a_half_of_the_objects_is_not_deleted(object_caller: ObjectCaller) -> None:
    keys = ["proxy-test-1", "proxy-test-2"]
    for key in keys:
        object_caller.seen_s3.put_object(Bucket=object_caller.bucket, Key=key, Body=b"x")
    object_caller.proxy.begin(Fault(FaultKind.partial, 0))

    answer = object_caller.s3.delete_objects(
        Bucket=object_caller.bucket, Delete={"Objects": [{"Key": key} for key in keys]}
    )

    assert [error["Key"] for error in answer["Errors"]] == keys[1:]
    listed = object_caller.seen_s3.list_objects_v2(Bucket=object_caller.bucket, Prefix="proxy-test")["Contents"]
    assert [found["Key"] for found in listed] == keys[1:]
    assert object_caller.has_effect("s3")
