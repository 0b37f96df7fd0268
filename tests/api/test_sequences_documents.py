"""Turns with documents, held against what Llama Stack 0.2.12 was recorded to do."""

from typing import Any

import httpx
import pytest
from tests.api.api_client import assert_error, open_session, say, turn, turns_of
from tests.api.sequences import last_turn, says, sequence
from tests.servers.chat_completions import ChatCompletionsServer

PLAIN = ["turn_start", "start inference", "text ok", "complete inference", "turn_complete end_of_turn"]


@pytest.fixture
def session(http: httpx.Client, chat: ChatCompletionsServer) -> str:
    return open_session(http, model="openai/m")


TEXT = {"type": "text", "text": "DOC TEXT"}


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("sum up: ", "DOC TEXT"),
        ("sum up: ", {"uri": "data:text/plain;base64,RE9DIFRFWFQ="}),
        ([{"type": "text", "text": "sum up: "}], [TEXT]),
        ({"type": "text", "text": "sum up: "}, TEXT),
    ],
)
def test_a_document_is_a_message_before_the_users(
    http: httpx.Client, chat: ChatCompletionsServer, session: str, said: Any, content: Any
) -> None:
    """Text without a border would be taken for the user's words."""
    chat.script(says("ok"), says("ok"))

    told = say(http, session, said, stream=True, documents=[{"content": content, "mime_type": "text/plain"}])
    turn(http, session, "and?")

    assert sequence(told) == PLAIN
    [message] = last_turn(told)["input_messages"]
    assert message["content"] == said
    _, document, users = chat.bodies[0]["messages"]
    assert document["content"].startswith("<document ")
    assert "\nDOC TEXT\n" in document["content"]
    assert users["content"] == "sum up: "
    assert chat.bodies[1]["messages"][:3] == chat.bodies[0]["messages"]


def test_several_documents_are_a_message_each_as_joined_ones_cannot_be_told_apart(
    http: httpx.Client, chat: ChatCompletionsServer, session: str
) -> None:
    documents = [
        {"content": "DOC A", "mime_type": "text/plain"},
        {"content": "DOC B", "mime_type": "text/markdown"},
    ]

    turn(http, session, "sum up: ", documents=documents)

    shown = [message["content"] for message in chat.bodies[0]["messages"][1:]]
    assert ["DOC A" in shown[0], "DOC B" in shown[1], shown[2]] == [True, True, "sum up: "]


@pytest.mark.parametrize(
    ("content", "mime_type"),
    [
        ({"uri": "http://127.0.0.1:9100/v1/models"}, "text/plain"),
        ({"uri": "file:///etc/hostname"}, "text/plain"),
        ({"type": "image", "image": {"data": "AAAA"}}, "text/plain"),
        ("%PDF", "application/pdf"),
        ("AAAA", "image/png"),
    ],
)
def test_what_is_no_readable_document_is_a_status_as_a_stream_that_has_begun_has_none(
    http: httpx.Client, chat: ChatCompletionsServer, session: str, content: Any, mime_type: str
) -> None:
    refused = say(http, session, "sum up: ", stream=True, documents=[{"content": content, "mime_type": mime_type}])

    assert refused.json()["error"]["param"] == "documents[0]"
    assert_error(refused, 400, refused.json()["error"]["code"])
    assert (chat.bodies, turns_of(http, session)) == ([], [])


def test_a_document_needs_its_type_as_recorded(http: httpx.Client, session: str) -> None:
    refused = say(http, session, "sum up: ", stream=True, documents=[{"content": "x"}])

    assert assert_error(refused, 400, "invalid_request")["param"] == "documents[0].mime_type"
