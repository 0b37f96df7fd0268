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
