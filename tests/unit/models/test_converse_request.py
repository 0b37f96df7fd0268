import json
from typing import Any

import pytest

from stint.domain.content import URL, ImageContentItem, ImageSource
from stint.domain.errors import InvalidRequest
from stint.domain.inference import (
    AssistantAnswer,
    Decoding,
    GrammarResponseFormat,
    InferenceRequest,
    JsonSchemaResponseFormat,
    SamplingParams,
    ToolResult,
    ToolSignature,
    UserInput,
)
from stint.domain.tools import ToolCall, ToolChoice
from stint.models.converse_request import write_converse

ADD = ToolSignature("add", "", {"type": "object", "properties": {}})


def written(model: str = "amazon.nova-pro-v1:0", **fields: Any) -> dict[str, Any]:
    return write_converse(InferenceRequest(model, fields.pop("messages", (UserInput("hi"),)), **fields))


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({}, {"temperature": 0.0}),
        ({"strategy": {"type": "top_p", "temperature": 0.7}}, {"temperature": 0.7, "topP": 0.95}),
        ({"strategy": {"type": "top_p", "temperature": None, "top_p": 0.5}}, {"topP": 0.5}),
        ({"max_tokens": 5, "stop": ["END"]}, {"temperature": 0.0, "maxTokens": 5, "stopSequences": ["END"]}),
        ({"max_tokens": 0, "stop": []}, {"temperature": 0.0}),
    ],
)
def test_sampling_is_the_inference_config(fields: dict[str, Any], sent: dict[str, Any]) -> None:
    assert written(decoding=SamplingParams.model_validate(fields).to_decoding())["inferenceConfig"] == sent


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        ("eu.amazon.nova-pro-v1:0", {"inferenceConfig": {"topK": 9}}),
        ("cohere.command-r-v1:0", {"k": 9}),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", {"top_k": 9}),
        ("arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc", {"top_k": 9}),
    ],
)
def test_top_k_is_named_as_the_family_names_it(model: str, sent: dict[str, Any]) -> None:
    params = SamplingParams.model_validate({"strategy": {"type": "top_k", "top_k": 9}})

    parameters = written(model, decoding=params.to_decoding())

    assert parameters["additionalModelRequestFields"] == sent
    assert "inferenceConfig" not in parameters


def test_a_repetition_penalty_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest, match="repetition_penalty") as caught:
        written(decoding=Decoding(repetition_penalty=1.1))

    assert caught.value.param == "sampling_params.repetition_penalty"


@pytest.mark.parametrize(
    ("choice", "sent"),
    [(ToolChoice.auto, None), (ToolChoice.required, {"any": {}}), ("add", {"tool": {"name": "add"}})],
)
def test_tool_choice(choice: ToolChoice | str, sent: Any) -> None:
    config = written(tools=(ADD,), tool_choice=choice)["toolConfig"]

    assert config.get("toolChoice") == sent
    assert config["tools"] == [{"toolSpec": {"name": "add", "inputSchema": {"json": ADD.parameters}}}]


def test_results_and_the_next_input_are_one_user_message_with_the_results_first() -> None:
    calls = tuple(ToolCall(call_id=f"c{n}", tool_name="add", arguments="{broken") for n in (1, 2))
    messages = (
        UserInput("Add"),
        AssistantAnswer("Moment", calls),
        ToolResult("c1", "add", "1"),
        ToolResult("c2", "add", "2"),
        UserInput("Thanks"),
    )

    sent = written(messages=messages, tools=(ADD,))["messages"]

    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert [next(iter(block)) for block in sent[1]["content"]] == ["text", "toolUse", "toolUse"]
    assert sent[1]["content"][1]["toolUse"]["input"] == {"invalid_arguments": "{broken"}
    assert [next(iter(block)) for block in sent[2]["content"]] == ["toolResult", "toolResult", "text"]


def test_an_image_by_address_is_refused_by_name() -> None:
    image = ImageContentItem(image=ImageSource(url=URL(uri="https://example.com/a.png")))

    with pytest.raises(InvalidRequest, match=r"send the bytes of https://example.com/a.png") as caught:
        written(messages=(UserInput(image),))

    assert caught.value.param == "messages"


def test_a_json_schema_is_a_closed_schema_as_text() -> None:
    schema = {"title": "Answer", "type": "object", "properties": {"a": {"type": "string"}}}

    text_format = written(response_format=JsonSchemaResponseFormat(json_schema=schema))["outputConfig"]["textFormat"]

    definition = text_format["structure"]["jsonSchema"]
    assert text_format["type"] == "json_schema"
    assert definition["name"] == "Answer"
    assert json.loads(definition["schema"]) == {**schema, "additionalProperties": False}


def test_a_grammar_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="grammar"):
        written(response_format=GrammarResponseFormat(bnf={}))
