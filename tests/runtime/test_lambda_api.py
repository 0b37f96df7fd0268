"""Lambda's public API, called with boto3."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import boto3
import httpx
import pytest
import uvicorn
from botocore.config import Config
from infra.local.functions import Functions
from infra.local.lambda_api import lambda_api
from tests.runtime.harness import Gate, Service, Start, proxy_event, split, until, with_gate

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient


class Client:
    """boto3's client of one service, off the event loop."""

    def __init__(self, client: "LambdaClient", service: Service) -> None:
        self._client = client
        self.service = service

    async def invoke(self, event: Any, name: str = "f", **arguments: Any) -> Any:
        payload = json.dumps(event).encode()
        return await asyncio.to_thread(self._client.invoke, FunctionName=name, Payload=payload, **arguments)

    async def stream(self, event: Any) -> list[Any]:
        def read() -> list[Any]:
            answer = self._client.invoke_with_response_stream(FunctionName="f", Payload=json.dumps(event).encode())
            return list(answer["EventStream"])

        return await asyncio.to_thread(read)


@pytest.fixture
async def api(service: Start) -> AsyncIterator[Client]:
    function = await service(concurrency=1)
    app = lambda_api(function.functions, {"f"})
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off", loop="asyncio"))
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    client = boto3.client(
        "lambda",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"total_max_attempts": 1}, max_pool_connections=2),
    )
    yield Client(client, function)
    client.close()
    server.should_exit = True
    await serving


async def test_no_web_page_invokes_a_function() -> None:
    functions = Functions([], concurrency=1, log=lambda subject, line: None)
    path = "/2015-03-31/functions/f/invocations"
    transport = httpx.ASGITransport(lambda_api(functions, ()))

    async with httpx.AsyncClient(base_url="http://127.0.0.1:9", transport=transport) as client:
        pages = [{"origin": "https://evil.example"}, {"host": "evil.example"}, {"sec-fetch-site": "cross-site"}]
        refused = [(await client.post(path, content=b"{}", headers=page)).status_code for page in pages]
        own = await client.post(path, content=b"{}")
    await functions.stop()

    assert refused == [403, 403, 403]
    assert own.status_code == 404


async def test_invoke_gives_the_payload(api: Client) -> None:
    arn = "arn:aws:lambda:us-east-1:000000000000:function:f:live"

    answer = await api.invoke({"ping": 1}, arn)

    assert answer["StatusCode"] == 200
    assert "FunctionError" not in answer
    assert "REST proxy events" in json.loads(answer["Payload"].read())["message"]


async def test_invoke_gives_the_functions_error(api: Client) -> None:
    answer = await api.invoke(proxy_event(path="/fail-first"))

    assert answer["FunctionError"] == "Unhandled"
    assert json.loads(answer["Payload"].read())["errorMessage"] == "nothing was sent"


async def test_events_and_dry_runs_are_accepted(api: Client) -> None:
    event = await api.invoke(proxy_event(path="/fail-first"), InvocationType="Event")
    dry = await api.invoke({}, InvocationType="DryRun")

    assert (event["StatusCode"], dry["StatusCode"]) == (202, 204)
    await until(lambda: len([line for line in api.service.lines if line.startswith("Attempt")]) == 3)


@pytest.mark.parametrize(
    ("operation", "headers"),
    [
        ("2015-03-31/functions/{}/invocations", {}),
        ("2015-03-31/functions/{}/invocations", {"x-amz-invocation-type": "Event"}),
        ("2015-03-31/functions/{}/invocations", {"x-amz-invocation-type": "DryRun"}),
        ("2021-11-15/functions/{}/response-streaming-invocations", {}),
    ],
)
@pytest.mark.parametrize("name", ["f", "f:live", "arn:aws:lambda:us-east-1:000000000000:function:f"])
async def test_a_function_that_is_no_tool_is_not_invoked(
    service: Start, operation: str, headers: dict[str, str], name: str
) -> None:
    function = await service(concurrency=1)
    transport = httpx.ASGITransport(lambda_api(function.functions, {"other"}))

    async with httpx.AsyncClient(base_url="http://127.0.0.1:9", transport=transport) as client:
        answer = await client.post(operation.format(name), content=b"{}", headers=headers)

    assert (answer.status_code, answer.headers["x-amzn-ErrorType"]) == (403, "AccessDeniedException")
    assert function.functions.processes("f") == set()


async def test_refusals_are_lambdas(api: Client, gate: Gate) -> None:
    with pytest.raises(Exception, match="ResourceNotFoundException"):
        await api.invoke({}, "other")
    with pytest.raises(Exception, match="ResourceNotFoundException"):
        await api.invoke({}, "other", InvocationType="DryRun")

    busy = await api.service.start(with_gate(proxy_event(path="/steps"), gate))
    waiting = asyncio.create_task(api.service.json(proxy_event()))
    await asyncio.sleep(0)
    with pytest.raises(Exception, match="TooManyRequestsException"):
        await api.invoke({})

    for index in range(3):
        await gate.open(f"step {index}")
    await waiting
    assert busy.ended


async def test_a_streamed_answer_is_an_event_stream(api: Client) -> None:
    events = await api.stream(proxy_event(path="/fail-later"))

    payload = b"".join(event["PayloadChunk"]["Payload"] for event in events[:-1])
    assert split(payload) == ({"statusCode": 200, "headers": {}}, b"first")
    assert events[-1]["InvokeComplete"]["ErrorCode"] == "ValueError"
    assert "in the middle" in events[-1]["InvokeComplete"]["ErrorDetails"]
