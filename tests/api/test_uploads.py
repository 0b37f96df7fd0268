"""Uploads: parts, completion, cancellation and expiry, with OpenAI's client and with plain HTTP."""

import asyncio
from hashlib import md5
from random import Random
from typing import Any

import httpx
import pytest
from tests.api.api_client import assert_error
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import openai_client
from tests.clock import CLOCK
from tests.store.tenant_records import list_blobs, read_records

from stint.domain.tasks import DeletionTask
from stint.services.knowledge.uploads import UploadDeletion

Body = dict[str, Any]
CONTENT = Random(3).randbytes(10_000)


def create(http: httpx.Client, size: int = len(CONTENT), **fields: Any) -> str:
    body = {"bytes": size, "filename": "llamas.bin", "mime_type": "text/plain", "purpose": "assistants"} | fields
    created = http.post("/v1/uploads", json=body)
    assert created.status_code == 200, created.text
    return str(created.json()["id"])


def add(http: httpx.Client, upload: str, content: bytes) -> httpx.Response:
    return http.post(f"/v1/uploads/{upload}/parts", files={"data": ("upload", content)})


def add_all(http: httpx.Client, upload: str, size: int = 4_000) -> list[str]:
    parts = [CONTENT[at : at + size] for at in range(0, len(CONTENT), size)]
    return [add(http, upload, part).json()["id"] for part in parts]


def complete(http: httpx.Client, upload: str, part_ids: list[str], **fields: Any) -> httpx.Response:
    return http.post(f"/v1/uploads/{upload}/complete", json={"part_ids": part_ids} | fields)


def run_worker(app_fixture: AppFixture) -> bool:
    """Run the last task of the queue, and return whether it is done."""
    task = app_fixture.queue.deletions[-1]
    deletion = UploadDeletion(app_fixture.store.uploads)

    async def run() -> bool:
        return await deletion.delete(task.model_copy(update={"tenant": app_fixture.tenant}), 0)

    return asyncio.run(run())


def left(app_fixture: AppFixture) -> tuple[list[str], list[str]]:
    """Return the sort keys of the tenant's records, and its blobs."""
    settings = app_fixture.settings
    records = read_records(app_fixture.dynamodb, settings.table, app_fixture.tenant)
    blobs = list_blobs(app_fixture.s3, settings.bucket, app_fixture.tenant)
    return sorted(each["sk"]["S"] for each in records), blobs


@pytest.mark.parametrize("base", ["/v1", "/v1/openai/v1"])
def test_the_client_of_openai_uploads_a_file_in_parts(server: Served, base: str) -> None:
    content = Random(5).randbytes(1_000_000)
    with openai_client(server, base) as client:
        upload = client.uploads.upload_file_chunked(
            file=content,
            filename="big.bin",
            bytes=len(content),
            mime_type="application/octet-stream",
            purpose="user_data",
            part_size=300_000,
            md5=md5(content, usedforsecurity=False).hexdigest(),
        )
        assert upload.file
        found = client.files.retrieve(upload.file.id)
        read = client.files.content(upload.file.id).read()

    assert (upload.object, upload.status, upload.bytes) == ("upload", "completed", len(content))
    assert upload.expires_at == upload.created_at + 3_600
    assert (found, found.filename, found.purpose) == (upload.file, "big.bin", "user_data")
    assert read == content


def test_parts_are_put_together_in_the_order_of_the_request(http: httpx.Client) -> None:
    upload = create(http, 6)
    ids = [add(http, upload, part).json()["id"] for part in (b"ef", b"ab", b"unused", b"cd")]

    done = complete(http, upload, [ids[1], ids[3], ids[0]]).json()

    assert http.get(f"/v1/files/{done['file']['id']}/content").content == b"abcdef"


def test_a_repeated_completion_returns_the_same_file(http: httpx.Client) -> None:
    upload = create(http)
    ids = add_all(http, upload)

    first, second = complete(http, upload, ids), complete(http, upload, ids)

    assert first.status_code == 200
    assert second.json() == first.json()
    assert len(http.get("/v1/files").json()["data"]) == 1


@pytest.mark.parametrize(
    ("change", "code", "param"),
    [
        (lambda ids: {"part_ids": ids[:-1]}, "bytes_mismatch", "part_ids"),
        (lambda ids: {"part_ids": [*ids, "part_x"]}, "invalid_request", "part_ids[3]"),
        (lambda ids: {"part_ids": [*ids, ids[0]]}, "invalid_request", "part_ids"),
        (lambda ids: {"part_ids": ids, "md5": "0" * 32}, "md5_mismatch", "md5"),
        (lambda ids: {"part_ids": ids[::-1], "md5": md5(CONTENT).hexdigest()}, "md5_mismatch", "md5"),
        (lambda ids: {"part_ids": []}, "invalid_request", "part_ids"),
    ],
)
def test_a_file_that_is_not_the_declared_one_is_not_made(
    http: httpx.Client, change: Any, code: str, param: str
) -> None:
    upload = create(http)
    ids = add_all(http, upload)

    error = assert_error(http.post(f"/v1/uploads/{upload}/complete", json=change(ids)), 400, code)

    assert error["param"] == param
    assert http.get("/v1/files").json()["data"] == []
    assert complete(http, upload, ids, md5=md5(CONTENT, usedforsecurity=False).hexdigest()).status_code == 200


def test_a_part_that_is_too_large_is_refused_and_the_error_names_part_size(http: httpx.Client) -> None:
    upload = create(http, 5_000_000)

    error = assert_error(add(http, upload, b"x" * 4_400_001), 413, "too_large")

    assert "part_size" in error["message"]
    assert_error(add(http, upload, b""), 400, "empty_part")


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"bytes": 0}, "bytes"),
        ({"bytes": 536_870_913}, "bytes"),
        ({"purpose": "fun"}, "purpose"),
        ({"filename": "a/.."}, "filename"),
        ({"expires_after": {"anchor": "created_at", "seconds": 5}}, "expires_after.seconds"),
    ],
)
def test_an_invalid_upload_is_refused(http: httpx.Client, fields: Body, param: str) -> None:
    body = {"bytes": 5, "filename": "a.txt", "mime_type": "text/plain", "purpose": "assistants"} | fields

    assert assert_error(http.post("/v1/uploads", json=body), 400, "invalid_request")["param"] == param


def test_a_cancelled_upload_leaves_no_part(http: httpx.Client, app_fixture: AppFixture) -> None:
    upload = create(http)
    ids = add_all(http, upload)

    cancelled = http.post(f"/v1/uploads/{upload}/cancel").json()

    assert cancelled["status"] == "cancelled"
    assert left(app_fixture) == (["meta"], [])
    assert http.post(f"/v1/uploads/{upload}/cancel").json() == cancelled
    assert_error(add(http, upload, b"x"), 409, "upload_cancelled")
    assert_error(complete(http, upload, ids), 409, "upload_cancelled")


def test_a_completed_upload_cannot_be_cancelled(http: httpx.Client) -> None:
    upload = create(http)
    complete(http, upload, add_all(http, upload))

    assert_error(http.post(f"/v1/uploads/{upload}/cancel"), 409, "upload_completed")
    assert_error(add(http, upload, b"x"), 409, "upload_completed")


def test_an_upload_expires_after_an_hour_and_its_parts_are_deleted(http: httpx.Client, app_fixture: AppFixture) -> None:
    upload = create(http)
    ids = add_all(http, upload)
    assert run_worker(app_fixture) is False

    CLOCK.move(3_601)

    assert_error(add(http, upload, b"x"), 409, "upload_expired")
    assert_error(complete(http, upload, ids), 409, "upload_expired")
    assert_error(http.post(f"/v1/uploads/{upload}/cancel"), 409, "upload_expired")
    assert run_worker(app_fixture) is False  # another process may have another clock
    CLOCK.move(60)
    assert run_worker(app_fixture) is True
    assert left(app_fixture) == (["meta"], [])


def test_the_worker_deletes_only_the_parts_that_the_file_does_not_have(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    upload = create(http)
    ids = add_all(http, upload)
    add(http, upload, b"unused")
    file = complete(http, upload, ids).json()["file"]["id"]

    assert run_worker(app_fixture) is True

    assert http.get(f"/v1/files/{file}/content").content == CONTENT
    assert len(left(app_fixture)[1]) == len(ids)


def test_a_deleted_file_leaves_nothing_of_its_upload(http: httpx.Client, app_fixture: AppFixture) -> None:
    upload = create(http, expires_after={"anchor": "created_at", "seconds": 3_600})
    file = complete(http, upload, add_all(http, upload)).json()["file"]
    assert all(key.startswith("expiring/") for key in left(app_fixture)[1])

    http.delete(f"/v1/files/{file['id']}")

    assert left(app_fixture) == ([], [])
    assert run_worker(app_fixture) is True
    assert_error(complete(http, upload, ["part_x"]), 404, "upload_not_found")


def test_an_upload_is_checked_again_after_the_longest_delay_of_the_queue(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    upload = create(http)

    [task] = [each for each in app_fixture.queue.deletions if each.upload_id == upload]

    assert (task.object_kind, task.delay_seconds) == ("upload", 900)
    assert DeletionTask(kind="delete_file", tenant="t", file_id="f").delay_seconds == 0


def test_without_the_queue_no_upload_is_stored(http: httpx.Client, app_fixture: AppFixture) -> None:
    app_fixture.queue.refuses = True
    try:
        body = {"bytes": 5, "filename": "a", "mime_type": "text/plain", "purpose": "assistants"}
        answer = http.post("/v1/uploads", json=body)
    finally:
        app_fixture.queue.refuses = False

    assert answer.status_code == 503
    assert left(app_fixture) == ([], [])


def test_an_unknown_upload_is_not_found(http: httpx.Client) -> None:
    for upload in ("upload_" + "0" * 32, "x", "upload_.."):
        assert_error(add(http, upload, b"x"), 404, "upload_not_found")
        assert_error(complete(http, upload, ["part_x"]), 404, "upload_not_found")
        assert_error(http.post(f"/v1/uploads/{upload}/cancel"), 404, "upload_not_found")


def test_a_file_may_be_read_from_a_path(server: Served, tmp_path: Any) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(CONTENT)
    with openai_client(server) as client:
        upload = client.uploads.upload_file_chunked(
            file=path, mime_type="text/plain", purpose="assistants", part_size=3_000
        )
        assert upload.file
        content = client.files.content(upload.file.id).read()

    assert content == CONTENT
    assert upload.filename == "notes.txt"
