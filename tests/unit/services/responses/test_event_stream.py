from typing import Any

import pytest
from pydantic import TypeAdapter
from tests.openresponses.grammar import Stream
from tests.unit.services.responses.item_fixture import encode

from stint.domain.ids import new_name
from stint.domain.inference import AnswerDetails, Reasoning, Usage
from stint.domain.openai.mcp_items import McpListTools, McpToolInfo
from stint.domain.openai.response_events import ResponseEvent
from stint.domain.openai.stored_responses import (
    ResponseError,
    ResponseHeader,
    ResponseOutcome,
    ResponseRecord,
    ResponseSettings,
    ResponseStatus,
    StoredResponse,
)
from stint.domain.run_events import (
    ReasoningEnded,
    ReasoningProgress,
    RefusalDelta,
    StepComplete,
    StepProgress,
    TextDelta,
    ToolCallDelta,
)
from stint.domain.schema import now
from stint.domain.steps import CompletionMessage, InferenceStep, Step, ToolExecutionStep
from stint.domain.tools import ToolCall, ToolResponse
from stint.services.responses.closing_record import closing_record
from stint.services.responses.event_stream import ResponseStream
from stint.services.responses.output_items import OutputItems
from stint.services.responses.streamed_items import StreamedItems

SETTINGS: TypeAdapter[ResponseSettings] = TypeAdapter(ResponseSettings)
MCP = {"type": "mcp", "server_label": "sums", "server_url": "https://sums.example", "require_approval": "never"}
SUMS = McpListTools(server_label="sums", tools=[McpToolInfo(name="add")])
ADD = ToolCall(call_id="c1", tool_name="add", arguments={"a": 1}, arguments_json='{"a": 1}')
ASK = ToolCall(call_id="c2", tool_name="ask", arguments={}, arguments_json="{}")
SEARCH = ToolCall(
    call_id="c3", tool_name="web_search", arguments={"query": "plums"}, arguments_json='{"query": "plums"}'
)
FUNCTION = {"type": "function", "name": "ask"}
Happened = StepProgress | StepComplete | ReasoningProgress | ReasoningEnded
FAILED = ResponseOutcome(status=ResponseStatus.failed, error=ResponseError(code="model_error", message="Busy."))
DONE = ResponseOutcome(status=ResponseStatus.completed, completed_at=2, usage=Usage())


def stream(listed: tuple[McpListTools, ...] = (), **settings: Any) -> ResponseStream:
    header = ResponseHeader(
        response_id=new_name("resp"),
        created_at=1,
        model="m",
        settings=SETTINGS.validate_python(settings),
        listed=listed,
    )
    return ResponseStream(header, OutputItems(header.response_id, header.settings, encode, listed))


def told(
    stream: ResponseStream, *happened: Happened | tuple[Happened, AnswerDetails], end: ResponseOutcome = DONE
) -> list[ResponseEvent]:
    """Streams of runs, checked against the grammar."""
    events, records = list(stream.emit_created()), list[ResponseRecord]()
    for each in happened:
        event, details = each if isinstance(each, tuple) else (each, None)
        events += stream.emit_loop_event(event, details)
        if isinstance(event, StepComplete):
            records.append(ResponseRecord(step=event.step_details, details=details))
    log = StoredResponse(stream.header, records)
    record = closing_record(log, stream.items.streamed, end) if end.broke_off else ResponseRecord(ending=end)
    log.records.append(record)
    events += stream.emit_ending(log)
    watch = Stream()
    for one in events:
        watch.take(one.model_dump(mode="json"))
    watch.finish()
    return events


def kinds(events: list[ResponseEvent]) -> list[str]:
    return [event.type.removeprefix("response.") for event in events]


def text(words: str, refusal: bool = False) -> StepProgress:
    return StepProgress(
        step_type="inference", step_id="s", delta=RefusalDelta(text=words) if refusal else TextDelta(text=words)
    )


def complete(step: Step) -> StepComplete:
    return StepComplete(step_type=step.step_type, step_id="s", step_details=step)


def answer(words: str = "", *calls: ToolCall) -> StepComplete:
    message = CompletionMessage(content=words, tool_calls=list(calls))
    return complete(InferenceStep(turn_id="t", step_id="s", started_at=now(), model_response=message))


def running(call: ToolCall) -> StepProgress:
    delta = ToolCallDelta(tool_call=call, parse_status="in_progress")
    return StepProgress(step_type="tool_execution", step_id="s", delta=delta)


def ran(call: ToolCall, **metadata: Any) -> StepComplete:
    response = ToolResponse(call_id=call.call_id, tool_name=call.tool_name, content="3", metadata=metadata or None)
    step = ToolExecutionStep(turn_id="t", step_id="s", started_at=now(), tool_calls=[call], tool_responses=[response])
    return complete(step)


def test_events_are_numbered_over_the_whole_response() -> None:
    events = told(stream(), text("Hi "), text("there"), answer("Hi there"))

    assert [event.sequence_number for event in events] == list(range(10))


def test_a_stream_may_go_on_from_a_number_and_a_place() -> None:
    begun = stream()
    later = ResponseStream(begun.header, begun.output, sequence=7, streamed=StreamedItems(index=3))

    events = list(later.emit_loop_event(answer("Hi")))

    assert [event.sequence_number for event in events] == list(range(7, 13))
    assert {event.model_dump()["output_index"] for event in events} == {3}


def test_text_streams_and_is_done_when_its_step_is_stored() -> None:
    begun = stream()
    list(begun.emit_created())

    while_writing = list(begun.emit_loop_event(text("Hi")))
    stored = list(begun.emit_loop_event(answer("Hi")))

    assert kinds(while_writing) == ["output_item.added", "content_part.added", "output_text.delta"]
    assert kinds(stored) == ["output_text.done", "content_part.done", "output_item.done"]


@pytest.mark.parametrize("reasoning", [None, {"effort": "low", "summary": None}])
def test_thoughts_are_done_before_the_answer_begins(reasoning: Any) -> None:
    thought = Reasoning(text="hm hm", signature="signed")
    thinking = (ReasoningProgress("s", "hm "), ReasoningProgress("s", "hm"), ReasoningEnded("s", thought))
    spoken = (text("Yes"), (answer("Yes"), AnswerDetails(reasoning=thought)))

    events = told(stream(reasoning=reasoning), *thinking, *spoken)

    done = kinds(events).index("output_item.done")
    assert kinds(events)[done + 1] == "output_item.added"
    kind = "reasoning_text" if reasoning else "reasoning_summary_text"
    assert kinds(events).count(f"{kind}.delta") == 2


def test_thoughts_without_words_are_an_empty_item() -> None:
    thought = Reasoning(redacted="secret")

    spoken = (text("Yes"), (answer("Yes"), AnswerDetails(reasoning=thought)))

    events = told(stream(), ReasoningEnded("s", thought), *spoken)

    assert kinds(events)[2:4] == ["output_item.added", "output_item.done"]


def test_a_refusal_streams_as_one() -> None:
    events = told(stream(), text("No", refusal=True), (answer("No"), AnswerDetails(refusal=True)))

    assert "refusal.delta" in kinds(events)
    assert "output_text.delta" not in kinds(events)


@pytest.mark.parametrize(("metadata", "end"), [({}, "mcp_call.completed"), ({"error": True}, "mcp_call.failed")])
def test_a_call_of_a_server_is_told_from_its_beginning_to_its_result(metadata: Any, end: str) -> None:
    calling = (answer("", ADD), running(ADD), ran(ADD, **metadata))

    events = told(stream((SUMS,), tools=[MCP]), *calling, text("It is 3."), answer("It is 3."))

    calls = [kind for kind in kinds(events) if kind.startswith("mcp_call")]
    assert calls == ["mcp_call.in_progress", "mcp_call_arguments.delta", "mcp_call_arguments.done", end]
    assert kinds(events).index("mcp_list_tools.completed") == 4


def test_a_call_of_a_tool_that_nobody_has_is_not_told() -> None:
    unknown = ADD.model_copy(update={"tool_name": "no_such"})

    calling = (answer("", unknown), running(unknown), ran(unknown))

    events = told(stream((SUMS,), tools=[MCP]), *calling, text("Sorry"), answer("Sorry"))

    assert [kind for kind in kinds(events) if kind.startswith("mcp_call")] == []


@pytest.mark.parametrize(
    ("ending", "last"),
    [
        (DONE, ["completed"]),
        (ResponseOutcome(status=ResponseStatus.incomplete, incomplete_reason="max_tool_calls"), ["incomplete"]),
        (FAILED, ["error", "failed"]),
        (ResponseOutcome(status=ResponseStatus.cancelled), ["failed"]),
    ],
)
def test_a_response_has_one_end(ending: ResponseOutcome, last: list[str]) -> None:
    events = told(stream(), end=ending)

    assert kinds(events) == ["created", "in_progress", *last]
    assert events[-1].model_dump()["response"]["status"] == ending.status


def test_an_answer_that_broke_off_is_closed_before_the_error_and_shown_as_incomplete() -> None:
    thought = Reasoning(text="hm", signature="signed")

    events = told(stream(), ReasoningProgress("s", "hm"), ReasoningEnded("s", thought), text("Half a"), end=FAILED)

    assert kinds(events)[-6:] == [
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "error",
        "failed",
    ]
    reasoning, message = events[-1].model_dump(mode="json")["response"]["output"]
    assert reasoning["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert (message["status"], message["content"][0]["text"]) == ("incomplete", "Half a")


@pytest.mark.parametrize(
    "happened",
    [
        (ReasoningProgress("s", "hm "), ReasoningProgress("s", "hm")),
        (ReasoningEnded("s", Reasoning(redacted="secret")),),
        (text("No", refusal=True), text(" never", refusal=True)),
        (answer("Look", ADD), running(ADD)),
        (answer("Look", ASK, ADD, ASK), running(ADD)),
        (answer("", ADD, ASK),),
        (answer("", ADD), running(ADD), ran(ADD), text("It ")),
        (answer("", SEARCH), running(SEARCH)),
    ],
)
@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("end", [FAILED, ResponseOutcome(status=ResponseStatus.cancelled)])
def test_whatever_was_open_is_in_the_response_that_broke_off(happened: Any, raw: bool, end: ResponseOutcome) -> None:
    fields = {"reasoning": {"effort": "low"}} if raw else {}

    events = told(stream((SUMS,), tools=[MCP, FUNCTION, {"type": "web_search"}], **fields), *happened, end=end)

    output = events[-1].model_dump(mode="json")["response"]["output"]
    done = [event.model_dump(mode="json")["item"] for event in events if event.type == "response.output_item.done"]
    assert output == done
    assert len(output) > 1


def test_a_response_in_the_background_is_queued_before_it_runs() -> None:
    waiting = stream()

    assert kinds(list(waiting.emit_created(queued=True))) == ["created", "queued"]
    assert kinds(list(waiting.emit_in_progress())) == ["in_progress"]


def test_padding_hides_how_long_a_word_is() -> None:
    events = told(stream(include_obfuscation=True), text("Hi"), text("there, you"), answer("Hithere, you"))

    deltas = [event.model_dump() for event in events if event.type.endswith(".delta")]
    assert [len(each["delta"]) + len(each["obfuscation"]) for each in deltas] == [16, 16]
