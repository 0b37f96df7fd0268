"""Memory banks and their documents, with the real client of October 2024."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.api.ingesting import ingesting
from tests.october.client import OctoberClient, Refused
from tests.services.knowledge.list_index import ListIndex

from stint.retrieval.routed import RoutedIndex
from stint.services.knowledge import tasks

MODEL = "hashed/words-384"
VECTOR = {
    "type": "vector",
    "identifier": "bank1",
    "provider_id": "faiss",
    "embedding_model": MODEL,
    "chunk_size_in_tokens": 64,
    "overlap_size_in_tokens": 16,
}
PARIS = {"document_id": "doc-1", "content": "The capital of France is Paris.", "metadata": {"source": "x"}}
LORA = {"document_id": "doc-2", "content": "LoRA is a low rank adapter.", "mime_type": "text/plain", "metadata": {}}
LISTED = {"document_id": "doc-3", "content": ["part A", "part B bananas"], "metadata": {}}


@pytest.fixture(autouse=True)
def worker(app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ingest documents. The tenant of the services is not that of the caller, who is anonymous."""
    monkeypatch.setattr(tasks, "find_principal", lambda: None)
    with ingesting(app_fixture):
        yield


def bank(october: OctoberClient, **definition: Any) -> str:
    """Register a bank with two documents."""
    given: dict[str, Any] = {**VECTOR, **definition}
    october.call("memory_banks.register", memory_bank=given)
    october.call("memory.insert", bank_id=given["identifier"], documents=[PARIS, LORA])
    return str(given["identifier"])


def test_banks_are_registered_read_and_listed_and_registering_may_be_repeated(
    http: httpx.Client, october: OctoberClient
) -> None:
    keyword = {"type": "keyword", "identifier": "words", "provider_id": "any"}

    assert october.call("memory_banks.register", memory_bank=VECTOR) is None
    assert october.call("memory_banks.register", memory_bank=VECTOR) is None
    october.call("memory_banks.register", memory_bank=keyword)

    assert [each["identifier"] for each in october.call("memory_banks.list")] == ["bank1", "words"]
    assert http.get("/memory_banks/list").json() == [VECTOR, keyword]  # the client adds fields of other types
    assert october.call("memory_banks.retrieve", strict=True, identifier="bank1") == VECTOR
    assert october.call("memory_banks.retrieve", identifier="nope") is None


def test_a_bank_without_a_type_or_a_provider_is_a_vector_bank(http: httpx.Client, october: OctoberClient) -> None:
    registered = http.post("/memory_banks/register", json={"memory_bank": {"identifier": "plain"}})

    found = october.call("memory_banks.retrieve", identifier="plain")
    assert (registered.status_code, found["type"], found["chunk_size_in_tokens"]) == (200, "vector", 512)
    assert found["embedding_model"]


def test_another_type_of_a_bank_is_refused(october: OctoberClient) -> None:
    october.call("memory_banks.register", memory_bank=VECTOR)

    with pytest.raises(Refused) as conflict:
        october.call("memory_banks.register", memory_bank={**VECTOR, "type": "keyword"})

    assert conflict.value.status == 409


def test_inserted_documents_are_found_with_their_ids_and_tokens(october: OctoberClient) -> None:
    name = bank(october)

    found = october.call("memory.query", strict=True, bank_id=name, query="capital of France", params={"max_chunks": 1})

    [chunk] = found["chunks"]
    assert (chunk["content"], chunk["document_id"]) == (PARIS["content"], "doc-1")
    assert chunk["token_count"] > 3
    assert len(found["scores"]) == 1


def test_a_text_may_be_a_list_and_a_content_a_url(october: OctoberClient) -> None:
    url = "data:text/plain;base64,TGxhbWFzIGxpdmUgaW4gUGVydS4="
    october.call("memory_banks.register", memory_bank=VECTOR)
    october.call(
        "memory.insert", bank_id="bank1", documents=[LISTED, {"document_id": "u", "content": url, "metadata": {}}]
    )

    bananas = october.call("memory.query", bank_id="bank1", query=["bananas", "part"], params={"max_chunks": 1})
    llamas = october.call("memory.query", bank_id="bank1", query="llamas", params={"max_chunks": 1})

    assert bananas["chunks"][0]["document_id"] == "doc-3"
    assert llamas["chunks"][0]["content"] == "Llamas live in Peru."


def test_a_keyword_bank_finds_words(october: OctoberClient) -> None:
    name = bank(october, identifier="words", type="keyword")

    found = october.call("memory.query", bank_id=name, query="adapter")

    assert [chunk["document_id"] for chunk in found["chunks"]] == ["doc-2"]


def test_a_keyvalue_bank_returns_documents_by_their_ids(october: OctoberClient) -> None:
    name = bank(october, identifier="values", type="keyvalue")

    one = october.call("memory.query", bank_id=name, query="doc-2")
    several = october.call("memory.query", bank_id=name, query="", params={"keys": ["doc-1", "nope", "doc-2"]})

    assert [chunk["content"] for chunk in one["chunks"]] == [LORA["content"]]
    assert [chunk["document_id"] for chunk in several["chunks"]] == ["doc-1", "doc-2"]


def test_a_keyvalue_bank_returns_all_documents_that_are_named_unless_max_chunks_is_less(october: OctoberClient) -> None:
    october.call("memory_banks.register", memory_bank={"identifier": "values", "type": "keyvalue"})
    keys = [f"doc-{number}" for number in range(5)]
    documents = [{"document_id": key, "content": key, "metadata": {}} for key in keys]
    october.call("memory.insert", bank_id="values", documents=documents)

    named = october.call("memory.query", bank_id="values", query="", params={"keys": keys})
    fewer = october.call("memory.query", bank_id="values", query="", params={"keys": keys, "max_chunks": 2})

    assert [chunk["document_id"] for chunk in named["chunks"]] == keys
    assert [chunk["document_id"] for chunk in fewer["chunks"]] == keys[:2]


@pytest.mark.parametrize("keys", ["doc-1", [1], [None], ["k"] * 101, {}])
def test_keys_that_are_no_list_of_ids_are_400(october: OctoberClient, keys: Any) -> None:
    october.call("memory_banks.register", memory_bank={"identifier": "values", "type": "keyvalue"})

    with pytest.raises(Refused) as refused:
        october.call("memory.query", bank_id="values", query="x", params={"keys": keys})

    assert (refused.value.status, refused.value.body["error"]["param"]) == (400, "params.keys")


def test_a_time_to_live_that_no_table_can_store_is_400(october: OctoberClient) -> None:
    october.call("memory_banks.register", memory_bank=VECTOR)

    with pytest.raises(Refused) as refused:
        october.call("memory.insert", bank_id="bank1", documents=[PARIS], ttl_seconds=10**40)

    assert (refused.value.status, refused.value.body["error"]["param"]) == (400, "ttl_seconds")


def test_documents_are_read_replaced_and_deleted(october: OctoberClient) -> None:
    name = bank(october)

    read = october.call("memory.documents.retrieve", strict=True, bank_id=name, document_ids=["doc-1"])
    october.call("memory.update", bank_id=name, documents=[{**PARIS, "content": "Peru's capital is Lima."}])
    changed = october.call("memory.documents.retrieve", bank_id=name, document_ids=["doc-1"])
    october.call("memory.documents.delete", bank_id=name, document_ids=["doc-1"])
    found = october.call("memory.query", bank_id=name, query="capital of Peru Lima")
    with pytest.raises(Refused) as gone:
        october.call("memory.documents.retrieve", bank_id=name, document_ids=["doc-1"])

    assert (read["content"], read["metadata"]) == (PARIS["content"], {"source": "x"})
    assert changed["content"] == "Peru's capital is Lima."
    assert [chunk["document_id"] for chunk in found["chunks"]] == ["doc-2"]
    assert gone.value.status == 404


def test_a_document_is_not_found_after_its_time_and_its_id_can_be_used_again(
    october: OctoberClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    october.call("memory_banks.register", memory_bank=VECTOR)
    october.call("memory.insert", bank_id="bank1", documents=[PARIS], ttl_seconds=60)
    before = october.call("memory.query", bank_id="bank1", query="capital of France")

    later = time.time() + 61
    monkeypatch.setattr(time, "time", lambda: later)
    after = october.call("memory.query", bank_id="bank1", query="capital of France")
    october.call("memory.insert", bank_id="bank1", documents=[PARIS])
    again = october.call("memory.query", bank_id="bank1", query="capital of France")

    assert [len(found["chunks"]) for found in (before, after, again)] == [1, 0, 1]


def test_a_dropped_bank_is_gone(october: OctoberClient) -> None:
    name = bank(october)

    dropped = october.call("memory.drop", bank_id=name)

    assert dropped == name
    assert october.call("memory_banks.retrieve", identifier=name) is None
    for method, arguments in (
        ("memory.query", {"query": "x"}),
        ("memory.insert", {"documents": [PARIS]}),
        ("memory.drop", {}),
    ):
        with pytest.raises(Refused) as refused:
            october.call(method, bank_id=name, **arguments)
        assert refused.value.status == 404


def test_banks_of_client_0_0_40_are_created_read_and_listed(october: OctoberClient) -> None:
    config = {"type": "vector", "embedding_model": MODEL, "chunk_size_in_tokens": 64, "overlap_size_in_tokens": 16}

    created = october.call("memory.create", strict=True, name="m", config=config, url="https://example.com")
    read = october.call("memory.retrieve", strict=True, bank_id=created["bank_id"])
    listed = october.call("memory.list")
    october.call("memory.insert", bank_id=created["bank_id"], documents=[PARIS])
    found = october.call("memory.query", bank_id=created["bank_id"], query="capital")

    assert (created["name"], created["config"], created["url"]) == ("m", config, "https://example.com")
    assert read == created
    assert listed == [created]
    assert found["chunks"][0]["document_id"] == "doc-1"


def test_a_bank_is_a_vector_db_of_the_later_api(http: httpx.Client, october: OctoberClient) -> None:
    name = bank(october)
    http.post("/v1/vector-dbs", json={"vector_db_id": "later", "embedding_model": MODEL})

    found = http.post("/v1/vector-io/query", json={"vector_db_id": name, "query": "capital of France"}).json()
    banks = october.call("memory_banks.list")

    assert found["chunks"][0]["content"] == PARIS["content"]
    assert [each["identifier"] for each in banks] == [name, "later"]


@pytest.mark.parametrize("most", [0, 101, "3", None])
def test_an_impossible_number_of_chunks_is_400(october: OctoberClient, most: Any) -> None:
    october.call("memory_banks.register", memory_bank=VECTOR)

    with pytest.raises(Refused) as refused:
        october.call("memory.query", bank_id="bank1", query="x", params={"max_chunks": most})

    assert refused.value.status == 400


def test_a_bank_names_the_index_that_it_is_in(
    october: OctoberClient, app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = ListIndex()
    more = app_fixture.settings.model_copy(update={"second_vector_index": "s3-vectors"})
    monkeypatch.setattr(app_fixture, "settings", more)
    routed = RoutedIndex({"packed": app_fixture.index, "s3-vectors": second}, "packed")
    monkeypatch.setattr(app_fixture, "get_index", lambda: routed)

    there = bank(october, identifier="there", provider_id="s3-vectors")
    here = bank(october, identifier="here", provider_id="packed")
    found = [october.call("memory.query", bank_id=name, query="capital of France") for name in (there, here)]
    with pytest.raises(Refused) as conflict:
        october.call("memory_banks.register", memory_bank={**VECTOR, "identifier": here, "provider_id": "s3-vectors"})

    assert len(second.keys) == 2
    assert [each["chunks"][0]["document_id"] for each in found] == ["doc-1", "doc-1"]
    assert conflict.value.status == 409
    assert {each["provider_id"] for each in october.call("memory_banks.list")} == {"s3-vectors", "packed"}
    assert {each["provider_id"] for each in october.call("providers.list")["memory"]} == {"s3-vectors", "packed"}
