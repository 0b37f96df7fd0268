"""Files that cannot be ingested, over HTTP: an error that says so, and nothing of them in the store."""

import asyncio
from typing import Any

import httpx
import pytest
from tests.api.api_client import assert_error
from tests.api.app_fixture import AppFixture
from tests.store.tenant_records import list_blobs
from tests.unit.documents.pdf_files import make_encrypted

from stint.domain.ids import new_name
from stint.domain.openai.files import FileObject


def upload(http: httpx.Client, name: str, content: bytes) -> str:
    created = http.post("/v1/files", files={"file": (name, content)}, data={"purpose": "assistants"})
    assert created.status_code == 200, created.text
    return str(created.json()["id"])


def upload_in_parts(http: httpx.Client, name: str, content: bytes) -> str:
    body = {"bytes": len(content), "filename": name, "mime_type": "application/pdf", "purpose": "assistants"}
    upload_id = http.post("/v1/uploads", json=body).json()["id"]
    parts = [
        http.post(f"/v1/uploads/{upload_id}/parts", files={"data": ("part", content[at : at + 500])}).json()["id"]
        for at in range(0, len(content), 500)
    ]
    completed = http.post(f"/v1/uploads/{upload_id}/complete", json={"part_ids": parts})
    assert completed.status_code == 200, completed.text
    return str(completed.json()["file"]["id"])


def ingest(http: httpx.Client, app_fixture: AppFixture, file_id: str) -> dict[str, Any]:
    """Put a file into a new store, and return what became of it."""
    store_id = http.post("/v1/vector_stores", json={}).json()["id"]
    added = http.post(f"/v1/vector_stores/{store_id}/files", json={"file_id": file_id})
    assert added.status_code == 200, added.text
    app_fixture.ingest()
    store = http.get(f"/v1/vector_stores/{store_id}").json()
    assert (store["status"], store["file_counts"]["failed"], store["usage_bytes"]) == ("completed", 1, 0)
    found = http.post(f"/v1/vector_stores/{store_id}/search", json={"query": "llamas"}).json()
    assert found["data"] == []
    assert_error(http.get(f"/v1/vector_stores/{store_id}/files/{file_id}/content"), 409, "file_not_ready")
    file: dict[str, Any] = http.get(f"/v1/vector_stores/{store_id}/files/{file_id}").json()
    return file


def texts_of_stores(app_fixture: AppFixture) -> list[str]:
    """Return the objects that documents of the tenant's stores have in the bucket."""
    blobs = list_blobs(app_fixture.s3, app_fixture.settings.bucket, app_fixture.tenant)
    return [key for key in blobs if "/vector_stores/" in key]


@pytest.mark.parametrize("send", [upload, upload_in_parts])
def test_an_encrypted_pdf_fails_with_what_to_do(http: httpx.Client, app_fixture: AppFixture, send: Any) -> None:
    failed = ingest(http, app_fixture, send(http, "secret.pdf", make_encrypted("Llamas", "secret")))

    assert (failed["status"], failed["last_error"]["code"]) == ("failed", "invalid_file")
    assert "encrypted: remove its password" in failed["last_error"]["message"]
    assert texts_of_stores(app_fixture) == []


def test_a_file_of_100_mb_fails_with_the_limit_and_is_not_read(http: httpx.Client, app_fixture: AppFixture) -> None:
    file = FileObject(
        id=new_name("file", "-"), bytes=100_000_000, created_at=1, filename="large.txt", purpose="assistants"
    )
    asyncio.run(app_fixture.store.files.create(app_fixture.tenant, file, b"Llamas"))  # as if it had 100 MB

    failed = ingest(http, app_fixture, file.id)

    assert (failed["status"], failed["last_error"]["code"]) == ("failed", "invalid_file")
    assert failed["last_error"]["message"] == (
        "The file 'large.txt' has 100,000,000 bytes; at most 50,000,000 are read. Split it."
    )
    assert texts_of_stores(app_fixture) == []


def test_an_empty_file_is_refused_and_nothing_is_stored(http: httpx.Client, app_fixture: AppFixture) -> None:
    refused = http.post("/v1/files", files={"file": ("a.txt", b"")}, data={"purpose": "assistants"})

    assert_error(refused, 400, "empty_file")
    assert http.get("/v1/files").json()["data"] == []
    assert list_blobs(app_fixture.s3, app_fixture.settings.bucket, app_fixture.tenant) == []


def test_an_upload_of_an_empty_part_stores_nothing(http: httpx.Client, app_fixture: AppFixture) -> None:
    body = {"bytes": 5, "filename": "a.txt", "mime_type": "text/plain", "purpose": "assistants"}
    upload_id = http.post("/v1/uploads", json=body).json()["id"]

    assert_error(http.post(f"/v1/uploads/{upload_id}/parts", files={"data": ("a", b"")}), 400, "empty_part")
    completed = http.post(f"/v1/uploads/{upload_id}/complete", json={"part_ids": []})

    assert_error(completed, 400, "invalid_request")
    assert http.get("/v1/files").json()["data"] == []
    assert list_blobs(app_fixture.s3, app_fixture.settings.bucket, app_fixture.tenant) == []


def test_a_file_of_blanks_fails_because_it_has_no_text(http: httpx.Client, app_fixture: AppFixture) -> None:
    failed = ingest(http, app_fixture, upload(http, "blank.md", b" \n" * 100))

    assert failed["last_error"]["code"] == "invalid_file"
    assert "has no text" in failed["last_error"]["message"]
    assert texts_of_stores(app_fixture) == []
