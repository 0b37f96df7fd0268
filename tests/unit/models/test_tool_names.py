from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import pytest

from stint.domain.errors import InvalidRequest
from stint.domain.inference import (
    AssistantAnswer,
    Finished,
    FinishReason,
    InferenceRequest,
    ModelChunk,
    TextChunk,
    ToolCallChunk,
    ToolResult,
    ToolSignature,
    UserInput,
)
from stint.domain.tools import ToolCall, ToolChoice
from stint.models.port import close_chunks
from stint.models.tool_names import SanitizedToolNames, sanitize_name

LONG = "x" * 65


@dataclass
class Caller:
    """A model that calls each tool that it was told of."""

    requests: list[InferenceRequest] = field(default_factory=list)
    closed: bool = False

    def check(self, request: InferenceRequest) -> None:
        self.requests.append(request)

    async def count_tokens(self, request: InferenceRequest) -> int:
        self.requests.append(request)
        return 7

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        self.requests.append(request)
        try:
            yield TextChunk("well")
            for index, tool in enumerate(request.tools):
                yield ToolCallChunk(index, f"c{index}", tool.name)
                yield ToolCallChunk(index, arguments="{}")
            yield Finished(FinishReason.tool_calls)
        finally:
            self.closed = True


def tools(*names: str) -> tuple[ToolSignature, ...]:
    return tuple(ToolSignature(name, "", {}) for name in names)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("get-weather_2", "get-weather_2"),
        ("github.search", "github_search"),
        ("search the web", "search_the_web"),
        ("größe", "gr__e"),
        ("", "_"),
        ("x" * 64, "x" * 64),
    ],
)
def test_names_are_written_as_providers_take_them(name: str, written: str) -> None:
    assert sanitize_name(name) == written


def test_long_names_are_cut_and_stay_apart() -> None:
    one, other = sanitize_name(f"{LONG}a"), sanitize_name(f"{LONG}b")

    assert one[:56] == other[:56] == "x" * 55 + "_"
    assert one != other
    assert len(one) == len(other) == 64


async def test_the_model_calls_by_the_plain_name_and_its_caller_reads_the_real_one() -> None:
    model = Caller()
    call = ToolCall(call_id="c", tool_name="a.b", arguments={})
    messages = (UserInput("hi"), AssistantAnswer("", (call,)), ToolResult("c", "a.b", "1"))
    request = InferenceRequest("m", messages, tools=tools("a.b", "add", LONG), tool_choice="a.b")

    chunks = [chunk async for chunk in SanitizedToolNames(model).stream(request)]

    [asked] = model.requests
    assert [tool.name for tool in asked.tools] == ["a_b", "add", sanitize_name(LONG)]
    assert asked.tool_choice == "a_b"
    renamed = call.model_copy(update={"tool_name": "a_b"})
    assert asked.messages == (UserInput("hi"), AssistantAnswer("", (renamed,)), ToolResult("c", "a_b", "1"))
    assert [chunk.name for chunk in chunks if isinstance(chunk, ToolCallChunk) and chunk.name] == ["a.b", "add", LONG]
    assert (chunks[0], chunks[-1]) == (TextChunk("well"), Finished(FinishReason.tool_calls))


async def test_names_that_only_an_earlier_answer_has_are_written_plain_too() -> None:
    model = Caller()
    made_up = ToolCall(call_id="c", tool_name="functions.add", arguments={})

    await anext(SanitizedToolNames(model).stream(InferenceRequest("m", (AssistantAnswer("", (made_up,)),))))

    assert "functions_add" in str(model.requests)


def test_two_tools_of_one_plain_name_are_refused_by_their_names() -> None:
    request = InferenceRequest("m", (), tools=tools("a.b", "c", "a_b"))

    with pytest.raises(InvalidRequest, match=r"'a\.b' and 'a_b' would both have the name 'a_b'") as refused:
        SanitizedToolNames(Caller()).check(request)

    assert refused.value.code == "duplicate_tool"


async def test_tokens_are_counted_and_requests_checked_under_plain_names() -> None:
    model = Caller()
    request = InferenceRequest("m", (), tools=tools("a.b"), tool_choice=ToolChoice.required)

    SanitizedToolNames(model).check(request)
    counted = await SanitizedToolNames(model).count_tokens(request)

    assert counted == 7
    assert [(each.tools, each.tool_choice) for each in model.requests] == [(tools("a_b"), ToolChoice.required)] * 2


async def test_closing_ends_the_models_call() -> None:
    model = Caller()
    stream = SanitizedToolNames(model).stream(InferenceRequest("m", ()))

    await anext(stream)
    await close_chunks(stream)

    assert model.closed
