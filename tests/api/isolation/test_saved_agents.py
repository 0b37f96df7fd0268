"""Agents of OpenAI's Agents API, which the document does not describe, with ids of another tenant."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.isolation.belongings import mask, unknown_like
from tests.api.isolation.tenants import Tenant, make_tenant
from tests.api.isolation.warm_process import WarmProcess

BETA = {"OpenAI-Beta": "agents=v1"}
CHANGE = {"metadata": {"topic": "none"}}


@pytest.fixture(scope="module")
def alice(warm_process: WarmProcess, mcp_server: str) -> Iterator[Tenant]:
    yield from make_tenant(warm_process, "alice", mcp_server)


@pytest.fixture(scope="module")
def bob(warm_process: WarmProcess) -> Iterator[httpx.Client]:
    with warm_process.client("bob") as client:
        yield client


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("POST", CHANGE), ("DELETE", None)])
def test_an_agent_of_another_tenant_is_unknown(alice: Tenant, bob: httpx.Client, method: str, body: Any) -> None:
    own, unknown = alice.ids["agent_id"], unknown_like(alice.ids["agent_id"])

    refused, missing = (bob.request(method, f"/v1/agents/{each}", json=body, headers=BETA) for each in (own, unknown))

    assert (refused.status_code, missing.status_code) == (404, 404)
    assert mask(refused, {"id": own}) == mask(missing, {"id": unknown})
    assert alice.http.get(f"/v1/agents/{own}", headers=BETA).json()["metadata"] == {}


def test_a_list_has_the_agents_of_the_caller(alice: Tenant, bob: httpx.Client) -> None:
    assert alice.ids["agent_id"] in alice.http.get("/v1/agents", headers=BETA).text
    assert bob.get("/v1/agents", headers=BETA).json()["data"] == []


@pytest.mark.parametrize("kind", ["toolgroup", "file_search"])
def test_tools_of_another_tenant_are_unknown(alice: Tenant, bob: httpx.Client, kind: str) -> None:
    name = "toolgroup_id" if kind == "toolgroup" else "vector_store_id"

    def create(value: str) -> str:
        tool = {"name": value} if kind == "toolgroup" else {"vector_store_ids": [value]}
        body = {"model": "scripted/demo", "tools": [{"type": kind, **tool}]}
        answer = bob.post("/v1/agents", json=body, headers=BETA)
        return f"{answer.status_code} {mask(answer, {name: value})}"

    assert create(alice.ids[name]) == create(unknown_like(alice.ids[name]))
