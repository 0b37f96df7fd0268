"""Calls of the DynamoDB client: documents, errors and retries."""

import json
from typing import Any
from uuid import RFC_4122, UUID

import pytest
from tests.unit.aws.dynamodb_server import DynamoDBServer, Pauses, error, make_client, ok, reply

from stint.aws.dynamodb import DynamoDBClient, DynamoDBError, NoResponse
from stint.aws.retries import Retries

KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}


async def test_a_call_sends_and_returns_the_json_of_dynamodb(server: DynamoDBServer, client: DynamoDBClient) -> None:
    item = {"pk": {"S": "ä"}, "n": {"N": "12"}, "b": {"B": b"\x00\xff"}, "set": {"BS": [b"1", b""]}}
    stored = {"pk": {"S": "ä"}, "n": {"N": "12"}, "b": {"B": "AP8="}, "set": {"BS": ["MQ==", ""]}}
    server.script(ok({"Item": stored}))

    found = await client.call("GetItem", {"TableName": "t", "Item": item})

    assert found == {"Item": item}
    [request] = server.requests
    assert json.loads(request.body) == {"TableName": "t", "Item": stored}
    assert request.line == "POST / HTTP/1.1"
    assert request.headers["x-amz-target"] == "DynamoDB_20120810.GetItem"
    assert request.headers["content-type"] == "application/x-amz-json-1.0"
    assert request.headers["host"] == server.url.removeprefix("http://")
    assert request.headers["user-agent"].startswith("stint ")
    assert "/eu-central-1/dynamodb/aws4_request, " in request.headers["authorization"]


async def test_attributes_and_tables_named_like_types_are_no_binary_values(
    server: DynamoDBServer, client: DynamoDBClient
) -> None:
    document = {
        "Responses": {"B": [{"B": {"S": "text"}, "BS": {"L": []}}], "BS": [{"m": {"M": {"B": {"N": "1"}}}}]},
        "ConsumedCapacity": [],
    }
    server.script(ok(document))

    assert await client.call("BatchGetItem", {}) == document


async def test_a_value_that_is_no_json_of_dynamodb_is_refused(server: DynamoDBServer, client: DynamoDBClient) -> None:
    with pytest.raises(TypeError, match="set is not a type"):
        await client.call("PutItem", {"Item": {"a": {"SS": {"x"}}}})

    assert server.requests == []


async def test_a_condition_that_failed_has_the_existing_record(server: DynamoDBServer, client: DynamoDBClient) -> None:
    server.script(error("ConditionalCheckFailedException", message="failed", Item={**KEY, "b": {"B": "AA=="}}))

    with pytest.raises(DynamoDBError) as raised:
        await client.call("PutItem", {})

    assert (raised.value.code, raised.value.status) == ("ConditionalCheckFailedException", 400)
    assert raised.value.message == "failed"
    assert raised.value.item == {**KEY, "b": {"B": b"\x00"}}
    assert not raised.value.unsure


async def test_a_cancelled_transaction_has_its_reasons(server: DynamoDBServer, client: DynamoDBClient) -> None:
    reasons = [{"Code": "None"}, {"Code": "ConditionalCheckFailed", "Item": KEY}]
    server.script(error("TransactionCanceledException", Message="cancelled", CancellationReasons=reasons))

    with pytest.raises(DynamoDBError) as raised:
        await client.call("TransactWriteItems", {})

    assert (raised.value.reasons, raised.value.message) == (reasons, "cancelled")


@pytest.mark.parametrize(
    ("answer", "unsure"),
    [
        (error("ThrottlingException"), False),
        (error("ProvisionedThroughputExceededException"), False),
        (error("RequestLimitExceeded"), False),
        (error("TransactionInProgressException"), False),
        (error("TransactionConflictException"), False),
        (error("RequestTimeout"), False),
        (reply(429, b""), False),
        (error("InternalServerError", 500), True),
        (reply(502, b"<html>"), True),
        (error("Whatever", 503), True),
        (reply(504, b""), True),
    ],
)
async def test_a_passing_error_is_retried_twice(
    server: DynamoDBServer, client: DynamoDBClient, pauses: Pauses, answer: bytes, unsure: bool
) -> None:
    server.script(answer, answer, ok({"Item": KEY}))
    assert await client.call("GetItem", {}) == {"Item": KEY}
    assert len(pauses.seconds) == 2

    server.script(answer, answer, answer)
    with pytest.raises(DynamoDBError) as raised:
        await client.call("GetItem", {})

    assert raised.value.unsure is unsure
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("code", "status"),
    [("ValidationException", 400), ("AccessDeniedException", 400), ("ResourceNotFoundException", 400), ("X", 501)],
)
async def test_another_error_is_not_retried(
    server: DynamoDBServer, client: DynamoDBClient, code: str, status: int
) -> None:
    server.script(error(code, status))

    with pytest.raises(DynamoDBError) as raised:
        await client.call("GetItem", {})

    assert (raised.value.code, len(server.requests)) == (code, 1)
    assert raised.value.unsure is (status >= 500)


async def test_an_error_after_a_lost_answer_is_unsure(server: DynamoDBServer, client: DynamoDBClient) -> None:
    for lost in ((None,), error("InternalServerError", 500)):
        server.script(lost, error("ConditionalCheckFailedException", Item=KEY))
        with pytest.raises(DynamoDBError) as raised:
            await client.call("PutItem", {})

        assert raised.value.unsure
        assert raised.value.item == KEY


async def test_all_attempts_of_a_call_have_its_id_and_their_number(
    server: DynamoDBServer, client: DynamoDBClient
) -> None:
    server.script(error("ThrottlingException"), (None,))
    await client.call("GetItem", {})
    await client.call("GetItem", {})

    ids = [request.headers["amz-sdk-invocation-id"] for request in server.requests]
    assert {(UUID(each).version, UUID(each).variant) for each in ids} == {(4, RFC_4122)}
    assert len({*ids[:3]}) == 1 < len({*ids})
    assert all(str(UUID(each)) == each for each in ids)
    assert server.attempts == [f"attempt={number}; max=3" for number in (1, 2, 3, 1)]


async def test_the_backoff_is_jittered_doubled_and_longer_for_throttling(
    server: DynamoDBServer, pauses: Pauses
) -> None:
    client = make_client(server, sleep=pauses, retries=Retries(jitter=lambda: 0.5))
    for answer in (reply(500, b""), error("ThrottlingException")):
        server.script(answer, answer)
        await client.call("GetItem", {})

    assert pauses.seconds == [0.0125, 0.025, 0.5, 1.0]
    await client.close()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-amz-retry-after": "1500"}, 1.5),
        ({"x-amz-retry-after": "60000"}, 5.0125),
        ({"Retry-After": "2"}, 2.0),
        ({"x-amz-retry-after": "-1"}, 0.0125),
        ({"Retry-After": "Sun, 22 Nov 2026 00:00:00 GMT"}, 0.0125),
    ],
)
async def test_the_server_can_prolong_the_backoff(
    server: DynamoDBServer, pauses: Pauses, headers: dict[str, str], seconds: float
) -> None:
    client = make_client(server, sleep=pauses, retries=Retries(jitter=lambda: 0.5))
    server.script(reply(503, b"", **headers))

    await client.call("GetItem", {})

    assert pauses.seconds == [seconds]
    await client.close()


async def test_retries_stop_while_the_service_is_down(server: DynamoDBServer, client: DynamoDBClient) -> None:
    down = reply(500, b"")
    counts = []
    for _ in range(40):
        before = len(server.requests)
        server.script(down, down, down)
        with pytest.raises(DynamoDBError):
            await client.call("GetItem", {})
        counts.append(len(server.requests) - before)
        server._replies.clear()

    assert counts == [3] * 17 + [2] + [1] * 22  # 500 tokens, and 14 for each retry


@pytest.mark.parametrize(
    "damaged",
    [
        reply(200, b"{", Content_Type="application/x-amz-json-1.0"),
        reply(200, b"[]"),
        reply(200, b"\xff"),
        reply(200, b"[" * 100_000),
        reply(200, b"{}", **{"x-amz-crc32": "1"}),
    ],
)
async def test_a_damaged_answer_is_retried_and_unsure(
    server: DynamoDBServer, client: DynamoDBClient, damaged: bytes
) -> None:
    server.script(damaged, ok({"Item": KEY}))
    assert await client.call("GetItem", {}) == {"Item": KEY}

    server.script(damaged, damaged, damaged)
    with pytest.raises(NoResponse) as raised:
        await client.call("GetItem", {})

    assert raised.value.unsure


@pytest.mark.parametrize("item", [{}, {"Item": "text"}, {"Item": [KEY]}])
async def test_an_error_without_a_record_has_none(
    server: DynamoDBServer, client: DynamoDBClient, item: dict[str, Any]
) -> None:
    server.script(error("ConditionalCheckFailedException", **item))

    with pytest.raises(DynamoDBError) as raised:
        await client.call("PutItem", {})

    assert raised.value.item is None
