import json
from dataclasses import replace
from typing import Any

import pytest

from stint.domain.content import DetailedImage, ImageContentItem, ImageSource, TextContentItem
from stint.domain.errors import InvalidRequest
from stint.domain.inference import (
    AssistantAnswer,
    Decoding,
    GrammarResponseFormat,
    InferenceRequest,
    JsonSchemaResponseFormat,
    ModelMessage,
    ReasoningOptions,
    SystemText,
    ToolResult,
    ToolSignature,
    UserInput,
)
from stint.domain.llama_stack.sampling import SamplingParams
from stint.domain.tools import ToolCall, ToolChoice
from stint.models.openai.chat_completions import ChatCompletions

GIF = ImageContentItem(image=ImageSource(data="R0lGODlh"))
PART = {"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGODlh"}}
ADD = ToolSignature("add", "", {"type": "object", "properties": {}})


def written(*messages: ModelMessage, **fields: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(
        ChatCompletions().write(InferenceRequest("m", messages or (UserInput("hi"),), **fields), frozenset())
    )
    return body


def call(call_id: str, arguments: dict[str, Any] | str, arguments_json: str | None = None) -> ToolCall:
    return ToolCall(call_id=call_id, tool_name="add", arguments=arguments, arguments_json=arguments_json)


class TestMessages:
    def test_text_alone_is_a_string_and_anything_else_is_parts(self) -> None:
        text = TextContentItem(text="a")

        messages = written(
            SystemText("s"), UserInput("a"), UserInput([text]), UserInput([text, GIF]), UserInput(GIF), UserInput([])
        )["messages"]

        assert [message["content"] for message in messages] == [
            "s",
            "a",
            "a",
            [{"type": "text", "text": "a"}, PART],
            [PART],
            "",
        ]

    def test_calls_and_results_are_bound_by_id(self) -> None:
        answer = AssistantAnswer("Moment", (call("c1", {"a": 1}, '{"a":1}'), call("c2", {"a": 2})))

        messages = written(answer, ToolResult("c1", "add", "1"), ToolResult("c2", "add", "2"))["messages"]

        assert messages[0]["content"] == "Moment"
        assert [(each["id"], each["function"]["arguments"]) for each in messages[0]["tool_calls"]] == [
            ("c1", '{"a":1}'),
            ("c2", '{"a": 2}'),
        ]
        assert messages[1:] == [
            {"role": "tool", "tool_call_id": "c1", "content": "1"},
            {"role": "tool", "tool_call_id": "c2", "content": "2"},
        ]

    def test_an_answer_without_text_has_null_beside_calls_and_a_string_alone(self) -> None:
        messages = written(AssistantAnswer("", (call("c1", {}),)), AssistantAnswer(""))["messages"]

        assert [message["content"] for message in messages] == [None, ""]

    @pytest.mark.parametrize(
        ("arguments", "sent"),
        [('{"a": ', '{"invalid_arguments": "{\\"a\\": "}'), ("[1]", '{"invalid_arguments": "[1]"}'), ("", "{}")],
    )
    def test_arguments_that_were_no_object_go_back_as_one(self, arguments: str, sent: str) -> None:
        messages = written(AssistantAnswer("", (call("c1", arguments, arguments),)))["messages"]

        assert messages[0]["tool_calls"][0]["function"]["arguments"] == sent

    def test_images_of_tools_follow_behind_all_results(self) -> None:
        answer = AssistantAnswer("", (call("c1", {}), call("c2", {})))
        results = (ToolResult("c1", "chart", GIF), ToolResult("c2", "add", [TextContentItem(text="2"), GIF]))

        messages = written(answer, *results, UserInput("So?"))["messages"]

        assert [message["role"] for message in messages] == ["assistant", "tool", "tool", "user", "user"]
        assert [message["content"] for message in messages[1:3]] == ["(the image follows)", "2"]
        assert messages[3]["content"] == [
            {"type": "text", "text": "From chart:"},
            PART,
            {"type": "text", "text": "From add:"},
            PART,
        ]

    def test_the_detail_of_an_image_is_passed_on(self) -> None:
        image = ImageContentItem(image=DetailedImage(data="R0lGODlh", detail="low"))

        messages = written(UserInput([image, GIF]))["messages"]

        assert messages[0]["content"] == [
            {"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGODlh", "detail": "low"}},
            PART,
        ]


class TestTools:
    @pytest.mark.parametrize(
        ("choice", "sent"),
        [
            (ToolChoice.auto, None),
            (ToolChoice.required, "required"),
            ("add", {"type": "function", "function": {"name": "add"}}),
        ],
    )
    def test_tool_choice(self, choice: ToolChoice | str, sent: Any) -> None:
        body = written(tools=(ADD,), tool_choice=choice)

        assert body.get("tool_choice") == sent
        assert body["tools"] == [{"type": "function", "function": {"name": "add", "parameters": ADD.parameters}}]

    @pytest.mark.parametrize("tools", [(), (ADD,)])
    def test_choice_none_and_no_tools_send_neither(self, tools: tuple[ToolSignature, ...]) -> None:
        body = written(tools=tools, tool_choice=ToolChoice.none if tools else ToolChoice.required)

        assert not {"tools", "tool_choice"} & set(body)

    def test_strictness_and_calls_at_once_are_passed_on(self) -> None:
        body = written(tools=(replace(ADD, strict=True), replace(ADD, strict=False)), parallel_tool_calls=False)

        assert [tool["function"].get("strict") for tool in body["tools"]] == [True, None]
        assert body["parallel_tool_calls"] is False
        assert "parallel_tool_calls" not in written(parallel_tool_calls=False)


class TestReasoning:
    @pytest.mark.parametrize(("options", "sent"), [(ReasoningOptions("low"), "low"), (ReasoningOptions(), None)])
    def test_an_effort_is_sent_when_there_is_one(self, options: ReasoningOptions, sent: str | None) -> None:
        assert written(reasoning=options).get("reasoning_effort") == sent


class TestSampling:
    def test_openais_own_parameters_are_sent_by_their_names(self) -> None:
        given = {"frequency_penalty": 0.5, "presence_penalty": -0.5, "seed": 7, "temperature": 0.2}

        body = written(decoding=Decoding(frequency_penalty=0.5, presence_penalty=-0.5, seed=7, temperature=0.2))

        assert {name: body[name] for name in given} == given

    @pytest.mark.parametrize(
        ("fields", "sent"),
        [
            ({}, {"temperature": 0.0}),
            ({"strategy": {"type": "top_p", "temperature": 0.7}}, {"temperature": 0.7, "top_p": 0.95}),
            ({"strategy": {"type": "top_p", "temperature": None, "top_p": None}}, {}),
            ({"strategy": {"type": "top_k", "top_k": 40}}, {"top_k": 40}),
            ({"repetition_penalty": 1.1}, {"temperature": 0.0, "repetition_penalty": 1.1}),
            ({"max_tokens": 5, "stop": ["END"]}, {"temperature": 0.0, "max_tokens": 5, "stop": ["END"]}),
            ({"max_tokens": None, "stop": []}, {"temperature": 0.0}),
        ],
    )
    def test_every_strategy_is_mapped(self, fields: dict[str, Any], sent: dict[str, Any]) -> None:
        body = written(decoding=SamplingParams.model_validate(fields).to_decoding())

        assert {
            name: body[name] for name in body if name not in ("model", "messages", "stream", "stream_options")
        } == sent


class TestResponseFormat:
    def test_a_schema_is_wrapped_with_a_name(self) -> None:
        body = written(response_format=JsonSchemaResponseFormat(json_schema={"type": "object"}))

        schema = {"name": "response", "schema": {"type": "object"}}
        assert body["response_format"] == {"type": "json_schema", "json_schema": schema}

    def test_a_grammar_is_refused(self) -> None:
        with pytest.raises(InvalidRequest, match="grammar"):
            written(response_format=GrammarResponseFormat(bnf={}))
