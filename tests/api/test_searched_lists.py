"""Lists of agents, sessions, turns and responses by order, name and status."""

import time
from typing import Any

import httpx
import pytest
from tests.api.api_client import WEATHER, create_agent, create_session, resume, say, turn, turns_of
from tests.api.app_fixture import AppFixture, run_in_thread
from tests.api.responses_client import RESPONSES, UNKNOWN, respond

from stint.domain.ids import new_id
from stint.domain.openai.stored_responses import ResponseHeader
from stint.services.agents import sessions as session_service
from stint.services.responses import status_search

Page = dict[str, Any]


def get(http: httpx.Client, path: str, **query: Any) -> Page:
    response = http.get(path, params=query)
    assert response.status_code == 200, response.text
    page: Page = response.json()
    return page


def all_pages(http: httpx.Client, path: str, key: str, **query: Any) -> list[str]:
    """Follow `next_after`, and return the ids of all pages."""
    found, after = list[str](), dict[str, str]()
    while True:
        page = get(http, path, **query, **after)
        found += [entry[key] for entry in page["data"]]
        if not page["has_more"]:
            assert "next_after" not in page
            return found
        after = {"after": page["next_after"]}


def id_of(path: str) -> str:
    return path.rpartition("/")[2]


def test_agents_and_sessions_are_listed_newest_first_page_by_page(http: httpx.Client) -> None:
    agents = [create_agent(http) for _ in range(5)]
    sessions = [id_of(create_session(http, agents[0])) for _ in range(5)]
    path = f"/v1/agents/{agents[0]}/sessions"

    for order, step in (("desc", -1), ("asc", 1)):
        assert all_pages(http, "/v1/agents", "agent_id", order=order, limit=2) == agents[::step]
        assert all_pages(http, path, "session_id", order=order, limit=2) == sessions[::step]
    page = get(http, path, order="desc", limit=2)
    assert list(page) == ["data", "has_more", "url", "next_after"]
    assert page["next_after"] == sessions[3]
    assert list(get(http, path, limit=2)) == ["data", "has_more", "url"]


def test_what_is_created_meanwhile_does_not_move_pages_that_begin_with_the_newest(http: httpx.Client) -> None:
    agent = create_agent(http)
    sessions = [id_of(create_session(http, agent)) for _ in range(4)]
    path = f"/v1/agents/{agent}/sessions"

    first = get(http, path, order="desc", limit=2)
    create_session(http, agent)
    http.delete(f"/v1/agents/{agent}/session/{sessions[2]}")
    second = get(http, path, order="desc", limit=2, after=first["next_after"])

    assert [entry["session_id"] for entry in second["data"]] == sessions[1::-1]


def test_agents_and_sessions_are_found_by_name(http: httpx.Client) -> None:
    named, other = create_agent(http, name="Weather bot"), create_agent(http, name="News")
    talks = [id_of(create_session(http, other, name)) for name in ("Trip to Rome", "Lunch", "rome again")]

    assert all_pages(http, "/v1/agents", "agent_id", name="WEATHER") == [named]
    assert all_pages(http, f"/v1/agents/{other}/sessions", "session_id", name="Rome", order="desc", limit=1) == [
        talks[2],
        talks[0],
    ]
    assert all_pages(http, f"/v1/agents/{named}/sessions", "session_id", name="Rome") == []


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"order": "newest"}, "order"),
        ({"name": ""}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"name": "x", "start_index": 1}, "start_index"),
        ({"status": "failed", "start_index": 1}, "start_index"),
        ({"status": "done"}, "status"),
        ({"include": "turns"}, "include.0"),
    ],
)
def test_other_parameters_are_refused_by_name(http: httpx.Client, query: dict[str, Any], param: str) -> None:
    refused = http.get(f"/v1/agents/{create_agent(http)}/sessions", params=query)

    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == param


@pytest.mark.parametrize("after", ["nonsense", "../state", "\x00", ""])
def test_a_page_after_what_is_no_id_is_not_found(http: httpx.Client, after: str) -> None:
    session = create_session(http, agent := create_agent(http))

    for path in ("/v1/agents", f"/v1/agents/{agent}/sessions", f"{session}/turns"):
        assert http.get(path, params={"after": after}).status_code == 404


def test_sessions_are_shown_with_their_last_turns_if_that_is_asked_for(http: httpx.Client) -> None:
    agent = create_agent(http, client_tools=[WEATHER])
    path = f"/v1/agents/{agent}/sessions"
    empty, done, waiting = (create_session(http, agent, name) for name in ("empty", "done", "waiting"))
    turn(http, done, "say: one")
    completed = turn(http, done, "say: two")
    paused = turn(http, waiting, 'call: get_weather {"city": "Rome"}')
    assert paused["status"] == "awaiting_input"

    shown = {entry["session_name"]: entry for entry in get(http, path, include="last_turn")["data"]}

    assert "last_turn" not in shown["empty"]
    assert shown["done"]["last_turn"]["turn_id"] == completed["turn_id"]
    assert shown["done"]["last_turn"]["status"] == "completed"
    assert shown["waiting"]["last_turn"]["status"] == "awaiting_input"
    assert list(shown["done"]["last_turn"]) == ["turn_id", "started_at", "status"]
    assert shown["done"]["last_turn"]["started_at"][:16] <= completed["started_at"][:16]
    assert all("last_turn" not in entry for entry in get(http, path)["data"])
    assert all_pages(http, path, "session_id", status="awaiting_input") == [id_of(waiting)]
    assert all_pages(http, path, "session_id", status="completed", limit=1) == [id_of(done)]
    assert resume(http, waiting, paused, "Rain").status_code == 200
    assert all_pages(http, path, "session_id", status="completed", order="desc") == [id_of(waiting), id_of(done)]
    assert http.get(empty).status_code == 200


def test_a_listed_status_is_that_of_the_turn(http: httpx.Client) -> None:
    agent = create_agent(http, client_tools=[WEATHER])
    for text in ("say: Hi", "fail: no", 'call: get_weather {"city": "Rome"}'):
        say(http, create_session(http, agent), text)
    cancelled = create_session(http, agent)
    paused = turn(http, cancelled, 'call: get_weather {"city": "Rome"}')
    http.post(f"{cancelled}/turn/{paused['turn_id']}/cancel")

    listed = get(http, f"/v1/agents/{agent}/sessions", include="last_turn")["data"]

    for entry in listed:
        last = entry["last_turn"]
        shown = http.get(f"/v1/agents/{agent}/session/{entry['session_id']}/turn/{last['turn_id']}").json()
        assert last["status"] == shown["status"]
    assert {entry["last_turn"]["status"] for entry in listed} >= {"completed", "awaiting_input", "cancelled"}


def test_the_turns_of_a_session_are_listed_newest_first_as_they_are_read(http: httpx.Client) -> None:
    session = create_session(http, create_agent(http))
    made = [turn(http, session, f"say: {number}") for number in range(5)]

    first = get(http, f"{session}/turns", limit=2)
    second = get(http, f"{session}/turns", limit=2, after=first["data"][-1]["turn_id"])
    last = get(http, f"{session}/turns", limit=2, after=second["data"][-1]["turn_id"])

    assert first["data"] + second["data"] + last["data"] == made[::-1] == turns_of(http, session)[::-1]
    assert [page["has_more"] for page in (first, second, last)] == [True, True, False]
    assert first["url"] == f"{session}/turns"
    assert get(http, f"{session}/turns", order="asc")["data"] == made
    for query in ({"limit": 0}, {"limit": 101}, {"order": "up"}):
        assert http.get(f"{session}/turns", params=query).status_code == 400
    unknown = session.rpartition("/")[0] + f"/{new_id()}/turns"
    assert http.get(unknown).status_code == 404
    assert http.get(f"/v1/agents/{new_id()}/session/{id_of(session)}/turns").status_code == 404


def test_responses_are_found_by_status(http: httpx.Client, app_fixture: AppFixture) -> None:
    made = [respond(http, f"say: {number}")["id"] for number in range(4)]
    dead = ResponseHeader(response_id=UNKNOWN, created_at=1, model="m", until=time.time() - 1)
    alive = dead.model_copy(update={"response_id": f"resp_{'1' * 32}", "until": time.time() + 60})
    for header in (dead, alive):
        run_in_thread(app_fixture.store.responses.put(app_fixture.tenant, header))

    def ids(**query: Any) -> list[str]:
        return [entry["id"] for entry in get(http, RESPONSES, **query)["data"]]

    assert ids(status="completed") == made[::-1]
    assert ids(status="completed", order="asc", limit=2) == made[:2]
    page = get(http, RESPONSES, status="completed", limit=3)
    assert (page["next_after"], page["has_more"]) == (made[1], True)
    assert ids(status="completed", limit=3, after=page["next_after"]) == [made[0]]
    assert "next_after" not in get(http, RESPONSES, limit=3)
    assert ids(status="failed") == [dead.response_id]
    assert ids(status="in_progress") == [alive.response_id]
    assert ids(status="queued") == ids(status="failed", model="other") == []
    assert http.get(RESPONSES, params={"status": "done"}).status_code == 400


def test_a_search_of_responses_by_status_is_bounded_and_says_where_to_go_on(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [respond(http, f"say: {number}")["id"] for number in range(5)]
    monkeypatch.setattr(status_search, "EXAMINED", 2)
    monkeypatch.setattr(status_search, "ROUND", 1)

    page = get(http, RESPONSES, status="failed")

    assert (page["data"], page["has_more"], page["next_after"]) == ([], True, made[3])
    assert get(http, RESPONSES, status="failed", after=made[1])["has_more"] is False


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_turns_are_found_by_status(http: httpx.Client, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(session_service, "EXAMINED_AT_ONCE", at_once)
    session = create_session(http, create_agent(http, client_tools=[WEATHER]))
    for text in ("say: 1", "say: 2", "fail: no", "say: 3", "fail: no", "say: 4"):
        say(http, session, text)
    paused = turn(http, session, 'call: get_weather {"city": "Rome"}')
    path = f"{session}/turns"
    ids = [each["turn_id"] for each in get(http, path, order="asc")["data"]]
    of_status = {"completed": [ids[0], ids[1], ids[3], ids[5]], "failed": [ids[2], ids[4]], "cancelled": []}

    for status, expected in of_status.items():
        for limit in (1, 2, 20):
            assert all_pages(http, path, "turn_id", status=status, limit=limit) == expected[::-1]
            assert all_pages(http, path, "turn_id", status=status, limit=limit, order="asc") == expected
    assert all_pages(http, path, "turn_id", status="awaiting_input") == [paused["turn_id"]] == ids[6:]


def test_a_search_for_turns_reads_a_bounded_number_of_pages(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_service, "EXAMINED_AT_ONCE", 1)
    session = create_session(http, create_agent(http))
    turns = [turn(http, session, f"say: {number}")["turn_id"] for number in range(session_service.ROUNDS + 1)]

    page = get(http, f"{session}/turns", status="failed")

    assert (page["data"], page["has_more"], page["next_after"]) == ([], True, turns[1])
    assert get(http, f"{session}/turns", status="failed", after=turns[1])["has_more"] is False
    assert http.get(f"{session}/turns", params={"status": "done"}).status_code == 400
