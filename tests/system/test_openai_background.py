"""Background responses and their streams as the `openai` package sees them."""

import time
from collections.abc import Callable
from typing import Any

from openai import OpenAI
from openai.types.responses import Response, ResponseCreatedEvent, ResponseStreamEvent

MODEL = "scripted/demo"


def wait_for(read: Callable[[], Response], *statuses: str) -> Response:
    deadline = time.monotonic() + 60
    while (response := read()).status not in statuses:
        assert time.monotonic() < deadline, f"still {response.status}"
        time.sleep(0.1)
    return response


def text_of(events: list[ResponseStreamEvent]) -> str:
    return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def test_a_background_response_is_polled(openai_client: OpenAI) -> None:
    queued = openai_client.responses.create(model=MODEL, input="long: 30 words", background=True)

    done = wait_for(lambda: openai_client.responses.retrieve(queued.id), "completed", "failed")

    assert queued.status == "queued"
    assert queued.output == []
    assert done.status == "completed"
    assert done.background is True
    assert len(done.output_text.split()) == 30


def test_a_background_response_is_cancelled(openai_client: OpenAI) -> None:
    queued = openai_client.responses.create(model=MODEL, input="slow: 600", background=True)
    wait_for(lambda: openai_client.responses.retrieve(queued.id), "in_progress")

    cancelled = openai_client.responses.cancel(queued.id)
    again = openai_client.responses.cancel(queued.id)

    assert cancelled.status == again.status == "cancelled"
    assert openai_client.responses.retrieve(queued.id).status == "cancelled"


def test_a_foreground_response_is_cancelled_from_another_connection(openai_client: OpenAI) -> None:
    with openai_client.responses.create(model=MODEL, input="slow: 600", stream=True) as stream:
        events = iter(stream)
        created = next(events)
        assert isinstance(created, ResponseCreatedEvent)

        cancelled = openai_client.responses.cancel(created.response.id)
        last = list(events)[-1]

    assert last.type == "response.failed"
    assert last.response.status == cancelled.status == "cancelled"
    assert openai_client.responses.cancel(created.response.id) == cancelled


def test_a_background_stream_is_left_and_taken_up_again(openai_client: OpenAI) -> None:
    seen: list[ResponseStreamEvent] = []
    with openai_client.responses.create(model=MODEL, input="long: 60 words", background=True, stream=True) as stream:
        for event in stream:
            seen.append(event)
            if event.type == "response.output_text.delta":
                break
    assert isinstance(seen[0], ResponseCreatedEvent)
    created, last = seen[0].response, seen[-1].sequence_number

    rest = list(openai_client.responses.retrieve(created.id, stream=True, starting_after=last))
    whole = list(openai_client.responses.retrieve(created.id, stream=True))

    assert rest[0].sequence_number == last + 1
    assert rest[-1].type == "response.completed"
    assert [event.to_dict() for event in whole[: len(seen)]] == [event.to_dict() for event in seen]
    assert [event.to_dict() for event in whole[len(seen) :]] == [event.to_dict() for event in rest]
    assert text_of(whole) == openai_client.responses.retrieve(created.id).output_text


def test_the_helper_takes_up_a_background_stream(openai_client: OpenAI) -> None:
    queued = openai_client.responses.create(model=MODEL, input="long: 20 words", background=True)

    wait_for(lambda: openai_client.responses.retrieve(queued.id), "completed")
    with openai_client.responses.stream(response_id=queued.id, starting_after=3) as stream:
        numbers = [event.sequence_number for event in stream]
        final: Any = stream.get_final_response()

    assert numbers[0] == 4
    assert len(final.output_text.split()) == 20


def test_a_stream_ends_when_its_response_is_cancelled(openai_client: OpenAI) -> None:
    events: list[ResponseStreamEvent] = []
    with openai_client.responses.create(model=MODEL, input="long: 20000 words", background=True, stream=True) as stream:
        for event in stream:
            events.append(event)
            if len(events) == 8:
                assert isinstance(events[0], ResponseCreatedEvent)
                openai_client.responses.cancel(events[0].response.id)

    final = [event.response for event in events if event.type in ("response.failed", "response.incomplete")]
    assert [response.status for response in final] == ["cancelled"]
    assert len(text_of(events).split()) < 20_000
    kept = openai_client.responses.retrieve(final[0].id)
    assert [item.status for item in kept.output if item.type == "message"] == ["incomplete"]
    assert kept.output_text == text_of(events)


def test_a_conversation_waits_for_its_background_response(openai_client: OpenAI) -> None:
    conversation = openai_client.conversations.create().id
    queued = openai_client.responses.create(
        model=MODEL, input="long: 20 words", background=True, conversation=conversation
    )

    wait_for(lambda: openai_client.responses.retrieve(queued.id), "completed")
    items = list(openai_client.conversations.items.list(conversation))

    assert [item.type for item in items] == ["message", "message"]
