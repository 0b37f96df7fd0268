"""The steps of a stored response, from the records of its log."""

from collections.abc import Iterator

from stint.domain.content import text_of
from stint.domain.ids import time_of
from stint.domain.openai.response_steps import ResponseStep, ResponseStepList, StepKind
from stint.domain.openai.stored_responses import ResponseOutcome, ResponseRecord, StoredResponse
from stint.domain.partial_steps import PartialStep
from stint.domain.steps import InferenceStep, ToolExecutionStep
from stint.services.responses.output_items import Encode, OutputItems

LONGEST_ERROR = 1_000
"""Maximum characters of an error. The output has the whole result of a tool."""


def read_steps(stored: StoredResponse, encode: Encode) -> ResponseStepList:
    """Return the steps of a response so far, in order."""
    return ResponseStepList.of([*list_steps(stored, encode)], has_more=False)


def list_steps(stored: StoredResponse, encode: Encode) -> Iterator[ResponseStep]:
    header = stored.header
    settings = header.settings.model_copy(update={"include": []})  # the items themselves are not returned
    output = OutputItems(header.response_id, settings, encode, header.listed)
    for record in stored.records:
        known = len(output.items)
        output.add_record(record)
        if (step := to_step(record)) is not None:
            step.item_ids = [item.id for item in output.items[known:]]
            yield step
        if record.unfinished is not None:
            yield to_unfinished(record.unfinished, record.ending)


def to_step(record: ResponseRecord) -> ResponseStep | None:
    """Return the step of a record; None if it has none."""
    match record:
        case ResponseRecord(step=InferenceStep() as step):
            shown = to_timed(step, "model_call")
            shown.first_token_ms, shown.usage = step.first_token_ms, step.usage
            return shown
        case ResponseRecord(step=ToolExecutionStep(tool_responses=[response]) as step):
            shown = to_timed(step, "tool_call")
            shown.tool_name, shown.call_id = response.tool_name, response.call_id
            if (response.metadata or {}).get("error"):
                shown.error = text_of(response.content)[:LONGEST_ERROR]
            return shown
        case ResponseRecord(compaction_id=str(step_id)):
            began = time_of(step_id)
            return ResponseStep(id=step_id, type="compaction", started_at=began, completed_at=record.compacted_at)
    return None


def to_timed(step: InferenceStep | ToolExecutionStep, kind: StepKind) -> ResponseStep:
    return ResponseStep(id=step.step_id, type=kind, started_at=step.started_at, completed_at=step.completed_at)


def to_unfinished(step: PartialStep, ending: ResponseOutcome | None) -> ResponseStep:
    """Return the step in which a response failed or was cancelled."""
    kind: StepKind = "tool_call" if step.step_type == "tool_execution" else "model_call"
    error = ending.error.message[:LONGEST_ERROR] if ending is not None and ending.error is not None else None
    return ResponseStep(id=step.step_id, type=kind, started_at=time_of(step.step_id), error=error)
