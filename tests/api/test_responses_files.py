"""Files and images in the input of a response."""

import base64
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.api.responses_client import (
    RESPONSES,
    WEATHER,
    assert_refused,
    get,
    item_of,
    output_for,
    post,
    respond,
    text_of,
    user,
)
from tests.script_model import words_of
from tests.servers.mcp_server import PNG
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

from stint.documents.document_reader import DocumentReader
from stint.domain.content import ImageContentItem
from stint.domain.inference import UserInput
from stint.net.guard import Guard

PIXEL = "data:image/png;base64," + base64.b64encode(PNG).decode()
JAM = base64.b64encode(b"plum jam").decode()


@pytest.fixture
def shelf(app_fixture: AppFixture) -> Iterator[ScriptedHTTPServer]:
    """A server of files that callers may reach."""

    def answer(received: Received) -> Reply:
        return Reply((b"plum jam of " + received.path.encode(),), headers={"Content-Type": "text/plain"})

    guard = Guard(["127.0.0.1"])
    services: Any = app_fixture.make_services("")
    services.responses.reader = DocumentReader(guard.fetch, guard.check)
    with ScriptedHTTPServer(answer) as server:
        yield server


def file(**fields: Any) -> dict[str, Any]:
    return {"type": "input_file"} | fields


@pytest.mark.parametrize(
    "source",
    [
        {"file_data": "data:text/plain,plum%20jam", "filename": "a.txt"},
        {"file_data": base64.b64encode(b"<p>plum <b>jam</b></p>").decode(), "filename": "a.html"},
    ],
)
def test_a_file_is_told_as_text_under_its_name(
    http: httpx.Client, app_fixture: AppFixture, source: dict[str, Any]
) -> None:
    respond(http, [user([file(**source), {"type": "input_text", "text": "What?"}])], model="recorded/m")

    [message] = app_fixture.last_request.messages
    told = words_of(message)
    assert "plum jam" in " ".join(told.split())
    assert source.get("filename", "") in told
    assert told.endswith("What?")


def test_a_file_behind_a_url_is_fetched_once_for_the_whole_chain(
    http: httpx.Client, app_fixture: AppFixture, shelf: ScriptedHTTPServer
) -> None:
    first = respond(http, [user([file(file_url=f"{shelf.url}/shelf.txt")])])
    second = respond(http, "more", previous_response_id=first["id"])
    respond(http, "and more", previous_response_id=second["id"], model="recorded/m")

    assert "plum jam of /shelf.txt" in words_of(app_fixture.last_request.messages[0])
    assert [received.path for received in shelf.requests] == ["/shelf.txt"]
    [kept] = http.get(f"{RESPONSES}/{first['id']}/input_items").json()["data"]
    assert kept["content"][0]["file_url"] == f"{shelf.url}/shelf.txt"


def test_several_files_of_several_items_keep_their_texts(http: httpx.Client, app_fixture: AppFixture) -> None:
    def of(word: str) -> dict[str, Any]:
        return file(filename=f"{word}.txt", file_data=base64.b64encode(f"about {word}".encode()).decode())

    asked = respond(http, [user([of("one"), of("two")]), user("call: get_weather {}")], tools=[WEATHER])
    output = output_for(item_of(asked, "function_call"), [of("three")])
    respond(
        http,
        [user([of("four")])],
        previous_response_id=respond(http, [output], previous_response_id=asked["id"])["id"],
        model="recorded/m",
    )

    told = [words_of(message) for message in app_fixture.last_request.messages]
    assert "about one" in told[0]
    assert told[0].index("about one") < told[0].index("two.txt") < told[0].index("about two")
    assert "about three" in told[3]
    assert "about four" in told[-1]


def test_an_image_reaches_the_model_and_the_chain(http: httpx.Client, app_fixture: AppFixture) -> None:
    image = {"type": "input_image", "image_url": PIXEL, "detail": "low"}
    first = respond(http, [user([{"type": "input_text", "text": "What?"}, image])], model="recorded/m")
    respond(http, "more", previous_response_id=first["id"], model="recorded/m")

    for request in app_fixture.recorder.requests:
        message = request.messages[0]
        assert isinstance(message, UserInput)
        assert isinstance(message.content, list)
        assert isinstance(message.content[1], ImageContentItem)
    [kept] = http.get(f"{RESPONSES}/{first['id']}/input_items").json()["data"]
    assert kept["content"][1] == image
    assert "with 1 image" in text_of(get(http, first["id"]))


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("data:image/png;base64,aGVsbG8=", "invalid_request"),
        ("http://169.254.169.254/cat.png", "url_not_allowed"),
    ],
)
def test_an_image_that_no_model_may_read_is_named(http: httpx.Client, url: str, code: str) -> None:
    image = {"type": "input_image", "image_url": url}
    outputs = [
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        output_for({"call_id": "c"}, [image]),
    ]

    asked = assert_refused(post(http, [user([image])]), 400, code)
    answered = assert_refused(post(http, outputs), 400, code)

    assert (asked["param"], answered["param"]) == ("input[0].content[0].image_url", "input[1].output[0].image_url")
