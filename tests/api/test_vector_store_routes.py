"""Vector stores over HTTP: stores, files, batches and searches, at both addresses."""

from typing import Any

import httpx
import openai
import pytest
from tests.api.api_client import assert_error
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import openai_client

LLAMAS = "Llamas live in the Andes of Peru."
HEADS = "The transformer uses attention heads."


def upload(client: openai.OpenAI, text: str, name: str = "a.txt") -> str:
    return client.files.create(file=(name, text.encode()), purpose="assistants").id


@pytest.mark.parametrize("base", ["/v1", "/v1/openai/v1"])
def test_the_client_of_openai_searches_files_that_it_added(server: Served, app_fixture: AppFixture, base: str) -> None:
    with openai_client(server, base) as client:
        store = client.vector_stores.create(name="animals", file_ids=[upload(client, LLAMAS, "llamas.txt")])
        app_fixture.ingest()
        added = client.vector_stores.files.create(
            store.id, file_id=upload(client, HEADS, "heads.md"), attributes={"year": 2017}
        )
        assert added.status == "in_progress"
        app_fixture.ingest()
        found = client.vector_stores.search(store.id, query="Where do llamas live?", max_num_results=1).data
        filtered = client.vector_stores.search(
            store.id, query="llamas", filters={"type": "gte", "key": "year", "value": 2017}
        ).data
        files = client.vector_stores.files.list(store.id, order="asc").data
        texts = client.vector_stores.files.content(added.id, vector_store_id=store.id).data
        store = client.vector_stores.retrieve(store.id)

    assert [(one.filename, one.content[0].text) for one in found] == [("llamas.txt", LLAMAS)]
    assert 0 < found[0].score <= 1
    assert [one.file_id for one in filtered] == [added.id]
    assert [file.status for file in files] == ["completed", "completed"]
    assert [text.text for text in texts] == [HEADS]
    assert (store.status, store.file_counts.completed, store.file_counts.total) == ("completed", 2, 2)


def test_a_batch_is_polled_until_the_worker_has_its_files(server: Served, app_fixture: AppFixture) -> None:
    with openai_client(server) as client:
        store = client.vector_stores.create()
        ids = [upload(client, LLAMAS), upload(client, HEADS)]
        batch = client.vector_stores.file_batches.create(store.id, file_ids=ids)
        assert (batch.status, batch.file_counts.in_progress) == ("in_progress", 2)
        app_fixture.ingest()
        batch = client.vector_stores.file_batches.poll(batch.id, vector_store_id=store.id)
        listed = client.vector_stores.file_batches.list_files(batch.id, vector_store_id=store.id, order="asc")

    assert (batch.status, batch.file_counts.completed) == ("completed", 2)
    assert [file.id for file in listed.data] == ids


def test_a_cancelled_batch_leaves_its_files_out(server: Served, app_fixture: AppFixture) -> None:
    with openai_client(server) as client:
        store = client.vector_stores.create()
        batch = client.vector_stores.file_batches.create(store.id, file_ids=[upload(client, LLAMAS)])
        batch = client.vector_stores.file_batches.cancel(batch.id, vector_store_id=store.id)
        app_fixture.ingest()
        found = client.vector_stores.search(store.id, query="llamas").data

    assert (batch.status, batch.file_counts.cancelled, found) == ("cancelled", 1, [])


def test_what_is_in_progress_says_when_to_ask_again(http: httpx.Client, server: Served) -> None:
    with openai_client(server) as client:
        store = client.vector_stores.create(file_ids=[upload(client, LLAMAS)])
    assert int(http.get(f"/v1/vector_stores/{store.id}").headers["openai-poll-after-ms"]) > 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"query": ""}, "query"),
        ({"query": "x", "max_num_results": 0}, "max_num_results"),
        ({"query": "x", "max_num_results": 51}, "max_num_results"),
        ({"query": "x", "ranking_options": {"score_threshold": 2}}, "score_threshold"),
        ({"query": "x", "filters": {"type": "near", "key": "a", "value": 1}}, "filters"),
    ],
)
def test_an_invalid_search_names_its_field(http: httpx.Client, body: dict[str, Any], field: str) -> None:
    store = http.post("/v1/vector_stores", json={}).json()
    answer = http.post(f"/v1/vector_stores/{store['id']}/search", json=body)
    assert answer.status_code == 400
    assert field in answer.json()["error"]["message"]


@pytest.mark.parametrize("depth", [40, 50, 200])
def test_a_filter_that_is_nested_too_deep_is_refused_with_its_limit(http: httpx.Client, depth: int) -> None:
    nested: dict[str, Any] = {"type": "eq", "key": "a", "value": 1}
    for _ in range(depth):
        nested = {"type": "and", "filters": [nested]}
    store = http.post("/v1/vector_stores", json={}).json()
    answer = http.post(f"/v1/vector_stores/{store['id']}/search", json={"query": "x", "filters": nested})
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert ("5 levels" in message, "filters" in message) == (True, True)


def test_attributes_over_the_limit_are_refused(http: httpx.Client) -> None:
    store = http.post("/v1/vector_stores", json={}).json()
    body = {"file_id": "file-" + "0" * 32, "attributes": {f"k{number}": 1 for number in range(17)}}
    assert_error(http.post(f"/v1/vector_stores/{store['id']}/files", json=body), 400, "invalid_request")


def test_unknown_files_and_stores_are_errors(http: httpx.Client) -> None:
    store = http.post("/v1/vector_stores", json={}).json()
    body = {"file_id": "file-" + "0" * 32}
    assert_error(http.post(f"/v1/vector_stores/{store['id']}/files", json=body), 404, "file_not_found")
    assert_error(http.post("/v1/vector_stores", json={"file_ids": ["nope"]}), 404, "file_not_found")
    assert_error(http.get("/v1/vector_stores/vs_nope"), 404, "vector_store_not_found")
    assert_error(http.post("/v1/vector_stores/vs_nope/search", json={"query": "x"}), 404, "vector_store_not_found")


AUTO = {"type": "auto"}
EIGHT_HUNDRED = {"type": "static", "static": {"max_chunk_size_tokens": 800, "chunk_overlap_tokens": 400}}
OWN = {"type": "static", "static": {"max_chunk_size_tokens": 200, "chunk_overlap_tokens": 0}}


def test_a_list_of_files_has_their_names(http: httpx.Client, server: Served) -> None:
    with openai_client(server) as client:
        file = client.files.retrieve(upload(client, LLAMAS))
    path = f"/v1/vector_stores/{http.post('/v1/vector_stores', json={'file_ids': [file.id]}).json()['id']}/files"

    listed = http.get(path).json()["data"]

    assert [(each["id"], each["filename"]) for each in listed] == [(file.id, file.filename)]


@pytest.mark.parametrize(("base", "shown"), [("/v1", EIGHT_HUNDRED), ("/v1/openai/v1", AUTO)])
def test_the_chunking_of_a_file_has_the_form_of_its_address(
    http: httpx.Client, server: Served, app_fixture: AppFixture, base: str, shown: dict[str, Any]
) -> None:
    """OpenAI's types have `static` and `other` only, Llama Stack's `auto` and `static`."""
    with openai_client(server) as client:
        file, other = upload(client, LLAMAS), upload(client, HEADS)
    path = f"{base}/vector_stores/{http.post('/v1/vector_stores').json()['id']}"

    created = http.post(f"{path}/files", json={"file_id": file, "chunking_strategy": AUTO}).json()
    own = http.post(f"{path}/files", json={"file_id": other, "chunking_strategy": OWN}).json()
    batch = http.post(f"{path}/file_batches", json={"file_ids": [file], "chunking_strategy": AUTO}).json()
    app_fixture.ingest()
    updated = http.post(f"{path}/files/{file}", json={"attributes": {"year": 2017}}).json()
    read = http.get(f"{path}/files/{file}").json()
    listed = http.get(f"{path}/files?order=asc").json()["data"]
    of_batch = http.get(f"{path}/file_batches/{batch['id']}/files").json()["data"]

    files = [created, updated, read, *of_batch, listed[0]]
    assert [each["chunking_strategy"] for each in files] == [shown] * 5
    assert [own["chunking_strategy"], listed[1]["chunking_strategy"]] == [OWN, OWN]


@pytest.mark.parametrize(
    ("base", "query", "shown"),
    [
        ("/v1", "llamas", ["llamas"]),
        ("/v1", ["llamas", "heads"], ["llamas", "heads"]),
        ("/v1/openai/v1", "llamas", "llamas"),
        ("/v1/openai/v1", ["llamas", "heads"], "llamas heads"),
    ],
)
def test_a_search_returns_its_query_in_the_form_of_its_address(
    http: httpx.Client, base: str, query: Any, shown: Any
) -> None:
    store = http.post("/v1/vector_stores").json()["id"]

    found = http.post(f"{base}/vector_stores/{store}/search", json={"query": query}).json()

    assert found["search_query"] == shown
