"""Stored files as input of responses, conversations and chat completions."""

import base64
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.api.responses_client import RESPONSES, assert_refused, get, post, respond, text_of, user
from tests.servers.mcp_server import PNG

from stint.domain.content import ImageContentItem, items_of
from stint.domain.inference import UserInput

UNKNOWN = f"file-{'0' * 32}"


def upload(http: httpx.Client, content: bytes = b"plum jam", name: str = "jam.txt", purpose: str = "user_data") -> str:
    answer = http.post("/v1/files", files={"file": (name, content)}, data={"purpose": purpose})
    file_id: str = answer.json()["id"]
    return file_id


def asks(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [user(list(parts))]


def file(file_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "input_file", "file_id": file_id} | fields


def image(file_id: str) -> dict[str, Any]:
    return {"type": "input_image", "file_id": file_id}


def read_by_model(app_fixture: AppFixture) -> UserInput:
    """Return the user's first message in the last model call."""
    return next(message for message in app_fixture.last_request.messages if isinstance(message, UserInput))


def test_a_stored_file_is_read_as_text_under_its_name(http: httpx.Client, app_fixture: AppFixture) -> None:
    file_id = upload(http, b"<p>plum <b>jam</b></p>", "jam.html")

    response = respond(http, asks(file(file_id)))
    items = http.get(f"{RESPONSES}/{response['id']}/input_items").json()["data"]

    assert "File jam.html" in text_of(response)
    assert "plum jam" in text_of(response)
    assert items[0]["content"] == [{"type": "input_file", "file_id": file_id}]


def test_a_stored_image_is_seen(http: httpx.Client, app_fixture: AppFixture) -> None:
    file_id = upload(http, PNG, "dot.bin", "vision")

    response = respond(http, asks(image(file_id), {"type": "input_text", "text": "See?"}), model="recorded/m")
    respond(http, "And?", previous_response_id=response["id"], model="recorded/m")

    [seen] = [item for item in items_of(read_by_model(app_fixture).content) if isinstance(item, ImageContentItem)]
    assert seen.image.url is not None
    assert seen.image.url.uri == "data:image/png;base64," + base64.b64encode(PNG).decode()
    items = http.get(f"{RESPONSES}/{response['id']}/input_items").json()["data"]
    assert items[0]["content"][0] == {"type": "input_image", "file_id": file_id, "image_url": None, "detail": "auto"}


def test_several_files_and_images_keep_their_order(http: httpx.Client, app_fixture: AppFixture) -> None:
    plums, pears = upload(http, b"plums", "a.txt"), upload(http, b"pears", "b.txt")
    data = {"type": "input_file", "filename": "c.txt", "file_data": base64.b64encode(b"figs").decode()}

    respond(http, asks(file(plums), image(upload(http, PNG)), data, file(pears)), model="recorded/m")

    kinds = [
        "image" if isinstance(item, ImageContentItem) else next(n for n in ("plums", "figs", "pears") if n in item.text)
        for item in items_of(read_by_model(app_fixture).content)
    ]
    assert kinds == ["plums", "image", "figs", "pears"]


def test_a_conversation_keeps_what_was_read(http: httpx.Client, app_fixture: AppFixture) -> None:
    file_id = upload(http)
    item = {"type": "message"} | asks(file(file_id), image(upload(http, PNG)))[0]
    conversation = http.post("/v1/conversations", json={"items": [item]}).json()["id"]
    http.delete(f"/v1/files/{file_id}")

    respond(http, "And?", conversation=conversation, model="recorded/m")

    read = items_of(read_by_model(app_fixture).content)
    assert [isinstance(item, ImageContentItem) for item in read] == [False, True]
    assert "plum jam" in str(read[0])


def test_a_chat_completion_reads_a_stored_file(http: httpx.Client) -> None:
    content = [{"type": "file", "file": {"file_id": upload(http)}}]
    body = {"model": "scripted/demo", "messages": [{"role": "user", "content": content}]}

    answer = http.post("/v1/chat/completions", json=body).json()

    assert "File jam.txt" in answer["choices"][0]["message"]["content"]
    assert "plum jam" in answer["choices"][0]["message"]["content"]


def test_tokens_of_stored_files_count(http: httpx.Client) -> None:
    body = {"model": "scripted/demo", "input": asks(file(upload(http, b"one two three")))}

    long = http.post(f"{RESPONSES}/input_tokens", json=body | {"input": asks(file(upload(http, b"word " * 500)))})
    short = http.post(f"{RESPONSES}/input_tokens", json=body)

    assert long.json()["input_tokens"] - short.json()["input_tokens"] == 497


def test_a_background_response_reads_a_file_before_it_is_queued(http: httpx.Client, app_fixture: AppFixture) -> None:
    file_id = upload(http)
    queued = respond(http, asks(file(file_id)), background=True)
    http.delete(f"/v1/files/{file_id}")
    app_fixture.queue.tasks[:] = [task for task in app_fixture.queue.tasks if hasattr(task, "response_id")]
    app_fixture.work_off()

    assert "plum jam" in text_of(get(http, queued["id"]))


@pytest.mark.parametrize("part", [file, image])
def test_a_missing_file_is_an_error_with_its_place_and_id(http: httpx.Client, part: Any) -> None:
    deleted = upload(http)
    http.delete(f"/v1/files/{deleted}")

    for file_id in (UNKNOWN, deleted, "nonsense"):
        error = assert_refused(post(http, asks(part(file_id))), 400, "file_not_found")
        assert file_id in error["message"]
        assert error["param"] == "input[0].content[0]"


@pytest.mark.parametrize(
    ("name", "purpose", "content", "part", "code"),
    [
        ("jam.txt", "batch", b"{}", file, "invalid_file_purpose"),
        ("jam.txt", "evals", PNG, image, "invalid_file_purpose"),
        ("jam.xyz", "user_data", b"jam", file, "unsupported_document"),
        ("jam.pdf", "user_data", b"jam", file, "unreadable_document"),
        ("dot.png", "vision", b"jam", image, "invalid_request"),
    ],
)
def test_a_file_that_a_model_cannot_read_is_refused(
    http: httpx.Client, name: str, purpose: str, content: bytes, part: Any, code: str
) -> None:
    error = assert_refused(post(http, asks(part(upload(http, content, name, purpose)))), 400, code)

    assert error["param"] == "input[0].content[0]"


def test_a_compaction_reads_stored_files_and_names_unknown_ones(http: httpx.Client, app_fixture: AppFixture) -> None:
    body = {"model": "recorded/m", "input": asks(file(upload(http, b"plum jam")))}

    compacted = http.post(f"{RESPONSES}/compact", json=body)
    refused = http.post(f"{RESPONSES}/compact", json=body | {"input": asks(file(UNKNOWN))})

    assert compacted.status_code == 200, compacted.text
    assert "plum jam" in str(read_by_model(app_fixture).content)
    assert UNKNOWN in assert_refused(refused, 400, "file_not_found")["message"]
