"""Forks of sessions over HTTP, and with an unmodified client."""

from typing import Any

import httpx
from llama_stack_client import LlamaStackClient
from tests.api.api_client import (
    WEATHER,
    agent_config,
    assert_error,
    create_agent,
    create_session,
    open_session,
    say,
    turn,
    turns_of,
)
from tests.api.app_fixture import AppFixture

from stint.domain.ids import new_id


def fork(http: httpx.Client, session: str, turn_id: str, **headers: str) -> httpx.Response:
    """Fork a session from a turn."""
    agent, _, session_id = session.rpartition("/session/")
    body = {"session_name": "fork", "fork_from": {"session_id": session_id, "turn_id": turn_id}}
    return http.post(f"{agent}/session", json=body, headers=headers)


def forked(http: httpx.Client, session: str, turn_id: str) -> str:
    """Fork a session from a turn, and return the path of the fork."""
    response = fork(http, session, turn_id)
    assert response.status_code == 200, response.text
    assert list(response.json()) == ["session_id"]
    return f"{session.rpartition('/')[0]}/{response.json()['session_id']}"


def test_the_client_forks_a_session_with_an_extra_body(client: LlamaStackClient) -> None:
    agent_id = client.agents.create(agent_config=agent_config(model="recorded/model")).agent_id  # type: ignore[arg-type]  # a dict
    session_id = client.agents.session.create(agent_id, session_name="talk").session_id
    messages: Any = [{"role": "user", "content": "Hello"}]
    created = client.agents.turn.create(session_id, agent_id=agent_id, messages=messages, stream=False)

    source = {"session_id": session_id, "turn_id": created.turn_id}
    copy = client.agents.session.create(agent_id, session_name="fork", extra_body={"fork_from": source}).session_id

    session = client.agents.session.retrieve(copy, agent_id=agent_id)
    assert session.turns[0].output_message.content == created.output_message.content
    assert session.turns[0].session_id == copy


def test_the_model_sees_what_was_said_before_the_fork(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model="recorded/model")
    turns = [turn(http, session, text) for text in ("First", "Second", "Third")]

    copy = forked(http, session, turns[1]["turn_id"])
    turn(http, copy, "Other")

    said = [message.content for message in app_fixture.recorder.requests[-1].messages if hasattr(message, "content")]
    assert [text for text in said if text in ("First", "Second", "Third", "Other")] == ["First", "Second", "Other"]
    assert len(turns_of(http, session)) == len(turns_of(http, copy)) == 3
    expected = {"session_id": session.rpartition("/")[2], "turn_id": turns[1]["turn_id"], "complete": True}
    assert http.get(copy).json()["forked_from"] == expected
    assert "forked_from" not in http.get(session).json()


def test_what_cannot_be_forked_is_refused_by_name(http: httpx.Client) -> None:
    session = open_session(http, client_tools=[WEATHER])
    waiting = turn(http, session, "get_weather for Rome")["turn_id"]
    other = create_session(http, create_agent(http))

    error = assert_error(fork(http, session, waiting), 409, "turn_not_ended")
    assert error["param"] == "fork_from"
    assert_error(fork(http, session, new_id()), 404, "turn_not_found")
    assert_error(fork(http, other, waiting), 404, "turn_not_found")
    agent = other.rpartition("/session/")[0]
    assert_error(fork(http, f"{agent}/session/{session.rpartition('/')[2]}", waiting), 404, "session_not_found")
    for body in ({"session_id": new_id()}, {"turn_id": waiting}, {"session_id": 1, "turn_id": waiting}, "x"):
        answer = http.post(f"{agent}/session", json={"session_name": "fork", "fork_from": body})
        assert_error(answer, 400, "invalid_request")


def test_another_end_users_session_is_not_found(http: httpx.Client) -> None:
    agent = create_agent(http)
    ann = {"x-stint-user": "ann"}
    created = http.post(f"/v1/agents/{agent}/session", json={"session_name": "talk"}, headers=ann).json()
    session = f"/v1/agents/{agent}/session/{created['session_id']}"
    turn_id = turn(http, session, "say: hi")["turn_id"]

    assert_error(fork(http, session, turn_id, **{"x-stint-user": "bob"}), 404, "session_not_found")
    copies = [fork(http, session, turn_id, **headers).json()["session_id"] for headers in (ann, {})]

    listed = http.get("/v1/admin/users/ann").json()["data"]
    assert {each["id"] for each in listed} == {created["session_id"], *copies}
    exported = http.get("/v1/admin/users/ann/export").text
    assert all(copy in exported for copy in copies)
    assert http.delete("/v1/admin/users/ann").json()["deleted"] == {"session": 3}
    assert http.get(f"/v1/agents/{agent}/session/{copies[0]}").status_code == 404


def test_a_repeated_fork_is_the_same_session(http: httpx.Client) -> None:
    session = open_session(http)
    turn_id = turn(http, session, "say: hi")["turn_id"]
    key = {"idempotency-key": new_id()}
    retries = [{"x-stainless-retry-count": str(count), "user-agent": "Client/1"} for count in range(2)]

    by_key, by_count = (
        [fork(http, session, turn_id, **headers).json()["session_id"] for headers in sent]
        for sent in ([key, key], retries)
    )

    assert [len({*ids}) for ids in (by_key, by_count)] == [1, 1]
    assert by_key[0] != by_count[0]
    say(http, f"{session.rpartition('/')[0]}/{by_count[0]}", "say: more")
    again = fork(http, session, turn_id, **{"x-stainless-retry-count": "2", "user-agent": "Client/1"}).json()
    assert again["session_id"] != by_count[0]
