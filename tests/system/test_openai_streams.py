"""Streams as the `openai` package reads them, those of background responses too."""

import time
from collections.abc import Callable

import pytest
from openai import APIError, OpenAI
from openai.types.responses import FunctionToolParam, Response, ResponseStreamEvent
from pydantic import BaseModel

MODEL = "scripted/demo"
TIME: FunctionToolParam = {
    "type": "function",
    "name": "get_time",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": None,
}


class Sum(BaseModel):
    a: int
    b: int


def text_of(events: list[ResponseStreamEvent]) -> str:
    return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def wait_for(read: Callable[[], Response], *statuses: str) -> Response:
    deadline = time.monotonic() + 20
    while (response := read()).status not in statuses:
        assert time.monotonic() < deadline, f"still {response.status}"
        time.sleep(0.1)
    return response


def test_the_helper_accumulates_a_text(openai_client: OpenAI) -> None:
    with openai_client.responses.stream(model=MODEL, input="say: Hello there") as stream:
        snapshots = [event.snapshot for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()

    assert snapshots == ["Hello ", "Hello there"]
    assert final.output_text == "Hello there"
    assert openai_client.responses.retrieve(final.id).output_text == "Hello there"


def test_the_helper_accumulates_calls(openai_client: OpenAI) -> None:
    text = "Please get_time of Bern"
    with openai_client.responses.stream(model=MODEL, input=text, tools=[TIME]) as stream:
        deltas = [event.delta for event in stream if event.type == "response.function_call_arguments.delta"]
        (call,) = stream.get_final_response().output

    assert call.type == "function_call"
    assert call.arguments == "".join(deltas) == '{"city": "Bern"}'


def test_the_helper_parses_what_is_streamed(openai_client: OpenAI) -> None:
    with openai_client.responses.stream(model=MODEL, input="Add 3 and 4", text_format=Sum) as stream:
        final = stream.get_final_response()

    assert final.output_parsed == Sum(a=3, b=4)


def test_reasoning_and_refusals_are_streamed(openai_client: OpenAI) -> None:
    asked = openai_client.responses.create(
        model=MODEL,
        input="think: Not this. | \nrefuse: I would rather not",
        reasoning={"effort": "low", "summary": "auto"},
        stream=True,
    )

    names = {event.type for event in asked}

    assert {"response.refusal.delta", "response.refusal.done", "response.completed"} <= names
    assert any(name.startswith("response.reasoning_") for name in names)


def test_a_client_that_hangs_up_on_the_last_event_finds_the_response(openai_client: OpenAI) -> None:
    with openai_client.responses.create(model=MODEL, input="say: Hello there", stream=True) as stream:
        last = next(event for event in stream if event.type == "response.completed")

    assert openai_client.responses.retrieve(last.response.id) == last.response


def test_a_client_that_hangs_up_early_finds_the_response_later(openai_client: OpenAI) -> None:
    with openai_client.responses.create(model=MODEL, input="long: 40 words", stream=True) as stream:
        created = next(event for event in stream if event.type == "response.created")

    stored = wait_for(lambda: openai_client.responses.retrieve(created.response.id), "completed")

    assert len(stored.output_text.split()) == 40


def test_a_model_that_fails_in_the_middle_is_an_error(openai_client: OpenAI) -> None:
    events: list[ResponseStreamEvent] = []

    with (
        pytest.raises(APIError, match="failed after 3 words"),
        openai_client.responses.create(model=MODEL, input="fail: after 3 words", stream=True) as stream,
    ):
        events.extend(stream)

    failed = openai_client.responses.retrieve(created_of(events).id)
    assert failed.status == "failed"
    assert failed.error
    assert "failed after 3 words" in failed.error.message


def created_of(events: list[ResponseStreamEvent]) -> Response:
    first = events[0]
    assert first.type == "response.created"
    return first.response
