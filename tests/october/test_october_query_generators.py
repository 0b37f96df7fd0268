"""Custom query generators of the memory tool, with the real client of October 2024."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.october.client import OctoberClient, Refused
from tests.october.test_october_memory_tool import fill_banks, memory, retrieval, worker
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

from stint.net.guard import Guard
from stint.tools.http.provider import HttpEndpoints

__all__ = ["worker"]

GENERATOR = {"name": "write_query", "method": "POST"}
SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:stint/default/key"
PUMAS = "id:pumas; content:Pumas eat guanacos."


@pytest.fixture
def endpoint(app_fixture: AppFixture) -> Iterator[ScriptedHTTPServer]:
    with ScriptedHTTPServer(lambda _: Reply((b"guanacos",))) as server:
        app_fixture.tool_providers = {"remote-execution": HttpEndpoints(Guard(["127.0.0.1"]))}
        app_fixture.made.clear()
        yield server
        app_fixture.tool_providers = None
        app_fixture.made.clear()


def asking(**provider_data: Any) -> dict[str, Any]:
    """Return a memory tool whose query is written by a generator. The bank has one word of it only."""
    generator = {"type": "custom", **({"provider_data": provider_data} if provider_data else {})}
    return memory({"type": "keyword", "bank_id": "keyword"}, query_generator_config=generator)


def test_an_endpoint_of_the_definition_writes_the_query(
    http: httpx.Client, october: OctoberClient, endpoint: ScriptedHTTPServer
) -> None:
    fill_banks(october)
    headers = {"X-Api-Key": "generator-secret-1"}
    session = october.open_session(tools=[asking(url=endpoint.url, headers=headers)])

    step = retrieval(october.say(session, "What is eaten?"))
    shown = http.get(f"/v1/agents/{session[0]}").text

    [request] = endpoint.requests
    assert step["inserted_context"][1] == PUMAS
    assert request.json() == {"messages": [{"role": "user", "content": "What is eaten?"}]}
    assert request.headers["x-api-key"] == "generator-secret-1"
    assert endpoint.url in shown
    assert "generator-secret" not in shown


@pytest.mark.parametrize("named", [{}, {"toolgroup": "query_generator/write_query"}])
def test_a_registered_toolgroup_writes_the_query(
    http: httpx.Client, october: OctoberClient, endpoint: ScriptedHTTPServer, named: dict[str, Any]
) -> None:
    fill_banks(october)
    args = {"tools": [GENERATOR | {"url": endpoint.url}]}
    group = {"toolgroup_id": "query_generator", "provider_id": "remote-execution", "args": args}
    assert http.post("/v1/toolgroups", json=group).status_code == 200

    step = retrieval(october.say(october.open_session(tools=[asking(**named)]), "What is eaten?"))

    assert step["inserted_context"][1] == PUMAS


def test_a_failed_generator_does_not_end_the_turn(october: OctoberClient, endpoint: ScriptedHTTPServer) -> None:
    fill_banks(october)
    session = october.open_session(tools=[asking(url=endpoint.url)])
    endpoint.script(Reply((b"[1]",)))

    payloads = october.say(session, "What is eaten?")

    assert payloads[-1]["event_type"] == "turn_complete"
    assert "The custom query generator must return a text" in str(retrieval(payloads)["inserted_context"])


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "Toolgroup 'query_generator' is not registered"),
        ({"toolgroup": "nope"}, "Toolgroup 'nope' is not registered"),
        ({"url": "http://169.254.169.254/latest"}, "cannot be used"),
        ({"url": "nonsense"}, "must begin with http:// or https://"),
        ({"url": "http://127.0.0.1/", "toolgroup": "x"}, "has both a url and a toolgroup"),
        ({"url": "http://127.0.0.1/", "timeout": 31}, "timeout"),
        ({"url": "http://127.0.0.1/", "headers": {"X": SECRET}}, "Only registered toolgroups can name secrets"),
    ],
)
def test_a_generator_that_cannot_be_used_is_refused_at_creation(
    october: OctoberClient, endpoint: ScriptedHTTPServer, data: dict[str, Any], says: str
) -> None:
    with pytest.raises(Refused) as refused:
        october.create_agent(tools=[asking(**data)])

    assert refused.value.status == 400
    assert says in refused.value.message


@pytest.mark.parametrize("bank_id", ["a,b", "/a", "a//b", "a/", "..", "a\nb", "", "x" * 257])
def test_an_id_of_a_bank_that_cannot_be_used_is_refused_at_creation(october: OctoberClient, bank_id: str) -> None:
    bank = {"type": "keyword", "identifier": bank_id, "provider_id": "p"}
    with pytest.raises(Refused) as refused:
        october.call("memory_banks.register", memory_bank=bank)

    assert refused.value.status == 400


def test_odd_ids_of_banks_work_and_a_comma_is_refused_in_a_tool(october: OctoberClient) -> None:
    names = ["a b", "ä%2C", 'x;"y"', "a/b", "😀"]
    for name in names:
        october.call("memory_banks.register", memory_bank={"type": "keyword", "identifier": name, "provider_id": "p"})
        october.call("memory.insert", bank_id=name, documents=[{"document_id": name, "content": "tea", "metadata": {}}])
    banks = [{"type": "keyword", "bank_id": name} for name in names]

    step = retrieval(october.say(october.open_session(tools=[memory(*banks)]), "tea"))
    with pytest.raises(Refused) as refused:
        october.create_agent(tools=[memory({"type": "keyword", "bank_id": "a,b"})])

    assert step["memory_bank_ids"] == names
    assert step["inserted_context"][1:-1] == [f"id:{name}; content:tea" for name in names]
    assert "The id of a bank cannot have a comma" in refused.value.message
