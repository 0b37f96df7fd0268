"""Reads of objects: addresses, ranges, versions, errors and retries, over real connections."""

from collections.abc import AsyncIterator

import pytest
from tests.unit.aws.dynamodb_server import DynamoDBServer, Pauses, reply

from stint.aws.endpoints import service_endpoint
from stint.aws.environment import AwsEnvironment
from stint.aws.errors import NoResponse, ServiceError
from stint.aws.s3_reader import S3Object, S3Reader
from stint.aws.service_client import ClientOptions

MISSING = b'<?xml version="1.0"?><Error><Code>NoSuchKey</Code><Message>None</Message></Error>'
VARIABLES = {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}


@pytest.fixture
async def server() -> AsyncIterator[DynamoDBServer]:
    async with DynamoDBServer() as server:
        yield server


@pytest.fixture
async def reader(server: DynamoDBServer) -> AsyncIterator[S3Reader]:
    reader = S3Reader(
        AwsEnvironment(VARIABLES | {"AWS_ENDPOINT_URL": server.url}), "bucket", options=ClientOptions(sleep=Pauses())
    )
    yield reader
    await reader.close()


async def test_an_object_is_returned_with_its_version(server: DynamoDBServer, reader: S3Reader) -> None:
    server.script(reply(200, b"body", ETag='"1"'), reply(304, b""))

    first = await reader.get("folder/a b+ü")
    second = await reader.get("folder/a b+ü", known='"1"')

    assert (first, second) == (S3Object(b"body", '"1"'), None)
    assert server.requests[0].line == "GET /bucket/folder/a%20b%2B%C3%BC HTTP/1.1"
    assert server.requests[1].headers["if-none-match"] == '"1"'
    assert server.connections == 1


async def test_a_part_of_an_object_is_asked_for(server: DynamoDBServer, reader: S3Reader) -> None:
    server.script(reply(206, b"od", ETag='"1"'))

    assert await reader.get("key", part="bytes=1-2") == S3Object(b"od", '"1"')
    assert server.requests[0].headers["range"] == "bytes=1-2"


async def test_a_missing_object_is_an_error_that_is_not_retried(server: DynamoDBServer, reader: S3Reader) -> None:
    server.script(reply(404, MISSING))

    with pytest.raises(ServiceError) as raised:
        await reader.get("key")

    assert (raised.value.code, raised.value.status, len(server.requests)) == ("NoSuchKey", 404, 1)


@pytest.mark.parametrize("problem", [reply(503, b"<Error><Code>SlowDown</Code></Error>"), reply(500, b"")])
async def test_a_busy_service_is_asked_again(server: DynamoDBServer, reader: S3Reader, problem: bytes) -> None:
    server.script(problem, problem, reply(200, b"body"))

    assert await reader.get("key") == S3Object(b"body", "")


async def test_a_body_that_is_cut_is_read_again(server: DynamoDBServer, reader: S3Reader) -> None:
    cut = (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", None)
    server.script(cut, cut, cut)

    with pytest.raises(NoResponse, match="before the end"):
        await reader.get("key")

    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("bucket", "more", "host", "folder"),
    [
        ("bucket", {}, "bucket.s3.eu-west-1.amazonaws.com", ""),
        ("my.bucket", {}, "s3.eu-west-1.amazonaws.com", "/my.bucket"),
        ("bucket", {"AWS_REGION": "cn-north-1"}, "bucket.s3.cn-north-1.amazonaws.com.cn", ""),
        ("bucket", {"AWS_USE_DUALSTACK_ENDPOINT": "true"}, "bucket.s3.dualstack.eu-west-1.amazonaws.com", ""),
        ("bucket", {"AWS_USE_FIPS_ENDPOINT": "true"}, "bucket.s3-fips.eu-west-1.amazonaws.com", ""),
        ("bucket", {"AWS_ENDPOINT_URL_S3": "http://h:1"}, "h:1", "/bucket"),
    ],
)
def test_the_address_of_a_bucket_is_that_of_aws(bucket: str, more: dict[str, str], host: str, folder: str) -> None:
    reader = S3Reader(AwsEnvironment(VARIABLES | more), bucket)

    assert (reader._host, reader._folder) == (host, folder)


def test_a_dual_stack_address_is_one_of_s3_only() -> None:
    variables = AwsEnvironment(VARIABLES | {"AWS_USE_DUALSTACK_ENDPOINT": "true"})

    assert service_endpoint(variables, "s3").host == "s3.dualstack.eu-west-1.amazonaws.com"
    assert service_endpoint(variables, "sts").host == "sts.eu-west-1.amazonaws.com"
