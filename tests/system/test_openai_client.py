"""The `openai` package, unmodified, against `make run`, under both base URLs."""

import uuid
from typing import Any, Literal

import pytest
from openai import BadRequestError, NotFoundError, OpenAI
from openai.types.responses import (
    FunctionToolParam,
    Response,
    ResponseFunctionToolCall,
    ResponseInputParam,
    ResponseReasoningItem,
)
from openai.types.responses.response_input_param import FunctionCallOutput
from pydantic import BaseModel

MODEL = "scripted/demo"
UNKNOWN = f"resp_{'0' * 32}"
WEATHER: FunctionToolParam = {
    "type": "function",
    "name": "get_weather",
    "description": "Tells the weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "strict": True,
}


class Weather(BaseModel):
    city: str
    degrees: int
    sky: Literal["clear", "cloudy"]


def call_of(response: Response) -> ResponseFunctionToolCall:
    (call,) = response.output
    assert isinstance(call, ResponseFunctionToolCall)
    return call


def test_a_response_is_created_read_back_listed_and_deleted(openai_client: OpenAI) -> None:
    created = openai_client.responses.create(
        model=MODEL, input="say: Hello there", instructions="Be brief.", metadata={"topic": "greeting"}, temperature=0.5
    )

    retrieved = openai_client.responses.retrieve(created.id)
    page: Any = openai_client.get("/responses?limit=1", cast_to=object)
    openai_client.responses.delete(created.id)

    assert created.status == "completed"
    assert created.output_text == "Hello there"
    assert created.usage
    assert created.usage.total_tokens == created.usage.input_tokens + created.usage.output_tokens > 0
    assert (created.metadata, created.temperature, created.instructions) == ({"topic": "greeting"}, 0.5, "Be brief.")
    assert retrieved == created
    assert [each["id"] for each in page["data"]] == [created.id]
    with pytest.raises(NotFoundError, match=created.id):
        openai_client.responses.retrieve(created.id)


def test_messages_need_no_type_and_may_have_every_role(openai_client: OpenAI) -> None:
    history: ResponseInputParam = [
        {"role": "developer", "content": "Answer briefly."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hello! What can I do?"},
        {"role": "user", "content": [{"type": "input_text", "text": "say: Nothing"}]},
    ]

    response = openai_client.responses.create(model=MODEL, input=history, include=[], tools=[])

    assert response.output_text == "Nothing"


def test_a_pydantic_model_is_parsed(openai_client: OpenAI) -> None:
    response = openai_client.responses.parse(model=MODEL, input="It is 7 and clear in Bern", text_format=Weather)

    assert isinstance(response.output_parsed, Weather)
    assert response.output_parsed.degrees == 7
    assert response.text
    assert response.text.format
    assert response.text.format.type == "json_schema"
    assert response.text.format.schema_ == {**Weather.model_json_schema(), "additionalProperties": False}


def test_a_function_call_goes_round(openai_client: OpenAI) -> None:
    question = "Please get_weather of Bern"
    asked = openai_client.responses.create(model=MODEL, input=question, tools=[WEATHER])
    call = call_of(asked)
    output: FunctionCallOutput = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}

    chained = openai_client.responses.create(
        model=MODEL, previous_response_id=asked.id, input=[output], tools=[WEATHER]
    )
    history: list[Any] = [{"role": "user", "content": question}, *asked.output, output]
    whole = openai_client.responses.create(model=MODEL, input=history, tools=[WEATHER], store=False)

    assert (call.name, call.arguments) == ("get_weather", '{"city": "Bern"}')
    assert chained.output_text == whole.output_text == "get_weather answered: rain"


def test_tools_are_chosen_as_the_request_says(openai_client: OpenAI) -> None:
    other: FunctionToolParam = {"type": "function", "name": "get_time", "parameters": {}, "strict": False}

    def create(**choice: Any) -> Response:
        text = "get_weather of Bern and get_time"
        response: Response = openai_client.responses.create(model=MODEL, input=text, tools=[WEATHER, other], **choice)
        return response

    def names(response: Response) -> list[str]:
        return [item.name for item in response.output if isinstance(item, ResponseFunctionToolCall)]

    assert names(create()) == ["get_weather", "get_time"]
    assert names(create(tool_choice="none")) == []
    assert names(create(tool_choice={"type": "function", "name": "get_time"})) == ["get_time"]
    only = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_time"}]}
    assert names(create(tool_choice=only)) == ["get_time"]
    assert len(names(create(parallel_tool_calls=False))) == 1


def test_a_response_forks(openai_client: OpenAI) -> None:
    root = openai_client.responses.create(model=MODEL, input="The word is plum")

    forks = [
        openai_client.responses.create(model=MODEL, input=f"Branch {number}", previous_response_id=root.id)
        for number in range(2)
    ]

    assert [fork.output_text for fork in forks] == ["You said: Branch 0", "You said: Branch 1"]
    assert [fork.previous_response_id for fork in forks] == [root.id, root.id]


def test_what_is_not_to_be_stored_is_not(openai_client: OpenAI) -> None:
    response = openai_client.responses.create(model=MODEL, input="Hello", store=False)

    assert response.to_dict()["store"] is False
    with pytest.raises(NotFoundError):
        openai_client.responses.retrieve(response.id)
    with pytest.raises(BadRequestError, match=response.id) as refused:
        openai_client.responses.create(model=MODEL, input="Again", previous_response_id=response.id)
    assert refused.value.code == "previous_response_not_found"


def test_an_answer_that_is_cut_off_says_so(openai_client: OpenAI) -> None:
    response = openai_client.responses.create(model=MODEL, input="long: 100 words", max_output_tokens=16)

    assert response.status == "incomplete"
    assert response.incomplete_details
    assert response.incomplete_details.reason == "max_output_tokens"
    assert len(response.output_text.split()) == 16


def test_reasoning_goes_round_encrypted(openai_client: OpenAI) -> None:
    asked = openai_client.responses.create(
        model=MODEL,
        input="think: Seven, surely. | Seven",
        reasoning={"effort": "low", "summary": "auto"},
        include=["reasoning.encrypted_content"],
        store=False,
    )
    thought = asked.output[0]
    history: list[Any] = [{"role": "user", "content": "Which?"}, *asked.output, {"role": "user", "content": "Sure?"}]

    again = openai_client.responses.create(model=MODEL, input=history, store=False)

    assert isinstance(thought, ResponseReasoningItem)
    assert thought.encrypted_content
    assert asked.output_text == "Seven"
    assert again.output_text == "You said: Sure?"


def test_input_items_come_in_pages(openai_client: OpenAI) -> None:
    words = [f"word {number}" for number in range(7)]
    response = openai_client.responses.create(model=MODEL, input=[{"role": "user", "content": word} for word in words])

    def read(order: Literal["asc", "desc"]) -> list[str]:
        items = openai_client.responses.input_items.list(response.id, limit=3, order=order)
        return [
            item.content[0].text for item in items if item.type == "message" and item.content[0].type == "input_text"
        ]

    assert read("asc") == words
    assert read("desc") == words[::-1]


def test_refusals_are_exceptions_that_say_what_is_wrong(openai_client: OpenAI) -> None:
    name = f"nobody/{uuid.uuid4()}"

    with pytest.raises(NotFoundError, match=UNKNOWN) as missing:
        openai_client.responses.retrieve(UNKNOWN)
    with pytest.raises((BadRequestError, NotFoundError), match=name) as model:
        openai_client.responses.create(model=name, input="Hello")
    with pytest.raises(BadRequestError, match="temperature") as field:
        openai_client.responses.create(model=MODEL, input="Hello", temperature=3)
    with pytest.raises(BadRequestError, match="computer") as tool:
        openai_client.responses.create(model=MODEL, input="Hello", tools=[{"type": "computer"}])

    assert missing.value.type is not None
    assert model.value.param == "model"
    assert field.value.param == "temperature"
    assert str(tool.value.param).startswith("tools")
