"""Approvals of calls of any tool over HTTP, in the API of Llama Stack and in OpenAI's Agents API."""

from typing import Any

import httpx
import pytest
from llama_stack_client import LlamaStackClient
from openai import OpenAI
from tests.api.agents_api_client import OpenStream, message, post_events, start_session
from tests.api.api_client import (
    agent_config,
    assert_error,
    create_agent,
    create_session,
    open_session,
    payloads,
    say,
    turn,
)
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import openai_client

FOX = 'call: photogen {"query": "a red fox"}'
ASKING = {"name": "builtin::photogen", "require_approval": "always"}
DECISION = "agent.session.input.mcp_approval_request_result"
Body = dict[str, Any]


def approve(
    http: httpx.Client, session: str, paused: Body, *, decision: bool = True, headers: dict[str, str] | None = None
) -> httpx.Response:
    approvals = [{"call_id": call_id, "approve": decision} for call_id in paused["pending_approvals"]]
    body = {"tool_responses": [], "approvals": approvals}
    return http.post(f"{session}/turn/{paused['turn_id']}/resume", json=body, headers=headers)


def results(turn: Body) -> list[Body]:
    steps = [step for step in turn["steps"] if step["step_type"] == "tool_execution"]
    return [response for step in steps for response in step["tool_responses"]]


def test_a_built_in_tool_runs_after_its_approval(http: httpx.Client) -> None:
    session = open_session(http, toolgroups=[ASKING])
    paused = payloads(say(http, session, FOX, stream=True))[-1]
    waiting = paused["turn"]

    done = approve(http, session, waiting).json()

    assert paused["event_type"] == "turn_awaiting_input"
    assert (waiting["status"], results(waiting)) == ("awaiting_input", [])
    [call] = waiting["output_message"]["tool_calls"]
    assert (call["tool_name"], waiting["pending_approvals"]) == ("photogen", [call["call_id"]])
    assert done["status"] == "completed"
    assert results(done)[0]["metadata"]["generated_image"]


@pytest.mark.parametrize(
    "config",
    [
        {"toolgroups": ["builtin::photogen"], "require_approval": "always"},
        {"toolgroups": ["builtin::photogen"], "require_approval": {"always": {"tool_names": ["photogen"]}}},
        {"toolgroups": [{"name": "builtin::photogen/photogen", "require_approval": "always"}]},
        {"toolgroups": [ASKING, "builtin::photogen"]},
    ],
)
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"require_approval": "never", "toolgroups": [ASKING | {"require_approval": "never"}]},
        {"toolgroups": [{"name": "builtin::photogen/photogen", "args": {"size": "96x64"}, "require_approval": None}]},
    ],
)
def test_no_turn_removes_an_approval(http: httpx.Client, config: Body, body: Body) -> None:
    session = open_session(http, **config)

    assert turn(http, session, FOX, **body)["status"] == "awaiting_input"


def test_an_agent_shows_its_approvals(http: httpx.Client) -> None:
    of_all = {"never": {"tool_names": ["photogen"]}}
    agent = create_agent(http, toolgroups=[ASKING], require_approval=of_all)

    shown = http.get(f"/v1/agents/{agent}").json()["agent_config"]

    assert shown["toolgroups"] == [{"name": "builtin::photogen", "args": {}, "require_approval": "always"}]
    assert shown["require_approval"] == of_all


def test_the_sdk_of_llama_stack_sets_and_reads_an_approval(http: httpx.Client) -> None:
    client = LlamaStackClient(base_url=str(http.base_url), http_client=http)
    config: Any = agent_config(toolgroups=[ASKING])
    agent = client.agents.create(agent_config=config).agent_id
    session = client.agents.session.create(agent, session_name="s").session_id

    paused: Any = client.agents.turn.create(session, agent_id=agent, messages=[{"role": "user", "content": FOX}])
    approvals = [{"call_id": call_id, "approve": False} for call_id in paused.pending_approvals]
    done: Any = client.agents.turn.resume(
        paused.turn_id,
        agent_id=agent,
        session_id=session,
        tool_responses=[],
        extra_body={"approvals": approvals},
    )

    assert done.output_message.content == "photogen answered: The user did not approve this call."


@pytest.mark.parametrize(
    "value", ["sometimes", True, {"always": {"tool_names": "photogen"}}, {"always": {"read_only": True}}]
)
def test_malformed_approvals_are_refused(http: httpx.Client, value: Any) -> None:
    session = open_session(http)

    for config in ({"require_approval": value}, {"toolgroups": [ASKING | {"require_approval": value}]}):
        created = http.post("/v1/agents", json={"agent_config": agent_config(**config)})
        assert_error(created, 400, "invalid_request")
        assert_error(say(http, session, "Hello", **config), 400, "invalid_request")


def test_a_mistyped_tool_is_refused(http: httpx.Client) -> None:
    session = open_session(http, toolgroups=[ASKING])

    answer = say(http, session, "Hello", require_approval={"always": {"tool_names": ["fotogen"]}})

    assert assert_error(answer, 400, "tool_not_found")["param"] == "require_approval"


FUNCTION = {"name": "f", "description": "", "function": "f", "parameters": {"type": "object", "properties": {}}}
ENDPOINT = {"name": "e", "url": "http://127.0.0.1:9/e"}


def test_a_malformed_approval_of_a_definition_is_refused(http: httpx.Client) -> None:
    body = {"toolgroup_id": "own", "provider_id": "lambda-function"}
    inline = {"name": "builtin::remote_execution", "args": {"tools": [ENDPOINT], "require_approval": "no"}}

    registered = http.post("/v1/toolgroups", json=body | {"args": {"tools": [FUNCTION], "require_approval": "no"}})
    created = http.post("/v1/agents", json={"agent_config": agent_config(toolgroups=[inline])})
    said = say(http, open_session(http), "Hello", toolgroups=[inline])

    for answer in (registered, created, said):
        assert "require_approval" in assert_error(answer, 400, "invalid_request")["message"]


def test_a_disabled_search_keeps_its_approval(http: httpx.Client) -> None:
    off = {"name": "builtin::websearch", "args": {"mode": "disabled"}, "require_approval": "always"}
    session = open_session(http, toolgroups=[off])

    paused = turn(http, session, 'call: web_search {"query": "tea"}', toolgroups=["builtin::websearch"])

    assert paused["status"] == "awaiting_input"


def test_a_registration_may_ask_for_approval(http: httpx.Client) -> None:
    body = {"toolgroup_id": "own", "provider_id": "lambda-function"}
    args = {"tools": [FUNCTION], "require_approval": "always"}
    assert http.post("/v1/toolgroups", json=body | {"args": args}).status_code == 200

    paused = turn(http, open_session(http, toolgroups=["own"]), "call: f {}")

    assert paused["status"] == "awaiting_input"


def test_another_user_cannot_approve(http: httpx.Client) -> None:
    agent = create_agent(http, toolgroups=[ASKING])
    made = http.post(f"/v1/agents/{agent}/session", json={"session_name": "s"}, headers={"x-stint-user": "ann"})
    session = f"/v1/agents/{agent}/session/{made.json()['session_id']}"
    asked = http.post(
        f"{session}/turn", json={"messages": [{"role": "user", "content": FOX}]}, headers={"x-stint-user": "ann"}
    )

    refused = approve(http, session, asked.json(), headers={"x-stint-user": "bob"})
    done = approve(http, session, asked.json(), headers={"x-stint-user": "ann"})

    assert refused.status_code == 403, refused.text
    assert done.json()["status"] == "completed"


def test_a_retry_gets_the_first_answer_and_another_decision_none(http: httpx.Client) -> None:
    session = open_session(http, toolgroups=[ASKING])
    paused = turn(http, session, FOX)

    first = approve(http, session, paused, headers={"idempotency-key": "k"})
    again = approve(http, session, paused, headers={"idempotency-key": "k"})
    repeated = approve(http, session, paused)
    changed = approve(http, session, paused, decision=False)

    assert again.json() == first.json() == repeated.json()
    assert changed.status_code in (400, 409), changed.text
    assert len(results(first.json())) == 1


@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize("call_id", ["call_1", ""])
def test_no_result_takes_the_place_of_an_approval(http: httpx.Client, call_id: str, *, cancelled: bool) -> None:
    agent = create_agent(http, toolgroups=[ASKING])
    session = create_session(http, agent)
    paused = turn(http, session, FOX)
    if cancelled:
        assert http.post(f"{session}/turn/{paused['turn_id']}/cancel").status_code == 200
    result = {"call_id": call_id, "content": "It was drawn."}

    later = http.post(f"{session}/turn", json={"messages": [result | {"role": "tool"}]})
    october = {"agent_id": agent, "session_id": session.rpartition("/")[2], "stream": True}
    oldest = http.post(
        "/agents/turn/create", json=october | {"messages": [result | {"role": "ipython", "tool_name": "photogen"}]}
    )

    assert paused["pending_approvals"] == ["call_1"]
    assert assert_error(later, 400, "approvals_mismatch")["param"] == "messages"
    assert oldest.status_code == 400, oldest.text


def test_a_new_message_does_not_answer_for_the_client(http: httpx.Client) -> None:
    session = open_session(http, toolgroups=[ASKING], when_busy="merge")
    paused = turn(http, session, FOX)

    after = turn(http, session, "say: yes, I approve it")

    old = http.get(f"{session}/turn/{paused['turn_id']}").json()
    assert (after["status"], old["status"], results(old)) == ("completed", "cancelled", [])
    assert approve(http, session, paused).status_code == 409


@pytest.mark.parametrize("decision", ["approve", "deny", "cancel"])
@pytest.mark.parametrize(
    ("tool", "fixed"),
    [
        ({"type": "image_generation"}, {}),
        ({"type": "toolgroup", "name": "builtin::photogen", "args": {"query": "a blue fox"}}, {"query": "a blue fox"}),
    ],
)
def test_a_call_waits_in_a_session_of_the_agents_api(
    http: httpx.Client, server: Served, app_fixture: AppFixture, tool: Body, fixed: Body, decision: str
) -> None:
    with openai_client(server) as client:
        session = start_session(client, FOX, tools=[tool | {"require_approval": "always"}])
        app_fixture.run_waiting()
        session = retrieve(client, session.id)
        [action] = session.required_actions
        assert (session.status, action.type) == ("requires_action", "mcp_approval_request")
        assert (action.request.server_label, action.request.name) == ("builtin::photogen", "photogen")
        assert action.request.arguments == {"query": "a red fox"} | fixed

        with OpenStream(server, session.id) as stream:
            response = {"type": "mcp_tool_call", "decision": decision}
            answered = post_events(
                http, session.id, {"type": DECISION, "request_id": action.request_id, "response": response}
            )
            assert answered.status_code == 202, answered.text
            stream.wait_for("idle")
        [call] = [each for each in items_of(client, session.id) if each.type == "image_generation_call"]

    assert call.status == ("completed" if decision == "approve" else "failed")
    assert bool(call.result) == (decision == "approve")


def retrieve(client: OpenAI, session_id: str) -> Any:
    return client.beta.agents.sessions.retrieve(session_id)


def items_of(client: OpenAI, session_id: str) -> list[Any]:
    return list(client.beta.agents.sessions.items.list(session_id))


def test_a_message_does_not_steer_past_an_approval(http: httpx.Client, server: Served, app_fixture: AppFixture) -> None:
    """The message waits for the turn, which waits for its client."""
    tools = [{"type": "image_generation", "require_approval": "always"}]
    with openai_client(server) as client:
        session = start_session(client, FOX, tools=tools)
        app_fixture.run_waiting()
        post_events(http, session.id, message("say: I approve"))
        app_fixture.run_waiting()
        waiting = retrieve(client, session.id)
        [action] = waiting.required_actions
        decide = {"type": "mcp_tool_call", "decision": "deny"}
        first = post_events(http, session.id, {"type": DECISION, "request_id": action.request_id, "response": decide})
        changed = post_events(
            http,
            session.id,
            {"type": DECISION, "request_id": action.request_id, "response": decide | {"decision": "approve"}},
        )
        app_fixture.run_waiting()
        calls = [each for each in items_of(client, session.id) if each.type == "image_generation_call"]

    assert (waiting.status, first.status_code, changed.status_code) == ("requires_action", 202, 400)
    assert [call.status for call in calls] == ["failed"]


def test_an_endpoint_that_waits_writes_no_queries(http: httpx.Client) -> None:
    def endpoint(name: str, path: str) -> Body:
        return {"tools": [ENDPOINT | {"name": name, "method": "POST", "url": f"https://8.8.8.8{path}"}]}

    def search(path: str) -> Body:
        generator = {"type": "custom", "toolgroup": "builtin::remote_execution", "args": endpoint("write", path)}
        return {"name": "builtin::rag", "args": {"memory_banks": [], "query_generator_config": generator}}

    asking = {"name": "builtin::remote_execution", "args": endpoint("pay", "/pay/{id}"), "require_approval": "always"}
    session = open_session(http, toolgroups=[asking])

    refused = say(http, session, "Hi.", toolgroups=[search("/pay/1")])

    assert assert_error(refused, 400, "approval_not_possible")["param"] == "toolgroups"
    assert turn(http, session, "Hi.", toolgroups=[search("/queries")])["status"] == "completed"
