"""The Runtime API against a client that breaks its rules."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from infra.local.invocation import Invocation
from infra.local.runtime_api import RuntimeApi

ROOT = "/2018-06-01/runtime"
STREAMING = {"Lambda-Runtime-Function-Response-Mode": "streaming"}


class Runtime:
    """A Runtime API with an event at work, and a client."""

    def __init__(self, api: RuntimeApi, client: httpx.AsyncClient) -> None:
        self.api = api
        self.client = client

    async def take(self, event: bytes = b"{}") -> Invocation:
        waiting = asyncio.create_task(self.client.get(f"{ROOT}/invocation/next"))
        await self.api.ready.wait()
        invocation = Invocation("id-1", event)
        self.api.dispatch(invocation, timeout=3, arn="arn:f")
        answer = await waiting
        assert answer.content == event
        assert answer.headers["lambda-runtime-aws-request-id"] == "id-1"
        assert answer.headers["lambda-runtime-invoked-function-arn"] == "arn:f"
        assert int(answer.headers["lambda-runtime-deadline-ms"]) > 0
        return invocation

    async def post(self, path: str, content: Any = b"{}", **headers: str) -> httpx.Response:
        return await self.client.post(f"{ROOT}/{path}", content=content, headers=headers)


@pytest.fixture
async def runtime() -> AsyncIterator[Runtime]:
    api = RuntimeApi(streamed_limit=1000)
    address = await api.start()
    async with httpx.AsyncClient(base_url=f"http://{address}", trust_env=False, timeout=120) as client:
        yield Runtime(api, client)
    await api.stop()


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Host": "evil.example"}])
async def test_no_web_page_takes_an_event_or_answers_one(runtime: Runtime, headers: dict[str, str]) -> None:
    taken = await runtime.client.get(f"{ROOT}/invocation/next", headers=headers)
    await runtime.take()
    answered = await runtime.post("invocation/id-1/response", **headers)
    own = await runtime.post("invocation/id-1/response")

    assert [taken.status_code, answered.status_code, own.status_code] == [403, 403, 202]


async def test_an_answer_is_taken_once(runtime: Runtime) -> None:
    invocation = await runtime.take()

    first = await runtime.post("invocation/id-1/response", b"[1]")
    second = await runtime.post("invocation/id-1/response", b"[2]")
    error = await runtime.post("invocation/id-1/error")

    assert first.status_code == 202
    assert (second.status_code, second.json()["errorType"]) == (403, "InvalidStateTransition")
    assert error.status_code == 403
    assert await invocation.read() == b"[1]"


async def test_another_request_id_is_refused(runtime: Runtime) -> None:
    invocation = await runtime.take()

    answer = await runtime.post("invocation/id-2/response")

    assert (answer.status_code, answer.json()["errorType"]) == (400, "InvalidRequestID")
    assert not invocation.ended


async def test_an_unknown_response_mode_is_refused_and_fails_the_invocation(runtime: Runtime) -> None:
    invocation = await runtime.take()

    answer = await runtime.post("invocation/id-1/response", **{"Lambda-Runtime-Function-Response-Mode": "buffered"})

    assert answer.status_code == 400
    assert invocation.error
    assert invocation.error.type == "Runtime.InvalidResponseModeHeader"


async def test_the_next_event_must_wait_for_the_answer(runtime: Runtime) -> None:
    await runtime.take()

    answer = await runtime.client.get(f"{ROOT}/invocation/next")

    assert answer.status_code == 403


async def test_a_streamed_answer_is_cut_at_its_limit(runtime: Runtime) -> None:
    invocation = await runtime.take()

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 400

    answer = await runtime.post("invocation/id-1/response", chunks(), **STREAMING)

    assert answer.status_code == 413
    assert await invocation.read() == b"x" * 1000
    assert invocation.error
    assert invocation.error.type == "Function.ResponseSizeTooLarge"


async def test_a_streamed_answer_that_is_cut_off_is_truncated(runtime: Runtime) -> None:
    invocation = await runtime.take()
    host, port = runtime.client.base_url.host, runtime.client.base_url.port

    _, writer = await asyncio.open_connection(host, port)
    head = f"POST {ROOT}/invocation/id-1/response HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n"
    writer.write(f"{head}Lambda-Runtime-Function-Response-Mode: streaming\r\n\r\n5\r\nfirst\r\n".encode())
    await writer.drain()
    writer.close()

    assert await invocation.read() == b"first"
    assert invocation.error
    assert invocation.error.type == "Runtime.TruncatedResponse"


async def test_an_unknown_path_is_not_found(runtime: Runtime) -> None:
    assert (await runtime.post("elsewhere")).status_code == 404
