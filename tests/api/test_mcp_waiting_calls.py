"""Calls of the MCP server whose turns wait for their client, and the state that such a call sends back."""

import base64
from typing import Any

import httpx
import pytest
from tests.api.api_client import WEATHER, create_agent
from tests.api.app_fixture import AppFixture
from tests.api.mcp_client import META, call, error_of, legacy, post, send, tool_of
from tests.clock import CLOCK

FOX = 'call: photogen {"query": "a red fox"}'
WEATHER_IN_ROME = 'call: get_weather {"city": "Rome"}'
CALLS = f"{WEATHER_IN_ROME}\n{FOX}"
APPROVED = {"call_1": {"action": "accept", "content": {"approve": True}}}
Answer = dict[str, Any]


def make_tool(http: httpx.Client) -> str:
    asking = {"name": "builtin::photogen", "require_approval": "always"}
    return tool_of(http, create_agent(http, client_tools=[WEATHER], toolgroups=[asking]))


def ask(http: httpx.Client, name: str, message: str) -> Answer:
    """Call a tool whose turn waits, and return what is asked."""
    asked = send(http, call(name, message))
    assert asked["resultType"] == "input_required"
    return asked


def answer(name: str, message: str, asked: Answer, answers: Answer, **params: Any) -> Answer:
    """Return the repeated call with answers."""
    return call(name, message, 2, inputResponses=answers, requestState=asked["requestState"], **params)


def test_a_client_tool_is_a_form(http: httpx.Client) -> None:
    name = make_tool(http)
    asked = ask(http, name, WEATHER_IN_ROME)
    [form] = asked["inputRequests"].values()
    assert (form["method"], form["params"]["mode"]) == ("elicitation/create", "form")
    assert "get_weather" in form["params"]["message"]
    assert '"city": "Rome"' in form["params"]["message"]
    assert form["params"]["requestedSchema"]["required"] == ["result"]
    answers = {"call_1": {"action": "accept", "content": {"result": "sunny"}}}
    done = send(http, answer(name, WEATHER_IN_ROME, asked, answers))
    assert "sunny" in done["content"][0]["text"]
    assert done["structuredContent"]["turn_id"]


def test_an_approval_is_a_form(http: httpx.Client) -> None:
    name = make_tool(http)
    asked = ask(http, name, FOX)
    [form] = asked["inputRequests"].values()
    assert '{"query": "a red fox"}' in form["params"]["message"]
    assert form["params"]["requestedSchema"]["required"] == ["approve"]
    done = send(http, answer(name, FOX, asked, APPROVED))
    assert done["resultType"] == "complete"
    assert not done["isError"]


@pytest.mark.parametrize(
    "said", [{"action": "decline"}, {"action": "accept", "content": {"approve": False, "reason": "No foxes."}}]
)
def test_a_declined_approval_runs_nothing(http: httpx.Client, said: Answer) -> None:
    name = make_tool(http)
    agent_calls = send(http, answer(name, FOX, ask(http, name, FOX), {"call_1": said}))
    text = agent_calls["content"][0]["text"]
    assert "declined" in text or "No foxes." in text


def test_several_questions_are_answered_together(http: httpx.Client) -> None:
    name = make_tool(http)
    asked = ask(http, name, CALLS)
    assert len(asked["inputRequests"]) == 2
    answers = {
        key: {
            "action": "accept",
            "content": {"approve": True} if "wants" in form["params"]["message"] else {"result": "dry"},
        }
        for key, form in asked["inputRequests"].items()
    }
    for wrong in (dict([next(iter(answers.items()))]), answers | {"call_3": answers["call_1"]}):
        response = post(http, answer(name, CALLS, asked, wrong))
        assert (response.status_code, error_of(response)["data"]["code"]) == (400, "invalid_answer")
    done = send(http, answer(name, CALLS, asked, answers))
    assert "dry" in done["content"][0]["text"]


@pytest.mark.parametrize(
    "said",
    [
        {"action": "accept"},
        {"action": "accept", "content": {}},
        {"action": "accept", "content": {"approve": "yes"}},
        {"action": "accept", "content": {"approve": 1}},
        {"action": "accept", "content": {"approve": True, "reason": 5}},
    ],
)
def test_an_answer_fits_its_form(http: httpx.Client, said: Answer) -> None:
    name = make_tool(http)
    response = post(http, answer(name, FOX, ask(http, name, FOX), {"call_1": said}))
    assert (response.status_code, error_of(response)["data"]["code"]) == (400, "invalid_answer")


@pytest.mark.parametrize("answers", [[], {"call_1": 1}, {"call_1": {"action": "maybe"}}, {"call_1": {}}, "x"])
def test_malformed_answers_are_refused(http: httpx.Client, answers: Any) -> None:
    name = make_tool(http)
    response = post(http, answer(name, FOX, ask(http, name, FOX), answers))
    assert (response.status_code, error_of(response)["code"]) == (400, -32602)


def test_a_dismissed_form_leaves_the_turn_waiting(http: httpx.Client) -> None:
    name = make_tool(http)
    asked = ask(http, name, FOX)
    dismissed = send(http, answer(name, FOX, asked, {"call_1": {"action": "cancel"}}))
    assert dismissed["isError"]
    assert "resume" in dismissed["content"][0]["text"]
    assert "user has not given" in dismissed["content"][0]["text"]
    again = send(http, call(name, FOX, 3, requestState=asked["requestState"]))
    assert again["inputRequests"] == asked["inputRequests"]
    assert send(http, answer(name, FOX, again, APPROVED))["resultType"] == "complete"


def test_a_repeated_answer_gets_the_same_result(http: httpx.Client) -> None:
    name = make_tool(http)
    asked = ask(http, name, WEATHER_IN_ROME)
    answers = {"call_1": {"action": "accept", "content": {"result": "sunny"}}}
    first = send(http, answer(name, WEATHER_IN_ROME, asked, answers))
    assert send(http, answer(name, WEATHER_IN_ROME, asked, answers)) == first
    other = {"call_1": {"action": "accept", "content": {"result": "rainy"}}}
    assert error_of(post(http, answer(name, WEATHER_IN_ROME, asked, other)))["code"] == -32012


def test_answers_without_their_state_are_refused(http: httpx.Client) -> None:
    agent = create_agent(http)
    for answers in (APPROVED, {}):
        response = post(http, call(tool_of(http, agent), "Hi", inputResponses=answers))
        assert (response.status_code, error_of(response)["code"]) == (400, -32602)
    assert len(http.get(f"/v1/agents/{agent}/sessions").json()["data"]) == 0


def test_a_changed_state_is_refused(http: httpx.Client) -> None:
    name = make_tool(http)
    state = ask(http, name, FOX)["requestState"]
    raw = bytearray(base64.urlsafe_b64decode(state[4:]))
    raw[-1] ^= 1
    for wrong in ("", "x", state[:-4], f"st1.{state[4:]}", "st2." + base64.urlsafe_b64encode(raw).decode(), "é"):
        response = post(http, answer(name, FOX, {"requestState": wrong}, APPROVED))
        assert (response.status_code, error_of(response)["data"]["code"]) == (400, "invalid_request_state")


def test_a_state_is_of_its_tool_and_session(http: httpx.Client) -> None:
    name, other = make_tool(http), make_tool(http)
    asked = ask(http, name, FOX)
    session = send(http, call(name, "Hi"))["structuredContent"]["session_id"]
    for body in (
        answer(other, FOX, asked, APPROVED),
        answer(name, FOX, asked, APPROVED, arguments={"session_id": session}),
    ):
        assert error_of(post(http, body))["data"]["code"] == "invalid_request_state"


def test_a_state_is_of_its_end_user(http: httpx.Client) -> None:
    name = make_tool(http)
    body = call(name, FOX)
    asked = send(http, body, x_stint_user="ada")
    for user in ({"x_stint_user": "bob"}, {}):
        assert (
            error_of(post(http, answer(name, FOX, asked, APPROVED), **user))["data"]["code"] == "invalid_request_state"
        )
    assert send(http, answer(name, FOX, asked, APPROVED), x_stint_user="ada")["resultType"] == "complete"


def test_a_state_of_another_tenant_is_refused(http: httpx.Client, app_fixture: AppFixture) -> None:
    own = app_fixture.tenant
    name = make_tool(http)
    asked = ask(http, name, FOX)
    app_fixture.tenant = f"{own}x"
    try:
        response = post(http, answer(make_tool(http), FOX, asked, APPROVED))
    finally:
        app_fixture.tenant = own
    assert error_of(response)["data"]["code"] == "invalid_request_state"


def test_a_state_expires(http: httpx.Client) -> None:
    name = make_tool(http)
    asked = ask(http, name, FOX)
    CLOCK.move(3_700)
    error = error_of(post(http, answer(name, FOX, asked, APPROVED)))
    assert (error["data"]["code"], "expired" in error["message"]) == ("invalid_request_state", True)


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}, {"elicitation": True}, None])
def test_a_client_without_forms_reads_what_is_needed(http: httpx.Client, capabilities: Answer | None) -> None:
    name = make_tool(http)
    if capabilities is None:
        body = legacy("tools/call", name=name, arguments={"message": CALLS})
    else:
        body = call(name, CALLS, meta={next(key for key in META if key.endswith("Capabilities")): capabilities})
    result = send(http, body)
    text, outcome = result["content"][0]["text"], result["structuredContent"]
    assert "inputRequests" not in result
    for part in ("get_weather", "photogen", "a red fox", f"/turn/{outcome['turn_id']}/resume", outcome["session_id"]):
        assert part in text


def test_a_waiting_turn_is_answered_over_another_api(http: httpx.Client) -> None:
    agent = create_agent(http, client_tools=[WEATHER])
    name = tool_of(http, agent)
    asked = ask(http, name, WEATHER_IN_ROME)
    [session] = http.get(f"/v1/agents/{agent}/sessions").json()["data"]
    path = f"/v1/agents/{agent}/session/{session['session_id']}"
    [turn] = http.get(path).json()["turns"]
    [waiting] = turn["output_message"]["tool_calls"]
    responses = [{"call_id": waiting["call_id"], "tool_name": "get_weather", "content": "sunny"}]
    done = http.post(f"{path}/turn/{turn['turn_id']}/resume", json={"tool_responses": responses})
    assert done.json()["status"] == "completed"
    result = send(http, call(name, WEATHER_IN_ROME, 3, requestState=asked["requestState"]))
    assert "sunny" in result["content"][0]["text"]
