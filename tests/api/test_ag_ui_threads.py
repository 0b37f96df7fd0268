"""Threads of AG-UI: whose session each one has, and who may name a session."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx
import pytest
from tests.api.ag_ui_client import (
    CALL,
    WEATHER,
    Frontend,
    events_of,
    find_event,
    result,
    said,
    send_run,
    text_of,
    types_of,
)
from tests.api.api_client import create_agent, create_session, say, turn

from stint.ag_ui import runs
from stint.domain.principals import ANONYMOUS
from stint.http.middleware import authentication

HEADER = "stint-session-id"
ANN, BOB = {"x-stint-user": "ann"}, {"x-stint-user": "bob"}
Body = dict[str, Any]


@pytest.fixture
def agent(http: httpx.Client) -> str:
    return create_agent(http)


def session_of(http: httpx.Client, agent: str, thread: str, text: str = "say: Hello", **body: Any) -> str:
    """Run the agent in a thread, and return the session."""
    response = send_run(http, agent, thread, [said("m1", text)], **body)
    assert events_of(response)[-1]["type"] == "RUN_FINISHED"
    return response.headers[HEADER]


def test_a_thread_keeps_its_session(http: httpx.Client, agent: str) -> None:
    assert session_of(http, agent, "1") == session_of(http, agent, "1")
    assert session_of(http, agent, "1") != session_of(http, agent, "2")


def test_callers_users_and_agents_have_threads_of_their_own(
    http: httpx.Client, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = {
        session_of(http, agent, "1"),
        session_of(http, agent, "1", headers=ANN),
        session_of(http, agent, "1", headers=BOB),
        session_of(http, create_agent(http), "1"),
    }
    for caller in (replace(ANONYMOUS, subject="bob"), replace(ANONYMOUS, key_id="key"), replace(ANONYMOUS, tenant="b")):
        monkeypatch.setattr(authentication, "ANONYMOUS", caller)
        own = agent if caller.tenant == ANONYMOUS.tenant else create_agent(http)
        sessions.add(session_of(http, own, "1"))

    assert len(sessions) == 7


def test_parts_of_a_thread_cannot_be_moved_between_its_names(http: httpx.Client, agent: str) -> None:
    names = ['1"', '", "1', "ann", '["ann"]', "null"]
    headers = [None, ANN, {"x-stint-user": "null"}]
    sessions = [session_of(http, agent, name, headers=each) for name in names for each in headers]
    assert len({*sessions}) == len(sessions)


def test_requests_at_once_create_one_session(http: httpx.Client, agent: str) -> None:
    def run(number: int) -> httpx.Response:
        return send_run(http, agent, "race", [said(f"m{number}", f"say: {number}")])

    with ThreadPoolExecutor(8) as pool:
        responses = [*pool.map(run, range(8))]

    assert {response.status_code for response in responses} <= {200, 409}
    assert len({response.headers[HEADER] for response in responses if response.status_code == 200}) == 1
    assert len(http.get(f"/v1/agents/{agent}/sessions").json()["data"]) == 1


def test_the_same_message_at_once_runs_once(http: httpx.Client, agent: str) -> None:
    session_of(http, agent, "race")

    def run(_: int) -> httpx.Response:
        return send_run(http, agent, "race", [said("m1", "say: Hello"), said("m2", "say: Twice")])

    with ThreadPoolExecutor(8) as pool:
        responses = [*pool.map(run, range(8))]

    assert {response.status_code for response in responses} <= {200, 409}
    session = session_of(http, agent, "race")
    turns = http.get(f"/v1/agents/{agent}/session/{session}").json()["turns"]
    assert [each["input_messages"][0]["content"] for each in turns] == ["say: Hello", "say: Twice"]


def test_a_deleted_session_is_replaced(http: httpx.Client, agent: str) -> None:
    first = session_of(http, agent, "1")
    http.delete(f"/v1/agents/{agent}/session/{first}")

    second = session_of(http, agent, "1")
    assert second != first
    assert session_of(http, agent, "1") == second


def test_a_session_of_another_api_is_continued_by_its_id(http: httpx.Client, agent: str) -> None:
    path = create_session(http, agent)
    session = path.rpartition("/")[2]
    turn(http, path, "say: One")

    front = Frontend(http, agent, session)
    front.run(said("m1", "say: Two"))

    assert [message["content"] for message in front.messages] == ["say: One", "One", "say: Two", "Two"]
    assert session_of(http, agent, session) == session
    assert len(http.get(path).json()["turns"]) == 2


def test_a_thread_that_another_api_continued_goes_on(http: httpx.Client, agent: str) -> None:
    front = Frontend(http, agent)
    front.run(said("m1", "say: One"))
    session = session_of(http, agent, "1", "say: One")
    path = f"/v1/agents/{agent}/session/{session}"
    turn(http, path, "say: Two")
    events = front.run(said("m3", "say: Three"))

    assert text_of(events) == "Three"
    contents = [message["content"] for message in find_event(events, "MESSAGES_SNAPSHOT")["messages"]]
    assert contents == ["say: One", "One", "say: Two", "Two", "say: Three"]
    assert len(http.get(path).json()["turns"]) == 3


def test_a_call_that_waits_in_another_api_is_answered_here(http: httpx.Client, agent: str) -> None:
    path = create_session(http, agent)
    session = path.rpartition("/")[2]
    tools = [{"name": "get_weather", "description": "The weather.", "parameters": []}]
    waiting = say(http, path, CALL, client_tools=tools).json()
    [call] = waiting["output_message"]["tool_calls"]

    front = Frontend(http, agent, session)
    assert front.run()[-1]["outcome"] == {"type": "success", "pendingToolCallIds": [call["call_id"]]}
    assert "sunny" in text_of(front.run(result("t1", call["call_id"])))


@pytest.mark.parametrize("headers", [BOB, None])
def test_a_session_of_another_user_is_a_new_thread(
    http: httpx.Client, agent: str, headers: Body | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_of(http, agent, "1", "say: Secret", headers=ANN)
    if headers is None:
        monkeypatch.setattr(authentication, "ANONYMOUS", replace(ANONYMOUS, tenant="other"))
        agent = create_agent(http)

    response = send_run(http, agent, session, [said("m9", "say: Mine")], headers=headers)

    assert response.headers[HEADER] != session
    assert "Secret" not in response.text


def test_a_session_of_another_agent_is_a_new_thread(http: httpx.Client, agent: str) -> None:
    session = session_of(http, agent, "1", "say: Secret")
    response = send_run(http, create_agent(http), session, [said("m9", "say: Mine")])
    assert response.headers[HEADER] != session
    assert "Secret" not in response.text


def test_an_unknown_agent_is_not_found(http: httpx.Client) -> None:
    for agent in ("01a228f4-883f-7000-add4-b2a256569359", "x", "..%2f"):
        response = send_run(http, agent, "1", [said("m1", "Hello")])
        assert response.status_code == 404, response.text


def test_a_session_gets_the_budget_of_its_first_run(http: httpx.Client, agent: str) -> None:
    session = session_of(http, agent, "1", forwardedProps={"stint/budget": {"max_tokens": 8}, "other": [1]})
    response = send_run(http, agent, "1", [said("m2", "say: Too much")])

    assert response.status_code == 402
    assert http.get(f"/v1/agents/{agent}/session/{session}").json()["budget"]["max_tokens"] == 8


def test_a_repeated_key_gets_the_first_answer(http: httpx.Client, agent: str) -> None:
    headers = {"idempotency-key": "once"}
    first, second = (send_run(http, agent, "1", [said("m1", "say: Hello")], headers=headers) for _ in range(2))

    assert second.headers["idempotent-replayed"] == "true"
    assert (second.text, second.headers[HEADER]) == (first.text, first.headers[HEADER])


def test_a_repeated_key_follows_the_run(http: httpx.Client, agent: str) -> None:
    def run(_: int) -> httpx.Response:
        headers = {"idempotency-key": "at once"}
        return send_run(http, agent, "1", [said("m1", "slow: 1\nsay: Hello")], headers=headers)

    with ThreadPoolExecutor(3) as pool:
        responses = [*pool.map(run, range(3))]

    assert [text_of(events_of(response)) for response in responses] == ["Hello"] * 3
    [session] = {response.headers[HEADER] for response in responses}
    assert len(http.get(f"/v1/agents/{agent}/session/{session}").json()["turns"]) == 1


def test_a_long_thread_keeps_the_older_messages_of_its_client(
    http: httpx.Client, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "MOST_TURNS", 2)
    front = Frontend(http, agent)
    for number in range(4):
        front.run(said(f"m{number}", f"say: {number}"))
    assert [each["content"] for each in front.messages if each["role"] == "assistant"] == ["0", "1", "2", "3"]

    late = Frontend(http, agent)
    events = late.run(said("late", "say: late"))
    shown = find_event(events, "MESSAGES_SNAPSHOT")["messages"]
    assert [each["content"] for each in shown] == ["say: 2", "2", "say: 3", "3", "say: late"]


def test_another_run_of_a_busy_thread_is_refused(http: httpx.Client, agent: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(send_run, http, agent, "1", [said("m1", "slow: 2\nsay: Done")])
        while not (sessions := http.get(f"/v1/agents/{agent}/sessions").json()["data"]):
            pass
        path = f"/v1/agents/{agent}/session/{sessions[0]['session_id']}"
        while not http.get(path).json()["turns"]:
            pass
        busy = send_run(http, agent, "1", [said("m1", "slow: 2\nsay: Done"), said("m2", "say: Next")])
        joined = events_of(send_run(http, agent, "1", [said("m1", "slow: 2\nsay: Done")]))
        first = events_of(slow.result())

    assert (busy.status_code, busy.json()["error"]["code"]) == (409, "session_locked")
    assert text_of(first) == text_of(joined) == "Done"
    assert types_of(joined)[-1] == "RUN_FINISHED"
    assert len(http.get(path).json()["turns"]) == 1


def test_an_agent_that_interrupts_starts_the_next_run(http: httpx.Client) -> None:
    agent = create_agent(http, when_busy="interrupt")
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(send_run, http, agent, "1", [said("m1", "slow: 20\nsay: Done")])
        while not (sessions := http.get(f"/v1/agents/{agent}/sessions").json()["data"]):
            pass
        path = f"/v1/agents/{agent}/session/{sessions[0]['session_id']}"
        while not http.get(path).json()["turns"]:
            pass
        events = events_of(send_run(http, agent, "1", [said("m1", "slow"), said("m2", "say: Next")]))
        cancelled = events_of(slow.result())

    assert text_of(events) == "Next"
    assert cancelled[-1]["outcome"] == {"type": "cancelled"}


def test_frontend_tools_do_not_replace_tools_of_the_server(http: httpx.Client) -> None:
    agent = create_agent(http, toolgroups=["builtin::photogen"])
    tool = WEATHER | {"name": "photogen"}
    response = send_run(http, agent, "1", [said("m1", 'call: photogen {"city": "Rome"}')], tools=[tool])
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "duplicate_tool"
    assert response.json()["error"]["param"] == "tools"


def test_a_turn_that_failed_at_once_is_repeated(http: httpx.Client, agent: str) -> None:
    front = Frontend(http, agent)
    for _ in range(2):
        events = events_of(send_run(http, agent, "1", [said("m1", "fail: overloaded")]))
        assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", "model_overloaded")

    session = http.get(f"/v1/agents/{agent}/sessions").json()["data"][0]["session_id"]
    turns = http.get(f"/v1/agents/{agent}/session/{session}").json()["turns"]
    assert len(turns) == 2
    events = front.run(said("m1", "fail: overloaded"), said("m2", "say: Now"))
    assert [each["id"] for each in find_event(events, "MESSAGES_SNAPSHOT")["messages"]] == ["m1", "m2"]
