"""The trace of a response."""

import json
import time
from datetime import timedelta
from typing import Any

import pytest
from tests.otlp import names_of, read_attributes, read_trace

from stint.domain.ids import name_of, new_id, time_of
from stint.domain.inference import AnswerDetails, Usage
from stint.domain.openai.items import FunctionCall, FunctionCallOutput, Message
from stint.domain.openai.stored_responses import (
    ResponseError,
    ResponseHeader,
    ResponseOutcome,
    ResponseRecord,
    ResponseStatus,
    StoredResponse,
)
from stint.domain.partial_steps import PartialStep
from stint.domain.receipts import Consumption
from stint.domain.steps import CompletionMessage, InferenceStep, ToolExecutionStep
from stint.domain.stored_messages import CompactedHistory
from stint.domain.tools import ToolCall, ToolResponse
from stint.services.traces.response_spans import make_trace
from stint.services.traces.trace_form import make_sent_form, make_shown_form

SHOWN = make_shown_form("shop")
CALL = ToolCall(call_id="c0", tool_name="buy", arguments={"what": "tea"})


def make_response(*records: ResponseRecord, **header: Any) -> StoredResponse:
    created = {"response_id": name_of("resp", new_id()), "created_at": int(time.time()), "model": "openai/gpt"}
    return StoredResponse(ResponseHeader(**{**created, **header}), [*records])


def common() -> dict[str, Any]:
    step_id = new_id()
    started = time_of(step_id)
    return {
        "turn_id": "t",
        "step_id": step_id,
        "started_at": started,
        "completed_at": started + timedelta(milliseconds=20),
    }


def answer(text: str, *calls: ToolCall, **record: Any) -> ResponseRecord:
    message = CompletionMessage(content=text, tool_calls=[*calls])
    return ResponseRecord(step=InferenceStep(**common(), model_response=message), **record)


def ended(status: ResponseStatus = ResponseStatus.completed, **fields: Any) -> ResponseRecord:
    unfinished = fields.pop("unfinished", None)
    return ResponseRecord(ending=ResponseOutcome(status=status, **fields), unfinished=unfinished)


def bought() -> ToolExecutionStep:
    result = ToolResponse(call_id="c0", tool_name="buy", content="Done")
    return ToolExecutionStep(**common(), tool_calls=[CALL], tool_responses=[result])


def test_a_response_is_a_root_span_with_its_input_and_output() -> None:
    said = [
        Message(role="user", content="Buy tea"),
        FunctionCall(call_id="c9", name="look", arguments="{}"),
        FunctionCallOutput(call_id="c9", output="Nothing"),
    ]
    response = make_response(
        input=said, conversation_id="conv_1", previous_response_id="resp_0", created_at=int(time.time())
    )
    response.records += [answer("", CALL), ResponseRecord(step=bought()), answer("Done")]
    response.records.append(ended(usage=Usage(input_tokens=5, output_tokens=2), completed_at=int(time.time())))

    root, *others = read_trace(make_trace(response, SHOWN))

    attributes = read_attributes(root)
    assert names_of(others) == ["chat openai/gpt", "execute_tool buy", "chat openai/gpt"]
    assert root["name"] == "invoke_agent"
    assert attributes["gen_ai.conversation.id"] == "conv_1"
    assert attributes["gen_ai.request.previous_response.id"] == "resp_0"
    assert attributes["gen_ai.response.id"] == response.header.response_id
    assert attributes["gen_ai.usage.input_tokens"] == 5
    assert [each["role"] for each in json.loads(attributes["gen_ai.input.messages"])] == ["user", "assistant", "tool"]
    assert "Done" in attributes["gen_ai.output.messages"]
    assert read_attributes(others[1])["gen_ai.tool.call.arguments"] == '{"what":"tea"}'


def test_an_id_that_was_made_earlier_is_not_the_time_of_the_response() -> None:
    response = make_response(answer("Hi"), ended())
    response.header.created_at += 5

    root, *_ = read_trace(make_trace(response, SHOWN))

    assert int(root["startTimeUnixNano"]) >= time_of(response.records[0].step.step_id).timestamp() * 1e9 - 1e6  # type: ignore[union-attr]


def test_an_answer_that_a_filter_ended_says_so() -> None:
    _, chat = read_trace(make_trace(make_response(answer("Hm", details=AnswerDetails(filtered=True)), ended()), SHOWN))

    assert read_attributes(chat)["gen_ai.response.finish_reasons"] == ["content_filter"]


def test_a_compaction_is_a_span_without_its_summary() -> None:
    step_id = new_id()
    compaction = ResponseRecord(
        compaction=CompactedHistory(summary="Long ago"), compaction_id=step_id, compacted_at=time_of(step_id)
    )

    trace = make_trace(make_response(compaction, answer("Hi"), ended()), SHOWN)

    assert names_of(read_trace(trace))[1] == "compaction"
    assert b"Long ago" not in trace.to_json()


def test_a_result_that_no_later_record_has_is_a_span() -> None:
    response = make_response(answer("", CALL), ResponseRecord(early=[bought()]), ended(ResponseStatus.cancelled))

    spans = read_trace(make_trace(response, SHOWN))

    assert names_of(spans)[-1] == "execute_tool buy"
    assert spans[0]["status"] == {"code": 0}


def test_a_failed_response_lasts_as_long_as_its_function_took() -> None:
    response_id = new_id()  # ahead of the clock if another test has moved it
    response = make_response(response_id=name_of("resp", response_id), created_at=int(time_of(response_id).timestamp()))
    unfinished = PartialStep(step_type="inference", step_id=new_id())
    error, used = ResponseError(code="model_error", message="Broken"), Consumption(milliseconds=60_000)
    response.records.append(ended(ResponseStatus.failed, error=error, consumption=used, unfinished=unfinished))

    root, chat = read_trace(make_trace(response, SHOWN))

    assert int(root["endTimeUnixNano"]) - int(root["startTimeUnixNano"]) == 60_000_000_000
    assert chat["endTimeUnixNano"] == root["endTimeUnixNano"]


@pytest.mark.parametrize("content", [True, False])
def test_a_failed_response_has_its_error_and_the_text_of_it_with_content_only(content: bool) -> None:
    error = ResponseError(code="model_error", message="Refused: moonshine")
    unfinished = PartialStep(step_type="inference", step_id=new_id())
    response = make_response(answer("", CALL), ended(ResponseStatus.failed, error=error, unfinished=unfinished))

    root, *_, chat = read_trace(make_trace(response, make_sent_form("shop", content=content)))

    assert root["status"] == chat["status"] == {"code": 2, **({"message": "Refused: moonshine"} if content else {})}
    assert read_attributes(root)["error.type"] == read_attributes(chat)["error.type"] == "model_error"
