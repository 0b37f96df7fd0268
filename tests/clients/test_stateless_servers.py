"""Servers of the newest `mcp` package: without sessions, and with those of the older revisions."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from infra.local.engine import ROOT
from tests.system.run_process import clean_shell

from stint.domain.content import text_of
from stint.domain.elicitations import AnsweredInput
from stint.net.guard import Guard
from stint.tools.mcp.lists import McpRevision
from stint.tools.mcp.provider import McpTools, key_of
from stint.tools.port import CallerSession, Invocation, Toolgroup, ToolOutcome

PYTHON = ROOT / ".venv-clients-protocols" / "bin" / "python"
SESSION = CallerSession("agent", "session")


@pytest.fixture(scope="module")
def newest_server() -> Iterator[str]:
    """Yield the base URL of a server of the newest package."""
    if not PYTHON.exists():
        pytest.skip("the environment of the protocols' clients does not exist: make test-clients")
    command = [PYTHON, Path(__file__).parent / "stateless_mcp_server.py"]
    shell = {name: value for name, value in clean_shell().items() if name != "PYTHONPATH"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=shell)
    assert process.stdout
    yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    process.kill()
    process.communicate()


@pytest.fixture(params=["/mcp", "/json/mcp"])
def url(newest_server: str, request: pytest.FixtureRequest) -> str:
    return f"{newest_server}{request.param}"


@pytest.fixture(params=list(McpRevision))
def tools(url: str, request: pytest.FixtureRequest) -> McpTools:
    """Return tools that speak to the server without sessions, or with them."""
    tools = McpTools(Guard(["127.0.0.0/8"]))
    if request.param is McpRevision.sessions:
        tools._lists.put_revision(key_of(url, {}), request.param)
    return tools


async def call(
    tools: McpTools, url: str, tool: str, answered: AnsweredInput | None = None, /, **given: Any
) -> ToolOutcome:
    invocation = Invocation(tool, given, "c", session=SESSION, answered=answered)
    return await tools.invoke(Toolgroup("g", "model-context-protocol", mcp_endpoint=url), invocation)


async def test_tools_are_listed_and_called(tools: McpTools, url: str) -> None:
    group = Toolgroup("g", "model-context-protocol", mcp_endpoint=url)

    names = {tool.name for tool in await tools.list_tools(group, {})}

    assert {"add", "book", "weather"} <= names
    assert text_of((await call(tools, url, "add", a=1, b=2)).content) == "3"
    assert (await call(tools, url, "structured_only")).metadata == {"structured_content": {"answer": 42}}
    assert text_of((await call(tools, url, "report", steps=3)).content) == "reported"
    assert text_of((await call(tools, url, "header", name="stint-call-depth")).content) == "1"
    assert (await call(tools, url, "nosuch")).error
    assert len((await call(tools, url, "mixed")).metadata["attachments"]) == 5


async def test_a_marked_parameter_arrives_in_its_header(url: str) -> None:
    said = await call(McpTools(Guard(["127.0.0.0/8"])), url, "weather", city="Zürich")

    assert text_of(said.content) == "Zürich =?base64?WsO8cmljaA==?="


@pytest.mark.parametrize(
    ("answer", "said"),
    [({"action": "accept", "content": {"guests": 3}}, "May: 3 guests, window False"), ({"action": "decline"}, "")],
)
async def test_a_question_is_answered_with_the_state(url: str, answer: dict[str, Any], said: str) -> None:
    tools = McpTools(Guard(["127.0.0.0/8"]))
    asked = (await call(tools, url, "book", date="May")).asks
    assert asked is not None
    [key] = asked.forms
    assert asked.forms[key].message == "How many come on May?"

    done = await call(tools, url, "book", AnsweredInput({asked.server_keys[key]: answer}, asked.state), date="May")

    assert done.asks is None
    assert done.error == (not said)
    assert said in text_of(done.content)


async def test_what_is_not_offered_is_refused(url: str) -> None:
    tools = McpTools(Guard(["127.0.0.0/8"]))

    for name in ("think", "look"):
        outcome = await call(tools, url, name)
        assert outcome.error
        assert "capability" in text_of(outcome.content)


async def test_a_server_with_sessions_gets_no_forms(url: str) -> None:
    tools = McpTools(Guard(["127.0.0.0/8"]))
    tools._lists.put_revision(key_of(url, {}), McpRevision.sessions)

    outcome = await call(tools, url, "book", date="May")

    assert (outcome.error, outcome.asks) == (True, None)
