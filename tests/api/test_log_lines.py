"""The lines that a request writes: which turn, session and agent they belong to."""

import asyncio
import io
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from tests.api.agents_api_client import BETA, CANCEL, SESSIONS, post_events
from tests.api.api_client import JSON, create_agent, create_session, open_session, resume, say, turn
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import MODEL

from stint.log_keys import add_log_keys, begin_log_keys, end_log_keys
from stint.observability import make_logger

Line = dict[str, Any]
TURN_KEYS = ("agent_name", "agent_id", "session_id", "turn_id")


def lines_of(written: io.StringIO, server: Served) -> list[Line]:
    server.settle()
    return [json.loads(line) for line in written.getvalue().splitlines()]


def lines_of_request(written: io.StringIO, server: Served, response: httpx.Response) -> list[Line]:
    wanted = response.headers["x-request-id"]
    return [line for line in lines_of(written, server) if line.get("request_id") == wanted]


def ids_of(session: str) -> tuple[str, str]:
    """The ids of agent and session in a session's path."""
    _, _, _, agent_id, _, session_id = session.split("/")
    return agent_id, session_id


@pytest.mark.parametrize("stream", [True, False])
def test_every_line_of_a_turn_names_agent_session_and_turn(
    http: httpx.Client, server: Served, written: io.StringIO, stream: bool
) -> None:
    session = open_session(http, name="shop", model="faulty/crash")

    response = say(http, session, "hi", stream=stream)

    lines = lines_of_request(written, server, response)
    messages = [line["message"] for line in lines]
    assert messages == ["Unexpected error in a turn", "The turn failed", "Request"]
    [turn_id] = {line["turn_id"] for line in lines}
    [stored] = http.get(session).json()["turns"]
    assert stored["turn_id"] == turn_id
    assert {(line["agent_name"], line["agent_id"], line["session_id"]) for line in lines} == {
        ("shop", *ids_of(session))
    }


def test_a_resumed_turn_is_named_as_well(http: httpx.Client, server: Served, written: io.StringIO) -> None:
    tool = {"name": "look", "description": "Looks.", "parameters": []}
    session = open_session(http, name="shop", client_tools=[tool])
    paused = turn(http, session, "look")

    response = resume(http, session, paused, "nothing")

    [line] = lines_of_request(written, server, response)
    assert [line[key] for key in TURN_KEYS] == ["shop", *ids_of(session), paused["turn_id"]]


def test_a_turn_that_is_refused_names_agent_and_session(
    http: httpx.Client, server: Served, written: io.StringIO
) -> None:
    session = open_session(http, name="shop")

    refused = say(http, session, "hi", toolgroups=["nosuch"])
    unread = http.post(f"{session}/turn", content="{", headers={"content-type": "application/json"})

    [line] = lines_of_request(written, server, refused)
    assert (line["status"], line["agent_name"], line["agent_id"], line["session_id"]) == (400, "shop", *ids_of(session))
    [line] = lines_of_request(written, server, unread)
    assert (line["status"], line["agent_id"], line["session_id"]) == (400, *ids_of(session))


@pytest.mark.parametrize("warm", [True, False])
def test_every_route_below_an_agent_names_it_in_its_lines(
    http: httpx.Client, server: Served, app_fixture: AppFixture, written: io.StringIO, warm: bool
) -> None:
    session = open_session(http, name="shop")
    agent_id, session_id = ids_of(session)
    turn_id = turn(http, session, "hi")["turn_id"]
    [step] = http.get(f"{session}/turn/{turn_id}").json()["steps"]
    paths = {
        session: (session_id, None),
        f"{session}/turn/{turn_id}": (session_id, turn_id),
        f"{session}/turn/{turn_id}/step/{step['step_id']}": (session_id, turn_id),
        f"{session}/turn/{turn_id}/step/none": (session_id, turn_id),
        f"/v1/agents/{agent_id}/sessions": (None, None),
    }

    for path, ids in paths.items():
        if not warm:
            app_fixture.made.clear()
        [line] = lines_of_request(written, server, http.get(path))
        assert [line.get(key) for key in TURN_KEYS] == ["shop", agent_id, *ids], path
    made = http.post(f"/v1/agents/{agent_id}/session", json={"session_name": "talk"})
    [line] = lines_of_request(written, server, made)
    assert [line.get(key) for key in TURN_KEYS] == ["shop", agent_id, made.json()["session_id"], None]


def test_an_invalid_request_names_the_agent_that_this_process_knows(
    http: httpx.Client, server: Served, app_fixture: AppFixture, written: io.StringIO
) -> None:
    session = open_session(http, name="shop")
    turn_id = turn(http, session, "hi")["turn_id"]

    for name in ("shop", None):
        for path in (f"{session}/turn", f"{session}/turn/{turn_id}/resume"):
            for body in ({"content": "{"}, {"json": {"messages": 1}}, {"data": {"a": "b"}}):
                refused = http.post(path, **({"headers": JSON} if "content" in body else {}), **body)  # type: ignore[arg-type]
                [line] = lines_of_request(written, server, refused)
                assert line["status"] in (400, 415)
                assert (line.get("agent_name"), line["agent_id"], line["session_id"]) == (name, *ids_of(session))
        app_fixture.made.clear()


def test_an_agent_without_a_name_has_none_in_its_lines(
    http: httpx.Client, server: Served, written: io.StringIO
) -> None:
    session = open_session(http)

    response = say(http, session, "hi")

    [line] = lines_of_request(written, server, response)
    assert "agent_name" not in line
    assert line["agent_id"] == ids_of(session)[0]


def test_turns_at_the_same_time_and_requests_after_them_have_their_own_names(
    http: httpx.Client, server: Served, written: io.StringIO
) -> None:
    sessions = [open_session(http, name=f"agent {n % 4}") for n in range(12)]

    with ThreadPoolExecutor(4) as threads:
        responses = list(threads.map(lambda session: say(http, session, "fail: after 3 words\nlong: 9"), sessions))
    after = http.get("/v1/models")

    for number, (session, response) in enumerate(zip(sessions, responses, strict=True)):
        lines = lines_of_request(written, server, response)
        assert [line["message"] for line in lines] == ["The turn failed", "Request"]
        named = (f"agent {number % 4}", *ids_of(session))
        assert {tuple(line[key] for key in TURN_KEYS[:3]) for line in lines} == {named}
    [line] = lines_of_request(written, server, after)
    assert not set(TURN_KEYS) & set(line)


HOSTILE = 'a\n{"level":"ERROR"}\r\x00\x1b[2J\x85\x9b2J\u2028\u202e\U0001f600"\\'


def test_a_name_breaks_no_line_and_is_not_longer_than_a_line_should_be(
    http: httpx.Client, server: Served, written: io.StringIO
) -> None:
    agents = [create_agent(http, name=name) for name in (HOSTILE, "x" * 100_000)]

    responses = [say(http, create_session(http, agent), "hi") for agent in agents]

    lines = [lines_of_request(written, server, response) for response in responses]
    assert [[line["agent_name"] for line in each] for each in lines] == [[HOSTILE], ["x" * 200]]
    assert written.getvalue().isascii()
    assert written.getvalue().replace("\n", "").isprintable()


def test_what_is_written_of_a_path_are_ids_only(http: httpx.Client, server: Served, written: io.StringIO) -> None:
    response = http.post("/v1/agents/secret-thing/session/x/turn", json={"messages": []})

    [line] = lines_of_request(written, server, response)
    assert response.status_code == 404
    assert line["route"] == "/v1/agents/{agent_id}/session/{session_id}/turn"


async def test_tasks_that_were_begun_before_the_name_was_known_write_it_too(written: io.StringIO) -> None:

    known, done = asyncio.Event(), asyncio.Event()

    async def write() -> None:
        await known.wait()
        make_logger().info("later")
        await asyncio.to_thread(make_logger().info, "in a thread")
        done.set()

    begin_log_keys(request_id="r")
    task = asyncio.create_task(write())
    add_log_keys(agent_name="shop")
    known.set()
    await done.wait()
    await task
    end_log_keys()
    make_logger().info("after")

    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    assert [(line["message"], line.get("agent_name")) for line in lines] == [
        ("later", "shop"),
        ("in a thread", "shop"),
        ("after", None),
    ]


def test_each_request_of_a_session_of_the_agents_api_names_its_agent(
    http: httpx.Client, server: Served, written: io.StringIO
) -> None:
    body = {"environment": {"type": "none"}, "agent": {"model": MODEL}, "input": "Hello"}
    created = http.post(SESSIONS, json=body, headers=BETA)
    session = created.json()
    path = f"{SESSIONS}/{session['id']}"
    answers = [
        created,
        http.get(path, headers=BETA),
        http.get(f"{path}/items", headers=BETA),
        post_events(http, session["id"], CANCEL),
    ]

    for answer in answers:
        [line] = lines_of_request(written, server, answer)
        assert (line["agent_id"], line["session_id"]) == (session["agent"]["id"], session["id"])
