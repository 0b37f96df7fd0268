"""Stored chat completions over HTTP, and by the unmodified clients of OpenAI and Llama Stack."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import httpx2
import pytest
from llama_stack_client import LlamaStackClient
from openai import APIError, InternalServerError, NotFoundError, OpenAI
from openai.types.chat import ChatCompletionMessageParam
from tests.api.api_client import assert_error
from tests.api.app_fixture import AppFixture, Served
from tests.store.tenant_records import read_records

CHAT = "/v1/chat/completions"
LLAMA_STACK = "/v1/openai/v1/chat/completions"


@pytest.fixture
def openai(server: Served) -> Iterator[OpenAI]:
    """The real client, without its retries."""
    http = httpx2.Client(trust_env=False)
    with OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, http_client=http) as client:
        yield client


def says(words: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": words}]


def complete(client: OpenAI, words: str, **fields: Any) -> Any:
    given: Any = {"model": "recorded/m", "messages": says(words), "store": True} | fields
    return client.chat.completions.create(**given)


def stored_records(app_fixture: AppFixture) -> list[dict[str, Any]]:
    return read_records(app_fixture.dynamodb, app_fixture.settings.table, app_fixture.tenant)


def test_the_client_reads_what_it_stored(openai: OpenAI) -> None:
    completion = complete(openai, "say: Hello there", metadata={"topic": "plums"})

    stored = openai.chat.completions.retrieve(completion.id)

    assert stored == completion
    assert stored.choices[0].message.content == "Hello there"


@pytest.mark.parametrize("fields", [{}, {"store": False}, {"store": None}])
@pytest.mark.parametrize("stream", [True, False])
def test_nothing_is_stored_unless_the_request_says_so(
    http: httpx.Client, app_fixture: AppFixture, fields: dict[str, Any], stream: bool
) -> None:
    body = {"model": "scripted/demo", "messages": says("say: Hi"), "stream": stream}

    assert http.post(CHAT, json=body | fields).status_code == 200

    assert stored_records(app_fixture) == []


def test_a_streamed_completion_is_stored_before_its_end_is_announced(openai: OpenAI) -> None:
    with complete(openai, "say: Hello there", stream=True) as stream:
        for chunk in stream:
            if chunk.choices[0].finish_reason:
                stored = openai.chat.completions.retrieve(chunk.id)
                break

    assert stored.choices[0].message.content == "Hello there"
    assert stored.choices[0].finish_reason == "stop"
    assert stored.usage


def test_the_client_lists_completions_by_creation_and_filters_them(openai: OpenAI) -> None:
    first = complete(openai, "say: one", metadata={"topic": "plums", "place": "Bern"})
    second = complete(openai, "say: two", metadata={"topic": "plums"})
    third = complete(openai, "say: three", model="scripted/demo")

    every = [each.id for each in openai.chat.completions.list(limit=2)]
    newest = openai.chat.completions.list(order="desc", limit=1)

    assert every == [first.id, second.id, third.id]
    assert ([each.id for each in newest.data], newest.has_more) == ([third.id], True)
    assert [each.id for each in openai.chat.completions.list(metadata={"topic": "plums"})] == [first.id, second.id]
    both = {"topic": "plums", "place": "Bern"}
    assert [each.id for each in openai.chat.completions.list(metadata=both)] == [first.id]
    assert [each.id for each in openai.chat.completions.list(model="scripted/demo")] == [third.id]
    assert [each.id for each in openai.chat.completions.list(after=second.id)] == [third.id]


def test_the_client_replaces_metadata_and_deletes(openai: OpenAI, app_fixture: AppFixture) -> None:
    completion = complete(openai, "say: one", metadata={"topic": "plums"})

    updated = openai.chat.completions.update(completion.id, metadata={"mood": "calm"})
    deleted = openai.chat.completions.delete(completion.id)

    assert updated.to_dict()["metadata"] == {"mood": "calm"}
    assert (deleted.id, deleted.deleted, deleted.object) == (completion.id, True, "chat.completion.deleted")
    assert stored_records(app_fixture) == []
    for call in (openai.chat.completions.retrieve, openai.chat.completions.delete):
        with pytest.raises(NotFoundError, match="Chat completion"):
            call(completion.id)


def test_the_client_lists_the_messages_of_a_request(openai: OpenAI) -> None:
    parts: Any = [
        {"type": "text", "text": "say: Look"},
        {"type": "image_url", "image_url": {"url": "https://a.b/c.png"}},
    ]
    call: Any = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages: Any = [
        {"role": "system", "content": "Be brief.", "name": "editor"},
        {"role": "user", "content": parts},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "nothing"},
    ]
    completion = complete(openai, "", messages=messages)

    found = openai.chat.completions.messages.list(completion.id)
    rest = openai.chat.completions.messages.list(completion.id, after=found.data[1].id, limit=1)
    newest = openai.chat.completions.messages.list(completion.id, order="desc", limit=1)

    assert [each.id for each in found.data] == [f"{completion.id}-{place}" for place in range(4)]
    assert [(str(each.role), each.content) for each in found.data] == [
        ("system", "Be brief."),
        ("user", "say: Look"),
        ("assistant", None),
        ("tool", "nothing"),
    ]
    assert [each.content_parts is None for each in found.data] == [True, False, True, True]
    assert [part.type for part in found.data[1].content_parts or []] == ["text", "image_url"]
    assert found.data[2].tool_calls
    assert ([each.id for each in rest.data], rest.has_more) == ([f"{completion.id}-2"], True)
    assert [each.id for each in newest.data] == [f"{completion.id}-3"]
    with pytest.raises(NotFoundError, match="Message"):
        openai.chat.completions.messages.list(completion.id, after="other")


def test_llama_stacks_client_gets_the_messages_with_the_completion(client: LlamaStackClient) -> None:
    made: Any = [
        client.chat.completions.create(
            model="recorded/m", messages=[{"role": "user", "content": f"say: {word}"}], extra_body={"store": True}
        )
        for word in ("one", "two")
    ]

    listed = client.chat.completions.list(limit=1)
    stored = client.chat.completions.retrieve(made[0].id)

    assert [each.id for each in listed.data] == [made[1].id]
    assert (listed.has_more, listed.first_id, listed.last_id) == (True, made[1].id, made[1].id)
    assert stored.input_messages[0].role == "user"
    assert stored.choices[0].message.content == "one"


def test_an_empty_list_has_empty_ids(http: httpx.Client) -> None:
    empty = {"object": "list", "data": [], "first_id": "", "last_id": "", "has_more": False}

    assert http.get(f"{LLAMA_STACK}?limit=1").json() == empty
    assert http.get(CHAT).json() == empty


def test_a_completion_that_cannot_be_stored_is_an_error(openai: OpenAI, app_fixture: AppFixture) -> None:
    with (
        app_fixture.proxy.failing("PutItem"),
        pytest.raises(InternalServerError, match="could not be stored") as failed,
    ):
        complete(openai, "say: Hello")

    assert failed.value.status_code == 503
    assert stored_records(app_fixture) == []


def test_a_stream_that_cannot_be_stored_has_an_error_instead_of_its_end(
    openai: OpenAI, app_fixture: AppFixture
) -> None:
    finished: list[str | None] = []

    def read_all() -> None:
        with complete(openai, "say: Hello", stream=True) as stream:
            finished.extend(chunk.choices[0].finish_reason for chunk in stream)

    with app_fixture.proxy.failing("PutItem"), pytest.raises(APIError, match="could not be stored"):
        read_all()

    assert stored_records(app_fixture) == []
    assert set(finished) <= {None}


def test_a_completion_that_failed_is_not_stored(http: httpx.Client, app_fixture: AppFixture) -> None:
    body = {"model": "scripted/demo", "messages": says("fail: after 1 words\nsay: a b"), "store": True, "stream": True}

    text = http.post(CHAT, json=body).text

    assert json.loads(text.split("\n\n")[-3].removeprefix("data: "))["error"]["code"] == "model_error"
    assert stored_records(app_fixture) == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/chatcmpl_x"),
        ("DELETE", f"/chatcmpl_{'0' * 32}"),
        ("GET", f"/chatcmpl_{'0' * 32}/messages"),
        ("POST", f"/chatcmpl_{'0' * 32}"),
        ("GET", f"?after=chatcmpl_{'0' * 32}"),
    ],
)
def test_an_unknown_completion_is_not_found(http: httpx.Client, method: str, path: str) -> None:
    body: Any = {"metadata": {}} if method == "POST" else None

    assert_error(http.request(method, CHAT + path, json=body), 404, "chat_completion_not_found")


@pytest.mark.parametrize("body", [{}, {"metadata": {"a": 1}}, {"metadata": {str(n): "" for n in range(17)}}])
def test_invalid_metadata_is_refused(http: httpx.Client, body: dict[str, Any]) -> None:
    refused = http.post(f"{CHAT}/chatcmpl_{'0' * 32}", json=body)

    assert refused.status_code == 400
    assert refused.json()["error"]["param"].startswith("metadata")
