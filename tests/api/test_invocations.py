"""Tools outside a turn, over HTTP with the real client, which repeats by itself what it takes for a passing failure."""

from collections.abc import Iterator
from typing import Any

import httpx
import llama_stack_client
import pytest
from llama_stack_client import LlamaStackClient
from tests.api.app_fixture import AppFixture, Served

from stint.domain.errors import ToolUnavailable
from stint.domain.inference import ToolSignature
from stint.tools.port import Invocation, Toolgroup, ToolOutcome


class BreakingToolProvider:
    """A provider whose tool does its work and then breaks the connection, or worse."""

    def __init__(self, fault: Exception) -> None:
        self.fault = fault
        self.done = 0

    async def check(self, toolgroup: Toolgroup, /) -> None:
        pass

    def known_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        return [ToolSignature("pay", "Pays.", {"type": "object", "properties": {}})]

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        return self.known_tools(toolgroup, provider_data)

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        self.done += 1
        raise self.fault


@pytest.fixture
def breaking(app_fixture: AppFixture, request: pytest.FixtureRequest) -> Iterator[BreakingToolProvider]:
    breaking = BreakingToolProvider(request.param)
    app_fixture.tool_providers = {"remote-execution": breaking}
    yield breaking
    app_fixture.tool_providers = None


@pytest.mark.parametrize(
    ("breaking", "status"),
    [(ToolUnavailable("The connection broke."), 502), (ZeroDivisionError("a fault of the adapter"), 500)],
    indirect=["breaking"],
)
def test_a_tool_that_may_have_done_its_work_is_run_once_however_it_fails(
    client: LlamaStackClient, http: httpx.Client, server: Served, breaking: BreakingToolProvider, status: int
) -> None:
    body = {"toolgroup_id": "shop", "provider_id": "remote-execution", "args": {"tools": [{"name": "pay"}]}}
    assert http.post("/v1/toolgroups", json=body).status_code == 200

    with pytest.raises(llama_stack_client.APIStatusError) as refused:
        client.tool_runtime.invoke_tool(tool_name="pay", kwargs={})

    assert refused.value.status_code == status
    assert (breaking.done, server.posts["invoke"]) == (1, 1)
