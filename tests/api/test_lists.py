from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.api.api_client import create_agent, create_session, say
from tests.api.app_fixture import AppFixture, run_in_thread

from stint.domain.ids import new_id
from stint.domain.llama_stack.agents import Agent, AgentConfig
from stint.domain.schema import now
from stint.store import keys
from stint.store.items import decode, encode


def ids_of(response: httpx.Response, key: str = "agent_id") -> list[str]:
    assert response.status_code == 200, response.text
    return [entry[key] for entry in response.json()["data"]]


def test_agents_come_in_creation_order_page_by_page(http: httpx.Client) -> None:
    agents = [create_agent(http) for _ in range(5)]

    def page(**window: int) -> tuple[list[str], bool]:
        response = http.get("/v1/agents", params=window)
        return ids_of(response), response.json()["has_more"]

    assert page() == (agents, False)
    assert page(limit=-1) == (agents, False)
    assert page(limit=2) == (agents[:2], True)
    assert page(start_index=3) == (agents[3:], False)
    assert page(start_index=2, limit=2) == (agents[2:4], True)
    assert page(start_index=3, limit=2) == (agents[3:], False)
    assert page(limit=5) == (agents, False)
    assert page(limit=0) == ([], True)
    assert page(start_index=5) == ([], False)
    assert page(start_index=500, limit=3) == ([], False)


def test_a_list_bears_its_path_and_entries_the_shape_of_a_single_one(http: httpx.Client) -> None:
    agent = create_agent(http)
    session = create_session(http, agent, "first")
    say(http, session, "Hello")

    agents, sessions = http.get("/v1/agents?limit=9").json(), http.get(f"/v1/agents/{agent}/sessions").json()

    assert list(agents) == list(sessions) == ["data", "has_more", "url"]
    assert (agents["url"], sessions["url"]) == ("/v1/agents", f"/v1/agents/{agent}/sessions")
    assert agents["data"] == [http.get(f"/v1/agents/{agent}").json()]
    assert sessions["data"] == [http.get(session).json() | {"turns": []}]
    assert list(sessions["data"][0]) == ["session_id", "session_name", "turns", "started_at"]


@pytest.mark.parametrize("query", ["limit=-2", "start_index=-1", "limit=", "limit=ten", "start_index=1.5"])
def test_other_windows_are_refused_by_name(http: httpx.Client, query: str) -> None:
    agent = create_agent(http)

    for path in ("/v1/agents", f"/v1/agents/{agent}/sessions"):
        response = http.get(f"{path}?{query}")

        assert response.status_code == 400
        assert response.json()["error"]["param"] == query.partition("=")[0]


@pytest.mark.parametrize("query", [f"limit={10**22}", f"start_index={10**22}", f"start_index=1&limit={2**31}"])
def test_windows_beyond_all_measure_are_served(http: httpx.Client, query: str) -> None:
    create_agent(http)

    assert http.get(f"/v1/agents?{query}").status_code == 200


def test_what_is_deleted_or_created_behind_a_page_does_not_move_it(http: httpx.Client) -> None:
    agent = create_agent(http)
    sessions = [create_session(http, agent).rpartition("/")[2] for _ in range(4)]
    path = f"/v1/agents/{agent}/sessions"

    first = ids_of(http.get(f"{path}?limit=2"), "session_id")
    http.delete(f"/v1/agents/{agent}/session/{sessions[3]}")
    added = create_session(http, agent).rpartition("/")[2]
    second = ids_of(http.get(f"{path}?start_index=2&limit=2"), "session_id")

    assert first == sessions[:2]
    assert second == [sessions[2], added]


def test_a_list_without_limit_ends_at_a_thousand_entries(http: httpx.Client, app_fixture: AppFixture) -> None:
    agent = create_agent(http)
    session = create_session(http, agent).rpartition("/")[2]
    copy_item(app_fixture, keys.session(app_fixture.tenant, agent, session), 1_001)

    for query in ("", "?limit=-1"):
        listed = http.get(f"/v1/agents/{agent}/sessions{query}").json()
        rest = http.get(f"/v1/agents/{agent}/sessions?start_index=1000").json()

        assert (len(listed["data"]), listed["has_more"]) == (1_000, True)
        assert (len(rest["data"]), rest["has_more"]) == (2, False)
    assert len(http.get(f"/v1/agents/{agent}/sessions?limit=1001").json()["data"]) == 1_001


def copy_item(app_fixture: AppFixture, key: keys.Key, times: int) -> None:
    """Store copies of a record under new ids, beside the API."""
    table = app_fixture.settings.table
    item = decode(app_fixture.dynamodb.get_item(TableName=table, Key=encode(key._asdict()))["Item"])
    copies = [{"PutRequest": {"Item": encode(item | {"sk": new_id()})}} for _ in range(times)]
    for at in range(0, times, 25):
        app_fixture.dynamodb.batch_write_item(RequestItems={table: copies[at : at + 25]})


Call = Callable[..., dict[str, Any]]


def test_no_answer_of_a_buffered_function_exceeds_its_limit(through_mangum: Call) -> None:
    """Quotes and characters outside ASCII grow on their way through Lambda."""
    for text in ('"' * 980_000, "é" * 650_000, "x" * 3_900_000):
        config = {"model": "scripted/demo", "instructions": text}
        created = through_mangum("POST", "/v1/agents", {"agent_config": config})
        shown = through_mangum("GET", f"/v1/agents/{created['agent_id']}")

        assert shown["agent_config"]["instructions"] == text
        assert 3_800_000 < shown["size"] < 5_500_000

    listed = through_mangum("GET", "/v1/agents")

    assert (len(listed["data"]), listed["has_more"]) == (1, True)
    assert listed["size"] < 5_500_000


def test_an_answer_that_cannot_fit_is_an_error_that_says_what_to_do(
    through_mangum: Call, app_fixture: AppFixture
) -> None:
    config = AgentConfig(model="m", instructions="x" * 6_000_000)
    agent = Agent(agent_id=new_id(), agent_config=config, created_at=now())
    run_in_thread(app_fixture.store.agents.create(app_fixture.tenant, agent))

    answer = through_mangum("GET", f"/v1/agents/{agent.agent_id}")

    assert answer["statusCode"] == 413
    assert "start_index" in answer["error"]["message"]


def test_what_would_not_fit_into_an_answer_is_refused_when_it_is_created(http: httpx.Client) -> None:
    agent = create_agent(http)

    config = http.post("/v1/agents", json={"agent_config": {"model": "m", "instructions": "é" * 1_000_000}})
    name = http.post(f"/v1/agents/{agent}/session", json={"session_name": '"' * 2_100_000})

    assert [(each.status_code, each.json()["error"]["param"]) for each in (config, name)] == [
        (413, "agent_config"),
        (413, "session_name"),
    ]
