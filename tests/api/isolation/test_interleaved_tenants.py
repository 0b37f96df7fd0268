"""One warm process that serves two tenants whose objects have the same names, in turns and at the same time."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from tests.api.isolation.belongings import EMBEDDING_MODEL, post
from tests.api.isolation.warm_process import WarmProcess

from stint.domain.ids import new_id

ROUNDS = 4
MODEL = "scripted/demo"


@dataclass(frozen=True)
class Caller:
    """A tenant whose registrations have the names of the other one's."""

    http: httpx.Client
    word: str
    """Only this tenant's data contains it."""
    other: str


@pytest.fixture
def callers(warm_process: WarmProcess) -> Iterator[tuple[Caller, Caller]]:
    suffix = new_id()[-12:]
    with warm_process.client(f"a-{suffix}") as first, warm_process.client(f"b-{suffix}") as second:
        yield Caller(first, "apricot", "blueberry"), Caller(second, "blueberry", "apricot")


def create_agent(caller: Caller) -> str:
    config = {"model": MODEL, "instructions": caller.word}
    return str(post(caller.http, "/v1/agents", {"agent_config": config})["agent_id"])


def create_session(caller: Caller, agent: str) -> str:
    return str(post(caller.http, f"/v1/agents/{agent}/session", {"session_name": "talk"})["session_id"])


def register_shield(caller: Caller) -> None:
    body = {"shield_id": "same", "provider_id": "deny-list", "params": {"phrases": [caller.word]}}
    post(caller.http, "/v1/shields", body)


def is_refused(caller: Caller, word: str) -> bool:
    """Return whether the shield refuses a word."""
    body = {"shield_id": "same", "messages": [{"role": "user", "content": word}], "params": {}}
    return post(caller.http, "/v1/safety/run-shield", body)["violation"] is not None


def fill_vector_db(caller: Caller) -> None:
    post(caller.http, "/v1/vector-dbs", {"vector_db_id": "same", "embedding_model": EMBEDDING_MODEL})
    chunk = {"content": f"A fruit: {caller.word}", "metadata": {"document_id": "same"}}
    post(caller.http, "/v1/vector-io/insert", {"vector_db_id": "same", "chunks": [chunk]})


def search(caller: Caller) -> list[str]:
    found = post(caller.http, "/v1/vector-io/query", {"vector_db_id": "same", "query": "a fruit"})
    return [chunk["content"] for chunk in found["chunks"]]


def talk(caller: Caller, agent: str, session: str) -> str:
    """Create a turn, and return all that the session has."""
    path = f"/v1/agents/{agent}/session/{session}"
    post(caller.http, f"{path}/turn", {"messages": [{"role": "user", "content": f"I like {caller.word}."}]})
    return caller.http.get(path).text


def respond(caller: Caller, previous: str | None, conversation: str | None = None) -> dict[str, Any]:
    """Create a response, which must be the caller's."""
    body = {"model": MODEL, "input": f"I like {caller.word}.", "previous_response_id": previous}
    answer: dict[str, Any] = post(caller.http, "/v1/responses", body | {"conversation": conversation})
    assert caller.word in str(answer)
    assert caller.other not in str(answer)
    return answer


def test_registrations_of_one_name_stay_those_of_their_tenant(callers: tuple[Caller, Caller]) -> None:
    for caller in callers:
        register_shield(caller)
        fill_vector_db(caller)

    for _ in range(ROUNDS):
        for caller in callers:
            assert is_refused(caller, caller.word)
            assert not is_refused(caller, caller.other)
            assert search(caller) == [f"A fruit: {caller.word}"]


def test_tools_of_a_server_that_needs_credentials_are_listed_for_their_owner_only(
    callers: tuple[Caller, Caller], mcp_server: str
) -> None:
    first, second = callers
    body: dict[str, Any] = {"toolgroup_id": "mcp::same", "provider_id": "model-context-protocol"}
    body |= {"mcp_endpoint": {"uri": f"{mcp_server}/private/mcp"}}
    credentials = {"mcp_headers": {f"{mcp_server}/private/mcp": {"Authorization": "Bearer right-token"}}}
    headers = {"x-llamastack-provider-data": json.dumps(credentials)}
    for caller in callers:
        post(caller.http, "/v1/toolgroups", body)
    listed = first.http.get("/v1/tools", params={"toolgroup_id": "mcp::same"}, headers=headers)

    refused = second.http.get("/v1/tools", params={"toolgroup_id": "mcp::same"})
    called = second.http.post(
        "/v1/tool-runtime/invoke", json={"tool_name": "mcp::same/add", "kwargs": {"a": 1, "b": 2}}
    )

    assert "add" in listed.text
    assert (refused.status_code, called.status_code) == (401, 401)


def test_interleaved_runs_read_their_own_histories(callers: tuple[Caller, Caller]) -> None:
    places = [(caller, agent, create_session(caller, agent)) for caller in callers for agent in [create_agent(caller)]]
    previous: dict[str, str | None] = {caller.word: None for caller in callers}

    for _ in range(ROUNDS):
        for caller, agent, session in places:
            assert caller.other not in talk(caller, agent, session)
            previous[caller.word] = respond(caller, previous[caller.word])["id"]

    for caller, agent, session in places:
        assert talk(caller, agent, session).count(f"I like {caller.word}.") >= ROUNDS


def test_runs_at_the_same_time_read_their_own_histories(callers: tuple[Caller, Caller]) -> None:
    def run(caller: Caller) -> list[str]:
        agent, seen = create_agent(caller), list[str]()
        session, conversation = create_session(caller, agent), post(caller.http, "/v1/conversations", {})["id"]
        for _ in range(ROUNDS):
            seen += [talk(caller, agent, session), str(respond(caller, None, conversation))]
            seen += [caller.http.get(f"/v1/conversations/{conversation}/items").text]
            seen += [caller.http.get("/v1/responses").text, caller.http.get("/v1/agents").text]
        return seen

    with ThreadPoolExecutor(4) as threads:
        texts = list(threads.map(run, [*callers, *callers]))

    for caller, seen in zip([*callers, *callers], texts, strict=True):
        assert all(caller.other not in each for each in seen)
