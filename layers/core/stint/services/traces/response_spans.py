"""The trace of a response.

Its header and its ending have whole seconds. The id of a response has the millisecond at which it was made, and its
steps have their own times, which are never outside of the root span. The ending of a response that failed or was
cancelled has no time. In the foreground, it is that of its creation and what it has consumed of the function.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

from stint.domain.ids import is_foreign, time_of
from stint.domain.openai.items import FunctionCall, FunctionCallOutput, Item, Message
from stint.domain.openai.parts import InputFile, InputImage, InputPart, MessagePart, RefusalPart
from stint.domain.openai.stored_responses import ResponseError, ResponseStatus, StoredResponse
from stint.domain.run_outcome import ErrorInfo
from stint.domain.steps import InferenceStep, Step
from stint.domain.traces import TraceDocument
from stint.services.traces.run_spans import RunSpans, SpanTimes, TracedRun, TraceMessage, make_message
from stint.services.traces.trace_form import TraceForm


def make_trace(response: StoredResponse, form: TraceForm) -> TraceDocument:
    """Return the trace of a response that has ended: a root span, and one or more for each of its steps."""
    return form.fit(lambda characters: make_spans(response, form, characters).to_document(), response.size)


def make_spans(response: StoredResponse, form: TraceForm, characters: int) -> RunSpans:
    header, ending = response.header, response.ending
    error = find_error(response.status, ending.error if ending else None)
    started_at, ended_at = find_times(response)
    run = TracedRun(header.response_id, header.model, header.conversation_id, started_at, ended_at)
    spans = RunSpans(run, form, characters)
    attributes = {
        "gen_ai.response.id": header.response_id,
        "gen_ai.request.previous_response.id": header.previous_response_id,
        "stint.status": response.status.value,
    }
    said = [message for item in (*header.input, *response.merged_items) for message in to_messages(item)]
    answers = [step.model_response for step in response.steps if isinstance(step, InferenceStep)]
    last = answers[-1:] if ending and not ending.broke_off else []
    answered = [make_message("assistant", each.content, each.tool_calls) for each in last]
    spans.add_root(None, attributes, response.usage, error, (said, answered))
    for record in response.records:
        if record.compaction_id is not None:
            spans.add_compaction(record.compaction_id, SpanTimes(time_of(record.compaction_id), record.compacted_at))
        if record.step is not None:
            spans.add_step(record.step, filtered=record.details is not None and record.details.filtered)
    for step in find_early(response):
        spans.add_step(step)
    unfinished = response.records[-1].unfinished if response.records else None
    if unfinished is not None:
        spans.add_unfinished(unfinished, error)
    return spans


def find_error(status: ResponseStatus, error: ResponseError | None) -> ErrorInfo | None:
    """Return the error of a response that failed."""
    if status is not ResponseStatus.failed:
        return None
    return ErrorInfo(message=error.message, type=error.type, code=error.code) if error else None


def find_times(response: StoredResponse) -> tuple[datetime, datetime]:
    """Return when a response was made, and when it ended."""
    header, ending = response.header, response.ending
    made, identifier = datetime.fromtimestamp(header.created_at, UTC), str(UUID(header.response_id.rpartition("_")[2]))
    if not is_foreign(identifier) and int(time_of(identifier).timestamp()) == header.created_at:
        made = time_of(identifier)  # otherwise the id was made before its request, or derived
    steps, records = [*response.steps, *find_early(response)], response.records
    untimed = [record.compaction_id for record in records if record.compaction_id is not None]
    untimed += [record.unfinished.step_id for record in records if record.unfinished is not None]
    began = [made, *(step.started_at for step in steps), *map(time_of, untimed)]
    ended = [step.completed_at for step in steps] + [record.compacted_at for record in records]
    if ending is not None and ending.completed_at is not None:
        ended.append(datetime.fromtimestamp(ending.completed_at, UTC))
    elif ending is not None and ending.consumption is not None and not header.background:
        ended.append(made + timedelta(milliseconds=ending.consumption.milliseconds))
    return min(began), max([*began, *filter(None, ended)])


def find_early(response: StoredResponse) -> list[Step]:
    """Return the results that arrived before those of earlier calls, and that no later record has."""
    known = {step.step_id for step in response.steps}
    early = [step for record in response.records for step in record.early or ()]
    return [step for step in early if step.step_id not in known]


def to_messages(item: Item) -> Iterator[TraceMessage]:
    """Yield an item of the input in OpenTelemetry's form, if that has messages for it."""
    match item:
        case Message():
            yield {"role": item.role, "parts": [to_part(part) for part in item.content]}
        case FunctionCall():
            call = {"type": "tool_call", "id": item.call_id, "name": item.name, "arguments": item.arguments}
            yield {"role": "assistant", "parts": [call]}
        case FunctionCallOutput(output=output):
            yield {"role": "tool", "parts": [to_result(item.call_id, output)]}


def to_result(call_id: str, output: str | list[InputPart]) -> dict[str, str]:
    texts = [output] if isinstance(output, str) else [to_part(part).get("content", "") for part in output]
    return {"type": "tool_call_response", "id": call_id, "response": "\n".join(filter(None, texts))}


def to_part(part: MessagePart | InputPart) -> dict[str, str]:
    """Return a part of a message in OpenTelemetry's form. Images and files are shown without their data."""
    match part:
        case InputImage():
            return {"type": "image"}
        case InputFile():
            return {"type": "file"}
        case RefusalPart():
            return {"type": "text", "content": part.refusal}
    return {"type": "text", "content": part.text}
