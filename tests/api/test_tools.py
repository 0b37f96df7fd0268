"""Server tools over HTTP: the registry's forms, secrets, and turns."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from llama_stack_client import APIStatusError, LlamaStackClient
from llama_stack_client.lib.agents.agent import Agent
from tests.api.api_client import WEATHER, assert_error, open_session, say, turn, turns_of
from tests.api.app_fixture import LEASE, AppFixture
from tests.clock import CLOCK
from tests.store.tenant_records import read_records

from stint.domain.inference import ToolSignature
from stint.tools.port import Invocation, Toolgroup, ToolOutcome

KIND = "remote-execution"
KEY = "sk-callers-own-key"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "description": "How many."}}, "required": ["n"]}


class FakeToolProvider:
    """A provider of the tools that a registration names."""

    def __init__(self) -> None:
        self.invocations: list[Invocation] = []
        self.listed_with: list[dict[str, Any]] = []
        self.repeatable = False

    async def check(self, _: Toolgroup, /) -> None:
        pass

    def known_tools(self, toolgroup: Toolgroup, _: dict[str, Any], /) -> list[ToolSignature]:
        named = toolgroup.config["tools"]
        return [ToolSignature(tool["name"], "A tool.", SCHEMA, repeatable=self.repeatable) for tool in named]

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        self.listed_with.append(provider_data)
        return self.known_tools(toolgroup, provider_data)

    async def invoke(self, _: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        self.invocations.append(invocation)
        return ToolOutcome(content=f"{invocation.tool_name} {invocation.arguments}")


@pytest.fixture
def bench(app_fixture: AppFixture) -> Iterator[FakeToolProvider]:
    bench = FakeToolProvider()
    app_fixture.tool_providers = {KIND: bench}
    yield bench
    app_fixture.tool_providers = None


def register(http: httpx.Client, name: str, *tools: str, headers: dict[str, str] | None = None) -> dict[str, Any]:
    defined = [{"name": tool, "headers": headers or {}} for tool in tools]
    body = {"toolgroup_id": name, "provider_id": KIND, "args": {"tools": defined}}
    response = http.post("/v1/toolgroups", json=body)
    assert response.status_code == 200, response.text
    registered: dict[str, Any] = response.json()
    return registered


@pytest.fixture
def tools(http: httpx.Client, bench: FakeToolProvider) -> FakeToolProvider:
    register(http, "rest::desk", "count", "weigh")
    return bench


def test_callers_keys_reach_the_tool_and_are_neither_stored_nor_logged(
    http: httpx.Client, tools: FakeToolProvider, app_fixture: AppFixture, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    session = open_session(http, toolgroups=["rest::desk"])
    data = {"http_headers": {"https://desk.example": {"Authorization": KEY}}}

    response = http.post(
        f"{session}/turn",
        json={"messages": [{"role": "user", "content": "count 3"}], "stream": True},
        headers={"X-LlamaStack-Provider-Data": json.dumps(data)},
    )

    [invocation] = tools.invocations
    assert invocation.provider_data == data == tools.listed_with[-1]
    assert invocation.arguments == {"n": 3}
    assert invocation.key.endswith(":1:call_1")
    logged = caplog.text + "".join(str(vars(record)) for record in caplog.records)
    stored = read_records(app_fixture.dynamodb, app_fixture.settings.table, app_fixture.tenant)
    assert "call_1" in repr(stored)
    assert KEY not in response.text + http.get(session).text + logged + repr(stored)


@pytest.mark.parametrize("header", ["[]", "{", "no"])
def test_provider_data_that_is_no_object_is_refused(http: httpx.Client, header: str) -> None:
    session = open_session(http)
    body = {"messages": [{"role": "user", "content": "hi"}]}

    response = http.post(f"{session}/turn", json=body, headers={"X-LlamaStack-Provider-Data": header})

    assert_error(response, 400, "invalid_request")


def test_tools_are_listed_in_all_the_forms_that_clients_use(
    http: httpx.Client, tools: FakeToolProvider, client: LlamaStackClient
) -> None:
    def names(**params: str) -> list[str]:
        return [tool["identifier"] for tool in http.get("/v1/tools", params=params).json()["data"]]

    assert names() == ["knowledge_search", "count", "weigh"]
    assert names(toolgroup_id="rest::desk") == ["count", "weigh"]
    assert names(toolgroup_id="rest::desk/weigh") == ["weigh"]
    assert names(**{"toolgroup_id[name]": "rest::desk/count", "toolgroup_id[args][n]": "1"}) == ["count"]
    assert [tool.identifier for tool in client.tools.list(toolgroup_id="rest::desk")] == ["count", "weigh"]
    assert client.tools.get("weigh").toolgroup_id == "rest::desk"
    [parameter] = client.tools.get("count").parameters
    assert (parameter.name, parameter.parameter_type, parameter.required) == ("n", "integer", True)
    assert_error(http.get("/v1/tools", params={"toolgroup_id[name]": "rest::nowhere"}), 404, "toolgroup_not_found")
    assert_error(http.get("/v1/tools", params={"toolgroup_id": "rest::desk/nosuch"}), 404, "tool_not_found")


def test_the_runtime_lists_tools_by_name(http: httpx.Client, tools: FakeToolProvider, client: LlamaStackClient) -> None:
    listed = client.tool_runtime.list_tools(tool_group_id="rest::desk")

    assert [tool.name for tool in listed] == ["count", "weigh"]
    assert [tool.name for tool in client.tool_runtime.list_tools(tool_group_id="rest::desk/weigh")] == ["weigh"]
    [entry, _] = http.get("/v1/tool-runtime/list-tools", params={"tool_group_id": "rest::desk"}).json()["data"]
    assert (entry["name"], entry["identifier"]) == ("count", "count")


@pytest.mark.parametrize("parameter", ["mcp_endpoint", "mcp_endpoint[uri]"])
def test_an_mcp_endpoint_that_may_not_be_called_is_refused(http: httpx.Client, parameter: str) -> None:
    response = http.get("/v1/tool-runtime/list-tools", params={parameter: "http://169.254.169.254/mcp"})

    assert assert_error(response, 400, "url_not_allowed")["param"] == "mcp_endpoint"


@pytest.mark.parametrize("name", ["builtin::code_interpreter", "builtin::image_generation"])
def test_an_agent_that_runs_code_or_makes_images_is_refused_by_name(client: LlamaStackClient, name: str) -> None:
    with pytest.raises(APIStatusError, match=name):
        Agent(client, model="scripted/demo", instructions="", tools=[name])


def test_a_toolgroup_is_registered_once_and_gone_when_unregistered(http: httpx.Client, tools: FakeToolProvider) -> None:
    other = {"toolgroup_id": "rest::desk", "provider_id": KIND, "args": {"tools": [{"name": "other"}]}}

    conflict = http.post("/v1/toolgroups", json=other)
    gone = http.delete("/v1/toolgroups/rest::desk")

    assert_error(conflict, 409, "toolgroup_exists")
    assert (gone.status_code, gone.json()) == (200, None)
    assert_error(http.delete("/v1/toolgroups/rest::desk"), 404, "toolgroup_not_found")


def test_a_built_in_toolgroup_is_gone_when_unregistered_and_back_when_registered(http: httpx.Client) -> None:
    name = "builtin::websearch"
    known = http.get(f"/v1/toolgroups/{name}").json()
    session = open_session(http, toolgroups=[name])

    gone = http.delete(f"/v1/toolgroups/{name}")

    def listed() -> list[str]:
        return [group["identifier"] for group in http.get("/v1/toolgroups").json()["data"]]

    assert (gone.status_code, gone.json()) == (200, None)
    assert listed() == ["builtin::wolfram_alpha", "builtin::rag", "builtin::photogen"]
    assert_error(http.get(f"/v1/toolgroups/{name}"), 404, "toolgroup_not_found")
    assert_error(http.delete(f"/v1/toolgroups/{name}"), 404, "toolgroup_not_found")
    assert_error(http.get("/v1/tools", params={"toolgroup_id": name}), 404, "toolgroup_not_found")
    assert_error(say(http, session, "Hello"), 400, "toolgroup_not_found")
    search = {"model": "scripted/demo", "input": "Hello", "tools": [{"type": "web_search"}]}
    assert http.post("/v1/responses", json=search).json()["error"]["param"] == "tools"

    again = http.post("/v1/toolgroups", json={"toolgroup_id": name, "provider_id": known["provider_id"]})

    assert again.status_code == 200
    assert name in listed()
    assert say(http, session, "say: fine").status_code == 200
    assert http.delete(f"/v1/toolgroups/{name}").status_code == 200
    assert name not in listed()


def test_a_web_search_needs_a_toolgroup_that_has_one(http: httpx.Client) -> None:
    name, other = "builtin::websearch", http.get("/v1/toolgroups/builtin::wolfram_alpha").json()["provider_id"]
    assert http.delete(f"/v1/toolgroups/{name}").status_code == 200
    assert http.post("/v1/toolgroups", json={"toolgroup_id": name, "provider_id": other}).status_code == 200

    search = {"model": "scripted/demo", "input": "Hello", "tools": [{"type": "web_search"}]}
    error = assert_error(http.post("/v1/responses", json=search), 400, "invalid_request")

    assert "'builtin::websearch' has no tool 'web_search'" in error["message"]
    assert error["param"] == "tools"


def test_what_the_operator_configured_is_not_unregistered(http: httpx.Client, mcp: str) -> None:
    error = assert_error(http.delete(f"/v1/toolgroups/{mcp}"), 409, "configured")

    assert mcp in error["message"]


def test_an_embedding_model_is_registered_and_answers_nothing(http: httpx.Client) -> None:
    metadata = {"embedding_dimension": 384}
    model = {"model_id": "minilm", "model_type": "embedding", "provider_id": "sentence-transformers"}
    body = model | {"metadata": metadata}

    registered = http.post("/v1/models", json=body).json()

    assert (registered["model_type"], registered["metadata"]) == ("embedding", metadata)
    assert http.get("/v1/models/minilm").json() == registered
    assert "minilm" in [model["identifier"] for model in http.get("/v1/models").json()["data"]]
    for refused in (
        say(http, open_session(http, model="minilm"), "Hello"),
        http.post("/v1/responses", json={"model": "minilm", "input": "Hello"}),
        http.post("/v1/chat/completions", json={"model": "minilm", "messages": [{"role": "user", "content": "Hi"}]}),
    ):
        assert "embedding" in assert_error(refused, 400, "model_not_supported")["message"]
    assert http.delete("/v1/models/minilm").status_code == 200


def test_the_client_registers_an_embedding_model(client: LlamaStackClient) -> None:
    model = client.models.register(model_id="embed", model_type="embedding")

    assert model.api_model_type == "embedding"
    assert [each.api_model_type for each in client.models.list() if each.identifier == "embed"] == ["embedding"]


def test_a_registered_model_is_another_name_of_a_providers(http: httpx.Client, app_fixture: AppFixture) -> None:
    body = {"model_id": "fast", "provider_id": "scripted", "provider_model_id": "demo"}
    registered = http.post("/v1/models", json=body)
    session = open_session(http, model="fast")

    assert registered.status_code == 200, registered.text
    assert turn(http, session, "say: routed")["output_message"]["content"] == "routed"
    assert http.delete("/v1/models/fast").status_code == 200
    assert_error(say(http, session, "again", stream=True), 400, "model_not_found")
    assert_error(
        http.post("/v1/models", json=body | {"model_id": "m", "provider_id": "none"}), 400, "provider_not_found"
    )


def test_a_tool_runs_outside_a_turn(http: httpx.Client, tools: FakeToolProvider, client: LlamaStackClient) -> None:
    result: Any = client.tool_runtime.invoke_tool(tool_name="count", kwargs={"n": 2})

    assert (result.content, result.error_code) == ("count {'n': 2}", 0)
    body = {"tool_name": "code_interpreter", "kwargs": {}}
    assert "code_interpreter" in http.post("/v1/tool-runtime/invoke", json=body).json()["error"]["message"]


def test_a_tool_runs_once_for_an_idempotency_key(http: httpx.Client, tools: FakeToolProvider) -> None:
    body = {"tool_name": "count", "kwargs": {"n": 2}}

    answers = [http.post("/v1/tool-runtime/invoke", json=body, headers={"idempotency-key": "k"}) for _ in range(3)]

    assert [each.json()["content"] for each in answers] == ["count {'n': 2}"] * 3
    assert len(tools.invocations) == 1


@pytest.mark.usefixtures("lost")
@pytest.mark.parametrize("repeatable", [False, True])
def test_a_tool_that_may_have_run_runs_again_only_if_it_is_repeatable(
    http: httpx.Client, tools: FakeToolProvider, repeatable: bool
) -> None:
    tools.repeatable = repeatable
    body = {"tool_name": "count", "kwargs": {"n": 2}}

    first, *again = [post_later(http, body) for _ in range(3)]

    assert first.json()["content"] == "count {'n': 2}"
    if repeatable:
        assert [each.json() for each in again] == [first.json()] * 2
        assert len({invocation.idempotency_key for invocation in tools.invocations}) == 1
    else:
        for each in again:
            assert_error(each, 409, "outcome_unknown")
    assert len(tools.invocations) == 1 + repeatable


def post_later(http: httpx.Client, body: dict[str, Any]) -> httpx.Response:
    """Call a tool with an idempotency key, after the end of all leases."""
    CLOCK.move(LEASE + 1)
    return http.post("/v1/tool-runtime/invoke", json=body, headers={"idempotency-key": "k"})


def test_metadata_of_a_clients_result_never_makes_a_turn_unreadable(http: httpx.Client) -> None:
    session = open_session(http, client_tools=[WEATHER])
    paused = turn(http, session, "get_weather in Ulm")
    [call] = paused["output_message"]["tool_calls"]
    answer = {"call_id": call["call_id"], "tool_name": "get_weather", "content": "x", "metadata": {"attachments": 5}}

    resumed = http.post(f"{session}/turn/{paused['turn_id']}/resume", json={"tool_responses": [answer]})

    assert resumed.json()["status"] == "completed"
    assert turns_of(http, session)[0]["output_attachments"] == []
