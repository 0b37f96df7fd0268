import asyncio
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from infra.local.engine import Engine
from llama_stack_client import LlamaStackClient
from mangum import Mangum
from tests.api.api_client import open_session
from tests.api.app_fixture import AppFixture, Served
from tests.api.gated_mcp import GatedMcp
from tests.servers.chat_completions import ChatCompletionsServer
from tests.servers.converse_stream import ConverseStreamServer
from tests.store.dynamodb_proxy import DynamoDBProxy
from tests.store.tenant_records import note_partitions

from stint.caller import find_principal
from stint.domain.errors import StoreUnavailable
from stint.domain.ids import new_id
from stint.domain.principals import Principal
from stint.models.bedrock.model import Bedrock
from stint.net.guard import Guard
from stint.providers.bedrock.client import connect
from stint.services.knowledge import tasks
from stint.store.idempotent_requests import RequestRecords
from stint.tools.image_generation.scripted import draw
from stint.tools.mcp.provider import McpTools


@pytest.fixture(scope="session")
def shared_app_fixture(engine: Engine) -> Iterator[AppFixture]:
    with DynamoDBProxy(engine.environment()["AWS_ENDPOINT_URL_DYNAMODB"]) as proxy:
        proxy.observers.append(note_partitions)
        with pytest.MonkeyPatch.context() as patch:
            for name, value in engine.environment().items():
                patch.setenv(name, value)
            app_fixture = AppFixture(engine, proxy)
        yield app_fixture
        app_fixture.close()


@pytest.fixture(scope="session")
def shared_server(shared_app_fixture: AppFixture) -> Iterator[Served]:
    with Served(shared_app_fixture.app()) as served:
        yield served


@pytest.fixture
def app_fixture(shared_app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch) -> AppFixture:
    def find_creator() -> Principal | None:
        principal = find_principal()
        return principal and replace(principal, tenant=shared_app_fixture.tenant)

    shared_app_fixture.tenant = f"t{new_id()[-12:]}"
    # The caller of all tests is that of a stack without authentication, whose tenant is another one.
    monkeypatch.setattr(tasks, "find_principal", find_creator)
    shared_app_fixture.recorder.requests.clear()
    shared_app_fixture.faulty.silence.clear()
    shared_app_fixture.queue.clear()
    shared_app_fixture.schedules.active.clear()
    return shared_app_fixture


@pytest.fixture
def server(shared_server: Served, app_fixture: AppFixture) -> Iterator[Served]:
    shared_server.posts.clear()
    yield shared_server
    shared_server.settle()


@pytest.fixture
def http(server: Served) -> Iterator[httpx.Client]:
    """Yield a plain HTTP client."""
    with httpx.Client(base_url=server.url, trust_env=False, timeout=120) as client:
        yield client


@pytest.fixture
def llama_stack(server: Served) -> Iterator[httpx.Client]:
    """Yield a plain HTTP client of the OpenAI API at Llama Stack's address, where /v1 is /v1/openai/v1."""
    with httpx.Client(base_url=f"{server.url}/v1/openai", trust_env=False, timeout=120) as client:
        yield client


@pytest.fixture
def client(server: Served) -> Iterator[LlamaStackClient]:
    """Yield Llama Stack's client, with its own retries."""
    with LlamaStackClient(base_url=server.url, http_client=httpx.Client(trust_env=False)) as client:
        yield client


@pytest.fixture
def session(http: httpx.Client) -> str:
    return open_session(http)


@pytest.fixture
def bedrock(app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConverseStreamServer]:
    """Serve models of Bedrock by a fake server, which is returned."""
    with ConverseStreamServer() as peer:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", peer.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        app_fixture.models = {"bedrock": lambda: Bedrock(lambda: connect("eu-central-1"))}
        yield peer
    app_fixture.models = {}


@pytest.fixture(scope="session")
def shared_chat() -> Iterator[ChatCompletionsServer]:
    with ChatCompletionsServer() as server:
        yield server


@pytest.fixture
def chat(shared_chat: ChatCompletionsServer, app_fixture: AppFixture) -> Iterator[ChatCompletionsServer]:
    """Yield the chat-completions server of the `openai/` models."""
    shared_chat.forget()
    app_fixture.chat_url = shared_chat.base_url
    app_fixture.made.clear()
    yield shared_chat
    app_fixture.chat_url = ""


@pytest.fixture
def mcp(mcp_server: str, app_fixture: AppFixture) -> Iterator[str]:
    """Yield the toolgroup of that server, which is configured from the start."""
    group = {
        "toolgroup_id": "mcp::peer",
        "provider_id": "model-context-protocol",
        "mcp_endpoint": {"uri": f"{mcp_server}/mcp"},
    }
    settings = app_fixture.settings
    app_fixture.settings = settings.model_copy(update={"registry": json.dumps({"toolgroups": [group]})})
    app_fixture.tool_providers = {"model-context-protocol": McpTools(Guard(["127.0.0.1"]))}
    app_fixture.made.clear()
    yield "mcp::peer"
    app_fixture.settings, app_fixture.tool_providers = settings, None


@pytest.fixture
def mcp_tools(app_fixture: AppFixture) -> Iterator[None]:
    """Let turns call MCP servers of this machine."""
    app_fixture.tool_providers = {"model-context-protocol": McpTools(Guard(["127.0.0.1"]))}
    app_fixture.made.clear()
    yield
    app_fixture.tool_providers = None
    app_fixture.made.clear()


@pytest.fixture
def through_mangum(app_fixture: AppFixture) -> Iterator[Callable[..., dict[str, Any]]]:
    """Yield a function that calls the agents app like Lambda. It returns the body, the status and Lambda's size."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    handler: Any = Mangum(app_fixture.app(buffered=True), lifespan="off")

    def call(method: str, path: str, body: Any = None) -> dict[str, Any]:
        event = {
            "resource": "/v1/agents/{proxy+}",
            "path": path,
            "httpMethod": method,
            "headers": {"content-type": "application/json"},
            "multiValueHeaders": {"content-type": ["application/json"]},
            "queryStringParameters": None,
            "multiValueQueryStringParameters": None,
            "requestContext": {"httpMethod": method, "path": path, "stage": "prod", "identity": {"sourceIp": "::1"}},
            "body": None if body is None else json.dumps(body),
            "isBase64Encoded": False,
        }
        answer = handler(event, Invocation())
        return {**json.loads(answer["body"]), "statusCode": answer["statusCode"], "size": len(json.dumps(answer))}

    yield call
    asyncio.set_event_loop(None)
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


class Invocation:
    """A Lambda context."""

    aws_request_id = "00000000-0000-0000-0000-000000000000"

    def get_remaining_time_in_millis(self) -> int:
        return 29_000


@pytest.fixture
def large_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the scripted model draw images of 1 MB that cannot be compressed."""

    def draw_large(prompt: str, size: tuple[int, int], *, transparent: bool = False) -> bytes:
        return draw(prompt, size, transparent=transparent) + random.Random(prompt).randbytes(1_000_000)

    monkeypatch.setattr("stint.tools.image_generation.scripted.draw", draw_large)


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make the first answer of a key impossible to store, as if its process had died then."""
    lost: list[int] = []
    put = RequestRecords.put_answer

    async def put_after_first(*args: Any, **named: Any) -> None:
        lost.append(1)
        if len(lost) == 1:
            raise StoreUnavailable("The database does not respond. Try again.")
        await put(*args, **named)

    monkeypatch.setattr(RequestRecords, "put_answer", put_after_first)
    return lost


@pytest.fixture
def gated(app_fixture: AppFixture) -> Iterator[GatedMcp]:
    provider = GatedMcp()
    app_fixture.tool_providers = {"model-context-protocol": provider}
    app_fixture.made.clear()
    yield provider
    app_fixture.tool_providers = None
    app_fixture.made.clear()
