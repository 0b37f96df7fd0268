"""Calls of hosted tools that wait for the client's approval: an extension of the Responses API."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import (
    WEATHER,
    Body,
    assert_refused,
    events_of,
    follow,
    item_of,
    kinds,
    openai_client,
    post,
    respond,
    text_of,
    types_of,
    user,
)
from tests.api.test_responses_approvals import answer_to, asks_of
from tests.api.test_responses_code import ScriptedRunner
from tests.servers import tavily
from tests.servers.scripted_http import ScriptedHTTPServer

from stint.bootstrap.image_models import make_image_generation
from stint.domain.inference import AssistantAnswer, ToolResult
from stint.domain.retrieval import FoundChunk
from stint.net.guard import Guard
from stint.tools.port import IMAGE_MODELS
from stint.tools.search.engines import Tavily
from stint.tools.search.web_search import WebSearch

STORE = f"vs_{'1' * 32}"
CODE = json.dumps({"write": {"a.txt": "A"}})
TOOLS: dict[str, Body] = {
    "web_search": {},
    "file_search": {"vector_store_ids": [STORE]},
    "image_generation": {},
    "code_interpreter": {"container": {"type": "auto"}},
}
ARGUMENTS = {
    "web_search": {"query": "tea"},
    "file_search": {"query": "andes."},
    "image_generation": {"prompt": "a red fox"},
    "code_interpreter": {"code": CODE},
}
MODEL = "recorded/model"
WAYS = ("previous_response_id", "items", "conversation")
Continue = Callable[[Body, str, list[Body]], Body]


@pytest.fixture(autouse=True)
def servers(app_fixture: AppFixture) -> Iterator[ScriptedHTTPServer]:
    before, app_fixture.runner = app_fixture.runner, ScriptedRunner()
    app_fixture.knowledge.chunks = [FoundChunk(STORE, f"file-{'a' * 32}", 0.9, "Llamas live there.", "andes.txt", {})]
    app_fixture.knowledge.requests.clear()
    with ScriptedHTTPServer(tavily.answer) as engine:
        search = WebSearch(Tavily(Guard(["127.0.0.1"]), base_url=engine.url), tavily.KEY)
        images = make_image_generation(app_fixture.settings, Guard(), ())
        app_fixture.tool_providers = {"tavily-search": search, IMAGE_MODELS: images}
        app_fixture.made.clear()
        yield engine
    app_fixture.tool_providers, app_fixture.runner, app_fixture.knowledge.chunks = None, before, ()
    app_fixture.made.clear()


def tool(kind: str, **fields: Any) -> Body:
    return {"type": kind, **TOOLS[kind], "require_approval": "always", **fields}


def call(kind: str) -> str:
    return f"call: {kind} {json.dumps(ARGUMENTS[kind])}"


def ask(http: httpx.Client, kind: str, way: str = "previous_response_id") -> Body:
    conversation = http.post("/v1/conversations").json()["id"] if way == "conversation" else None
    own = {"container": http.post("/v1/containers", json={"name": "c"}).json()["id"]} if "code" in kind else {}
    store = False if way == "items" else None
    return respond(http, call(kind), model=MODEL, tools=[tool(kind, **own)], conversation=conversation, store=store)


def go_on(http: httpx.Client, asked: Body, way: str, answers: list[Body]) -> Body:
    """Answer what a response asked for, with the same tools."""
    tools = asked["tools"]
    match way:
        case "previous_response_id":
            return respond(http, answers, model=MODEL, previous_response_id=asked["id"], tools=tools)
        case "conversation":
            return respond(http, answers, model=MODEL, conversation=asked["conversation"], tools=tools)
        case _:
            return respond(http, [user("go"), *asked["output"], *answers], model=MODEL, tools=tools, store=False)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", TOOLS)
def test_a_call_runs_after_its_approval(http: httpx.Client, app_fixture: AppFixture, kind: str, way: str) -> None:
    asked = ask(http, kind, way)
    [request] = asks_of(asked)

    answered = go_on(http, asked, way, [answer_to(request)])

    assert types_of(asked) == ["mcp_approval_request"]
    assert (asked["status"], asked["tools"][0]["require_approval"]) == ("completed", "always")
    assert (request["server_label"], request["name"]) == (kind, kind)
    assert json.loads(request["arguments"]) == ARGUMENTS[kind]
    assert types_of(answered) == [f"{kind}_call", "message"]
    item = item_of(answered, f"{kind}_call")
    assert (item["status"], item["approval_request_id"]) == ("completed", request["id"])


@pytest.mark.parametrize("kind", TOOLS)
def test_a_denied_call_does_not_run(
    http: httpx.Client, app_fixture: AppFixture, servers: ScriptedHTTPServer, kind: str
) -> None:
    asked = ask(http, kind)

    answered = go_on(http, asked, WAYS[0], [answer_to(asks_of(asked)[0], approve=False, reason="Too dear.")])

    assert types_of(answered) == ["message"]
    assert "did not approve this call. Too dear." in text_of(answered)
    assert (servers.bodies, app_fixture.knowledge.requests) == ([], [])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", TOOLS)
def test_the_conversation_goes_on_after_an_approved_call(
    http: httpx.Client, app_fixture: AppFixture, kind: str, way: str
) -> None:
    """The call has one result in what the model reads next, whichever way the client goes on."""
    asked = ask(http, kind, way)
    answers = [answer_to(asks_of(asked)[0])]
    answered = go_on(http, asked, way, answers)

    if way == "items":
        told = [user("go"), *asked["output"], *answers, *answered["output"], user("say: on")]
        last = respond(http, told, model=MODEL, tools=asked["tools"], store=False)
    else:
        last = go_on(http, answered if way == WAYS[0] else asked, way, [user("say: on")])

    assert (types_of(last), text_of(last)) == (["message"], "on")
    messages = app_fixture.recorder.requests[-1].messages
    calls = [call.call_id for each in messages if isinstance(each, AssistantAnswer) for call in each.tool_calls]
    assert calls == [each.call_id for each in messages if isinstance(each, ToolResult)] == [asks_of(asked)[0]["id"]]


@pytest.mark.parametrize("kind", TOOLS)
def test_the_stream_of_an_approved_call_is_that_of_any_call(http: httpx.Client, kind: str) -> None:
    asked = ask(http, kind)
    plain = follow(http, call(kind), tools=[tool(kind, require_approval="never")])

    answer = post(
        http,
        [answer_to(asks_of(asked)[0])],
        previous_response_id=asked["id"],
        tools=[tool(kind, require_approval=None)],
        stream=True,
    )

    assert kinds(events_of(answer.text)) == kinds(plain)


def test_each_call_waits_by_itself_beside_a_function(http: httpx.Client) -> None:
    said = f'{call("image_generation")}\ncall: get_weather {{"city": "Oslo"}}\n{call("web_search")}'

    asked = respond(http, said, tools=[tool("image_generation"), WEATHER, {"type": "web_search"}])

    assert types_of(asked) == ["mcp_approval_request", "function_call", "web_search_call"]


def test_a_call_that_the_client_passes_over_does_not_run(http: httpx.Client, servers: ScriptedHTTPServer) -> None:
    asked = ask(http, "web_search")

    answered = go_on(http, asked, WAYS[0], [user("say: never mind")])

    assert (types_of(answered), text_of(answered), servers.bodies) == (["message"], "never mind", [])


def test_an_approval_is_used_once(http: httpx.Client, servers: ScriptedHTTPServer) -> None:
    asked = ask(http, "web_search")
    approval = answer_to(asks_of(asked)[0])
    answered = go_on(http, asked, WAYS[0], [approval])

    again = post(http, [approval], previous_response_id=answered["id"], tools=asked["tools"])

    assert_refused(again, 400, "invalid_request")
    assert len(servers.bodies) == 1


def test_the_sdk_reads_a_call_that_waits(server: Served) -> None:
    fields: Any = {"tools": [tool("image_generation")]}
    with openai_client(server) as client:
        asked = client.responses.create(model="scripted/demo", input=call("image_generation"), **fields)
        [request] = asked.output
        assert request.type == "mcp_approval_request"
        approval: Any = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": True}
        answered = client.responses.create(
            model="scripted/demo", input=[approval], previous_response_id=asked.id, **fields
        )

    assert [item.type for item in answered.output] == ["image_generation_call", "message"]


@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize("value", ["sometimes", {"always": {}}, True])
def test_other_values_are_refused(http: httpx.Client, kind: str, value: Any) -> None:
    answer = post(http, "Hello", tools=[tool(kind, require_approval=value)])

    assert "require_approval" in assert_refused(answer, 400, "invalid_request")["message"]


def test_functions_are_the_clients_own(http: httpx.Client) -> None:
    error = assert_refused(post(http, tools=[WEATHER | {"require_approval": "always"}]), 400, "invalid_request")

    assert "The client runs functions itself" in error["message"]


@pytest.mark.parametrize("names", [None, ["web_search"], ["brave_search"]])
def test_a_registration_of_the_web_search_may_ask_for_approval(http: httpx.Client, names: list[str] | None) -> None:
    approval = {"always": {"tool_names": names}} if names else "always"
    registration = {"toolgroup_id": "builtin::websearch", "provider_id": "tavily-search"}
    registered = http.post("/v1/toolgroups", json=registration | {"args": {"require_approval": approval}})

    refused = post(http, call("web_search"), model=MODEL, tools=[{"type": "web_search"}])
    asked = respond(http, call("web_search"), model=MODEL, tools=[tool("web_search")])

    assert registered.status_code == 200, registered.text
    assert assert_refused(refused, 400, "invalid_request")["param"] == "tools"
    assert types_of(asked) == ["mcp_approval_request"]
