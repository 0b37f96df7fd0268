"""Counting and compacting what a model is shown, by the `openai` package."""

from typing import Any

from openai import OpenAI

MODEL = "scripted/demo"


def test_tokens_are_counted(openai_client: OpenAI) -> None:
    counted = openai_client.responses.input_tokens.count(model=MODEL, input="One two three")

    response = openai_client.responses.create(model=MODEL, input="One two three", store=False)

    assert response.usage
    assert counted.input_tokens == response.usage.input_tokens == 3


def test_a_long_conversation_is_compacted(openai_client: OpenAI) -> None:
    first = openai_client.responses.create(model=MODEL, input="The word is plum")

    compacted = openai_client.responses.compact(model=MODEL, previous_response_id=first.id, input="Go on")
    window: list[Any] = [*compacted.output, {"role": "user", "content": "say: Gone on"}]
    response = openai_client.responses.create(model=MODEL, input=window)

    assert "compaction" in [item.type for item in compacted.output]
    assert response.output_text == "Gone on"
