import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer
from tests.store.dynamodb_proxy import DynamoDBProxy


def answer(received: Received) -> Reply:
    units = {"ConsumedCapacity": {"CapacityUnits": 1.5}} if "ReturnConsumedCapacity" in received.json() else {}
    return Reply((json.dumps({"Echo": received.json().get("Text"), **units}).encode(),))


@pytest.fixture
def engine() -> Iterator[ScriptedHTTPServer]:
    with ScriptedHTTPServer(answer) as server:
        yield server


@pytest.fixture
def proxy(engine: ScriptedHTTPServer) -> Iterator[DynamoDBProxy]:
    with DynamoDBProxy(engine.url) as proxy:
        yield proxy


@pytest.fixture
def http(proxy: DynamoDBProxy) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=proxy.url, trust_env=False) as client:
        yield client


def headers(operation: str, call: str, attempt: int) -> dict[str, str]:
    return {
        "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        "amz-sdk-invocation-id": call,
        "amz-sdk-request": f"attempt={attempt}; max=3",
    }


def send(
    http: httpx.Client, operation: str = "GetItem", text: str = "", call: str = "1", attempt: int = 1
) -> httpx.Response:
    return http.post("/", headers=headers(operation, call, attempt), json={"Text": text})


def test_calls_and_units_are_counted_once_per_call(http: httpx.Client, proxy: DynamoDBProxy) -> None:
    send(http, "PutItem")
    send(http, "PutItem", attempt=2)
    found = send(http, "GetItem", "a", call="2")

    assert found.json()["Echo"] == "a"
    assert proxy.calls == {"PutItem": 1, "GetItem": 1}
    assert proxy.units == {"PutItem": 3.0, "GetItem": 1.5}
    proxy.forget()
    assert proxy.calls == proxy.units == {}


@pytest.mark.parametrize("lost", [False, True])
def test_a_failing_call_fails_at_each_attempt_and_takes_effect_at_most_once(
    http: httpx.Client, proxy: DynamoDBProxy, engine: ScriptedHTTPServer, lost: bool
) -> None:
    with proxy.failing("PutItem", "bad", lost=lost, times=1):
        for attempt in (1, 2, 3):
            with pytest.raises(httpx.RemoteProtocolError):
                send(http, "PutItem", "bad", attempt=attempt)
        assert send(http, "PutItem", "good", call="2").status_code == 200
        assert send(http, "PutItem", "bad", call="3").status_code == 200

    assert [body["Text"] for body in engine.bodies] == [*(["bad"] if lost else []), "good", "bad"]


@pytest.mark.parametrize("performed", [False, True])
def test_a_call_is_answered_with_an_error(
    http: httpx.Client, proxy: DynamoDBProxy, engine: ScriptedHTTPServer, performed: bool
) -> None:
    with proxy.fail("UpdateItem", "InternalServerError", status=500, performed=performed, times=1):
        answers = [send(http, "UpdateItem", attempt=attempt) for attempt in (1, 2)]

    assert [each.status_code for each in answers] == [500, 500]
    assert answers[0].json()["__type"].endswith("#InternalServerError")
    assert len(engine.requests) == performed
    assert send(http, "UpdateItem", attempt=3).status_code == 200


@pytest.mark.parametrize(("after", "lost"), [(None, 0), (400, 1)])
def test_one_answer_is_lost_and_the_retry_is_answered(
    http: httpx.Client, proxy: DynamoDBProxy, engine: ScriptedHTTPServer, after: int | None, lost: int
) -> None:
    statuses = proxy.lose_first_answer("PutItem", after)
    engine.script(Reply((b"{}",)), Reply((b"{}",), 400), Reply((b"{}",), 400))
    received = []
    for attempt in (1, 2, 3):
        try:
            received.append(send(http, "PutItem", attempt=attempt).status_code)
        except httpx.RemoteProtocolError:
            received.append(0)

    assert statuses == [200, 400, 400]
    assert received == [0 if number == lost else status for number, status in enumerate(statuses)]


def test_calls_are_watched_before_they_are_sent_on(
    http: httpx.Client, proxy: DynamoDBProxy, engine: ScriptedHTTPServer
) -> None:
    def see(operation: str, body: str) -> None:
        assert "bad" not in body, operation

    with pytest.raises(AssertionError, match="GetItem"), proxy.watching(see), proxy.watch() as seen:  # noqa: PT012
        send(http, text="good")
        with pytest.raises(httpx.RemoteProtocolError):
            send(http, text="bad", call="2")

    assert seen == ['GetItem {"Text":"good"}', 'GetItem {"Text":"bad"}']
    assert [body["Text"] for body in engine.bodies] == ["good"]


def test_the_newest_fault_comes_first(http: httpx.Client, proxy: DynamoDBProxy) -> None:
    with proxy.fail("GetItem", "Outer"), proxy.fail("GetItem", "Inner"):
        assert send(http).json()["__type"].endswith("#Inner")


def test_no_call_passes_while_the_database_is_down(
    http: httpx.Client, proxy: DynamoDBProxy, engine: ScriptedHTTPServer
) -> None:
    proxy.down = True
    with pytest.raises(httpx.RemoteProtocolError):
        send(http)
    proxy.down = False

    assert send(http).status_code == 200
    assert len(engine.requests) == 1


def test_requests_and_answers_are_edited(http: httpx.Client, proxy: DynamoDBProxy) -> None:
    def edit_request(body: dict[str, Any]) -> None:
        body["Text"] += " edited"

    def edit_answer(body: dict[str, Any]) -> None:
        body["More"] = True

    with proxy.editing("GetItem", request=edit_request, answer=edit_answer):
        found = send(http, text="a").json()
        other = send(http, "PutItem", "a", call="2").json()

    assert (found["Echo"], found["More"]) == ("a edited", True)
    assert (other["Echo"], "More" in other) == ("a", False)


async def test_rounds_of_concurrent_calls_are_held_until_they_are_complete(proxy: DynamoDBProxy) -> None:
    async with httpx.AsyncClient(base_url=proxy.url, trust_env=False) as http:

        async def call(operation: str) -> None:
            await http.post("/", headers=headers(operation, operation, 1), json={"Text": ""})

        with proxy.held_in_rounds(["GetItem", "Query"], ["PutItem"]) as seen:
            first = asyncio.create_task(call("GetItem"))
            await asyncio.to_thread(wait_until, seen, 1)
            assert proxy.calls == {}
            await asyncio.gather(call("Query"), first)
            await call("PutItem")

    assert seen == {"GetItem": 1, "Query": 1, "PutItem": 1}


def wait_until(seen: Counter[str], total: int) -> None:
    while seen.total() < total:
        pass


def test_rounds_with_other_calls_are_refused(http: httpx.Client, proxy: DynamoDBProxy) -> None:
    with pytest.raises(AssertionError), proxy.held_together("GetItem"):
        send(http, "PutItem")
