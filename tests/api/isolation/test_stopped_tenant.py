"""Every POST, called by a stopped tenant: only those run that store or end something. No tools are listed."""

from collections.abc import Iterator

import pytest
from tests.api.isolation.belongings import Ids
from tests.api.isolation.operations import RequestTemplate
from tests.api.isolation.tenants import Tenant, list_templates, make_tenant
from tests.api.isolation.warm_process import WarmProcess
from tests.faults.routes import CHANGING, CREATING

GOES_ON = {f"POST {path}" for path in (*CREATING, *CHANGING, "/v1/telemetry/spans") if path.startswith("/v1/")}
"""Operations that call no model, tool, shield or embedding model, and are not refused."""

LISTS_TOOLS = frozenset({"GET /v1/tools", "GET /v1/tools/{tool_name}", "GET /v1/tool-runtime/list-tools"})
"""Reads that may ask MCP servers."""


@pytest.fixture(scope="module")
def dora(warm_process: WarmProcess, mcp_server: str) -> Iterator[Tenant]:
    yield from make_tenant(warm_process, "dora", mcp_server)


def cancels(dora: Tenant, template: RequestTemplate) -> bool:
    """Return whether a request only cancels a turn of a session, which a stop allows."""
    sent = template.arguments(Ids(dora.ids)).get("json")
    events = sent.get("events", []) if isinstance(sent, dict) else []
    return [event["type"] for event in events] == ["agent.session.input.cancel"]


def only_reads(dora: Tenant, template: RequestTemplate) -> bool:
    """Return whether a call of a protocol reads or cancels. A run without messages shows a thread."""
    sent = template.arguments(Ids(dora.ids)).get("json")
    if not isinstance(sent, dict):
        return False
    shows = template.operation.path.endswith("/ag-ui") and not sent["messages"]
    return shows or sent.get("method") in ("GetTask", "ListTasks", "SubscribeToTask", "CancelTask")


def is_refused(dora: Tenant, template: RequestTemplate) -> bool:
    answer = template.send(dora.http, dora.ids_for(template, {}))
    if template.operation.path.endswith("/a2a"):
        return "error" in answer.json() and answer.json()["error"]["data"][0]["metadata"]["code"] == "stopped"
    if template.operation.path.endswith("/mcp"):
        return "error" in answer.json() and answer.json()["error"]["data"]["code"] == "stopped"
    return answer.status_code == 403 and answer.json()["error"]["code"] == "stopped"


def test_a_stopped_tenant_runs_nothing(dora: Tenant) -> None:
    listed = [each for each in list_templates("GET") if each.operation.name in LISTS_TOOLS]
    templates = [*listed, *(each for each in list_templates("POST") if each.operation.name not in GOES_ON)]
    dora.http.post("/v1/admin/stop", json={"kind": "tenant"}).raise_for_status()

    allowed = [each for each in templates if cancels(dora, each) or only_reads(dora, each)]
    assert [each.label for each in templates if each not in allowed and not is_refused(dora, each)] == []


def test_the_operations_that_go_on_exist() -> None:
    undocumented = {"POST /v1/agents/{agent_id}"}

    assert {each.operation.name for each in list_templates("POST", "GET")} >= (GOES_ON | LISTS_TOOLS) - undocumented
