"""Servers whose lists of tools do not end, or are large."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

from stint.domain.errors import InvalidRequest, ToolUnavailable
from stint.net.guard import Guard
from stint.tools.list_budget import MAX_LIST_BYTES, shared_list_budget
from stint.tools.mcp.provider import McpTools
from stint.tools.mcp.stateless import MOST_PAGES
from stint.tools.port import Toolgroup

List = Callable[[int], dict[str, Any]]


class Lister:
    """An MCP server whose n-th page is what `page` makes."""

    def __init__(self) -> None:
        self.pages = 0
        self.page: List = self.endless

    def endless(self, number: int) -> dict[str, Any]:
        return {"tools": [{"name": f"t{number}", "inputSchema": {"type": "object"}}], "nextCursor": str(number)}

    def large(self, number: int) -> dict[str, Any]:
        return {"tools": [{"name": "t", "description": "x" * self.size, "inputSchema": {"type": "object"}}]}

    size = MAX_LIST_BYTES

    def answer(self, received: Received) -> Reply:
        message = received.json()
        if "id" not in message:
            return Reply(status=202)
        result: dict[str, Any] = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "serverInfo": {"name": "s", "version": "1"},
        }
        if message["method"] == "tools/list":
            self.pages += 1
            result = self.page(self.pages)
        text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        return Reply((text.encode(),), 200, {"Content-Type": "application/json"})


@pytest.fixture
def lister() -> Lister:
    return Lister()


@pytest.fixture
def endpoint(lister: Lister) -> Iterator[str]:
    with ScriptedHTTPServer(lister.answer) as server:
        yield server.url


def group(url: str) -> Toolgroup:
    return Toolgroup("mcp::test", "model-context-protocol", mcp_endpoint=url)


async def test_a_list_that_does_not_end_is_given_up(guard: Guard, lister: Lister, endpoint: str) -> None:
    with pytest.raises(ToolUnavailable, match=r"127\.0\.0\.1.* more than 50 pages"):
        await McpTools(guard, timeout=60).list_tools(group(endpoint), {})

    assert lister.pages == MOST_PAGES


async def test_a_list_is_smaller_than_a_result_may_be(guard: Guard, lister: Lister, endpoint: str) -> None:
    lister.page = lister.large

    with pytest.raises(InvalidRequest, match="1,000,000 bytes"):
        await McpTools(guard, timeout=60).list_tools(group(endpoint), {})


async def test_the_lists_of_one_request_are_counted_together(guard: Guard, lister: Lister, endpoint: str) -> None:
    lister.page, lister.size = lister.large, MAX_LIST_BYTES * 9 // 10
    tools = McpTools(guard, timeout=60)

    with shared_list_budget():
        for number in range(4):
            assert len(await tools.list_tools(group(f"{endpoint}/{number}"), {})) == 1
        with pytest.raises(InvalidRequest, match="Name fewer servers"):
            await tools.list_tools(group(f"{endpoint}/last"), {})
