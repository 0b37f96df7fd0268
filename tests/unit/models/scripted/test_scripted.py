import asyncio
from typing import Any, Literal

import pytest
from pydantic import BaseModel
from tests.clock import CLOCK

from stint.domain.content import ImageContentItem, ImageSource
from stint.domain.errors import ContextLengthExceeded, InvalidRequest, ModelError, ModelOverloaded, RateLimited
from stint.domain.inference import (
    Accepted,
    AssistantAnswer,
    Decoding,
    Finished,
    FinishReason,
    GrammarResponseFormat,
    InferenceRequest,
    JsonSchemaResponseFormat,
    ModelChunk,
    ModelMessage,
    Reasoning,
    ReasoningChunk,
    ReasoningOptions,
    RefusalChunk,
    SystemText,
    TextChunk,
    ToolCallChunk,
    ToolResult,
    ToolSignature,
    Usage,
    UserInput,
)
from stint.domain.tools import ToolCall, ToolChoice
from stint.models.scripted.messages import count_words
from stint.models.scripted.model import LONGEST_REPETITION, Scripted, repetition_delay

WEATHER = ToolSignature(
    "get_weather",
    "The weather of a city",
    {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]},
)
ADD = ToolSignature(
    "add",
    "Adds",
    {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]},
)
SEND = ToolSignature(
    "send-mail",
    "Sends",
    {
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "subject": {"type": "string"},
            "urgent": {"type": "boolean"},
            "format": {"enum": ["html", "text"]},
        },
        "required": ["to", "subject", "urgent", "format"],
    },
)


def ask(text: str, *history: ModelMessage, **fields: object) -> InferenceRequest:
    return InferenceRequest("demo", (*history, UserInput(text)), **fields)  # type: ignore[arg-type]  # fields vary


async def answer(request: InferenceRequest) -> list[ModelChunk]:
    return [chunk async for chunk in Scripted(word_delay=0).stream(request) if not isinstance(chunk, Accepted)]


def text_in(chunks: list[ModelChunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


def calls_in(chunks: list[ModelChunk]) -> list[tuple[str, str]]:
    calls: dict[int, tuple[str, str]] = {}
    for chunk in chunks:
        if isinstance(chunk, ToolCallChunk):
            name, arguments = calls.get(chunk.index, ("", ""))
            calls[chunk.index] = (name + chunk.name, arguments + chunk.arguments)
    return list(calls.values())


async def test_first_answer_repeats_the_input_and_says_that_it_is_no_language_model() -> None:
    chunks = await answer(ask("Hello there", SystemText("Be kind")))

    assert text_in(chunks).startswith("You said: Hello there")
    assert "not a language model" in text_in(chunks)
    assert "OPENAI_BASE_URL" in text_in(chunks)
    assert len(chunks) > 10


async def test_later_answers_are_short_unless_it_is_asked_who_it_is() -> None:
    history = (UserInput("Hello"), AssistantAnswer("You said: Hello"))

    plain = await answer(ask("More", *history))
    who = await answer(ask("Who are you?", *history))

    assert text_in(plain) == "You said: More"
    assert "not a language model" in text_in(who)


async def test_words_leave_one_by_one_and_the_text_is_whole() -> None:
    request = ask("say: one  two\tthree")

    chunks = await answer(request)

    assert chunks[:-1] == [TextChunk("one  "), TextChunk("two\t"), TextChunk("three")]
    assert chunks[-1] == Finished(FinishReason.stop, Usage(input_tokens=4, output_tokens=3, total_tokens=7))


async def test_same_messages_get_the_same_answer() -> None:
    request = ask("add 1 and 2", tools=(ADD,))

    assert await answer(request) == await answer(request)


@pytest.mark.parametrize(
    ("text", "tool", "arguments"),
    [
        ("What is the weather in Paris? Use get_weather.", WEATHER, '{"city": "Paris"}'),
        ("get weather for Rome please", WEATHER, '{"city": "Rome"}'),
        ('GET_WEATHER "New York"', WEATHER, '{"city": "New York"}'),
        ("get_weather city=Oslo days=3", WEATHER, '{"city": "Oslo", "days": 3}'),
        ("weather in Oslo? get_weather days=3", WEATHER, '{"city": "Oslo", "days": 3}'),
        ("get_weather city='New York'", WEATHER, '{"city": "New York"}'),
        ('get_weather with {"city": "Bern", "days": 2} now', WEATHER, '{"city": "Bern", "days": 2}'),
        ("get_weather", WEATHER, '{"city": ""}'),
        ("add 17 and 4.5", ADD, '{"a": 17, "b": 4.5}'),
        ("please add -1 to 2", ADD, '{"a": -1, "b": 2}'),
        (
            "send mail to 'Ada' about 'the engine' as text, not at once",
            SEND,
            '{"to": "Ada", "subject": "the engine", "urgent": false, "format": "text"}',
        ),
    ],
)
async def test_calls_the_tool_that_the_message_names(text: str, tool: ToolSignature, arguments: str) -> None:
    chunks = await answer(ask(text, tools=(tool,)))

    assert calls_in(chunks) == [(tool.name, arguments)]
    assert text_in(chunks) == ""
    assert isinstance(chunks[-1], Finished)
    assert chunks[-1].reason is FinishReason.tool_calls


async def test_a_question_gets_what_it_is_about_without_naming_the_tool() -> None:
    asked = await answer(ask("What's the weather like in Bern?", tools=(ADD, WEATHER)))
    told = await answer(ask("I do not like the weather in Bern.", tools=(ADD, WEATHER)))

    assert calls_in(asked) == [("get_weather", '{"city": "Bern"}')]
    assert calls_in(told) == []


async def test_calls_several_named_tools_in_the_order_of_the_message() -> None:
    chunks = await answer(ask("say: Just a moment.\nadd 1 and 2, then get_weather in Oslo", tools=(WEATHER, ADD)))

    assert text_in(chunks) == "Just a moment."
    assert calls_in(chunks) == [("add", '{"a": 1, "b": 2}'), ("get_weather", '{"city": "Oslo"}')]
    assert [c.call_id for c in chunks if isinstance(c, ToolCallChunk) and c.call_id] == ["call_1", "call_2"]


async def test_a_tool_that_is_part_of_another_word_is_not_called() -> None:
    chunks = await answer(ask("my address", tools=(ADD,)))

    assert calls_in(chunks) == []
    assert "when you name it: add" in text_in(chunks)


@pytest.mark.parametrize(
    ("choice", "names"),
    [(ToolChoice.none, []), (ToolChoice.required, ["get_weather"]), ("add", ["add"]), (ToolChoice.auto, [])],
)
async def test_tool_choice_is_respected(choice: ToolChoice | str, names: list[str]) -> None:
    chunks = await answer(ask("hello 1 2", tools=(WEATHER, ADD), tool_choice=choice))

    assert [name for name, _ in calls_in(chunks)] == names


async def test_tool_choice_none_silences_a_named_tool() -> None:
    chunks = await answer(ask("add 1 2", tools=(ADD,), tool_choice=ToolChoice.none))

    assert calls_in(chunks) == []


def after_call(text: str, rounds: int = 1) -> tuple[ModelMessage, ...]:
    history: list[ModelMessage] = [UserInput(text)]
    for number in range(1, rounds + 1):
        call = ToolCall(call_id=f"call_{number}", tool_name="add", arguments={})
        history += [AssistantAnswer("", (call,)), ToolResult(f"call_{number}", "add", "3")]
    return tuple(history)


async def test_answers_with_the_tool_results() -> None:
    request = InferenceRequest("demo", after_call("add 1 2"), tools=(ADD,), tool_choice=ToolChoice.required)

    chunks = await answer(request)

    assert text_in(chunks) == "add answered: 3"
    assert calls_in(chunks) == []


async def test_repeat_calls_again_for_each_round_of_results() -> None:
    second = await answer(InferenceRequest("demo", after_call("repeat: 2\nadd 1 2"), tools=(ADD,)))
    third = await answer(InferenceRequest("demo", after_call("repeat: 2\nadd 1 2", rounds=2), tools=(ADD,)))

    assert second[0] == ToolCallChunk(0, call_id="call_2", name="add")
    assert text_in(third) == "add answered: 3"


async def test_call_directive_sends_any_name_and_any_arguments() -> None:
    chunks = await answer(ask('call: add {"a": 1,\ncall: no_such_tool', tools=(ADD,)))

    assert calls_in(chunks) == [("add", '{"a": 1,'), ("no_such_tool", "")]


async def test_say_without_text_is_no_answer_at_all() -> None:
    chunks = await answer(ask("say:"))

    assert chunks == [Finished(FinishReason.stop, Usage(input_tokens=1, output_tokens=0, total_tokens=1))]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("fail: before", ModelError),
        ("fail: throttled", RateLimited),
        ("fail: overloaded", ModelOverloaded),
        ("fail: context", ContextLengthExceeded),
    ],
)
async def test_fails_before_the_first_word_when_told_to(text: str, error: type[ModelError]) -> None:
    stream = Scripted(word_delay=0).stream(ask(text))

    assert await anext(stream) == Accepted()
    with pytest.raises(error) as caught:
        await anext(stream)
    assert type(caught.value) is error


async def test_fails_in_the_middle_when_told_to() -> None:
    stream = Scripted(word_delay=0).stream(ask("fail: after 2 words"))

    assert await anext(stream) == Accepted()
    chunks = [await anext(stream), await anext(stream)]

    assert [type(chunk) for chunk in chunks] == [TextChunk, TextChunk]
    with pytest.raises(ModelError, match="after 2 words"):
        await anext(stream)


async def test_long_gives_as_many_words_as_told() -> None:
    chunks = await answer(ask("long: 1000 words"))

    assert len(text_in(chunks).split()) == 1000


async def test_a_long_answer_has_a_limit() -> None:
    chunks = await answer(ask("long: 1000000000 words"))

    assert len(text_in(chunks).split()) == 20_000


async def test_a_long_input_is_counted_whole_and_read_at_its_beginning() -> None:
    chunks = await answer(ask("a " * 100_000 + "Please get_weather", tools=(WEATHER,)))

    assert [chunk for chunk in chunks if isinstance(chunk, ToolCallChunk)] == []
    assert len(text_in(chunks)) < 21_000
    assert isinstance(chunks[-1], Finished)
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.input_tokens == 100_002


@pytest.mark.parametrize("width", [1, 2])
async def test_references_that_lead_to_more_references_end(width: int) -> None:
    definitions: dict[str, object] = {
        f"a{place}": {
            "type": "object",
            "properties": {f"p{number}": {"$ref": f"#/$defs/a{place + 1}"} for number in range(width)},
            "required": ["p0"],
        }
        for place in range(2_000)
    }
    tool = ToolSignature("nest", "", {"$ref": "#/$defs/a0", "$defs": definitions})

    chunks = await answer(ask("nest", tools=(tool,)))

    assert isinstance(chunks[-1], Finished)


@pytest.mark.parametrize("number", ["9" * 400, "1" * 5_000])
async def test_a_number_without_measure_is_no_fault(number: str) -> None:
    chunks = await answer(ask(f"add {number} and 2", tools=(ADD,)))

    assert isinstance(chunks[-1], Finished)


@pytest.mark.parametrize(
    "text",
    ["", "  ", "one", "x" * 70_000 + " y", "a " * 40_000, "a" * 65_536 + " b", "a" * 65_535 + " b", "a" * 65_537],
)
def test_words_are_counted(text: str) -> None:
    assert count_words(text) == len(text.split())


@pytest.mark.parametrize("text", ["cut: 3 words\nsay: a b c d", "say: a b c d"])
async def test_an_answer_that_is_cut_finishes_with_length(text: str) -> None:
    chunks = await answer(ask(text, decoding=Decoding(max_tokens=3)))

    assert text_in(chunks) == "a b c "
    assert isinstance(chunks[-1], Finished)
    assert chunks[-1].reason is FinishReason.length


async def test_an_answer_can_be_cut_within_the_arguments_of_a_call() -> None:
    chunks = await answer(ask("cut: 2 words\nadd 1 2", tools=(ADD,)))

    assert calls_in(chunks) == [("add", '{"a": ')]
    assert isinstance(chunks[-1], Finished)
    assert chunks[-1].reason is FinishReason.length


def test_many_words_are_repeated_faster() -> None:
    assert repetition_delay(0, 0.02) == repetition_delay(100, 0.02) == 0.02
    assert 3_000 * repetition_delay(3_000, 0.02) == pytest.approx(LONGEST_REPETITION)


async def test_slow_waits_before_the_first_chunk() -> None:
    answering = asyncio.create_task(answer(ask("slow: 60")))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not answering.done()

    CLOCK.move(60)

    assert await answering


async def test_a_directive_that_cannot_be_read_names_itself() -> None:
    with pytest.raises(InvalidRequest, match="fail: sometimes") as caught:
        await answer(ask("fail: sometimes"))

    assert caught.value.param == "messages"


async def test_json_schema_is_answered_with_an_object_of_that_form() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
    response_format = JsonSchemaResponseFormat(json_schema={**schema, "required": ["name", "age"]})

    chunks = await answer(ask("This is Ada, 36", response_format=response_format))

    assert text_in(chunks) == '{"name": "Ada", "age": 36}'


async def test_the_results_of_tools_are_answered_in_the_response_format_too() -> None:
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    call = ToolCall(call_id="c", tool_name="add", arguments={})
    messages = (UserInput("add 1 2"), AssistantAnswer("", (call,)), ToolResult("c", "add", "It is 3"))

    chunks = await answer(
        InferenceRequest("demo", messages, (ADD,), response_format=JsonSchemaResponseFormat(json_schema=schema))
    )

    assert text_in(chunks) == '{"sum": 3}'


class Person(BaseModel):
    name: str
    age: int | None
    friends: list["Person"]


class Event(BaseModel):
    kind: Literal["party"]
    host: Person
    guests: list[Person]


async def test_a_schema_with_references_and_alternatives_is_answered_with_a_value_of_it() -> None:
    response_format = JsonSchemaResponseFormat(json_schema=Event.model_json_schema())

    chunks = await answer(ask("A party of Ada, 36", response_format=response_format))

    event = Event.model_validate_json(text_in(chunks))
    assert (event.host.age, event.host.friends) == (36, [])
    assert event.guests[0].name == "Ada"


@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [
        ({"required": ["x", {}, 5], "properties": {"x": 5, "y": {"anyOf": 5}}}, "{}"),
        ({"required": "xy", "properties": []}, "{}"),
        ({"required": ["x"], "properties": {"x": {"type": ["null", 5], "enum": 5}}}, '{"x": "apple"}'),
        ({"required": ["x"], "properties": {"x": {"type": "integer", "default": "no number"}}}, '{"x": 0}'),
        ({"required": ["x"], "properties": {"x": {"type": "array", "items": [{}]}}}, '{"x": ["apple"]}'),
        ({"required": ["x"], "properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": []}, '{"x": null}'),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "string"}}}, "{}"),
        ({"required": ["x"], "properties": {"x": {"enum": ["is", "a" * 1_000_000, "Apple"]}}}, '{"x": "Apple"}'),
        ({"required": ["x"], "properties": {"x": {"enum": ["thi", 7]}}}, '{"x": "thi"}'),
    ],
)
async def test_parameters_of_any_form_get_arguments(parameters: dict[str, Any], arguments: str) -> None:
    tool = ToolSignature("send-mail", "", parameters)

    assert calls_in(await answer(ask("send-mail apple", tools=(tool,)))) == [("send-mail", arguments)]


async def test_a_stop_sequence_ends_an_answer_before_its_calls() -> None:
    decoding = Decoding(stop=("END", "c d"))

    chunks = await answer(ask("say: a b c d END\ncall: add {}", decoding=decoding, tools=(ADD,)))

    assert (text_in(chunks), calls_in(chunks)) == ("a b ", [])
    assert isinstance(chunks[-1], Finished)
    assert chunks[-1].reason is FinishReason.stop


async def test_nothing_is_sampled_so_every_way_to_sample_gives_the_same_answer() -> None:
    ways = Decoding(temperature=2.0, top_p=0.1, top_k=1, seed=1, presence_penalty=2.0, repetition_penalty=1.5)

    assert await answer(ask("Hello", decoding=ways)) == await answer(ask("Hello"))


def test_a_grammar_is_refused_unasked() -> None:
    with pytest.raises(InvalidRequest, match="grammar") as caught:
        Scripted().check(ask("Hello", response_format=GrammarResponseFormat(bnf={})))

    assert caught.value.param == "response_format"


async def test_tokens_are_counted_as_in_the_usage() -> None:
    request = ask("Hello you", SystemText("Be kind"), tools=(ADD,))
    [*_, end] = await answer(request)

    assert isinstance(end, Finished)
    assert end.usage is not None
    assert await Scripted().count_tokens(request) == end.usage.input_tokens == 4


async def test_thinks_before_it_answers_when_told_to() -> None:
    [first, last, *said, end] = await answer(ask("think: hm so | yes it is"))

    assert isinstance(first, ReasoningChunk)
    assert isinstance(last, ReasoningChunk)
    assert (first.text + last.text, bool(last.signature)) == ("hm so", True)
    assert text_in(said) == "yes it is"
    assert end == Finished(
        FinishReason.stop, Usage(input_tokens=7, output_tokens=5, total_tokens=12, reasoning_tokens=2)
    )


@pytest.mark.parametrize(("effort", "thinks"), [("low", True), ("none", False), (None, False)])
async def test_an_effort_makes_it_think(effort: str | None, thinks: bool) -> None:
    chunks = await answer(ask("Hello", reasoning=ReasoningOptions(effort)))

    assert isinstance(chunks[0], ReasoningChunk) is thinks


async def test_thoughts_that_were_changed_are_refused() -> None:
    [thought, *_] = await answer(ask("think: hm | yes"))
    assert isinstance(thought, ReasoningChunk)
    kept = Reasoning(text=thought.text, signature=thought.signature)
    changed = Reasoning(text="ha", signature=thought.signature)

    assert text_in(await answer(ask("say: fine", AssistantAnswer("yes", reasoning=kept)))) == "fine"
    with pytest.raises(InvalidRequest, match="was changed"):
        await answer(ask("say: fine", AssistantAnswer("yes", reasoning=changed)))


async def test_refuses_when_told_to() -> None:
    chunks = await answer(ask("refuse: I cannot"))

    assert chunks[:-1] == [RefusalChunk("I "), RefusalChunk("cannot")]
    assert isinstance(chunks[-1], Finished)
    assert chunks[-1].reason is FinishReason.stop


async def test_an_answer_that_is_filtered_ends_there() -> None:
    chunks = await answer(ask("filter: after 2 words\nsay: a b c"))

    assert text_in(chunks) == "a b "
    assert isinstance(chunks[-1], Finished)
    assert chunks[-1].reason is FinishReason.content_filter


async def test_images_are_counted() -> None:
    image = ImageContentItem(image=ImageSource(data="aGk="))
    request = InferenceRequest("demo", (UserInput([image, image]),))

    assert "(with 2 images)" in text_in(await answer(request))


async def test_a_question_has_an_effect_after_its_context_was_retrieved() -> None:
    context = "Here are the retrieved documents for relevant context:\nid:a; content:Llamas\n"

    asked = await answer(ask(context, UserInput("say: yes")))
    alone = await answer(ask(context, UserInput("say: yes"), AssistantAnswer("yes")))

    assert text_in(asked) == "yes"
    assert text_in(alone).startswith("You said: Here are the retrieved documents")
