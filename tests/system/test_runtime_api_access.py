"""The services of the local cloud are on loopback, which it opens to callers' URLs; they stay closed all the same.

Each of them (the engine, the Lambda API, and a Runtime API for each process) takes requests without authentication: who
reaches one can write to the table and the queue, invoke functions, or take their events.
"""

import json
import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from infra.local.cloud import Plan, base_url, running_cloud, serving_front
from infra.local.engine import Engine
from infra.local.functions import Functions
from infra.local.server import listen
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(sys.platform != "linux", reason="another process's environment is read from /proc"),
]

NEXT = "/2018-06-01/runtime/invocation/next"
HOSTS = [
    "127.0.0.1",
    "localhost",
    "[::1]",
    "0.0.0.0",
    "[::]",
    "127.9.8.7",
    "2130706433",
    "0x7f.1",
    "[::ffff:127.0.0.1]",
    "[64:ff9b::7f00:1]",
]


@dataclass
class Stint:
    """The API with one process per function, and a session of it."""

    client: httpx.AsyncClient
    functions: Functions
    services: Mapping[str, str]
    agent: str = ""
    session: str = ""

    async def post(self, path: str, body: Any) -> httpx.Response:
        return await self.client.post(f"/v1/{path}", json=body)

    async def turn(self, text: str, **fields: Any) -> httpx.Response:
        body = {"messages": [{"role": "user", "content": text}], "stream": False, **fields}
        return await self.post(f"agents/{self.agent}/session/{self.session}/turn", body)

    async def read(self, url: str) -> httpx.Response:
        """A turn with a document at this URL."""
        return await self.turn("Hello", documents=[{"content": {"uri": url}, "mime_type": "text/plain"}])

    async def port_of(self, service: str) -> str:
        """Return the port of a service of the local cloud; `stint-...` is a function's Runtime API."""
        if service.startswith("stint-"):
            await self.functions.invoke(service, b"{}", stream=False)
            return self.runtime_api(service)
        return self.services[f"AWS_ENDPOINT_URL_{service}"].rpartition(":")[2]

    def runtime_api(self, function: str) -> str:
        """The port at which the process of a function asks for its work."""
        (pid,) = self.functions.processes(function)
        found = re.search(rb"\0AWS_LAMBDA_RUNTIME_API=127\.0\.0\.1:(\d+)\0", Path(f"/proc/{pid}/environ").read_bytes())
        assert found
        return found[1].decode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stint(engine: Engine) -> AsyncIterator[Stint]:
    with listen() as listener:
        registry = {"toolgroups": [lambda_toolgroup("configured", "stint-worker")]}
        shell = {"STINT_SCRIPTED_WORD_SECONDS": "0", "STINT_REGISTRY": json.dumps(registry)}
        plan = Plan(shell, concurrency=1)
        async with (
            running_cloud(plan, engine.running, lambda subject, line: None) as cloud,
            serving_front(cloud, listener, lambda subject, line: None),
            httpx.AsyncClient(base_url=base_url(listener), timeout=120, trust_env=False) as client,
        ):
            stint = Stint(client, cloud.functions, cloud.services)
            agent = {"agent_config": {"model": "scripted/demo", "instructions": ""}}
            stint.agent = (await stint.post("agents", agent)).json()["agent_id"]
            session = await stint.post(f"agents/{stint.agent}/session", {"session_name": "s"})
            stint.session = session.json()["session_id"]
            assert (await stint.turn("Hello")).status_code == 200
            yield stint


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedHTTPServer]:
    """Redirects `/to/<port>` to the Runtime API there; anything else is a text."""

    def answer(received: Received) -> Reply:
        if received.path.startswith("/to/"):
            location = f"http://localhost:{received.path.removeprefix('/to/')}{NEXT}"
            return Reply(status=302, headers={"Location": location})
        return Reply((b"a harmless text",), headers={"Content-Type": "text/plain"})

    with ScriptedHTTPServer(answer) as server:
        yield server


def error_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


async def test_a_document_of_this_machine_can_be_read(stint: Stint, server: ScriptedHTTPServer) -> None:
    answer = await stint.read(f"{server.url}/document")

    assert answer.status_code == 200
    assert server.requests[-1].path == "/document"


@pytest.mark.parametrize("host", HOSTS)
async def test_a_document_is_never_read_from_the_runtime_api(stint: Stint, host: str) -> None:
    answer = await stint.read(f"http://{host}:{stint.runtime_api('stint-turns')}{NEXT}")

    assert error_of(answer) == (400, "url_not_allowed"), answer.text
    assert stint.functions.processes("stint-turns")


@pytest.mark.parametrize("service", ["stint-turns", "stint-worker", "DYNAMODB"])
async def test_no_redirect_leads_a_document_there(stint: Stint, server: ScriptedHTTPServer, service: str) -> None:
    port = await stint.port_of(service)

    answer = await stint.read(f"{server.url}/to/{port}")

    assert server.requests[-1].path == f"/to/{port}"
    assert error_of(answer) == (400, "url_not_allowed"), answer.text


SERVICES = ["DYNAMODB", "SQS", "S3", "EVENTBRIDGE", "SECRETS_MANAGER", "LAMBDA"]
SERVICES += ["stint-agents", "stint-turns", "stint-knowledge", "stint-registry", "stint-worker"]


@pytest.mark.parametrize("host", ["127.0.0.1", "[::ffff:127.0.0.1]", "localhost"])
@pytest.mark.parametrize("service", SERVICES)
async def test_no_url_of_a_caller_reaches_a_service_of_the_local_cloud(stint: Stint, service: str, host: str) -> None:
    url = f"http://{host}:{await stint.port_of(service)}/"
    image = {"type": "image", "image": {"url": {"uri": url}}}
    mcp = {"type": "mcp", "server_label": "m", "server_url": url, "require_approval": "never"}
    endpoint = {"toolgroup_id": "mcp::own", "provider_id": "model-context-protocol", "mcp_endpoint": {"uri": url}}
    asked = {"model": "scripted/demo", "input": "Hello"}
    shown = [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]
    filed = [{"role": "user", "content": [{"type": "input_file", "file_url": url}]}]

    answers = {
        "document": await stint.read(url),
        "image": await stint.turn("x", messages=[{"role": "user", "content": [image]}]),
        "HTTP tool": await stint.post("toolgroups", toolgroup("own", "call", url)),
        "MCP toolgroup": await stint.post("toolgroups", endpoint),
        "MCP list": await stint.client.get("/v1/tool-runtime/list-tools", params={"mcp_endpoint[uri]": url}),
        "MCP of a response": await stint.post("responses", asked | {"tools": [mcp]}),
        "image of a response": await stint.post("responses", asked | {"input": shown}),
        "file of a response": await stint.post("responses", asked | {"input": filed}),
    }

    assert {name: error_of(answer) for name, answer in answers.items()} == dict.fromkeys(
        answers, (400, "url_not_allowed")
    )


async def test_the_attack_on_the_worker_ends_at_the_registration(stint: Stint) -> None:
    """The search is replaced by the worker, and the model is told to call it with a deletion."""
    for function in ("stint-worker", "arn:aws:lambda:us-east-1:000000000000:function:stint-worker:$LATEST"):
        answer = await stint.post("toolgroups", lambda_toolgroup("builtin::websearch", function))

        assert error_of(answer) == (400, "function_not_allowed"), answer.text
        assert "belongs to this Stint stack" in answer.json()["detail"]


async def test_a_configured_tool_that_is_the_worker_is_refused_when_it_is_called(stint: Stint) -> None:
    deletion = {"kind": "delete", "task": "delete", "tenant": "default", "agent_id": stint.agent}

    direct = await stint.post("tool-runtime/invoke", {"tool_name": "delete", "kwargs": deletion})
    turn = await stint.turn(f"call: delete {json.dumps(deletion)}", toolgroups=["configured"])

    assert error_of(direct) == (400, "function_not_allowed"), direct.text
    assert "belongs to this Stint stack" in turn.text
    assert turn.json()["status"] == "completed"
    assert (await stint.client.get(f"/v1/agents/{stint.agent}")).status_code == 200


def lambda_toolgroup(name: str, function: str) -> dict[str, Any]:
    tools = [{"name": "delete", "function": function}]
    return {"toolgroup_id": name, "provider_id": "lambda-function", "args": {"tools": tools}}


def toolgroup(name: str, tool: str, url: str) -> dict[str, Any]:
    tools = [{"name": tool, "url": url}]
    return {"toolgroup_id": name, "provider_id": "remote-execution", "args": {"tools": tools}}
