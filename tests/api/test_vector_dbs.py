"""Vector dbs and the rag-tool over HTTP, as llama-stack-client 0.2.12 calls them."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest
from llama_stack_client import LlamaStackClient
from tests.api.api_client import assert_error
from tests.api.app_fixture import AppFixture
from tests.api.ingesting import ingesting

MODEL = "all-MiniLM-L6-v2"


@pytest.fixture
def db(http: httpx.Client) -> str:
    http.post("/v1/vector-dbs", json={"vector_db_id": "team/db", "embedding_model": MODEL}).raise_for_status()
    return "team/db"


def test_a_vector_db_has_the_form_of_llama_stack(http: httpx.Client, db: str) -> None:
    entry = {
        "identifier": db,
        "provider_resource_id": db,
        "provider_id": "packed",
        "type": "vector_db",
        "embedding_model": MODEL,
        "embedding_dimension": 384,
    }

    shown, listed = http.get(f"/v1/vector-dbs/{db}").json(), http.get("/v1/vector-dbs").json()

    assert (shown, listed) == (entry | {"owner": {"principal": "", "attributes": {}}}, {"data": [entry]})
    assert http.delete(f"/v1/vector-dbs/{db}").json() is None
    assert_error(http.delete(f"/v1/vector-dbs/{db}"), 404, "vector_db_not_found")
    assert http.get("/v1/vector-dbs").json() == {"data": []}


def test_chunks_are_found_with_their_metadata(http: httpx.Client, app_fixture: AppFixture, db: str) -> None:
    chunks = [
        {"content": "Pumas eat guanacos.", "metadata": {"document_id": "d1", "page": 7}},
        {"content": "Alpacas hum.", "metadata": {"document_id": "d2"}},
    ]

    with ingesting(app_fixture):
        inserted = http.post("/v1/vector-io/insert", json={"vector_db_id": db, "chunks": chunks})
    found = http.post("/v1/vector-io/query", json={"vector_db_id": db, "query": "pumas", "params": {"max_chunks": 1}})

    assert (inserted.status_code, inserted.json()) == (200, None)
    [chunk] = found.json()["chunks"]
    assert chunk["content"] == "Pumas eat guanacos."
    assert chunk["metadata"] == {"document_id": "d1", "page": 7}
    assert len(found.json()["scores"]) == 1


def test_newer_clients_call_the_id_of_a_vector_db_vector_store_id(http: httpx.Client, app_fixture: AppFixture) -> None:
    """As llama-stack-client 0.7 and ogx-client 1.5 do, whose chunks have the document's id in `chunk_metadata`."""
    store = http.post("/v1/vector_stores", json={"name": "facts"}).json()["id"]
    chunk = {
        "chunk_id": "c1",
        "chunk_metadata": {"document_id": "d1"},
        "content": "Pumas eat guanacos.",
        "embedding_dimension": 384,
        "embedding_model": MODEL,
        "metadata": {"page": 7},
    }

    with ingesting(app_fixture):
        inserted = http.post("/v1/vector-io/insert", json={"vector_store_id": store, "chunks": [chunk]})
    found = http.post("/v1/vector-io/query", json={"vector_store_id": store, "query": "pumas"})

    assert inserted.status_code == found.status_code == 200
    [shown] = found.json()["chunks"]
    assert shown["metadata"] == {"document_id": "d1", "page": 7}
    assert shown["chunk_metadata"] == {"chunk_id": shown["chunk_id"], "document_id": "d1"}
    assert (shown["embedding"], shown["embedding_dimension"]) == ([], 384)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"vector_db_id": "team/db", "vector_store_id": "other"}, "vector_db_id and vector_store_id are different"),
        ({"vector_store_id": 7}, "vector_store_id: Input should be a valid string"),
        ({}, "vector_db_id: Field required"),
    ],
)
def test_two_ids_or_none_are_refused(http: httpx.Client, db: str, names: dict[str, Any], message: str) -> None:
    for path, body in (("insert", {"chunks": []}), ("query", {"query": "x"})):
        refused = http.post(f"/v1/vector-io/{path}", json=body | names)

        assert message in assert_error(refused, 400, "invalid_request")["message"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"chunks": []}, "chunks"),
        ({"chunks": [{"content": "x"}]}, "chunks[0].metadata.document_id"),
        ({"chunks": [{"content": " ", "metadata": {"document_id": "d"}}]}, "chunks[0].content"),
        ({"chunks": [{"content": "x", "metadata": {"document_id": "d"}, "embedding": [1, 2]}]}, "chunks[0].embedding"),
    ],
)
def test_chunks_that_cannot_be_inserted_are_refused_by_their_place(
    http: httpx.Client, app_fixture: AppFixture, db: str, body: dict[str, Any], param: str
) -> None:
    refused = http.post("/v1/vector-io/insert", json={"vector_db_id": db} | body)

    assert assert_error(refused, 400, "invalid_request")["param"] == param
    assert app_fixture.queue.ingestions == []


@pytest.mark.parametrize(
    ("config", "param"),
    [
        ({"chunk_template": "{index}"}, "query_config.chunk_template"),
        ({"max_chunks": 0}, "query_config.max_chunks"),
        ({"query_generator_config": {"type": "custom"}}, "query_config.query_generator_config"),
        ({"mode": "nope"}, "query_config.mode"),
        ({"ranker": {"type": "rrf", "impact_factor": 0}}, "query_config.ranker.impact_factor"),
    ],
)
def test_a_query_config_is_checked(http: httpx.Client, db: str, config: dict[str, Any], param: str) -> None:
    body = {"content": "x", "vector_db_ids": [db], "query_config": config}

    refused = http.post("/v1/tool-runtime/rag-tool/query", json=body)

    assert assert_error(refused, 400, "invalid_request")["param"] == param


def test_chunks_of_documents_have_their_tokens_in_the_metadata(
    http: httpx.Client, app_fixture: AppFixture, db: str
) -> None:
    documents = [{"document_id": "d1", "content": "Pumas eat guanacos.", "metadata": {"page": 7}}]

    with ingesting(app_fixture):
        http.post("/v1/tool-runtime/rag-tool/insert", json={"vector_db_id": db, "documents": documents})
    [chunk] = http.post("/v1/vector-io/query", json={"vector_db_id": db, "query": "pumas"}).json()["chunks"]

    assert list(chunk["metadata"]) == ["page", "document_id", "token_count", "metadata_token_count"]
    assert chunk["metadata"]["token_count"] > 0


@pytest.mark.parametrize("name", [".", "..", "a/../b", "a/./b", "/", "/a", "a/", "a//b", "a\nb", "x" * 1_001])
def test_a_name_that_no_url_can_contain_is_refused(http: httpx.Client, name: str) -> None:
    refused = http.post("/v1/vector-dbs", json={"vector_db_id": name, "embedding_model": MODEL})

    assert assert_error(refused, 400, "invalid_request")["param"] == "vector_db_id"


@pytest.mark.parametrize("name", ["a/b/c", "...", ".a", "50% of it?", "\u00fc #1"])
def test_any_other_name_is_read_and_deleted_by_its_url(client: LlamaStackClient, name: str) -> None:
    client.vector_dbs.register(vector_db_id=name, embedding_model=MODEL)
    path = quote(name)

    assert client.vector_dbs.retrieve(path).identifier == name
    client.vector_dbs.unregister(path)
    assert client.vector_dbs.list() == []


def test_a_model_writes_the_query_if_the_config_says_so(http: httpx.Client, app_fixture: AppFixture, db: str) -> None:
    documents = [{"document_id": "d1", "content": "Pumas eat guanacos."}]
    generator = {"type": "llm", "model": "scripted/demo", "template": "{{ messages | join(' ') }}"}
    body = {"content": "pumas?", "vector_db_ids": [db], "query_config": {"query_generator_config": generator}}

    with ingesting(app_fixture):
        http.post("/v1/tool-runtime/rag-tool/insert", json={"vector_db_id": db, "documents": documents})
    result = http.post("/v1/tool-runtime/rag-tool/query", json=body).json()
    invoked = http.post(
        "/v1/tool-runtime/invoke",
        json={"tool_name": "knowledge_search", "kwargs": {"query": "pumas", "vector_db_ids": [db]}},
    ).json()

    assert result["metadata"]["document_ids"] == ["d1"]
    assert '"pumas?"' in result["content"][-1]["text"]
    assert invoked["metadata"]["document_ids"] == ["d1"]
    assert (invoked["error_code"], invoked["content"][1]) == (0, result["content"][1])


def test_nothing_found_is_null_and_no_vector_db_is_an_error(http: httpx.Client, db: str) -> None:
    def query(*names: str) -> httpx.Response:
        return http.post("/v1/tool-runtime/rag-tool/query", json={"content": "x", "vector_db_ids": names})

    assert query(db).json() == {"content": None, "metadata": {"document_ids": [], "chunks": [], "scores": []}}
    assert "No vector DBs were provided" in assert_error(query(), 400, "invalid_request")["message"]
    assert_error(query(db, "nope"), 404, "vector_db_not_found")


@pytest.mark.parametrize("name", ["vs_{}", "VS_{}", "vs_{}\u200b", " vs_{}"])
def test_a_vector_db_has_no_name_that_looks_like_the_id_of_a_store(http: httpx.Client, name: str) -> None:
    body = {"vector_db_id": name.format("0123456789abcdef" * 2), "embedding_model": "hashed/words-384"}

    error = assert_error(http.post("/v1/vector-dbs", json=body), 400, "invalid_request")

    assert error["param"] == "vector_db_id"
