import json
import time
from typing import Any

from tests.runtime.harness import Gate, Reader, Start, proxy_event, split, with_gate


async def test_bytes_leave_one_by_one(service: Start, gate: Gate) -> None:
    function = await service()
    arrived: list[int] = []

    reader = Reader(await function.start(with_gate(proxy_event(path="/steps"), gate)))
    for index in range(3):
        await gate.reached(f"step {index}")
        await reader.until(lambda data, count=index + 1: data.count(b" ") == count)  # type: ignore[misc]  # a bound default
        arrived.append(time.monotonic_ns())
        await gate.open(f"step {index}")

    head, body = split(await reader.rest())
    sent = [int(stamp) for stamp in body.split()]
    assert head == {"statusCode": 200, "headers": {"content-type": "text/plain"}}
    assert sent[0] < arrived[0] < sent[1] < arrived[1] < sent[2] < arrived[2]


async def test_a_fastapi_streaming_response_leaves_chunk_by_chunk(service: Start, gate: Gate) -> None:
    function = await service("web.app")

    reader = Reader(await function.start(with_gate(proxy_event(path="/v1/words", stage="/Prod"), gate)))
    before = await reader.until(lambda data: data.endswith(b"one "))
    await gate.open("between")

    head, body = split(await reader.rest())
    assert split(before)[1] == b"one "
    assert body == b"one two"
    assert head["headers"]["content-type"].startswith("text/plain")


async def test_fastapi_routes_and_links_know_the_stage(service: Start) -> None:
    function = await service("web.app")
    event = proxy_event(path="/v1/where/a%2Fb%20c", stage="/Prod", queryStringParameters={"tag": "x y"})

    seen = await function.json(event)

    assert seen == {"name": "a/b c", "url": "https://api.example.com/Prod/v1/where/a/b c", "tag": "x y"}


async def test_work_after_the_last_byte_ends_before_the_next_event(service: Start, gate: Gate) -> None:
    function = await service(concurrency=1)

    body, _ = await function.call(with_gate(proxy_event(path="/late-work"), gate))
    await gate.reached("late work")
    await gate.open("late work")
    seen = await function.json(proxy_event())

    assert split(body)[1] == b"done"
    assert seen["background"] == ["http.disconnect"]


async def test_disconnect_is_not_told_before_the_end(service: Start, gate: Gate) -> None:
    function = await service()

    reader = Reader(await function.start(with_gate(proxy_event(path="/early-disconnect"), gate)))
    await reader.until(lambda data: data.endswith(b"before "))
    await gate.open("waiting")

    assert split(await reader.rest())[1] == b"before disconnected: False"


async def test_a_reader_that_leaves_does_not_stop_the_app(service: Start, gate: Gate) -> None:
    function = await service(concurrency=1)

    reader = Reader(await function.start(with_gate(proxy_event(path="/steps"), gate)))
    await reader.until(lambda data: data.count(b" ") == 1)
    await reader.leave()
    for index in range(3):
        await gate.open(f"step {index}")

    assert (await function.json(proxy_event()))["path"] == "/echo"
    assert function.errors() == []


async def test_repeated_headers_and_binary_bodies_arrive_unchanged(service: Start) -> None:
    function = await service()

    payload, _ = await function.call(proxy_event(path="/cookies"))

    head, body = split(payload)
    assert head == {
        "statusCode": 201,
        "headers": {"x-name": "Zoë"},
        "multiValueHeaders": {"set-cookie": ["a=1", "b=2"]},
    }
    assert body == b"\x00\xff"


async def test_answers_without_a_body_are_complete(service: Start) -> None:
    function = await service()

    no_content, _ = await function.call(proxy_event(path="/empty"))
    head, _ = await function.call(proxy_event("HEAD", path="/head"))

    assert split(no_content) == ({"statusCode": 204, "headers": {}}, b"")
    assert split(head) == ({"statusCode": 200, "headers": {"content-length": "5"}}, b"")


async def test_a_process_serves_one_event_after_the_other(service: Start) -> None:
    function = await service()

    seen: list[dict[str, Any]] = [await function.json(proxy_event(path=f"/echo/{number}")) for number in range(5)]

    assert len({one["pid"] for one in seen}) == 1
    assert len({one["request_id"] for one in seen}) == 5
    assert seen[0]["function_name"] == "f"
    assert seen[0]["arn"] == "arn:aws:lambda:us-east-1:000000000000:function:f"
    assert seen[0]["memory"] == "256"
    assert 15_000 < seen[0]["remaining"] <= 20_000
    assert all(one["trace"].startswith("Root=1-") for one in seen)


async def test_the_time_left_is_the_smaller_of_function_and_route(service: Start) -> None:
    function = await service(environment={"STREAM_ROUTE_TIMEOUT_SECONDS": "5"})

    seen = await function.json(proxy_event())

    assert 3_000 < seen["remaining"] <= 5_000


async def test_a_direct_invocation_is_answered_buffered(service: Start) -> None:
    function = await service()

    for event in ({"source": "aws.events", "detail": {}}, ["warm"], None):
        payload, invocation = await function.call(event)

        assert invocation.error is None
        assert invocation.content_type == "application/json"
        assert "API Gateway REST proxy events" in json.loads(payload)["message"]


async def test_sam_local_gets_a_buffered_answer(service: Start, gate: Gate) -> None:
    function = await service(environment={"AWS_SAM_LOCAL": "true"})

    text, _ = await function.call(proxy_event())
    binary, _ = await function.call(proxy_event(path="/cookies"))
    failed, invocation = await function.call(proxy_event(path="/fail-later"))

    answer = json.loads(text)
    assert (answer["statusCode"], answer["isBase64Encoded"]) == (200, False)
    assert json.loads(answer["body"])["path"] == "/echo"
    assert json.loads(binary) == {
        "statusCode": 201,
        "headers": {"x-name": "Zoë"},
        "multiValueHeaders": {"set-cookie": ["a=1", "b=2"]},
        "body": "AP8=",
        "isBase64Encoded": True,
    }
    assert failed == b""
    assert invocation.error
    assert invocation.error.type == "ValueError"
