"""Files: multipart uploads, lists, contents, deletions, at both addresses."""

from random import Random
from typing import Any

import httpx
import pytest
from tests.api.api_client import assert_error
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import openai_client
from tests.clock import CLOCK

LARGE = Random(7).randbytes(300_000)
BOUNDARY = b"----x"
END = b"--" + BOUNDARY + b"--\r\n"
PURPOSES = ("assistants", "batch", "fine-tune", "vision", "user_data", "evals")


def upload(http: httpx.Client, content: bytes = b"Llamas hum.", name: str = "a.txt", **fields: str) -> httpx.Response:
    return http.post("/v1/files", files={"file": (name, content)}, data={"purpose": "assistants"} | fields)


def send_form(http: httpx.Client, *parts: bytes, end: bytes = END) -> httpx.Response:
    """Send a form of raw parts, each a header and a content."""
    body = b"".join(b"--" + BOUNDARY + b"\r\n" + part + b"\r\n" for part in parts) + end
    return http.post(
        "/v1/files",
        content=body,
        headers={"content-type": f"multipart/form-data; boundary={BOUNDARY.decode()}"},
    )


PURPOSE = b'Content-Disposition: form-data; name="purpose"\r\n\r\nassistants'
FILE = b'Content-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhum'


@pytest.mark.parametrize("base", ["/v1", "/v1/openai/v1"])
def test_the_client_of_openai_uploads_lists_reads_and_deletes_files(server: Served, base: str) -> None:
    with openai_client(server, base) as client:
        file = client.files.create(file=("llamas.txt", LARGE), purpose="user_data")
        found = client.files.retrieve(file.id)
        listed = client.files.list(purpose="user_data")
        content = client.files.content(file.id).read()
        deleted = client.files.delete(file.id)
        left = client.files.list()

    assert file.id.startswith("file-")
    assert (file.object, file.bytes, file.filename, file.purpose) == ("file", len(LARGE), "llamas.txt", "user_data")
    assert (file.status, file.expires_at) == ("processed", None)
    assert found == file
    assert listed.data == [file]
    assert content == LARGE
    assert (deleted.id, deleted.deleted, left.data) == (file.id, True, [])


def test_a_file_shows_when_it_expires_also_if_it_does_not(http: httpx.Client) -> None:
    kept = upload(http).json()
    expiring = http.post(
        "/v1/files",
        files={"file": ("a.txt", b"hum")},
        data={"purpose": "assistants", "expires_after[anchor]": "created_at", "expires_after[seconds]": "3600"},
    ).json()

    for base in ("/v1", "/v1/openai/v1"):
        shown = {each["id"]: each["expires_at"] for each in http.get(f"{base}/files").json()["data"]}
        assert shown == {kept["id"]: None, expiring["id"]: expiring["created_at"] + 3_600}
        assert http.get(f"{base}/files/{kept['id']}").json()["expires_at"] is None


def test_a_file_expires_after_its_creation(http: httpx.Client, server: Served) -> None:
    with openai_client(server) as client:
        expiry: Any = {"anchor": "created_at", "seconds": 3_600}
        file = client.files.create(file=("a.txt", b"hum"), purpose="assistants", expires_after=expiry)

    assert file.expires_at == file.created_at + 3_600
    CLOCK.move(3_601)
    assert_error(http.get(f"/v1/files/{file.id}"), 404, "file_not_found")
    assert_error(http.get(f"/v1/files/{file.id}/content"), 404, "file_not_found")
    assert http.get("/v1/files").json()["data"] == []


def test_every_purpose_is_listed_by_itself(http: httpx.Client) -> None:
    ids = {purpose: upload(http, purpose=purpose).json()["id"] for purpose in PURPOSES}

    for purpose, file_id in ids.items():
        listed = http.get("/v1/files", params={"purpose": purpose}).json()
        assert [each["id"] for each in listed["data"]] == [file_id]
    assert [each["id"] for each in http.get("/v1/files?order=asc").json()["data"]] == list(ids.values())


def test_files_are_listed_in_pages(http: httpx.Client) -> None:
    ids = [upload(http).json()["id"] for _ in range(5)][::-1]

    first = http.get("/v1/files?limit=2").json()
    rest = http.get("/v1/files", params={"after": first["last_id"]}).json()

    assert (first["first_id"], first["last_id"], first["has_more"]) == (ids[0], ids[1], True)
    assert [each["id"] for each in rest["data"]] == ids[2:]
    assert rest["has_more"] is False
    assert_error(http.get("/v1/files?after=file-x"), 404, "file_not_found")


def test_a_content_is_an_attachment_that_no_browser_shows(http: httpx.Client) -> None:
    page = b"<script>alert(1)</script>"
    file_id = upload(http, page, 'ü"\u2028;x.html').json()["id"]

    answer = http.get(f"/v1/files/{file_id}/content")

    assert answer.content == page
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment; filename*=UTF-8''%C3%BC")
    assert answer.headers["content-length"] == str(len(page))
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("../../etc/passwd", "passwd"), ("C:\\Users\\a\\notes.txt", "notes.txt"), (" a b.txt ", "a b.txt")],
)
def test_a_file_name_is_never_a_path(http: httpx.Client, sent: str, kept: str) -> None:
    part = f'Content-Disposition: form-data; name="file"; filename="{sent}"\r\n\r\nhum'.encode()

    assert send_form(http, PURPOSE, part).json()["filename"] == kept


@pytest.mark.parametrize("name", ["a/", "..", "x" * 256, "a\x01b", "\udcff"])
def test_a_file_name_that_names_nothing_is_refused(http: httpx.Client, name: str) -> None:
    raw = name.encode("utf-8", "surrogateescape")
    part = b'Content-Disposition: form-data; name="file"; filename="' + raw + b'"\r\n\r\nhum'

    error = assert_error(send_form(http, PURPOSE, part), 400, "invalid_request")

    assert "file name" in error["message"]


def test_an_empty_file_is_refused(http: httpx.Client) -> None:
    error = assert_error(upload(http, b""), 400, "empty_file")

    assert (error["param"], "empty" in error["message"]) == ("file", True)


def test_a_file_that_is_too_large_is_refused_and_the_error_names_uploads(http: httpx.Client) -> None:
    error = assert_error(upload(http, b"x" * 4_400_001), 413, "too_large")

    assert "4,400,000" in error["message"]
    assert "/v1/uploads" in error["message"]


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"purpose": "fun"}, "purpose", "'assistants'"),
        ({"expires_after[anchor]": "created_at"}, "expires_after[seconds]", "required"),
        ({"expires_after[anchor]": "now", "expires_after[seconds]": "3600"}, "expires_after[anchor]", "created_at"),
        ({"expires_after[anchor]": "created_at", "expires_after[seconds]": "1"}, "expires_after[seconds]", "3600"),
        ({"expires_after[anchor]": "created_at", "expires_after[seconds]": "x"}, "expires_after[seconds]", "integer"),
        ({"expires_after": '{"anchor": "created_at", "seconds": 3600}'}, "expires_after", "expires_after[seconds]"),
    ],
)
def test_an_invalid_field_is_named(http: httpx.Client, fields: dict[str, str], param: str, message: str) -> None:
    error = assert_error(upload(http, b"hum", "a.txt", **fields), 400, "invalid_request")

    assert error["param"] == param
    assert message in error["message"]


@pytest.mark.parametrize(
    ("parts", "param"),
    [((PURPOSE,), "file"), ((FILE,), "purpose"), ((PURPOSE, FILE.replace(b'; filename="a.txt"', b"")), "file")],
)
def test_a_missing_part_is_named(http: httpx.Client, parts: tuple[bytes, ...], param: str) -> None:
    error = assert_error(send_form(http, *parts), 400, "invalid_request")

    assert error["param"] == param


@pytest.mark.parametrize(
    "part",
    [
        FILE.replace(b'filename="a.txt"', b"filename*=UTF-8''na%C3%AFve.txt"),
        FILE.replace(b'filename="a.txt"', b"FileName*0*=UTF-8''na%C3%AFve; filename*1=\".txt\""),
        FILE.replace(b'name="file"', b"name*=UTF-8''file"),
    ],
)
def test_an_extended_name_is_refused_as_what_it_is(http: httpx.Client, part: bytes) -> None:
    error = assert_error(send_form(http, PURPOSE, part), 400, "invalid_request")

    assert "name*" in error["message"].lower()
    assert "without an asterisk" in error["message"]
    assert http.get("/v1/files").json()["data"] == []


@pytest.mark.parametrize(
    "disposition", [b"filename=\"a.txt\"; filename*=UTF-8''b.txt", b'filename="a; filename*=b\\".txt"']
)
def test_the_plain_name_of_a_file_counts(http: httpx.Client, disposition: bytes) -> None:
    answer = send_form(http, PURPOSE, FILE.replace(b'filename="a.txt"', disposition))

    assert answer.status_code == 200, answer.text
    assert answer.json()["filename"].startswith("a")


@pytest.mark.parametrize(
    ("parts", "end", "message"),
    [
        ((PURPOSE, FILE), b"", "boundary"),
        ((PURPOSE, FILE, b"no header"), END, "malformed"),
        ((PURPOSE, b"X: " + b"x" * 1_000_000 + b"\r\n\r\nhum"), b"", "malformed"),
        ((PURPOSE, b"X: y\r\n" * 1_000 + b"\r\nhum"), b"", "malformed"),
        ((PURPOSE,) * 50_000, b"", "32 parts"),
        ((PURPOSE.replace(b"assistants", b"x" * 10_001),), END, "10,000 bytes"),
        ((PURPOSE.replace(b"assistants", b"\xff"),), END, "UTF-8"),
    ],
)
def test_a_malformed_form_is_refused(http: httpx.Client, parts: tuple[bytes, ...], end: bytes, message: str) -> None:
    error = assert_error(send_form(http, *parts, end=end), 400, "invalid_request")

    assert message in error["message"]
    assert http.get("/v1/files").json()["data"] == []


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "multipart/form-data", ""])
def test_a_file_needs_a_form(http: httpx.Client, kind: str) -> None:
    answer = http.post("/v1/files", content=b'{"purpose": "assistants"}', headers={"content-type": kind})

    error = assert_error(answer, 415, "unsupported_media_type")

    assert "multipart/form-data" in error["message"]


def test_pages_of_other_sites_may_not_send_forms(http: httpx.Client) -> None:
    headers = {"origin": "https://a.example", "sec-fetch-site": "cross-site"}
    form = {"files": {"file": ("a.txt", b"hum")}, "data": {"purpose": "assistants"}, "headers": headers}

    error = assert_error(http.post("/v1/files", **form), 400, "invalid_request")  # type: ignore[arg-type]

    assert "https://a.example" in error["message"]


@pytest.mark.parametrize("name", ["file-x", "x", "file_" + "0" * 32, "file-" + "0" * 32, "file-" + "G" * 32])
def test_an_unknown_file_is_not_found(http: httpx.Client, name: str) -> None:
    for method, path in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
        assert_error(http.request(method, f"/v1/files/{name}{path}"), 404, "file_not_found")


def test_a_failed_write_leaves_no_file(http: httpx.Client, app_fixture: AppFixture) -> None:
    with app_fixture.proxy.fail("PutItem", "InternalServerError"):
        answer = upload(http, LARGE)

    assert answer.status_code == 503
    assert http.get("/v1/files").json()["data"] == []
