"""Spans of a run, from its stored steps, with OpenTelemetry's names for generative AI.

| of the run             | span                    | kind     | its contents, if it has them                      |
|------------------------|-------------------------|----------|---------------------------------------------------|
| the turn or response   | `invoke_agent {agent}`  | internal | input and output messages                         |
| an inference step      | `chat {model}`          | client   | the answer; its input is made again by `../input` |
| a call of a tool       | `execute_tool {tool}`   | internal | arguments and result                              |
| retrieved context      | `retrieval`             | internal | the context                                       |
| a check by shields     | `shield_call`           | internal | -                                                 |
| a compaction           | `compaction`            | internal | -                                                 |

The trace id is the id of the run, whose 16 bytes are a UUID, and a span id is derived from that of its step. So a trace
is the same each time that it is made: by a reader, by the process that sends it, and by one that sends it again.

Without contents, a span has no text that a caller, a model or a tool has chosen, except names and ids. A tool's name
that no provider accepts is such a text, because a model can write anything there.

https://github.com/open-telemetry/semantic-conventions-genai/tree/main/docs/gen-ai
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from stint.dataclasses import dataclass
from stint.domain.content import Content, ImageContentItem, items_of, text_of
from stint.domain.ids import time_of
from stint.domain.inference import Usage
from stint.domain.partial_steps import PartialStep
from stint.domain.run_outcome import ErrorInfo
from stint.domain.steps import (
    InferenceStep,
    MemoryRetrievalStep,
    ShieldCallStep,
    Step,
    StepUsage,
    ToolExecutionStep,
)
from stint.domain.tools import ToolCall, ToolResponse, is_tool_name
from stint.domain.traces import (
    AttributeValue,
    SpanKind,
    SpanStatus,
    SpanStatusCode,
    TraceDocument,
    TraceSpan,
    make_attributes,
)
from stint.services.traces.trace_form import CutTexts, TraceForm

EPOCH = datetime.fromtimestamp(0, UTC)
MICROSECOND = timedelta(microseconds=1)

PROVIDERS = {"bedrock": "aws.bedrock", "openai": "openai"}
"""OpenTelemetry's names of the providers, by the prefix of a model's id."""

STOP_REASONS = {"end_of_turn": "stop", "end_of_message": "stop", "out_of_tokens": "length"}
"""OpenTelemetry's names of stop reasons, for answers without calls."""

LONGEST_NAME = 200
"""Maximum characters of a name in the name of a span."""

UNKNOWN_TOOL = "unknown"
"""The name, without contents, of a tool whose name is no name of a tool."""

TraceMessage = dict[str, Any]
Attributes = Mapping[str, AttributeValue]


@dataclass(frozen=True, slots=True)
class TracedRun:
    """The run of a trace."""

    run_id: str
    """The id of the turn or response, whose digits are a UUID."""
    model: str
    """The id of its model, as in the request."""
    conversation_id: str | None
    """The id of its session or conversation."""
    started_at: datetime
    ended_at: datetime

    @property
    def trace_id(self) -> str:
        """Return the 32 digits of the run's id."""
        return self.run_id.rpartition("_")[2].replace("-", "")

    @property
    def shared(self) -> dict[str, AttributeValue]:
        """Return the attributes of all spans of the run."""
        return {"gen_ai.conversation.id": self.conversation_id}

    @property
    def model_attributes(self) -> dict[str, AttributeValue]:
        return {"gen_ai.provider.name": find_provider(self.model), "gen_ai.request.model": self.model}


@dataclass(frozen=True, slots=True)
class SpanTimes:
    start: datetime
    end: datetime | None


class RunSpans:
    """Makes the spans of a run. Contents have at most so many `characters` per attribute; 0 omits them."""

    def __init__(self, run: TracedRun, form: TraceForm, characters: int) -> None:
        self.run, self.form, self.characters = run, form, characters
        self.spans: list[TraceSpan] = []

    def to_document(self) -> TraceDocument:
        return TraceDocument.of(self.form.service, self.spans)

    def add_root(
        self,
        agent: str | None,
        attributes: Attributes,
        usage: Usage | None,
        error: ErrorInfo | None,
        messages: tuple[Sequence[TraceMessage], Sequence[TraceMessage]],
    ) -> None:
        """Add the span of the run, with its input and output messages."""
        said, answered = messages
        values: Attributes = {
            "gen_ai.operation.name": "invoke_agent",
            **self.run.model_attributes,
            "gen_ai.agent.name": agent,
            **attributes,
            **usage_attributes(usage),
            "gen_ai.input.messages": self.write_messages(said),
            "gen_ai.output.messages": self.write_messages(answered),
        }
        times = SpanTimes(self.run.started_at, self.run.ended_at)
        self._add("", join_name("invoke_agent", agent), SpanKind.internal, times, values, error)

    def add_step(self, step: Step, *, filtered: bool = False) -> None:
        """Add the spans of a step. `filtered`: the provider's content filter ended its answer."""
        times = SpanTimes(step.started_at, step.completed_at)
        match step:
            case InferenceStep():
                self._add_inference(step, times, filtered=filtered)
            case ToolExecutionStep():
                for call in step.tool_calls:
                    self._add_call(step, times, call)
            case MemoryRetrievalStep():
                values: Attributes = {
                    "gen_ai.operation.name": "retrieval",
                    "gen_ai.data_source.id": step.vector_db_ids,
                    "stint.retrieval.context": self.write_text(text_of(step.inserted_context)),
                }
                self._add(step.step_id, "retrieval", SpanKind.internal, times, values)
            case ShieldCallStep():
                level = step.violation.violation_level if step.violation else None
                self._add(
                    step.step_id, "shield_call", SpanKind.internal, times, {"stint.shield.violation_level": level}
                )

    def add_compaction(self, step_id: str, times: SpanTimes) -> None:
        """Add the span of a compaction."""
        values: Attributes = {**self.run.model_attributes, "gen_ai.conversation.compacted": True}
        self._add(step_id, "compaction", SpanKind.internal, times, values)

    def add_unfinished(self, step: PartialStep, error: ErrorInfo | None) -> None:
        """Add the span of the step in which the run failed or was cancelled."""
        times = SpanTimes(time_of(step.step_id), self.run.ended_at)
        if step.step_type == "inference":
            values: Attributes = {"gen_ai.operation.name": "chat", **self.run.model_attributes}
            self._add(step.step_id, join_name("chat", self.run.model), SpanKind.client, times, values, error)
        elif step.step_type == "tool_execution":
            values = {"gen_ai.operation.name": "execute_tool"}
            self._add(step.step_id, "execute_tool", SpanKind.internal, times, values, error)
        else:
            self._add(step.step_id, step.step_type, SpanKind.internal, times, {}, error)

    def _add_inference(self, step: InferenceStep, times: SpanTimes, *, filtered: bool) -> None:
        answer = step.model_response
        reason = "content_filter" if filtered else STOP_REASONS[answer.stop_reason]
        if answer.tool_calls and reason == "stop":
            reason = "tool_call"
        first = None if step.first_token_ms is None else step.first_token_ms / 1000
        values: Attributes = {
            "gen_ai.operation.name": "chat",
            **self.run.model_attributes,
            "gen_ai.response.finish_reasons": [reason],
            "gen_ai.response.time_to_first_chunk": first,
            **usage_attributes(step.usage),
            "gen_ai.output.messages": self.write_messages(
                [make_message("assistant", answer.content, answer.tool_calls) | {"finish_reason": reason}]
            ),
        }
        self._add(step.step_id, join_name("chat", self.run.model), SpanKind.client, times, values)

    def _add_call(self, step: ToolExecutionStep, times: SpanTimes, call: ToolCall) -> None:
        result = next((each for each in step.tool_responses if each.call_id == call.call_id), None)
        name = call.tool_name if self.characters or is_tool_name(call.tool_name) else UNKNOWN_TOOL
        arguments = call.arguments if isinstance(call.arguments, str) else write_json(call.arguments)
        values: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.call_id,
            "gen_ai.tool.call.arguments": self.write_text(arguments),
            "gen_ai.tool.call.result": self.write_text(text_of(result.content)) if result else None,
        }
        key = f"{step.step_id}:{call.call_id}"
        self._add(key, join_name("execute_tool", name), SpanKind.internal, times, values, find_tool_error(result))

    def _add(
        self,
        key: str,
        name: str,
        kind: SpanKind,
        times: SpanTimes,
        values: Attributes,
        error: ErrorInfo | None = None,
    ) -> None:
        """Add a span. `key` is its own within the run, and empty for the root, which is the first one."""
        values = {**self.run.shared, **values}
        status = SpanStatus()
        if error is not None:
            values = {**values, "error.type": error.code or error.type or "_OTHER"}
            # An error of a provider or a tool may quote what it refuses.
            status = SpanStatus(code=SpanStatusCode.error, message=self.write_text(error.message))
        self.spans.append(
            TraceSpan(
                trace_id=self.run.trace_id,
                span_id=self.span_id(key),
                parent_span_id=self.span_id("") if key else None,
                name=name,
                kind=kind,
                start_time_unix_nano=to_nanoseconds(times.start),
                end_time_unix_nano=to_nanoseconds(max(times.end or times.start, times.start)),
                attributes=make_attributes(values),
                status=status,
            )
        )

    def span_id(self, key: str) -> str:
        """Derive the id of a span from its key."""
        return sha256(f"{self.run.trace_id}:{key}".encode()).hexdigest()[:16]

    def write_text(self, text: str) -> str | None:
        """Return a content; None if the trace has none."""
        return CutTexts(self.characters, self.form.clean).cut(text) if self.characters else None

    def write_messages(self, messages: Sequence[TraceMessage]) -> str | None:
        """Return messages as JSON; None if there are none, or the trace has no contents.

        A JSON text, because not every receiver reads nested values of attributes.
        """
        if not (self.characters and messages):
            return None
        texts = CutTexts(self.characters, self.form.clean)
        written = []
        for message in messages:
            if not texts.left:
                break
            written.append({**message, "parts": [cut_part(part, texts) for part in message["parts"]]})
        return write_json(written)


def make_message(role: str, content: Content, calls: Sequence[ToolCall] = ()) -> TraceMessage:
    """Return a message in OpenTelemetry's form. Images are shown without their data."""
    parts: list[dict[str, Any]] = [
        {"type": "image"} if isinstance(item, ImageContentItem) else {"type": "text", "content": item.text}
        for item in items_of(content)
        if isinstance(item, ImageContentItem) or item.text
    ]
    parts += [
        {"type": "tool_call", "id": call.call_id, "name": call.tool_name, "arguments": call.arguments} for call in calls
    ]
    return {"role": role, "parts": parts}


def make_result_message(call_id: str, content: Content) -> TraceMessage:
    """Return the message with a tool's result in OpenTelemetry's form."""
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": text_of(content)}]}


def cut_part(part: dict[str, Any], texts: CutTexts) -> dict[str, Any]:
    """Return a part of a message with its text as far as there is room. Arguments become a text when they are cut."""
    for name in ("content", "response"):
        if name in part:
            return {**part, name: texts.cut(part[name])}
    if "arguments" not in part:
        return part
    text = write_json(part["arguments"])
    cut = texts.cut(text)
    return part if cut == text else {**part, "arguments": cut}


def usage_attributes(usage: Usage | StepUsage | None) -> dict[str, AttributeValue]:
    """Return the attributes of token counts; those of caches and of reasoning if there are any."""
    if usage is None:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
        "gen_ai.usage.cache_write.input_tokens": usage.cache_write_tokens or None,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens or None,
    }


def find_tool_error(result: ToolResponse | None) -> ErrorInfo | None:
    """Return the error of a tool's result; None if it has not failed."""
    if result is None or not (result.metadata or {}).get("error"):
        return None
    return ErrorInfo(message=text_of(result.content), type="tool_error", code="tool_error")


def find_provider(model: str) -> str:
    """Return the name of the provider of a model: the prefix of its id, or this server for a registered name."""
    prefix, separator, _ = model.partition("/")
    return PROVIDERS.get(prefix, prefix) if separator else "stint"


def join_name(operation: str, name: str | None) -> str:
    """Return the name of a span."""
    return f"{operation} {name[:LONGEST_NAME]}" if name else operation


def to_nanoseconds(moment: datetime) -> str:
    """Return a time in nanoseconds since 1970."""
    return str((moment - EPOCH) // MICROSECOND * 1000)


def write_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
