import asyncio
import os
import signal

import pytest
from tests.runtime.harness import Gate, Reader, Service, Start, proxy_event, split, with_gate


@pytest.mark.parametrize(
    ("path", "error_type", "message"),
    [
        ("/fail-first", "ValueError", "nothing was sent"),
        ("/fail-after-start", "ValueError", "no byte was sent"),
        ("/silent", "ResponseIncomplete", "before its response was complete"),
        ("/too-long", "RuntimeError", "longer than its Content-Length"),
        ("/too-short", "RuntimeError", "shorter than its Content-Length"),
        ("/headless", "RuntimeError", "in place of http.response.start"),
        ("/heavy-head", "ValueError", "headers take"),
    ],
)
async def test_a_failure_before_the_first_byte_is_an_invocation_error(
    service: Start, path: str, error_type: str, message: str
) -> None:
    function = await service(concurrency=1)

    payload, invocation = await function.call(proxy_event(path=path))

    assert payload == b""
    assert invocation.error
    assert invocation.error.type == error_type
    assert message in invocation.error.message
    await serves_on(function, failures=1)
    assert function.errors()[0]["requestId"] == invocation.request_id
    assert function.errors()[0]["errorType"] == error_type


@pytest.mark.parametrize(("path", "error_type"), [("/fail-later", "ValueError"), ("/unfinished", "ResponseIncomplete")])
async def test_a_failure_after_the_first_byte_travels_in_the_trailers(
    service: Start, path: str, error_type: str
) -> None:
    function = await service(concurrency=1)

    payload, invocation = await function.call(proxy_event(path=path))

    assert split(payload) == ({"statusCode": 200, "headers": {}}, b"first")
    assert invocation.error
    assert invocation.error.type == error_type
    assert b"stackTrace" in invocation.error.payload
    await serves_on(function, failures=1)


async def test_a_malformed_event_is_an_invocation_error(service: Start) -> None:
    function = await service(concurrency=1)

    invocation = await function.functions.invoke("f", b"{not json", stream=True)
    await invocation.read()
    nested = await function.functions.invoke("f", b"[" * 100_000, stream=True)
    await nested.read()
    base64, other = await function.call(proxy_event(body="***", isBase64Encoded=True, multiValueHeaders={"X": [1]}))

    assert invocation.error
    assert invocation.error.type == "JSONDecodeError"
    assert base64 == b""
    assert other.error
    assert nested.error
    assert nested.error.type == "RecursionError"
    await serves_on(function, failures=3)


async def test_an_app_at_work_at_the_deadline_is_cancelled_and_the_process_lives_on(service: Start) -> None:
    function = await service(concurrency=1, timeout=1.2)

    _, before = await function.call(proxy_event(path="/hang"))
    _, between = await function.call(proxy_event(path="/hang"))
    pid = (await function.json(proxy_event()))["pid"]
    payload, after = await function.call(proxy_event(path="/hang-later"))

    assert before.error
    assert before.error.type == "DeadlineExceeded"
    assert between.error
    assert split(payload)[1] == b"first last word"
    assert after.error
    assert after.error.type == "DeadlineExceeded"
    assert (await function.json(proxy_event()))["pid"] == pid


async def test_the_route_time_out_is_a_deadline_too(service: Start) -> None:
    function = await service(timeout=30, environment={"STREAM_ROUTE_TIMEOUT_SECONDS": "0.9"})

    async with asyncio.timeout(120):
        _, invocation = await function.call(proxy_event(path="/hang"))

    assert invocation.error
    assert invocation.error.type == "DeadlineExceeded"


async def test_an_app_that_ignores_the_deadline_costs_the_process(service: Start) -> None:
    function = await service(concurrency=1, timeout=1.2)

    pid = (await function.json(proxy_event()))["pid"]
    payload, invocation = await function.call(proxy_event(path="/stubborn"))
    seen = await function.json(proxy_event())

    assert split(payload)[1] == b"first"
    assert invocation.error
    assert invocation.error.type == "DeadlineExceeded"
    assert seen["pid"] != pid


async def test_system_exit_is_reported_and_ends_the_process(service: Start) -> None:
    function = await service(concurrency=1)

    pid = (await function.json(proxy_event()))["pid"]
    payload, invocation = await function.call(proxy_event(path="/leave"))
    seen = await function.json(proxy_event())

    assert split(payload)[1] == b"bye"
    assert invocation.error
    assert invocation.error.type == "SystemExit"
    assert seen["pid"] != pid


async def test_a_blocked_event_loop_is_ended_by_lambda(service: Start) -> None:
    function = await service(concurrency=1, timeout=1)

    payload, invocation = await function.call(proxy_event(path="/freeze"))

    assert split(payload)[1] == b"first"
    assert invocation.error
    assert invocation.error.type == "Sandbox.Timedout"
    assert invocation.error.message.endswith("Task timed out after 1.00 seconds")
    assert (await function.json(proxy_event()))["path"] == "/echo"


async def test_a_killed_process_is_a_cut_answer_with_an_error(service: Start, gate: Gate) -> None:
    function = await service(concurrency=1)
    pid = (await function.json(proxy_event()))["pid"]

    invocation = await function.start(with_gate(proxy_event(path="/steps"), gate))
    reader = Reader(invocation)
    await reader.until(lambda data: data.endswith(b" "))
    os.kill(pid, signal.SIGKILL)
    await reader.rest()

    assert invocation.error
    assert invocation.error.type in {"Runtime.TruncatedResponse", "Runtime.ExitError"}
    assert (await function.json(proxy_event()))["pid"] != pid


async def serves_on(function: Service, *, failures: int) -> None:
    """The same process takes the next event, and each failure was logged once."""
    assert (await function.json(proxy_event()))["path"] == "/echo"
    assert len(function.errors()) == failures
