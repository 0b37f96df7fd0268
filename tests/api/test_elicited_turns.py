"""Turns that wait because the server of a tool asks their client, in each API."""

import json
from typing import Any

import httpx
import pytest
from tests.api.agents_api_client import OpenStream, message, post_events
from tests.api.api_client import assert_error, create_agent, create_session, open_session, payloads, say, turn
from tests.api.app_fixture import AppFixture, Served
from tests.api.mcp_client import call as mcp_call
from tests.api.mcp_client import send, tool_of
from tests.api.responses_client import respond
from tests.store.tenant_records import read_records

BOOK = 'call: book {"date": "May 1"}'
DECISION = "agent.session.input.mcp_approval_request_result"
Body = dict[str, Any]

pytestmark = pytest.mark.usefixtures("mcp_tools")


@pytest.fixture
def desk(mcp_server: str) -> Body:
    """Return the toolgroup of a server that asks."""
    return {"name": "builtin::mcp", "args": {"server_label": "desk", "server_url": f"{mcp_server}/stateless/mcp"}}


def answer(http: httpx.Client, session: str, paused: Body, **approval: Any) -> httpx.Response:
    """Answer the only question of a turn."""
    [call_id] = paused["pending_approvals"]
    body = {"tool_responses": [], "approvals": [{"call_id": call_id} | approval]}
    return http.post(f"{session}/turn/{paused['turn_id']}/resume", json=body)


def results(shown: Body) -> list[str]:
    steps = [step for step in shown["steps"] if step["step_type"] == "tool_execution"]
    return [each["content"][0]["text"] for step in steps for each in step["tool_responses"]]


def test_a_question_of_a_server_is_a_waiting_turn(http: httpx.Client, app_fixture: AppFixture, desk: Body) -> None:
    session = open_session(http, toolgroups=[desk])
    paused = turn(http, session, BOOK)

    done = answer(http, session, paused, approve=True, input={"guests": 4, "window": True}).json()

    [call] = paused["output_message"]["tool_calls"]
    assert (paused["status"], paused["pending_approvals"]) == ("awaiting_input", [call["call_id"]])
    form = paused["pending_inputs"][call["call_id"]]["form_1"]
    assert (form["message"], form["requested_schema"]["required"]) == ("How many come on May 1?", ["guests"])
    assert results(paused) == []
    assert (done["status"], results(done)) == ("completed", ['booked {"guests": 4, "window": true}'])
    assert "pending_inputs" not in done
    stored = repr(read_records(app_fixture.dynamodb, app_fixture.settings.table, app_fixture.tenant))
    assert "requestState" not in str(paused) + str(done)
    assert "'1.'" not in stored


def test_the_state_of_a_server_is_in_no_answer(http: httpx.Client, desk: Body) -> None:
    session = open_session(http, toolgroups=[desk])
    events = say(http, session, BOOK, stream=True)
    paused = payloads(events)[-1]["turn"]

    shown = [events.text, http.get(f"{session}/turn/{paused['turn_id']}").text, http.get(session).text]
    shown.append(http.get(f"{session}/turn/{paused['turn_id']}/trace").text)

    assert all("1.f" not in each and "state" not in str(paused["pending_inputs"]) for each in shown)


def test_a_stream_is_replayed_with_the_same_numbers(http: httpx.Client, desk: Body) -> None:
    session = open_session(http, toolgroups=[desk])
    first = payloads(say(http, session, f"{BOOK}\n{BOOK}", stream=True))
    paused = first[-1]["turn"]
    replayed = http.get(f"{session}/turn/{paused['turn_id']}/events")

    assert payloads(replayed) == first


def test_a_server_may_ask_twice(http: httpx.Client, desk: Body) -> None:
    session = open_session(http, toolgroups=[desk])
    paused = turn(http, session, BOOK)

    again = answer(http, session, paused, approve=True, input={"guests": 40}).json()
    done = answer(http, session, again, approve=True).json()

    [[form]] = [forms.values() for forms in again["pending_inputs"].values()]
    assert (again["status"], form["message"]) == ("awaiting_input", "So many?")
    assert results(done) == ["booked a hall: accept"]


def test_a_server_learns_that_the_user_declines(http: httpx.Client, desk: Body) -> None:
    session = open_session(http, toolgroups=[desk])
    paused = turn(http, session, BOOK)

    done = answer(http, session, paused, approve=False).json()

    assert (done["status"], results(done)) == ("completed", ["not booked: decline"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "'guests' is missing"),
        ({"guests": "4"}, "must be of the type integer"),
        ({"guests": True}, "must be of the type integer"),
        ({"guests": 0}, "must be from 1"),
        ({"guests": 2, "table": "roof"}, "must be one of: inside, outside"),
        ({"guests": 2, "extra": 1}, "there is no field 'extra'"),
        ({"guests": {"deep": 1}}, "must be of the type"),
        ({"guests": 2, "window": "x" * 70_000}, "more than 64,000"),
    ],
)
def test_an_answer_that_does_not_fit_changes_nothing(http: httpx.Client, desk: Body, given: Body, words: str) -> None:
    session = open_session(http, toolgroups=[desk])
    paused = turn(http, session, BOOK)

    error = assert_error(answer(http, session, paused, approve=True, input=given), 400, "input_mismatch")

    assert words in error["message"]
    assert error["param"] == "approvals"
    assert answer(http, session, paused, approve=True, input={"guests": 2}).json()["status"] == "completed"


def test_an_approval_of_a_call_that_asks_nothing_has_no_input(http: httpx.Client, desk: Body) -> None:
    session = open_session(http, toolgroups=[desk | {"require_approval": "always"}])
    paused = turn(http, session, 'call: add {"a": 1, "b": 2}')

    refused = answer(http, session, paused, approve=True, input={"guests": 2})

    assert_error(refused, 400, "input_mismatch")
    assert results(answer(http, session, paused, approve=True).json()) == ["3"]


def test_an_approved_call_may_ask(http: httpx.Client, desk: Body) -> None:
    session = open_session(http, toolgroups=[desk | {"require_approval": "always"}])
    asked = turn(http, session, BOOK)

    paused = answer(http, session, asked, approve=True).json()
    done = answer(http, session, paused, approve=True, input={"guests": 3}).json()

    assert ("pending_inputs" in asked, paused["status"], done["status"]) == (False, "awaiting_input", "completed")
    assert results(done) == ['booked {"guests": 3}']


def test_calls_beside_a_question_keep_their_results(http: httpx.Client, desk: Body) -> None:
    session = open_session(http, toolgroups=[desk])
    paused = turn(http, session, f'{BOOK}\ncall: add {{"a": 1, "b": 2}}')

    done = answer(http, session, paused, approve=True, input={"guests": 1}).json()

    assert results(paused) == ["3"]
    assert results(done) == ["3", 'booked {"guests": 1}']


def test_an_answer_is_taken_once(http: httpx.Client, desk: Body) -> None:
    session = open_session(http, toolgroups=[desk])
    paused = turn(http, session, BOOK)
    given = {"approve": True, "input": {"guests": 2}}

    done, repeated = (answer(http, session, paused, **given).json() for _ in range(2))
    other = answer(http, session, paused, approve=True, input={"guests": 3})

    assert results(done) == results(repeated) == ['booked {"guests": 2}']
    assert other.status_code in (400, 409)


def test_the_next_turn_gives_a_question_up(http: httpx.Client, desk: Body) -> None:
    session = open_session(http, toolgroups=[desk])
    paused = turn(http, session, BOOK)

    assert turn(http, session, "say: Never mind.")["status"] == "completed"
    assert http.get(f"{session}/turn/{paused['turn_id']}").json()["status"] == "cancelled"


def test_a_response_offers_no_forms(http: httpx.Client, mcp_server: str) -> None:
    url = f"{mcp_server}/stateless/mcp"
    tool = {"type": "mcp", "server_label": "desk", "server_url": url, "require_approval": "never"}

    done = respond(http, BOOK, tools=[tool])

    [call] = [item for item in done["output"] if item["type"] == "mcp_call"]
    assert "nobody to ask" in str(call)


def test_the_agents_api_asks_as_for_an_approval(
    http: httpx.Client, server: Served, app_fixture: AppFixture, desk: Body
) -> None:
    agent = create_agent(http, toolgroups=[desk])
    session_id = create_session(http, agent).rsplit("/", 1)[1]
    with OpenStream(server, session_id) as stream:
        post_events(http, session_id, message(BOOK))
        paused = stream.wait_for("requires_action")
    [action] = paused["required_actions"] if "required_actions" in paused else find_actions(paused)
    assert (action["type"], action["request"]["message"]) == ("mcp_approval_request", "How many come on May 1?")
    assert list(action["request"]["forms"]) == ["form_1"]

    def decide(**response: Any) -> httpx.Response:
        event = {"type": DECISION, "request_id": action["request_id"]}
        return post_events(http, session_id, event | {"response": {"type": "mcp_tool_call"} | response})

    assert_error(decide(decision="approve"), 400, "input_mismatch")
    assert decide(decision="approve", input={"guests": 5}).status_code == 202
    app_fixture.run_waiting()

    assert 'booked {"guests": 5}' in str(results_of(http, agent, session_id)).replace("\\", "")


def find_actions(event: Body) -> list[Body]:
    parts = [value for value in event.values() if isinstance(value, dict)]
    return [action for part in parts for action in part.get("required_actions", [])]


def results_of(http: httpx.Client, agent: str, session_id: str) -> list[str]:
    [shown] = http.get(f"/v1/agents/{agent}/session/{session_id}").json()["turns"]
    return results(shown)


@pytest.mark.parametrize(
    ("approval", "said"),
    [({"approve": True, "input": {"guests": 7}}, '"guests": 7'), ({"approve": False}, "not booked")],
)
def test_an_agent_as_a_tool_passes_the_question_on(
    http: httpx.Client, server: Served, desk: Body, approval: Body, said: str
) -> None:
    inner = create_agent(http, toolgroups=[desk])
    args = {"server_label": "inner", "server_url": f"{server.url}/v1/agents/{inner}/mcp"}
    outer = open_session(http, toolgroups=[{"name": "builtin::mcp", "args": args}])
    [tool] = list_tools(http, inner)
    request = json.dumps({"message": BOOK})

    paused = turn(http, outer, f"call: {tool} {request}")
    done = answer(http, outer, paused, **approval).json()

    [forms] = paused["pending_inputs"].values()
    [form] = forms.values()
    assert "How many come on May 1?" in form["message"]
    assert form["requested_schema"]["required"] == ["guests"]
    assert done["status"] == "completed"
    assert said in results(done)[0].replace("\\", "")


@pytest.mark.parametrize("count", [1, 2])
def test_an_agent_of_an_agent_is_approved_over_mcp(http: httpx.Client, server: Served, desk: Body, count: int) -> None:
    inner = create_agent(http, toolgroups=[{**desk, "args": {**desk["args"], "require_approval": "always"}}])
    args = {"server_label": "inner", "server_url": f"{server.url}/v1/agents/{inner}/mcp"}
    outer = tool_of(http, create_agent(http, toolgroups=[{"name": "builtin::mcp", "args": args}]))
    adding = "\n".join(f'call: add {{"a": {number}, "b": 1}}' for number in range(count))
    said = f"call: {tool_of(http, inner)} {json.dumps({'message': adding})}"

    asked = send(http, mcp_call(outer, said))
    forms = asked["inputRequests"]
    answers = {key: {"action": "accept", "content": {"approve": True}} for key in forms}
    again = mcp_call(outer, said, 2, inputResponses=answers, requestState=asked["requestState"])
    done = send(http, again)

    assert forms["call_1"]["params"]["requestedSchema"]["required"] == ["approve"]
    assert all(f'"a": {number}' in form["params"]["message"] for number, form in enumerate(forms.values()))
    assert len(forms) == count
    assert (done["resultType"], done["isError"]) == ("complete", False)
    assert "add answered: 1" in done["content"][0]["text"]


def list_tools(http: httpx.Client, agent: str) -> list[str]:
    """Return the names of the tools of an agent's MCP server."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    headers = {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/list",
        "Accept": "application/json, text/event-stream",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    listed = http.post(f"/v1/agents/{agent}/mcp", json=body, headers=headers).json()
    return [tool["name"] for tool in listed["result"]["tools"]]
