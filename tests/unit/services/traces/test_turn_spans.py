"""The trace of a turn: its spans, their names and attributes, and what bounds its contents."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.otlp import names_of, read_attributes, read_trace

from stint.domain.content import ImageContentItem, ImageSource, TextContentItem
from stint.domain.ids import new_id, time_of
from stint.domain.inference import Usage
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.stored_turns import StoredTurn, TurnHeader, TurnRecord
from stint.domain.llama_stack.turns import TurnOverrides
from stint.domain.messages import UserMessage
from stint.domain.partial_steps import PartialStep
from stint.domain.run_outcome import ErrorInfo, RunOutcome, RunStatus
from stint.domain.steps import (
    CompletionMessage,
    InferenceStep,
    MemoryRetrievalStep,
    SafetyViolation,
    ShieldCallStep,
    Step,
    StepUsage,
    ToolExecutionStep,
)
from stint.domain.stored_messages import CompactedHistory
from stint.domain.tools import ToolCall, ToolResponse
from stint.domain.traces import TraceDocument
from stint.services.traces.trace_form import TraceForm, make_sent_form, make_shown_form
from stint.services.traces.turn_spans import make_trace

SHOWN = make_shown_form("shop")
CONFIG = AgentConfig(model="bedrock/nova", instructions="Sell.", name="Seller")
PIXEL = "iVBORw0KGgo="


class Building:
    """A turn that is built step by step, each of which takes a second."""

    def __init__(self, *said: Any) -> None:
        self.turn_id = new_id()
        self.now = time_of(self.turn_id)
        messages = [UserMessage(content=each) for each in said or ("Hello",)]
        header = TurnHeader(
            turn_id=self.turn_id,
            session_id=new_id(),
            input_messages=messages,
            started_at=self.now,
            overrides=TurnOverrides(),
        )
        self.turn = StoredTurn(header)

    def common(self) -> dict[str, Any]:
        started, self.now = self.now, self.now + timedelta(seconds=1)
        return {"turn_id": self.turn_id, "step_id": new_id(), "started_at": started, "completed_at": self.now}

    def add(self, step: Step, **record: Any) -> "Building":
        self.turn.records.append(TurnRecord(step=step, **record))
        return self

    def answer(self, text: str = "", *calls: ToolCall, reason: Any = "end_of_turn", **fields: Any) -> "Building":
        message = CompletionMessage(content=text, tool_calls=[*calls], stop_reason=reason)
        return self.add(InferenceStep(**self.common(), model_response=message, **fields))

    def run(self, call: ToolCall, content: Any, **metadata: Any) -> "Building":
        result = ToolResponse(call_id=call.call_id, tool_name=call.tool_name, content=content, metadata=metadata)
        return self.add(ToolExecutionStep(**self.common(), tool_calls=[call], tool_responses=[result]))

    def end(self, status: RunStatus = RunStatus.completed, **fields: Any) -> "Building":
        unfinished = fields.pop("unfinished", None)
        ending = RunOutcome(status=status, completed_at=self.now, **fields)
        self.turn.records.append(TurnRecord(ending=ending, unfinished=unfinished))
        return self

    def trace(self, form: TraceForm = SHOWN, config: AgentConfig = CONFIG) -> TraceDocument:
        return make_trace(self.turn, "agent-1", config, form)

    def spans(self, form: TraceForm = SHOWN) -> list[dict[str, Any]]:
        return read_trace(self.trace(form))


def call(name: str = "add", arguments: Any = None, call_id: str = "c0") -> ToolCall:
    return ToolCall(call_id=call_id, tool_name=name, arguments=arguments or {"a": 1})


def nanoseconds(moment: datetime) -> int:
    return (moment - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1) * 1000


def test_a_turn_is_a_root_span_with_its_agent_model_and_usage() -> None:
    usage = Usage(input_tokens=10, output_tokens=3, total_tokens=13, cached_tokens=4, reasoning_tokens=2)
    built = Building().answer("Hi").end(usage=usage)

    root, _ = built.spans()

    assert root["name"] == "invoke_agent Seller"
    assert root["traceId"] == built.turn_id.replace("-", "")
    assert root["kind"] == 1
    assert int(root["startTimeUnixNano"]) == nanoseconds(built.turn.header.started_at)
    assert int(root["endTimeUnixNano"]) == nanoseconds(built.now)
    assert read_attributes(root) == {
        "gen_ai.conversation.id": built.turn.header.session_id,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "aws.bedrock",
        "gen_ai.request.model": "bedrock/nova",
        "gen_ai.agent.name": "Seller",
        "gen_ai.agent.id": "agent-1",
        "stint.status": "completed",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.usage.reasoning.output_tokens": 2,
        "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"Hello"}]}]',
        "gen_ai.output.messages": '[{"role":"assistant","parts":[{"type":"text","content":"Hi"}]}]',
    }


def test_a_model_call_has_its_tokens_and_its_time_to_first_token() -> None:
    used = StepUsage(input_tokens=10, output_tokens=3, cached_tokens=4, cache_write_tokens=5, reasoning_tokens=2)
    built = Building().answer("Hi", call(), first_token_ms=250, usage=used).end()

    _, chat = built.spans()

    assert (chat["name"], chat["kind"]) == ("chat bedrock/nova", 3)
    assert read_attributes(chat) == {
        "gen_ai.conversation.id": built.turn.header.session_id,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "aws.bedrock",
        "gen_ai.request.model": "bedrock/nova",
        "gen_ai.response.finish_reasons": ["tool_call"],
        "gen_ai.response.time_to_first_chunk": 0.25,
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.usage.cache_write.input_tokens": 5,
        "gen_ai.usage.reasoning.output_tokens": 2,
        "gen_ai.output.messages": '[{"role":"assistant","parts":[{"type":"text","content":"Hi"},{"type":"tool_call",'
        '"id":"c0","name":"add","arguments":{"a":1}}],"finish_reason":"tool_call"}]',
    }


@pytest.mark.parametrize(
    ("reason", "calls", "expected"),
    [("end_of_turn", (), "stop"), ("end_of_message", (call(),), "tool_call"), ("out_of_tokens", (call(),), "length")],
)
def test_a_model_call_has_the_reason_why_it_stopped(reason: str, calls: tuple[ToolCall, ...], expected: str) -> None:
    _, chat = Building().answer("Hi", *calls, reason=reason).end().spans()

    assert read_attributes(chat)["gen_ai.response.finish_reasons"] == [expected]


def test_each_call_of_a_tool_is_a_span_with_the_times_of_its_step() -> None:
    first, second = call(), call("sell", {"to": "Ann"}, "c1")
    built = Building().answer("", first, second).run(first, "2").run(second, "No such customer", error=True).end()

    _, _, added, sold = built.spans()

    assert (added["name"], added["kind"]) == ("execute_tool add", 1)
    assert int(added["endTimeUnixNano"]) - int(added["startTimeUnixNano"]) == 1_000_000_000
    assert read_attributes(added) == {
        "gen_ai.conversation.id": built.turn.header.session_id,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "c0",
        "gen_ai.tool.call.arguments": '{"a":1}',
        "gen_ai.tool.call.result": "2",
    }
    assert sold["status"] == {"code": 2, "message": "No such customer"}
    assert read_attributes(sold)["error.type"] == "tool_error"


def test_results_of_a_client_are_one_span_each() -> None:
    calls = [call(), call("sell", None, "c1")]
    built = Building().answer("", *calls)
    results = [ToolResponse(call_id=each.call_id, tool_name=each.tool_name, content="ok") for each in calls]
    built.add(ToolExecutionStep(**built.common(), tool_calls=calls, tool_responses=results)).answer("Done").end()

    assert names_of(built.spans())[2:4] == ["execute_tool add", "execute_tool sell"]


def test_retrieval_shields_and_compactions_are_spans() -> None:
    built = Building()
    built.add(ShieldCallStep(**built.common(), violation=SafetyViolation(violation_level="warn", user_message="Sorry")))
    built.add(MemoryRetrievalStep(**built.common(), vector_db_ids="docs", inserted_context="Page 1"))
    summary = CompactedHistory(summary="Long ago")
    built.add(MemoryRetrievalStep(**built.common(), vector_db_ids="", inserted_context=""), compaction=summary)
    built.answer("Hi").end()

    _, shield, retrieval, compaction, _ = built.spans()

    assert read_attributes(shield)["stint.shield.violation_level"] == "warn"
    assert retrieval["name"] == "retrieval"
    assert read_attributes(retrieval)["gen_ai.data_source.id"] == "docs"
    assert read_attributes(retrieval)["stint.retrieval.context"] == "Page 1"
    assert compaction["name"] == "compaction"
    assert "Long ago" not in json.dumps(compaction)


def test_a_failed_turn_shows_its_error_and_the_step_in_which_it_failed() -> None:
    error = ErrorInfo(message="The model is away: Hello", type="server_error", code="model_unreachable")
    built = Building()
    unfinished = PartialStep(step_type="inference", step_id=new_id())
    built.now = time_of(unfinished.step_id) + timedelta(seconds=3)
    built.end(RunStatus.failed, error=error, unfinished=unfinished)

    root, chat = built.spans()

    assert root["status"] == chat["status"] == {"code": 2, "message": "The model is away: Hello"}
    assert read_attributes(root)["error.type"] == "model_unreachable"
    assert chat["name"] == "chat bedrock/nova"
    assert int(chat["endTimeUnixNano"]) == nanoseconds(built.now)


def test_a_check_before_the_turn_is_within_its_span() -> None:
    built = Building()
    built.now -= timedelta(seconds=1)
    built.add(ShieldCallStep(**built.common())).answer("Hi").end()

    root, shield, _ = built.spans()

    assert root["startTimeUnixNano"] == shield["startTimeUnixNano"]


def test_a_cancelled_turn_is_no_error() -> None:
    [root] = Building().end(RunStatus.cancelled).spans()

    assert root["status"] == {"code": 0}
    assert read_attributes(root)["stint.status"] == "cancelled"


def test_a_trace_is_the_same_each_time() -> None:
    built = Building().answer("", call()).run(call(), "2").answer("Hi").end()

    assert built.trace().to_json() == built.trace().to_json()


def test_images_are_shown_without_their_data() -> None:
    image = ImageContentItem(image=ImageSource(data=PIXEL))
    built = Building([TextContentItem(text="Look"), image]).answer("Nice").end()

    root, _ = built.spans()

    [said] = json.loads(read_attributes(root)["gen_ai.input.messages"])
    assert said["parts"] == [{"type": "text", "content": "Look"}, {"type": "image"}]


def test_without_content_a_trace_has_no_text_of_anybody() -> None:
    secret = "moonshine"
    error = ErrorInfo(message=secret, type="server_error", code="model_error")
    built = Building(secret)
    built.add(ShieldCallStep(**built.common(), violation=SafetyViolation(violation_level="info", user_message=secret)))
    built.add(MemoryRetrievalStep(**built.common(), vector_db_ids="docs", inserted_context=secret))
    tool, invented = call("add", {"a": secret}), call(f"drink {secret}", {}, "c1")
    built.answer(secret, tool, invented).run(tool, secret, error=True).run(invented, secret)
    built.end(RunStatus.failed, error=error)

    document = built.trace(make_sent_form("shop", content=False))

    assert secret not in document.to_json().decode()
    assert "execute_tool unknown" in names_of(read_trace(document))
    assert len(read_trace(document)) == len(built.spans())


@pytest.mark.parametrize("size", [0, 20_000_000])
def test_a_large_trace_is_shown_with_shorter_contents(size: int) -> None:
    built = Building("x" * 1000).answer("y" * 3_000_000)
    for number in range(6):
        built.run(call(call_id=f"c{number}"), "z" * 3_000_000)
    built.end()
    built.turn.size = size

    document = built.trace()

    assert len(document.to_json()) <= 16 << 20
    root, _, *tools = read_trace(document)
    assert "x" * 1000 in read_attributes(root)["gen_ai.input.messages"]
    assert {read_attributes(tool)["gen_ai.tool.call.result"] for tool in tools} == {"z" * 65_536 + "…"}


def test_a_trace_with_too_many_spans_keeps_the_first_ones() -> None:
    built = Building()
    for number in range(50):
        built.run(call(call_id=f"c{number}"), "2")
    built.end()

    document = built.trace(TraceForm("shop", (100,), 10_000))

    assert len(document.to_json()) <= 10_000
    assert names_of(read_trace(document))[:2] == ["invoke_agent Seller", "execute_tool add"]


def test_a_content_that_is_sent_is_redacted_before_it_is_cut() -> None:
    form = TraceForm("shop", (10,), 1_000_000, lambda text: text.replace("sk-123456789", "***"))
    built = Building("Key: sk-123456789").answer("Hi").end()

    root, _ = built.spans(form)

    assert read_attributes(root)["gen_ai.input.messages"] == (
        '[{"role":"user","parts":[{"type":"text","content":"Key: ***"}]}]'
    )


@pytest.mark.parametrize(
    ("model", "provider"),
    [("openai/gpt", "openai"), ("bedrock/nova", "aws.bedrock"), ("vllm/llama", "vllm"), ("fast", "stint")],
)
def test_a_provider_has_the_name_that_opentelemetry_gives_it(model: str, provider: str) -> None:
    built = Building().answer("Hi").end()
    config = CONFIG.model_copy(update={"model": model})

    [root, _] = read_trace(built.trace(config=config))

    assert read_attributes(root)["gen_ai.provider.name"] == provider
