"""A stopped tenant runs nothing by the API of October 2024."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.october.client import OctoberClient
from tests.october.test_october_tenants import BANK, DOCUMENTS, MESSAGES, MODEL, SHIELD

RUNS: dict[str, dict[str, Any]] = {
    "/agents/turn/create": {"messages": MESSAGES},
    "/memory/query": {"bank_id": "theirs", "query": "x"},
    "/memory/insert": {"bank_id": "theirs", "documents": DOCUMENTS},
    "/memory/update": {"bank_id": "theirs", "documents": DOCUMENTS},
    "/safety/run_shield": {"shield_type": "their-shield", "messages": MESSAGES, "params": {}},
    "/inference/chat_completion": {"model": "their-model", "messages": MESSAGES},
    "/inference/completion": {"model": "their-model", "content": "x"},
    "/inference/embeddings": {"model": "hashed/words-384", "contents": ["x"]},
    "/memory_banks/register": {"memory_bank": BANK | {"identifier": "another"}},
    "/memory/create": {"name": "another", "config": {"type": "vector", "embedding_model": "hashed/words-384"}},
}


@pytest.fixture
def session(october: OctoberClient, app_fixture: AppFixture) -> Iterator[dict[str, str]]:
    """Yield the ids of a session of a tenant that was stopped then."""
    agent_id, session_id = october.open_session()
    october.call("memory_banks.register", memory_bank=BANK)
    october.call("models.register", model=MODEL)
    october.call("shields.register", shield=SHIELD)
    tenant, stops = app_fixture.tenant, app_fixture.store.stops
    asyncio.run(stops.add(tenant, "tenant", 1_700_000_000))
    yield {"agent_id": agent_id, "session_id": session_id}
    asyncio.run(stops.remove(tenant, "tenant"))


def test_a_stopped_tenant_is_refused(http: httpx.Client, session: dict[str, str]) -> None:
    answers = {
        path: http.post(path, json=body | (session if path.startswith("/agents/") else {}))
        for path, body in RUNS.items()
    }

    wrong = {path: answer.text for path, answer in answers.items() if '"stopped"' not in answer.text}
    assert wrong == {}
    assert {answer.status_code for answer in answers.values()} == {403}
