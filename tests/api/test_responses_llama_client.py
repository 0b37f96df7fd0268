"""Responses by the unmodified llama-stack-client, which knows them at Llama Stack's address."""

from typing import Any

import httpx
import pytest
from llama_stack_client import BadRequestError, LlamaStackClient, NotFoundError
from tests.api.app_fixture import AppFixture
from tests.api.responses_client import UNKNOWN, WEATHER

from stint.domain.retrieval import FoundChunk

MODEL = "scripted/demo"


def test_a_response_is_created_read_listed_and_continued(client: LlamaStackClient) -> None:
    created = client.responses.create(input="say: Hello", model=MODEL, instructions="Be brief.", store=True)
    again = client.responses.create(input="say: Again", model=MODEL, previous_response_id=created.id)

    retrieved = client.responses.retrieve(created.id)
    listed: Any = client.responses.list(limit=10, order="asc", model=MODEL)
    items: Any = client.responses.input_items.list(again.id, limit=10, order="asc")

    texts = [item["content"][0]["text"] for item in (each.to_dict() for each in items.data)]
    assert retrieved == created
    assert [each.id for each in listed.data] == [created.id, again.id]
    assert texts == ["say: Hello", "Hello", "say: Again"]


def test_a_stream_is_read_to_its_end(client: LlamaStackClient) -> None:
    events: list[Any] = list(client.responses.create(input="say: one two", model=MODEL, stream=True))

    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert deltas == ["one ", "two"]
    assert events[-1].type == "response.completed"
    assert events[-1].response.id == events[0].response.id


def test_a_streamed_completion_is_read_to_its_end(client: LlamaStackClient) -> None:
    chunks: Any = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "say: one two"}], stream=True
    )

    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "one two"


@pytest.mark.parametrize(
    ("name", "marked"),
    [
        ("LlamaStackClient/JS 0.2.12", False),
        ("AsyncLlamaStackClient/Python 0.7.5", False),
        ("OpenAI/JS 7.55.0", True),
        ("curl/8.5.0", True),
    ],
)
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("responses", {"input": "say: Hi"}),
        ("chat/completions", {"messages": [{"role": "user", "content": "say: Hi"}]}),
    ],
)
def test_streams_have_no_mark_for_a_client_of_this_name(
    http: httpx.Client, path: str, body: dict[str, Any], name: str, marked: bool
) -> None:
    for base in ("/v1", "/v1/openai/v1"):
        answer = http.post(f"{base}/{path}", json={"model": MODEL, "stream": True} | body, headers={"user-agent": name})

        assert "Hi" in answer.text
        assert answer.text.endswith("data: [DONE]\n\n") == marked


def test_tools_and_formats_go_round(client: LlamaStackClient) -> None:
    tools: Any = [WEATHER | {"strict": None}]
    asked = client.responses.create(input="call: get_weather {}", model=MODEL, tools=tools)
    call: Any = asked.output[0]
    output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    answered: Any = client.responses.create(
        input=[output], model=MODEL, previous_response_id=asked.id, tools=tools, temperature=0.5, max_infer_iters=3
    )

    assert call.name == "get_weather"
    assert answered.output[0].content[0].text == "get_weather answered: sunny"


def test_refusals_are_exceptions(client: LlamaStackClient) -> None:
    with pytest.raises(NotFoundError, match=UNKNOWN):
        client.responses.retrieve(UNKNOWN)
    with pytest.raises(BadRequestError, match="previous_response_not_found"):
        client.responses.create(input="Hello", model=MODEL, previous_response_id=UNKNOWN)


def test_a_file_search_is_read_with_its_results(client: LlamaStackClient, app_fixture: AppFixture) -> None:
    store_id, file_id = f"vs_{'1' * 32}", f"file-{'a' * 32}"
    app_fixture.knowledge.chunks = [FoundChunk(store_id, file_id, 0.9, "Llamas hum.", "llamas.md")]

    created: Any = client.responses.create(
        model=MODEL,
        input='call: file_search {"query": "llamas"}',
        tools=[{"type": "file_search", "vector_store_ids": [store_id]}],
        extra_body={"include": ["file_search_call.results"]},
    )
    app_fixture.knowledge.chunks = []

    call, message = created.output
    assert (call.type, call.queries, call.status) == ("file_search_call", ["llamas"], "completed")
    assert call.results[0]["text"] == "Llamas hum."
    assert "Llamas hum." in message.content[0].text
