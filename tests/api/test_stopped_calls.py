"""Requests of a stopped tenant that are neither turns nor responses: each is refused before it does anything."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture

WORDS = "hashed/words-384"
DOCUMENT = {"document_id": "d", "content": "Llamas hum.", "metadata": {}}
CHUNK = {"content": "Llamas hum.", "metadata": {"document_id": "d"}}


@pytest.fixture
def store_id(http: httpx.Client) -> str:
    return str(http.post("/v1/vector_stores", json={}).json()["id"])


@pytest.fixture
def file_id(http: httpx.Client) -> str:
    files = {"file": ("a.txt", b"Llamas hum.")}
    return str(http.post("/v1/files", data={"purpose": "assistants"}, files=files).json()["id"])


@pytest.fixture
def _stopped(app_fixture: AppFixture, store_id: str, file_id: str) -> Iterator[None]:
    """Stop the test's tenant."""
    tenant, stops = app_fixture.tenant, app_fixture.store.stops
    asyncio.run(stops.add(tenant, "tenant", 1_700_000_000))
    yield
    asyncio.run(stops.remove(tenant, "tenant"))


@pytest.mark.usefixtures("_stopped")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {"model": WORDS, "input": "a"}),
        ("/v1/openai/v1/embeddings", {"model": WORDS, "input": "a"}),
        ("/v1/inference/embeddings", {"model_id": WORDS, "contents": ["a"]}),
        ("/v1/vector_stores", {}),
        ("/v1/vector_stores/{store}/search", {"query": "llamas"}),
        ("/v1/vector_stores/{store}/files", {"file_id": "{file}"}),
        ("/v1/vector_stores/{store}/file_batches", {"file_ids": ["{file}"]}),
        ("/v1/vector-dbs", {"vector_db_id": "stopped", "embedding_model": WORDS}),
        ("/v1/vector-io/insert", {"vector_db_id": "{store}", "chunks": [CHUNK]}),
        ("/v1/vector-io/query", {"vector_db_id": "{store}", "query": "llamas"}),
        (
            "/v1/tool-runtime/rag-tool/insert",
            {"vector_db_id": "{store}", "documents": [DOCUMENT], "chunk_size_in_tokens": 100},
        ),
        ("/v1/tool-runtime/rag-tool/query", {"vector_db_ids": ["{store}"], "content": "llamas"}),
        ("/v1/tool-runtime/invoke", {"tool_name": "web_search", "kwargs": {"query": "llamas"}}),
        ("/v1/safety/run-shield", {"shield_id": "s", "messages": [{"role": "user", "content": "a"}], "params": {}}),
    ],
)
def test_a_stopped_tenant_is_refused(
    app_fixture: AppFixture, http: httpx.Client, store_id: str, file_id: str, path: str, body: dict[str, Any]
) -> None:
    answer = http.post(filled(path, store_id, file_id), json=filled(body, store_id, file_id))

    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "stopped")
    assert app_fixture.queue.ingestions == []
    files = http.get(f"/v1/vector_stores/{store_id}/files").json()["data"]
    assert files == []


def filled(value: Any, store_id: str, file_id: str) -> Any:
    """Return a value with ids in the place of their names."""
    if isinstance(value, str):
        return value.replace("{store}", store_id).replace("{file}", file_id)
    if isinstance(value, dict):
        return {name: filled(each, store_id, file_id) for name, each in value.items()}
    return [filled(each, store_id, file_id) for each in value] if isinstance(value, list) else value
