"""Vector stores and documents of end users: listed, exported, erased from the table, the bucket and the index."""

import json
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.api.ingesting import ingesting
from tests.api.test_end_users import ANN, BOB, as_user, erase, listed, sent, stored_bytes, upload

from stint.store.keys import index_owner

MODEL = "all-MiniLM-L6-v2"
MARK = "plums"
"""A word of the documents of one end user."""


@pytest.fixture
def db(http: httpx.Client) -> str:
    http.post("/v1/vector-dbs", json={"vector_db_id": "team/db", "embedding_model": MODEL}).raise_for_status()
    return "team/db"


def insert(http: httpx.Client, db: str, place: str, text: str, user: str | None, document_id: str = "d1") -> None:
    """Insert a text by one of the routes that do."""
    document: dict[str, Any] = {"document_id": document_id, "content": text, "metadata": {"of": text[-8:]}}
    routes: dict[str, tuple[str, dict[str, Any]]] = {
        "chunks": (
            "/v1/vector-io/insert",
            {"vector_db_id": db, "chunks": [{"content": text, "metadata": {"document_id": document_id}}]},
        ),
        "rag-tool": (
            "/v1/tool-runtime/rag-tool/insert",
            {"vector_db_id": db, "documents": [document], "chunk_size_in_tokens": 100},
        ),
        "memory bank": ("/memory/insert", {"bank_id": db, "documents": [document]}),
    }
    path, body = routes[place]
    response = http.post(path, json=body, headers=as_user(user) if user else None)
    assert response.status_code == 200, response.text


def indexed_bytes(app_fixture: AppFixture) -> bytes:
    """Return all objects of the tenant's vector indexes."""
    s3, bucket, owner = app_fixture.s3, app_fixture.settings.bucket, index_owner(app_fixture.tenant)
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="packed/")
    keys = [each["Key"] for page in pages for each in page.get("Contents", []) if owner in each["Key"]]
    return b"".join(s3.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys)


def found(http: httpx.Client, db: str, query: str) -> list[str]:
    body = {"vector_db_id": db, "query": query}
    return [each["content"] for each in sent(http, "/v1/vector-io/query", body)["chunks"]]


@pytest.mark.parametrize("place", ["chunks", "rag-tool", "memory bank"])
def test_an_inserted_document_belongs_to_its_end_user(
    http: httpx.Client, app_fixture: AppFixture, db: str, place: str
) -> None:
    with ingesting(app_fixture):
        insert(http, db, place, f"{MARK} grow", ANN)
        insert(http, db, place, "pears of bob", BOB, "d2")
        insert(http, db, place, "quinces", None, "d3")
    assert MARK.encode() in stored_bytes(app_fixture)
    assert MARK.encode() in indexed_bytes(app_fixture)
    [owned] = listed(http, ANN)
    lines = [json.loads(line) for line in http.get(f"/v1/admin/users/{ANN}/export").text.splitlines()]

    receipt = erase(http, ANN)

    assert owned["kind"] == "vector_store_document"
    assert [(line["kind"], line.get("document_id"), line.get("texts")) for line in lines] == [
        ("vector_store_document", "d1", [f"{MARK} grow"]),
        ("end", None, None),
    ]
    assert (receipt["complete"], receipt["deleted"]) == (True, {"vector_store_document": 1})
    assert sorted(found(http, db, MARK)) == ["pears of bob", "quinces"]
    left = stored_bytes(app_fixture) + indexed_bytes(app_fixture)
    assert MARK.encode() not in left
    assert b"pears" in left
    assert len(listed(http, BOB)) == 1


def test_a_vector_store_of_an_end_user_is_erased_with_its_documents(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    store = sent(http, "/v1/vector_stores", {"name": MARK}, ANN)["id"]
    with ingesting(app_fixture):
        insert(http, store, "rag-tool", f"{MARK} grow", None)
    lines = [json.loads(line) for line in http.get(f"/v1/admin/users/{ANN}/export").text.splitlines()]

    receipt = erase(http, ANN)

    assert [line["kind"] for line in lines] == ["vector_store", "vector_store_document", "end"]
    assert lines[0]["data"]["name"] == MARK
    assert (receipt["complete"], receipt["deleted"]) == (True, {"vector_store": 1})
    assert http.get(f"/v1/vector_stores/{store}").status_code == 404
    assert MARK.encode() not in stored_bytes(app_fixture) + indexed_bytes(app_fixture)


@pytest.mark.parametrize("path", ["/v1/vector-dbs", "/memory_banks/register"])
def test_a_vector_db_of_an_end_user_is_erased_with_its_name(
    http: httpx.Client, app_fixture: AppFixture, path: str
) -> None:
    bank = {"identifier": MARK, "provider_id": "any", "type": "vector", "embedding_model": MODEL}
    body = {"memory_bank": bank} if "memory" in path else {"vector_db_id": MARK, "embedding_model": MODEL}
    http.post(path, json=body, headers=as_user(ANN)).raise_for_status()

    receipt = erase(http, ANN)

    assert (receipt["complete"], receipt["deleted"]) == (True, {"vector_store": 1})
    assert MARK.encode() not in stored_bytes(app_fixture)


def test_a_file_is_removed_from_the_store_to_which_it_was_added_for_an_end_user(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    store, file_id = sent(http, "/v1/vector_stores", {})["id"], upload(http, MARK.encode(), BOB)
    with ingesting(app_fixture):
        sent(http, f"/v1/vector_stores/{store}/file_batches", {"file_ids": [file_id]}, ANN)

    receipt = erase(http, ANN)

    assert receipt["deleted"] == {"vector_store_document": 1}
    assert http.get(f"/v1/vector_stores/{store}/files/{file_id}").status_code == 404
    assert http.get(f"/v1/files/{file_id}").status_code == 200


def test_a_document_that_two_end_users_insert_belongs_to_both(
    http: httpx.Client, app_fixture: AppFixture, db: str
) -> None:
    with ingesting(app_fixture):
        insert(http, db, "rag-tool", f"{MARK} grow", ANN)
        insert(http, db, "rag-tool", f"{MARK} grow", BOB)
    assert [len(listed(http, user)) for user in (ANN, BOB)] == [1, 1]

    erase(http, BOB)

    assert listed(http, ANN) == []
    assert b"#user:" not in stored_bytes(app_fixture)


def test_a_deleted_vector_store_leaves_no_entries_of_its_documents(http: httpx.Client, app_fixture: AppFixture) -> None:
    store = sent(http, "/v1/vector_stores", {}, BOB)["id"]
    with ingesting(app_fixture):
        insert(http, store, "rag-tool", f"{MARK} grow", ANN)

    assert http.delete(f"/v1/vector_stores/{store}").status_code == 200

    assert b"#user:" not in stored_bytes(app_fixture)


def test_an_insertion_costs_one_unit_more_with_an_end_user(
    http: httpx.Client, app_fixture: AppFixture, db: str
) -> None:
    entries = []
    for document_id, user in (("a", None), ("b", ANN)):
        app_fixture.proxy.forget()
        with ingesting(app_fixture):
            insert(http, db, "rag-tool", "plums", user, document_id)
        entries.append(app_fixture.proxy.calls["PutItem"])

    assert entries[1] - entries[0] == 1
