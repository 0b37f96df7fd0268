import base64
from typing import Any

import pytest

from stint.documents.document_reader import DocumentReader
from stint.documents.served import InlineDocument
from stint.domain.content import DetailedImage, ImageContentItem, TextContentItem
from stint.domain.errors import InvalidRequest
from stint.domain.inference import (
    AssistantAnswer,
    Decoding,
    InferenceRequest,
    ModelMessage,
    Reasoning,
    ReasoningOptions,
    SystemText,
    ToolResult,
    ToolSignature,
    UserInput,
)
from stint.domain.openai.chat import ChatCompletionRequest
from stint.domain.tools import ToolCall, ToolChoice
from stint.loop.transcript import NO_RESULT
from stint.models.json_schemas import read_schema
from stint.services.inference.chat.request import read_request

PNG = "data:image/png;base64,iVBORw0KGgo="
CALL: dict[str, Any] = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
CALLED = ToolCall(call_id="call_1", tool_name="f", arguments={"a": 1}, arguments_json='{"a": 1}')


async def fetch(url: str) -> InlineDocument:
    raise AssertionError(url)


async def check_url(url: str) -> None:
    if "forbidden" in url:
        raise InvalidRequest("The URL may not be called.", code="url_not_allowed")


async def read(**fields: Any) -> InferenceRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]} | fields
    return await read_request(ChatCompletionRequest.model_validate(body), "own-id", DocumentReader(fetch, check_url))


async def messages(*said: dict[str, Any]) -> tuple[ModelMessage, ...]:
    return (await read(messages=list(said))).messages


async def refused(**fields: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        await read(**fields)
    return caught.value


def function(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name} | fields}


async def test_messages_are_told_to_the_model_in_order() -> None:
    assert await messages(
        {"role": "system", "content": "Be brief.", "name": "editor"},
        {"role": "developer", "content": [{"type": "text", "text": "Be kind."}, {"type": "text", "text": "Always."}]},
        {"role": "user", "content": "hi", "name": "Ann"},
        {"role": "assistant", "content": "I look.", "tool_calls": [CALL], "name": "Bob"},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "rain"}]},
        {"role": "assistant", "content": None, "refusal": "No.", "reasoning_content": "Should I?"},
    ) == (
        SystemText("Be brief.", "editor"),
        SystemText("Be kind.\nAlways."),
        UserInput("hi", "Ann"),
        AssistantAnswer("I look.", (CALLED,), name="Bob"),
        ToolResult("call_1", "f", "rain"),
        AssistantAnswer("No.", (), Reasoning(text="Should I?")),
    )


async def test_a_call_that_nothing_answers_has_no_result() -> None:
    said = await messages(
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "user", "content": "go on"},
    )

    assert said[1:] == (AssistantAnswer("", (CALLED,)), ToolResult("call_1", "f", NO_RESULT), UserInput("go on"))


@pytest.mark.parametrize(
    "before",
    [
        (),
        ({"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "call_1", "content": "once"}),
        ({"role": "assistant", "tool_calls": [CALL | {"id": "call_2"}]},),
    ],
)
async def test_an_answer_to_no_open_call_is_refused_by_its_place(before: tuple[dict[str, Any], ...]) -> None:
    answer = {"role": "tool", "tool_call_id": "call_1", "content": "rain"}

    error = await refused(messages=[*before, answer])

    assert error.param == f"messages[{len(before)}].tool_call_id"
    assert "There is no unanswered call 'call_1'" in error.message


async def test_images_and_files_stand_where_they_were() -> None:
    data = base64.b64encode(b"<p>Bees</p>").decode()
    [said] = await messages(
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
                {"type": "file", "file": {"filename": "bees.html", "file_data": data}},
                {"type": "text", "text": "what?"},
            ],
        }
    )

    assert isinstance(said, UserInput)
    assert isinstance(said.content, list)
    image, file, text = said.content
    assert isinstance(image, ImageContentItem)
    assert image.image.url
    assert image.image.url.uri == PNG
    assert isinstance(image.image, DetailedImage)
    assert image.image.detail == "low"
    assert isinstance(file, TextContentItem)
    assert file.text.startswith("File bees.html:\n<document boundary=")
    assert "\nBees\n" in file.text
    assert text == TextContentItem(text="what?")


@pytest.mark.parametrize(
    ("part", "code", "param"),
    [
        ({"type": "image_url", "image_url": {"url": "https://forbidden/x"}}, "url_not_allowed", "image_url.url"),
        ({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}, "invalid_request", "image_url.url"),
        ({"type": "file", "file": {"file_data": "AAAA"}}, "unsupported_document", "file.file_data"),
    ],
)
async def test_what_cannot_be_seen_or_read_is_refused_by_its_place(part: dict[str, Any], code: str, param: str) -> None:
    content = [{"type": "text", "text": "look"}, part]

    error = await refused(messages=[{"role": "user", "content": "hi"}, {"role": "user", "content": content}])

    assert (error.code, error.param) == (code, f"messages[1].content[1].{param}")


async def test_options_are_passed_on() -> None:
    asked = await read(
        temperature=0.5, max_completion_tokens=9, stop="end", seed=7, parallel_tool_calls=False, reasoning_effort="low"
    )

    assert asked.model == "own-id"
    assert asked.decoding == Decoding(temperature=0.5, max_tokens=9, stop=("end",), seed=7)
    assert asked.parallel_tool_calls is False
    assert asked.reasoning == ReasoningOptions(effort="low")
    assert (await read()).reasoning is None


async def test_functions_are_tools() -> None:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    tools = [function("f", description="Does.", parameters=parameters, strict=True), function("g")]

    asked = await read(tools=tools)

    assert asked.tools == (
        ToolSignature("f", "Does.", parameters, strict=True),
        ToolSignature("g", "", {"type": "object", "properties": {}}),
    )
    assert asked.tool_choice is ToolChoice.auto


@pytest.mark.parametrize(
    ("choice", "seen", "chosen"),
    [
        ("none", ["f", "g"], ToolChoice.none),
        ("required", ["f", "g"], ToolChoice.required),
        ({"type": "function", "function": {"name": "g"}}, ["f", "g"], "g"),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "g"}}]},
            },
            ["g"],
            ToolChoice.required,
        ),
    ],
)
async def test_the_choice_of_tools_is_passed_on(choice: Any, seen: list[str], chosen: str) -> None:
    asked = await read(tools=[function("f"), function("g")], tool_choice=choice)

    assert ([tool.name for tool in asked.tools], asked.tool_choice) == (seen, chosen)


async def test_two_functions_of_one_name_are_refused() -> None:
    error = await refused(tools=[function("f"), function("f")])

    assert (error.code, error.param) == ("duplicate_tool", "tools")


async def test_a_form_of_the_answer_is_passed_on() -> None:
    schema = {"type": "object", "properties": {"day": {"type": "string"}}}
    named = {"name": "plan", "schema": schema, "strict": True, "description": "A plan."}

    strict = await read(response_format={"type": "json_schema", "json_schema": named})
    loose = await read(response_format={"type": "json_object"})

    assert strict.response_format
    found = read_schema(strict.response_format)
    assert (found.name, found.schema, found.strict) == ("plan", schema, True)
    assert loose.response_format
    assert read_schema(loose.response_format).schema == {"type": "object"}
    assert (await read(response_format={"type": "text"})).response_format is None


async def test_a_schema_that_is_none_is_refused() -> None:
    named = {"name": "plan", "schema": {"type": "nonsense"}}

    error = await refused(response_format={"type": "json_schema", "json_schema": named})

    assert (error.code, error.param) == ("invalid_json_schema", "response_format.json_schema.schema")
