"""Lambda's Runtime API is on loopback, which the local cloud opens to callers' URLs; it stays closed all the same."""

import json
import re
import sys
from collections.abc import AsyncIterator, Iterator
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

    def runtime_api(self, function: str) -> str:
        """The port at which the process of a function asks for its work."""
        (pid,) = self.functions.processes(function)
        found = re.search(rb"\0AWS_LAMBDA_RUNTIME_API=127\.0\.0\.1:(\d+)\0", Path(f"/proc/{pid}/environ").read_bytes())
        assert found
        return found[1].decode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stint(engine: Engine) -> AsyncIterator[Stint]:
    with listen() as listener:
        plan = Plan({"STINT_SCRIPTED_WORD_SECONDS": "0"}, concurrency=1)
        async with (
            running_cloud(plan, engine.running, lambda subject, line: None) as cloud,
            serving_front(cloud, listener, lambda subject, line: None),
            httpx.AsyncClient(base_url=base_url(listener), timeout=30, trust_env=False) as client,
        ):
            stint = Stint(client, cloud.functions)
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


async def test_no_redirect_leads_a_document_to_the_runtime_api(stint: Stint, server: ScriptedHTTPServer) -> None:
    port = stint.runtime_api("stint-turns")

    answer = await stint.read(f"{server.url}/to/{port}")

    assert server.requests[-1].path == f"/to/{port}"
    assert error_of(answer) == (400, "url_not_allowed"), answer.text


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
async def test_a_tool_of_a_turn_does_not_reach_the_runtime_api(stint: Stint, host: str) -> None:
    url = f"http://{host}:{stint.runtime_api('stint-turns')}{NEXT}"
    await register(stint, f"turn {host}", "take_work", url)

    answer = await stint.turn("Please take_work", toolgroups=[f"turn {host}"])

    (step,) = (step for step in answer.json()["steps"] if step["step_type"] == "tool_execution")
    assert "may not be called" in json.dumps(step["tool_responses"])
    assert answer.json()["status"] == "completed"


@pytest.mark.parametrize("host", ["localhost", "0.0.0.0"])
async def test_a_tool_at_the_runtime_api_is_not_even_registered_where_it_is_seen(stint: Stint, host: str) -> None:
    await stint.client.get("/v1/health")
    url = f"http://{host}:{stint.runtime_api('stint-registry')}{NEXT}"

    answer = await stint.post("toolgroups", toolgroup("seen", "take_work_seen", url))

    assert error_of(answer) == (400, "url_not_allowed"), answer.text


async def register(stint: Stint, name: str, tool: str, url: str) -> None:
    answer = await stint.post("toolgroups", toolgroup(name, tool, url))
    assert answer.status_code == 200, answer.text


def toolgroup(name: str, tool: str, url: str) -> dict[str, Any]:
    tools = [{"name": tool, "url": url}]
    return {"toolgroup_id": name, "provider_id": "remote-execution", "args": {"tools": tools}}
