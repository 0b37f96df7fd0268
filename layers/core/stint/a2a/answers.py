"""The calls that a task waits for, and the client's answers to them.

Each call is a `data` part of the status message, and each answer a `data` part of the message that names the task:

    the call                                                             an answer
    {"kind": "tool_call", "callId", "toolName", "arguments"}             {"callId", "result"} or {"callId", "error"}
    {"kind": "approval_request", "callId", "toolName", "arguments"}      {"callId", "approve", "reason"}
    the same with "forms", if the server of the tool asks                {"callId", "approve", "input"}

A task that waits for one result also takes it as text, because a chat window sends nothing else. A text decides nothing
about an approval: whoever reads "yes, but not today" as a decision runs a tool that nobody wanted.
"""

import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from stint.a2a.parts import whole_numbers
from stint.a2a.schemas import A2APart, SentPart, TaskCallAnswer
from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.stored_turns import unanswered_calls
from stint.domain.llama_stack.turns import ToolApproval, Turn, TurnResumeRequest
from stint.domain.steps import ToolExecutionStep
from stint.domain.tools import ToolCall, ToolResponse
from stint.domain.validation import describe_faults

TOOL_CALL, APPROVAL_REQUEST = "tool_call", "approval_request"
FAILED = "error"
"""Key of the metadata of a result whose content is an error."""

FORMS = '{"callId", "result"}, {"callId", "error"} or, for an approval, {"callId", "approve", "input"}'


def describe_waiting(turn: Turn) -> list[A2APart]:
    """Return what a waiting turn asks of its client: a sentence, and a part for each call."""
    approvals, inputs = turn.pending_approvals or (), turn.pending_inputs or {}
    calls = turn.output_message.tool_calls
    asked = [call.tool_name for call in calls if call.call_id in approvals and call.call_id not in inputs]
    wanted = [call.tool_name for call in calls if call.call_id not in approvals]
    sentences = [f"The agent waits for the result of: {', '.join(wanted)}."] if wanted else []
    sentences += [f"The agent asks for your approval of: {', '.join(asked)}."] if asked else []
    sentences += [
        f"The tool {call.tool_name} asks: {form.message}"
        for call in calls
        for form in inputs.get(call.call_id, {}).values()
    ]
    return [A2APart(text=" ".join(sentences)), *(describe_call(call, turn) for call in calls)]


def describe_call(call: ToolCall, turn: Turn) -> A2APart:
    """Return a call that waits, with the forms of its server. Fixed arguments are in place of the model's."""
    fixed, asks = (turn.pending_arguments or {}).get(call.call_id), call.call_id in (turn.pending_approvals or ())
    arguments = {**call.arguments, **fixed} if fixed and isinstance(call.arguments, dict) else call.arguments
    kind = APPROVAL_REQUEST if asks else TOOL_CALL
    data: dict[str, Any] = {"kind": kind, "callId": call.call_id, "toolName": call.tool_name, "arguments": arguments}
    if forms := (turn.pending_inputs or {}).get(call.call_id):
        data["forms"] = {key: {"message": each.message, "schema": each.requested_schema} for key, each in forms.items()}
    return A2APart(data=data, media_type="application/json")


def to_answer(turn: Turn, parts: Sequence[SentPart]) -> TurnResumeRequest:
    """Return the answers of a message to a waiting turn. Raises InvalidRequest, which names the part."""
    calls = {call.call_id: call for call in unanswered_calls(turn.steps)} or find_answered(turn, parts)
    approvals = turn.pending_approvals or ()
    answers = read_answers(parts, calls, approvals)
    responses = [
        respond(each, calls[each.call_id]) if each.call_id in calls else respond_unknown(each)
        for each in answers
        if each.approve is None
    ]
    decisions = [
        ToolApproval(call_id=each.call_id, approve=each.approve, reason=each.reason, input=whole_numbers(each.input))
        for each in answers
        if each.approve is not None
    ]
    return TurnResumeRequest(tool_responses=responses, approvals=decisions or None)


def find_answered(turn: Turn, parts: Sequence[SentPart]) -> dict[str, ToolCall]:
    """Return the call that an earlier attempt of the same request has answered with its text, if it was one."""
    text = join_texts(parts)
    for step in reversed(turn.steps):
        if isinstance(step, ToolExecutionStep) and [each.content for each in step.tool_responses] == [text]:
            return {call.call_id: call for call in step.tool_calls}
    return {}


def join_texts(parts: Sequence[SentPart]) -> str:
    return "\n".join(part.text or "" for part in parts)


def read_answers(
    parts: Sequence[SentPart], calls: dict[str, ToolCall], approvals: Sequence[str]
) -> list[TaskCallAnswer]:
    """Return the answers in the parts of a message."""
    if all(part.text is not None for part in parts):
        return [read_text(parts, calls, approvals)]
    answers = []
    for index, part in enumerate(parts):
        place = f"message.parts[{index}]"
        if "data" not in part.model_fields_set or part.text is not None or part.raw is not None or part.url is not None:
            raise InvalidRequest(f"{place} must have data alone. The answer to a call is {FORMS}.", param=place)
        answers.append(read_answer(part.data, f"{place}.data"))
    return answers


def read_text(parts: Sequence[SentPart], calls: dict[str, ToolCall], approvals: Sequence[str]) -> TaskCallAnswer:
    """Return the answer of a text, which only a single call for a result takes."""
    if len(calls) != 1 or approvals:
        waits = f"{len(calls)} calls" if len(calls) != 1 else "an approval"
        message = f"The task waits for {waits}, which a text cannot answer. Send data parts: {FORMS}."
        raise InvalidRequest(message, param="message.parts")
    return TaskCallAnswer(call_id=next(iter(calls)), result=join_texts(parts))


def read_answer(data: Any, place: str) -> TaskCallAnswer:
    """Return the answer that the data of a part is. Raises InvalidRequest."""
    try:
        answer = TaskCallAnswer.model_validate(data)
    except ValidationError as error:
        raise InvalidRequest(f"{place} is no answer to a call: {describe_faults(error)}", param=place) from None
    given = [name for name in ("result", "error", "approve") if getattr(answer, name) is not None]
    if not given and isinstance(data, dict) and "result" in data:  # a result that is null
        return answer
    if answer.input is not None and answer.approve is None:
        message = f"{place}.input fills in the forms of a call that asks for approval. Set approve, too."
        raise InvalidRequest(message, param=f"{place}.input")
    if len(given) != 1:
        raise InvalidRequest(f"{place} must have one of result, error and approve: {FORMS}.", param=place)
    return answer


def respond(answer: TaskCallAnswer, call: ToolCall) -> ToolResponse:
    """Return the result of a call. A result that is no text is given to the model as JSON."""
    if answer.error is not None:
        return ToolResponse(
            call_id=call.call_id, tool_name=call.tool_name, content=answer.error, metadata={FAILED: True}
        )
    text = answer.result if isinstance(answer.result, str) else json.dumps(answer.result, ensure_ascii=False)
    return ToolResponse(call_id=call.call_id, tool_name=call.tool_name, content=text)


def respond_unknown(answer: TaskCallAnswer) -> ToolResponse:
    """Return the result of a call that does not wait, which is refused, or was answered by an earlier attempt."""
    return respond(answer, ToolCall(call_id=answer.call_id, tool_name="", arguments={}))
