"""Requests to the Responses API. The fake server checks each, as OpenAI and Open Responses would."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest
from tests.openresponses.watch import take_complaints
from tests.servers.chat_completions import error
from tests.servers.model_responses import ModelResponsesServer, message, stream, thought
from tests.servers.scripted_http import Reply
from tests.unit.models.openai_responses.calling import (
    ADD,
    answer_of,
    asked,
    collect,
    connect,
    continued,
    read,
    text_in,
)

from stint.domain.content import URL, DetailedImage, ImageContentItem, ImageSource, TextContentItem
from stint.domain.errors import InvalidRequest
from stint.domain.inference import (
    AssistantAnswer,
    Decoding,
    GrammarResponseFormat,
    JsonObjectResponseFormat,
    JsonSchemaResponseFormat,
    ReasoningOptions,
    SystemText,
    ToolResult,
    ToolSignature,
    UserInput,
)
from stint.domain.tools import ToolCall, ToolChoice
from stint.models.port import CountNeedsAnswer

GIF = ImageContentItem(image=ImageSource(data="R0lGODlh"))
URL_IMAGE = ImageContentItem(image=DetailedImage(url=URL(uri="https://example.com/a.png"), detail="high"))
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}


async def sent(server: ModelResponsesServer, *messages: Any, **fields: Any) -> dict[str, Any]:
    """Return the body of a request."""
    await read(server, None, asked(*messages, **fields))
    body: dict[str, Any] = server.bodies[-1]
    return body


async def test_a_plain_request_has_only_what_it_needs(server: ModelResponsesServer) -> None:
    assert await sent(server) == {
        "model": "demo",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "input": [{"type": "message", "role": "user", "content": "Hello you"}],
    }


async def test_a_conversation_is_items(server: ModelResponsesServer) -> None:
    call = ToolCall(call_id="c1", tool_name="add", arguments={"a": 1}, arguments_json='{ "a":1}')
    begun = (SystemText("Be kind."), UserInput("Hi", "Ann"))
    told = (*begun, AssistantAnswer("Wait", (call,)), ToolResult("c1", "add", "3"))

    body = await sent(server, *told, tools=(ADD,))

    assert body["input"] == [
        {"type": "message", "role": "system", "content": "Be kind."},
        {"type": "message", "role": "user", "content": "Ann: Hi"},
        {"type": "message", "role": "assistant", "content": "Wait"},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{ "a":1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "3"},
    ]


async def test_images_are_in_messages_and_in_the_results_of_tools(server: ModelResponsesServer) -> None:
    call = ToolCall(call_id="c1", tool_name="add", arguments={})
    content: list[TextContentItem | ImageContentItem] = [TextContentItem(text="Look:"), GIF, URL_IMAGE]
    told = (UserInput(content), AssistantAnswer("", (call,)), ToolResult("c1", "add", [GIF]))

    body = await sent(server, *told, tools=(ADD,))

    gif = {"type": "input_image", "image_url": "data:image/gif;base64,R0lGODlh", "detail": "auto"}
    shown = {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "high"}
    assert body["input"][0]["content"] == [{"type": "input_text", "text": "Look:"}, gif, shown]
    assert body["input"][2]["output"] == [gif]


async def test_an_image_that_cannot_be_read_is_refused(server: ModelResponsesServer) -> None:
    image = ImageContentItem(image=ImageSource(data="bm8gaW1hZ2U="))

    with pytest.raises(InvalidRequest):
        await sent(server, UserInput([image]))

    assert server.requests == []


async def test_tools_are_not_strict_unless_they_say_so(server: ModelResponsesServer) -> None:
    """OpenAI takes a tool of this API as strict by default, and would make optional parameters required."""
    strict = ToolSignature("exact", "", SCHEMA, strict=True)

    body = await sent(server, tools=(ADD, strict))

    assert body["tools"] == [
        {"type": "function", "name": "add", "description": "Adds", "parameters": ADD.parameters, "strict": False},
        {"type": "function", "name": "exact", "parameters": SCHEMA, "strict": True},
    ]


@pytest.mark.parametrize(
    ("choice", "written"),
    [
        (ToolChoice.auto, None),
        (ToolChoice.required, "required"),
        ("add", {"type": "function", "name": "add"}),
    ],
)
async def test_a_choice_has_the_form_of_the_api(server: ModelResponsesServer, choice: Any, written: Any) -> None:
    body = await sent(server, tools=(ADD,), tool_choice=choice, parallel_tool_calls=False)

    assert (body.get("tool_choice"), body["parallel_tool_calls"]) == (written, False)


async def test_without_a_call_to_make_there_are_no_tools(server: ModelResponsesServer) -> None:
    for fields in ({"tools": (ADD,), "tool_choice": ToolChoice.none}, {"tool_choice": ToolChoice.required}):
        body = await sent(server, parallel_tool_calls=True, **fields)

        assert {"tools", "tool_choice", "parallel_tool_calls"}.isdisjoint(body)


async def test_structured_output_is_a_format_of_the_text(server: ModelResponsesServer) -> None:
    described = {"name": "sum", "description": "A sum", "schema": SCHEMA, "strict": True}

    plain = await sent(server, response_format=JsonSchemaResponseFormat(json_schema=SCHEMA), verbosity="low")
    named = await sent(server, response_format=JsonSchemaResponseFormat(json_schema=described))
    whole = await sent(server, response_format=JsonObjectResponseFormat())

    assert plain["text"]["verbosity"] == "low"
    assert (plain["text"]["format"]["schema"], plain["text"]["format"]["strict"]) == (SCHEMA, True)
    assert named["text"]["format"] == {"type": "json_schema", **described}
    assert whole["text"] == {"format": {"type": "json_object"}}


async def test_a_grammar_is_refused(server: ModelResponsesServer) -> None:
    with pytest.raises(InvalidRequest):
        await sent(server, response_format=GrammarResponseFormat(bnf={}))


async def test_decoding_and_reasoning_have_their_fields(server: ModelResponsesServer) -> None:
    decoding = Decoding(temperature=0.5, top_p=0.9, max_tokens=100)

    body = await sent(server, decoding=decoding, reasoning=ReasoningOptions("minimal", "detailed"))

    assert (body["temperature"], body["top_p"], body["max_output_tokens"]) == (0.5, 0.9, 100)
    assert body["reasoning"] == {"effort": "minimal", "summary": "detailed"}
    assert "reasoning" not in await sent(server, reasoning=ReasoningOptions())


LACKING: dict[str, tuple[Any, str]] = {
    "stop": (("END",), "stop"),
    "seed": (7, "seed"),
    "top_k": (5, "sampling_params"),
    "repetition_penalty": (1.5, "sampling_params"),
    "frequency_penalty": (0.5, "frequency_penalty"),
    "presence_penalty": (0.5, "presence_penalty"),
}


@pytest.mark.parametrize("name", LACKING)
async def test_what_the_api_lacks_is_refused_by_name(server: ModelResponsesServer, name: str) -> None:
    value, field = LACKING[name]
    request = asked(decoding=replace(Decoding(), **{name: value}))
    model = connect(server)

    with pytest.raises(InvalidRequest, match=name) as checked:
        model.check(request)
    with pytest.raises(InvalidRequest, match=name) as streamed:
        await collect(model, request)

    assert (checked.value.param, streamed.value.param) == (field, field)
    assert server.requests == []
    await model.aclose()


async def test_the_server_counts_no_tokens(server: ModelResponsesServer) -> None:
    with pytest.raises(CountNeedsAnswer):
        await connect(server).count_tokens(asked())


# ---- what models refuse, and what is learned from it


def refusal(message_of: str, **fields: Any) -> Reply:
    return error(400, message_of, type="invalid_request_error", **fields)


REFUSED: dict[str, tuple[Reply, dict[str, Any], Callable[[dict[str, Any]], Any], Any, Any]] = {
    "temperature": (
        refusal("Unsupported parameter: 'temperature' is not supported with this model.", param="temperature"),
        {"decoding": Decoding(temperature=0.0)},
        lambda body: body.get("temperature"),
        0.0,
        None,
    ),
    "verbosity": (
        refusal("Unsupported parameter: 'text.verbosity' is not supported with this model.", param="text.verbosity"),
        {"verbosity": "low"},
        lambda body: body.get("text"),
        {"verbosity": "low"},
        None,
    ),
    "encrypted": (
        refusal("Encrypted content is not supported with this model.", param="include"),
        {},
        lambda body: body.get("include"),
        ["reasoning.encrypted_content"],
        None,
    ),
    "encrypted beside logprobs": (
        refusal("Encrypted content is not supported with this model.", param="include"),
        {"top_logprobs": 1},
        lambda body: body.get("include"),
        ["reasoning.encrypted_content", "message.output_text.logprobs"],
        ["message.output_text.logprobs"],
    ),
    "summary": (
        refusal(
            "Your organization must be verified to generate reasoning summaries. Please go to: https://x",
            param="reasoning.summary",
            code="unsupported_value",
        ),
        {"reasoning": ReasoningOptions("low", "auto")},
        lambda body: body["reasoning"],
        {"effort": "low", "summary": "auto"},
        {"effort": "low"},
    ),
    "minimal": (
        refusal(
            "Unsupported value: 'minimal' is not supported with the 'm' model. Supported values are: 'none', 'low', "
            "'medium', and 'high'.",
            param="reasoning.effort",
            code="unsupported_value",
        ),
        {"reasoning": ReasoningOptions("minimal")},
        lambda body: body["reasoning"],
        {"effort": "minimal"},
        {"effort": "low"},
    ),
    "json_object": (
        refusal("Invalid value: 'json_object'.", param="text.format.type"),
        {"response_format": JsonObjectResponseFormat()},
        lambda body: body["text"]["format"]["type"],
        "json_object",
        "json_schema",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_a_model_refuses_is_sent_once(server: ModelResponsesServer, name: str) -> None:
    reply, fields, find, before, after = REFUSED[name]
    model = connect(server)
    server.script(reply)

    for _ in range(2):
        assert text_in(await collect(model, asked(**fields))) == "You said: Hello you"
    await collect(model, asked(model="another", **fields))

    assert [find(body) for body in server.bodies] == [before, after, after, before]
    await model.aclose()


async def test_log_probabilities_that_are_refused_are_an_error(server: ModelResponsesServer) -> None:
    """They are not a hint. What the model says about them says nothing about its reasoning."""
    model = connect(server)
    server.script(refusal("logprobs are not supported with reasoning models.", param="include"))

    with pytest.raises(InvalidRequest, match="logprobs"):
        await collect(model, asked(top_logprobs=1))
    await collect(model)

    assert [body["include"][0] for body in server.bodies] == ["reasoning.encrypted_content"] * 2
    await model.aclose()


async def test_reasoning_that_the_server_cannot_decrypt_is_omitted_from_that_call_only(
    server: ModelResponsesServer,
) -> None:
    model = connect(server)
    server.script(stream(thought("Well", encrypted="gAAAAold"), message("So")))
    answer = answer_of(await collect(model))
    server.script(
        refusal(
            "The encrypted content gAAA...old could not be verified. Reason: Encrypted content could not be decrypted "
            "or parsed.",
            code="invalid_encrypted_content",
        )
    )

    for _ in range(2):
        assert text_in(await collect(model, continued(answer))) == "You said: And?"

    kinds = [[item["type"] for item in items] for items in server.inputs]
    whole = ["message", "reasoning", "message", "message"]
    assert kinds[1:] == [whole, ["message"] * 3, whole]
    await model.aclose()


async def test_a_refusal_that_nothing_can_change_is_an_error(server: ModelResponsesServer) -> None:
    for reply in (
        refusal("Unsupported parameter: 'reasoning.effort' is not supported here.", param="reasoning.effort"),
        refusal("Invalid schema for function 'add'", param="tools[0].parameters"),
        refusal("Your input has the encrypted word", param="input"),
    ):
        with pytest.raises(InvalidRequest):
            await read(server, reply, asked(reasoning=ReasoningOptions("high", "auto"), verbosity="low"))

    assert len(server.requests) == 3


async def test_a_refusal_that_repeats_itself_is_an_error(server: ModelResponsesServer) -> None:
    model = connect(server)
    server.script(*[refusal("'temperature' is not supported", param="temperature")] * 3)

    with pytest.raises(InvalidRequest):
        await collect(model, asked(decoding=Decoding(temperature=0.0)))

    assert len(server.requests) == 2
    await model.aclose()


# ---- what the fake server refuses


WRONG: dict[str, dict[str, Any]] = {
    "field": {"seed": 1},
    "strict": {"tools": [{"type": "function", "name": "add", "parameters": {}}]},
    "tool": {"tools": [{"type": "function", "name": "a b", "strict": False}]},
    "choice": {"tool_choice": "auto"},
    "parallel": {"parallel_tool_calls": True},
    "name": {"input": [{"type": "message", "role": "user", "content": "x", "name": "Ann"}]},
    "part": {"input": [{"type": "message", "role": "user", "content": [{"type": "text", "text": "x"}]}]},
    "detail": {"input": [{"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
    "output": {"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]},
    "call": {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]},
    "long id": {"input": [{"type": "function_call", "call_id": "c" * 65, "name": "f", "arguments": "{}"}]},
    "id": {"input": [{"type": "reasoning", "id": "rs_1", "summary": []}]},
    "encrypted": {"input": [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "?"}]},
    "tokens": {"max_output_tokens": 15},
    "duplicate": {
        "input": [
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "x"},
        ]
    },
}


@pytest.mark.parametrize("name", WRONG)
async def test_the_fake_server_refuses_what_openai_refuses(server: ModelResponsesServer, name: str) -> None:
    body = {"model": "m", "input": "Hello", "stream": True, "store": False, **WRONG[name]}

    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(f"{server.base_url}/responses", content=json.dumps(body))

    assert answer.status_code == 400
    assert take_complaints()


@pytest.mark.parametrize("change", ["summary", "place", "order"])
async def test_the_fake_server_refuses_reasoning_that_was_changed(server: ModelResponsesServer, change: str) -> None:
    server.script(stream(thought("Well"), message("So")))
    await read(server)
    sent_item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAB"}
    said = [{"type": "message", "role": "assistant", "content": "So"}]
    well = {**sent_item, "summary": [{"type": "summary_text", "text": "Well"}]}
    items = {"summary": [sent_item, *said], "place": [well], "order": [*said, well]}[change]
    body = {"model": "m", "input": items, "store": False}

    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(f"{server.base_url}/responses", content=json.dumps(body))

    assert answer.status_code == 400
    assert take_complaints()
