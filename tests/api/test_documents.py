"""Documents of a turn over HTTP."""

import base64
from typing import Any

import httpx
import pytest
from tests.api.api_client import assert_error, open_session, say, turn, turns_of
from tests.api.app_fixture import AppFixture

from stint.domain.inference import UserInput


def document(content: Any, mime_type: str = "text/plain") -> dict[str, Any]:
    return {"content": content, "mime_type": mime_type}


def test_a_document_stands_apart_from_the_users_message(http: httpx.Client, app_fixture: AppFixture) -> None:
    """Unlike in the original, the message stays what the user sent."""
    session = open_session(http, model="recorded/m")
    html = base64.b64encode(b"<p>Bees <b>dance</b>.</p><script>no()</script>").decode()
    documents = [document("Ants march."), document({"uri": f"data:text/html;base64,{html}"}, "text/html")]

    turn(http, session, "say: read", documents=documents)
    first = app_fixture.last_request
    turn(http, session, "say: again")

    said = [message.content for message in first.messages if isinstance(message, UserInput)]
    assert said[-1] == "say: read"
    assert "Ants march." in str(said[0])
    assert "Bees dance." in str(said[1])
    assert "no()" not in repr(first)
    assert app_fixture.last_request.messages[: len(first.messages)] == first.messages
    assert [each["content"] for each in turns_of(http, session)[0]["input_messages"]] == ["say: read"]


@pytest.mark.parametrize(
    ("content", "mime_type"),
    [
        ({"uri": "http://127.0.0.1:9/x"}, "text/plain"),
        ({"uri": "http://169.254.169.254/latest/meta-data"}, "text/plain"),
        ({"uri": "http://[::1]:9/x"}, "text/plain"),
        ({"uri": "data:application/zip;base64,AAAA"}, "application/zip"),
        ("no pdf", "application/pdf"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_place_before_the_stream(
    http: httpx.Client, content: Any, mime_type: str
) -> None:
    session = open_session(http)

    documents = [document("fine"), document(content, mime_type)]
    response = say(http, session, "hi", stream=True, documents=documents)

    assert assert_error(response, 400, response.json()["error"]["code"])["param"] == "documents[1]"
    assert turn(http, session, "say: free")["status"] == "completed"
    assert len(turns_of(http, session)) == 1
