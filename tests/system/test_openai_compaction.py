"""Counting and compacting what a model is shown, by the `openai` package."""

from typing import Any

import pytest
from openai import OpenAI

MODEL = "scripted/demo"


def test_tokens_are_counted(openai_client: OpenAI) -> None:
    counted = openai_client.responses.input_tokens.count(model=MODEL, input="One two three")

    response = openai_client.responses.create(model=MODEL, input="One two three", store=False)

    assert response.usage
    assert counted.input_tokens == response.usage.input_tokens == 3


# The package documents user messages in this output, but types them as the assistant's.
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")
def test_a_long_conversation_is_compacted(openai_client: OpenAI) -> None:
    first = openai_client.responses.create(model=MODEL, input="The word is plum")

    compacted = openai_client.responses.compact(model=MODEL, previous_response_id=first.id, input="Go on")
    window: list[Any] = [*compacted.output, {"role": "user", "content": "say: Gone on"}]
    response = openai_client.responses.create(model=MODEL, input=window)

    assert [item.type for item in compacted.output] == ["message", "message", "compaction"]
    assert response.output_text == "Gone on"


def test_a_history_above_the_threshold_is_compacted_in_the_stream(openai_client: OpenAI) -> None:
    first = openai_client.responses.create(model=MODEL, input="plum " * 1_000)

    with openai_client.responses.stream(
        model=MODEL,
        previous_response_id=first.id,
        input="say: Gone on",
        context_management=[{"type": "compaction", "compact_threshold": 1_000}],
    ) as stream:
        events = [event.type for event in stream]
        response = stream.get_final_response()

    assert [item.type for item in response.output] == ["compaction", "message"]
    assert response.output_text == "Gone on"
    assert events[2:4] == ["response.output_item.added", "response.output_item.done"]
