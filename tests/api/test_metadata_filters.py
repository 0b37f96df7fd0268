"""Lists of sessions and agents by metadata, with OpenAI's client, Llama Stack's, and hostile queries."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from llama_stack_client import LlamaStackClient
from openai import BadRequestError, OpenAI
from tests.api.api_client import agent_config, assert_error, create_agent
from tests.api.app_fixture import AppFixture, Served, run_in_thread
from tests.api.responses_client import MODEL, openai_client

from stint.domain.ids import new_id
from stint.store import keys, metadata_index
from stint.store.metadata_index import hash_pair

BETA = {"OpenAI-Beta": "agents=v1"}
SESSIONS = "/v1/agents/sessions"


@pytest.fixture
def openai(server: Served) -> Iterator[OpenAI]:
    with openai_client(server) as client:
        yield client


def create(openai: OpenAI, agent_id: str | None = None, **metadata: str) -> str:
    """Create a session with OpenAI's client."""
    own: Any = {"agent_id": agent_id} if agent_id else {"agent": {"model": MODEL}}
    given: Any = {"metadata": metadata} if metadata else {}
    session: Any = openai.beta.agents.sessions.create(environment={"type": "none"}, input="Hello", **own, **given)
    return str(session.id)


def listed(openai: OpenAI, **query: Any) -> list[str]:
    """Return the sessions of all pages, newest first by default."""
    return [session.id for session in openai.beta.agents.sessions.list(**query)]


def add_session(http: httpx.Client, agent: str, name: str = "talk", **fields: Any) -> str:
    """Create a session in Llama Stack's API."""
    answer = http.post(f"/v1/agents/{agent}/session", json={"session_name": name, **fields})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["session_id"])


def entries(app_fixture: AppFixture, **pair: str) -> list[str]:
    """Return the sessions in the partition of a pair."""
    [partition] = [keys.session_pairs(app_fixture.tenant, hash_pair(*each).hex()) for each in pair.items()]

    async def read() -> list[str]:
        return [item["sk"] async for item in app_fixture.store._table.query(partition)]

    return run_in_thread(read())


def found(http: httpx.Client, path: str, key: str, query: str) -> list[str]:
    answer = http.get(f"{path}?{query}")
    assert answer.status_code == 200, answer.text
    return [entry[key] for entry in answer.json()["data"]]


def test_openais_client_lists_sessions_by_metadata_over_pages(openai: OpenAI) -> None:
    saved = openai.beta.agents.create(model=MODEL)
    ids = [create(openai, env="prod", n=str(number % 2)) for number in range(4)]
    mine = create(openai, saved.id, env="prod", n="0")
    create(openai, env="test", n="0")
    create(openai)

    assert listed(openai, metadata={"env": "prod"}, limit=2) == [mine, *ids[::-1]]
    assert listed(openai, metadata={"env": "prod", "n": "0"}, order="asc", limit=1) == [ids[0], ids[2], mine]
    assert listed(openai, metadata={"env": "prod"}, after=ids[2]) == [ids[1], ids[0]]
    assert listed(openai, metadata={"env": "prod", "n": "0"}, agent_id=saved.id) == [mine]
    assert listed(openai, metadata={"env": "Prod"}) == []


def test_an_update_replaces_the_metadata_that_lists_find(openai: OpenAI) -> None:
    session = create(openai, env="prod", team="a")
    sessions = openai.beta.agents.sessions

    assert sessions.update(session, metadata={"env": "test"}).metadata == {"env": "test"}
    assert listed(openai, metadata={"env": "prod"}) == listed(openai, metadata={"team": "a"}) == []
    assert listed(openai, metadata={"env": "test"}) == [session]

    assert sessions.update(session, agent={"model": MODEL}).metadata == {"env": "test"}
    assert listed(openai, metadata={"env": "test"}) == [session]
    assert sessions.update(session, metadata=None).metadata == {}
    assert listed(openai, metadata={"env": "test"}) == []


def test_of_updates_at_once_the_last_one_is_listed(openai: OpenAI) -> None:
    session = create(openai, n="none")

    def update(number: int) -> None:
        openai.beta.agents.sessions.update(session, metadata={"n": str(number)})

    with ThreadPoolExecutor() as threads:
        list(threads.map(update, range(6)))

    shown = openai.beta.agents.sessions.retrieve(session).metadata["n"]
    values = ["none", *map(str, range(6))]
    assert [value for value in values if listed(openai, metadata={"n": value})] == [shown]


@pytest.mark.parametrize("saved", [False, True])
def test_a_deleted_session_leaves_no_entry(openai: OpenAI, app_fixture: AppFixture, saved: bool) -> None:
    agent_id = openai.beta.agents.create(model=MODEL).id if saved else None
    kept, deleted = create(openai, env="prod"), create(openai, agent_id, env="prod")
    app_fixture.run_waiting()

    openai.beta.agents.sessions.delete(deleted)

    assert listed(openai, metadata={"env": "prod"}) == [kept]
    assert entries(app_fixture, env="prod") == [kept]


def test_an_erased_end_user_leaves_no_entry(openai: OpenAI, http: httpx.Client, app_fixture: AppFixture) -> None:
    agent = create_agent(http)
    answer = http.post(
        f"/v1/agents/{agent}/session",
        json={"session_name": "talk", "metadata": {"env": "prod"}},
        headers={"X-Stint-User": "ann"},
    )
    session = answer.json()["session_id"]
    assert entries(app_fixture, env="prod") == [session]

    erased = http.delete("/v1/admin/users/ann")

    assert erased.json()["deleted"] == {"session": 1}
    assert entries(app_fixture, env="prod") == []


def test_agents_are_listed_by_metadata_in_both_apis(openai: OpenAI, http: httpx.Client) -> None:
    agents = openai.beta.agents
    first = agents.create(model=MODEL, metadata={"team": "a", "env": "prod"}).id
    second = create_agent(http, metadata={"team": "a"})
    agents.create(model=MODEL, metadata={"team": "b"})

    def by_openai(**metadata: str) -> list[str]:
        return [agent.id for agent in agents.list(limit=1, extra_query={"metadata": metadata})]

    assert by_openai(team="a") == [second, first]
    assert by_openai(team="a", env="prod") == [first]
    assert found(http, "/v1/agents", "agent_id", "metadata[team]=a") == [first, second]
    agents.update(first, metadata={"team": "b"})
    assert by_openai(team="a") == [second]
    agents.delete(second)
    assert by_openai(team="a") == []


def test_llama_stacks_client_creates_and_lists_sessions_with_metadata(client: LlamaStackClient) -> None:
    config: Any = agent_config()
    agent = client.agents.create(agent_config=config).agent_id
    ids = [
        client.agents.session.create(agent, session_name="talk", extra_body={"metadata": metadata}).session_id
        for metadata in ({"env": "prod"}, {"env": "test"}, {"env": "prod", "team": "a"})
    ]

    def sessions(**query: Any) -> list[str]:
        page = client.get(f"/v1/agents/{agent}/sessions", cast_to=object, options={"params": query})
        return [entry["session_id"] for entry in page["data"]]  # type: ignore[index]  # a dict

    assert sessions(**{"metadata[env]": "prod"}) == [ids[0], ids[2]]
    assert sessions(**{"metadata[env]": "prod", "order": "desc"}) == [ids[2], ids[0]]
    assert sessions(**{"metadata[env]": "prod", "metadata[team]": "a"}) == [ids[2]]
    read: Any = client.agents.session.retrieve(ids[2], agent_id=agent)
    assert read.metadata == {"env": "prod", "team": "a"}


def test_a_session_without_metadata_shows_none(http: httpx.Client) -> None:
    agent = create_agent(http)

    assert "metadata" not in http.get(f"/v1/agents/{agent}/session/{add_session(http, agent)}").json()


def test_a_filter_is_combined_with_names_pages_and_last_turns(http: httpx.Client) -> None:
    agent = create_agent(http)
    path, pair = f"/v1/agents/{agent}/sessions", {"metadata": {"env": "prod"}}
    rome, lunch, other = (add_session(http, agent, name, **pair) for name in ("Rome", "Lunch", "rome again"))
    add_session(http, agent, "Rome")
    http.post(f"/v1/agents/{agent}/session/{lunch}/turn", json={"messages": [{"role": "user", "content": "say: x"}]})

    assert found(http, path, "session_id", "metadata[env]=prod&name=ROME") == [rome, other]
    assert found(http, path, "session_id", "metadata[env]=prod&status=completed") == [lunch]
    page = http.get(f"{path}?metadata[env]=prod&limit=2").json()
    assert (page["has_more"], page["next_after"]) == (True, lunch)
    assert found(http, path, "session_id", f"metadata[env]=prod&limit=2&after={lunch}") == [other]
    shown = http.get(f"{path}?metadata[env]=prod&include=last_turn").json()["data"]
    assert ["last_turn" in entry for entry in shown] == [False, True, False]


def test_a_fork_has_its_own_metadata(http: httpx.Client) -> None:
    agent = create_agent(http)
    source = add_session(http, agent, metadata={"env": "prod"})
    session = f"/v1/agents/{agent}/session/{source}"
    turn = http.post(f"{session}/turn", json={"messages": [{"role": "user", "content": "say: x"}]}).json()["turn_id"]
    fork_from = {"session_id": source, "turn_id": turn}

    plain = add_session(http, agent, fork_from=fork_from)
    marked = add_session(http, agent, fork_from=fork_from, metadata={"env": "test"})

    path = f"/v1/agents/{agent}/sessions"
    assert "metadata" not in http.get(f"/v1/agents/{agent}/session/{plain}").json()
    assert found(http, path, "session_id", "metadata[env]=prod") == [source]
    assert found(http, path, "session_id", "metadata[env]=test") == [marked]


def test_a_tenant_finds_nothing_of_another(openai: OpenAI, http: httpx.Client, app_fixture: AppFixture) -> None:
    create(openai, env="prod")
    create_agent(http, metadata={"env": "prod"})

    app_fixture.tenant = f"t{new_id()[-12:]}"

    assert listed(openai, metadata={"env": "prod"}) == []
    assert found(http, "/v1/agents", "agent_id", "metadata[env]=prod") == []


@pytest.mark.parametrize("headers", [{}, BETA])
@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("metadata=prod", "metadata"),
        ("metadata[]=x", "metadata[]"),
        ("metadata[env]=a&metadata[env]=b", "metadata[env]"),
        ("metadata[env]=" + "x" * 513, "metadata[env]"),
        ("metadata[env]=%FF", "metadata[env]"),
        ("&".join(f"metadata[{number}]=x" for number in range(17)), "metadata"),
    ],
)
def test_hostile_filters_are_refused_by_name(
    http: httpx.Client, headers: dict[str, str], query: str, param: str
) -> None:
    paths = ["/v1/agents", SESSIONS] if headers else ["/v1/agents", f"/v1/agents/{create_agent(http)}/sessions"]
    for path in paths:
        refused = http.get(f"{path}?{query}", headers=headers)
        assert refused.status_code == 400, refused.text
        assert refused.json()["error"]["param"] == param


def test_openais_client_raises_for_a_filter_that_no_session_can_match(openai: OpenAI) -> None:
    with pytest.raises(BadRequestError, match=r"metadata\[k\] has a value of 513 characters"):
        listed(openai, metadata={"k": "x" * 513})


def test_an_index_cannot_be_used_with_a_filter(http: httpx.Client) -> None:
    assert http.get("/v1/agents?metadata[a]=b&start_index=1").json()["error"]["param"] == "start_index"


@pytest.mark.parametrize("after", ["nonsense", "../state", "%00", "a#b"])
def test_a_filtered_page_after_what_is_no_id_is_not_found(http: httpx.Client, after: str) -> None:
    query = f"metadata[a]=b&after={after}"
    for path, headers in (("/v1/agents", {}), ("/v1/agents", BETA), (SESSIONS, BETA)):
        assert http.get(f"{path}?{query}", headers=headers).status_code == 404


def test_too_much_metadata_of_a_session_is_refused(http: httpx.Client) -> None:
    path = f"/v1/agents/{create_agent(http)}/session"
    for metadata in ({str(number): "x" for number in range(17)}, {"k" * 65: "x"}, {"k": "x" * 513}, {"k": 1}):
        refused = http.post(path, json={"session_name": "talk", "metadata": metadata})
        assert_error(refused, 400, refused.json()["error"]["code"])


def test_a_rare_match_is_found_by_clients_that_stop_at_an_empty_page(
    openai: OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = openai.beta.agents.create(model=MODEL)
    mine = create(openai, saved.id, env="prod")
    for _ in range(5):
        create(openai, env="prod")
    monkeypatch.setattr(metadata_index, "SEARCHED", 2)

    assert listed(openai, metadata={"env": "prod"}, agent_id=saved.id) == [mine]
