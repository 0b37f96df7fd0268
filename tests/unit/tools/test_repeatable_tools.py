"""Which tools may be called again after an interruption."""

from typing import Any

import pytest
from tests.servers.mcp_replies import refuse_discovery
from tests.servers.scripted_http import ScriptedHTTPServer
from tests.unit.tools.mcp.test_mcp import LISTING, answer, group

from stint.domain.inference import ToolSignature
from stint.net.guard import Guard
from stint.tools.http.provider import HttpEndpoints
from stint.tools.knowledge import file_search, provider
from stint.tools.lambda_function.provider import LambdaFunctions
from stint.tools.mcp.provider import McpTools
from stint.tools.port import Toolgroup
from stint.tools.search.web_search import WEB_SEARCH
from stint.tools.search.wolfram_alpha import WOLFRAM_ALPHA

HINTS: list[dict[str, Any]] = [{}, {"readOnlyHint": True}, {"idempotentHint": True}, {"readOnlyHint": False}]


@pytest.mark.parametrize(
    ("args", "repeatable"),
    [
        ({}, ["t1", "t2"]),
        ({"repeatable": True}, ["t0", "t1", "t2", "t3", "plain"]),
        ({"repeatable": False}, []),
    ],
)
async def test_the_hints_of_an_mcp_server_count_unless_the_registration_decides(
    guard: Guard, server: ScriptedHTTPServer, args: dict[str, Any], repeatable: list[str]
) -> None:
    listing = [
        {"name": f"t{n}", "inputSchema": {"type": "object"}, "annotations": hints} for n, hints in enumerate(HINTS)
    ]
    listing.append({"name": "plain", "inputSchema": {"type": "object"}})
    server.aside = refuse_discovery
    server.script(*LISTING[:2], answer(1, {"tools": listing}))
    tools = McpTools(guard, timeout=60)
    toolgroup = Toolgroup("mcp::test", "model-context-protocol", mcp_endpoint=server.url, config=args)

    listed = await tools.list_tools(toolgroup, {})

    assert names_of(listed) == repeatable
    assert names_of(tools.known_tools(toolgroup, {}) or []) == repeatable
    assert names_of(tools.known_tools(group(server.url), {}) or []) == ["t1", "t2"]


@pytest.mark.parametrize("kind", ["http", "lambda"])
def test_a_definition_says_whether_its_tool_is_repeatable(guard: Guard, kind: str) -> None:
    tools: HttpEndpoints | LambdaFunctions = HttpEndpoints(guard) if kind == "http" else LambdaFunctions()
    place = {"url": "https://example.com/"} if kind == "http" else {"function": "f"}
    definitions = [{"name": "once", **place}, {"name": "often", **place, "repeatable": True}]

    known = tools.known_tools(Toolgroup("g", "p", config={"tools": definitions}), {})

    assert names_of(known) == ["often"]


def test_searches_are_repeatable() -> None:
    searches = [WEB_SEARCH, WOLFRAM_ALPHA, provider.SIGNATURE, file_search.SIGNATURE]

    assert all(signature.repeatable for signature in searches)


def names_of(tools: list[ToolSignature]) -> list[str]:
    return [tool.name for tool in tools if tool.repeatable]
