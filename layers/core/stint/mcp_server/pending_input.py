"""Turns that wait for their client: what they ask, and what the answers mean.

    the turn waits for           the form asks                     accepted                 declined
    the approval of a call       `approve`, and maybe a `reason`   approved, or denied      denied
    the result of a client's     `result`, a text                  the result               an error as the result
    tool
    the form of another server   what that server asks             what is filled in        that server learns it

The answer `cancel` means that the user has not decided: the turn goes on waiting. A client that cannot show forms gets
the questions as a text, which names the route for answers: no argument of a tool takes them, because who calls a tool
is mostly a model, which must not approve what its own call has caused.
"""

import json
from collections.abc import Mapping
from typing import Any

from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.turns import ToolApproval, Turn, TurnResumeRequest
from stint.domain.tools import ToolCall, ToolResponse
from stint.mcp_server.call_states import AskedCall
from stint.mcp_server.schemas import ElicitResult, FormParams, FormRequest

DECLINED_APPROVAL = "The user declined the request."
DECLINED_RESULT = "The user declined to give a result."
UNASKED, DISMISSED = "this client cannot ask for", "the user has not given"
APPROVAL_FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "approve": {"type": "boolean", "title": "Approve", "description": "Whether the call may run."},
        "reason": {"type": "string", "title": "Reason", "description": "Why it may not. The agent reads it."},
    },
    "required": ["approve"],
}
RESULT_FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {"result": {"type": "string", "title": "Result", "description": "What the tool returned."}},
    "required": ["result"],
}


def pair_asked(turn: Turn) -> list[tuple[ToolCall, AskedCall]]:
    """Return the calls for which a turn waits, with what is asked: one of them for each form of another server."""
    unapproved, inputs = set(turn.pending_approvals or ()), turn.pending_inputs or {}
    forms: Mapping[str, list[str | None]] = {call_id: [*asked] for call_id, asked in inputs.items()}
    return [
        (
            call,
            AskedCall(call_id=call.call_id, tool_name=call.tool_name, approval=call.call_id in unapproved, form=form),
        )
        for call in turn.output_message.tool_calls
        for form in forms.get(call.call_id, [None])
    ]


def list_asked(turn: Turn) -> list[AskedCall]:
    """Return what a turn asks, in the order of its questions."""
    return [asked for _, asked in pair_asked(turn)]


def key_of(place: int) -> str:
    """Return the key of a question. The ids of calls are a model's, and may be anything."""
    return f"call_{place}"


def to_forms(turn: Turn) -> dict[str, FormRequest]:
    """Return the questions of a turn that waits, by their keys."""
    return {key_of(place): to_form(call, turn, asked) for place, (call, asked) in enumerate(pair_asked(turn), 1)}


def to_form(call: ToolCall, turn: Turn, asked: AskedCall) -> FormRequest:
    if asked.form is not None:
        form = (turn.pending_inputs or {})[call.call_id][asked.form]
        message = f"The tool {call.tool_name} of the agent asks: {form.message}"
        return FormRequest(params=FormParams(message=message, requested_schema=form.requested_schema))
    approval = asked.approval
    question = "wants to call" if approval else "asks for the result of"
    message = f"The agent {question} {describe(call, turn)}."
    return FormRequest(
        params=FormParams(message=message, requested_schema={**(APPROVAL_FORM if approval else RESULT_FORM)})
    )


def describe(call: ToolCall, turn: Turn) -> str:
    """Return a call with all its arguments, also those that the agent's configuration replaces."""
    arguments: Any = call.arguments
    fixed = (turn.pending_arguments or {}).get(call.call_id)
    if fixed and isinstance(arguments, dict):
        arguments = {**arguments, **fixed}
    return f"the tool {call.tool_name} with {json.dumps(arguments, ensure_ascii=False)}"


def to_text(agent_id: str, turn: Turn, *, dismissed: bool = False) -> str:
    """Return the questions of a turn as a text, and where they are answered. `dismissed`: the user has seen forms."""
    lines = [
        f"- {'approval' if asked.approval else 'result'} of the call {call.call_id}: {describe(call, turn)}"
        for call, asked in pair_asked(turn)
    ]
    path = f"/v1/agents/{agent_id}/session/{turn.session_id}/turn/{turn.turn_id}/resume"
    return "\n".join(
        [
            f"The agent has not answered yet: it waits for input that {DISMISSED if dismissed else UNASKED}.",
            *lines,
            f"A person answers with POST {path}, or in the console: tool_responses for results, approvals for "
            "approvals. Another message in this session ends the waiting turn.",
        ]
    )


def to_resume(calls: list[AskedCall], answers: Mapping[str, ElicitResult]) -> TurnResumeRequest | None:
    """Return the answers to all questions as a request of the turn; None if the user has not decided.

    Raises:
        InvalidRequest: an answer is missing or unknown, or does not fit its form.
    """
    keys = {key_of(place): call for place, call in enumerate(calls, 1)}
    if unknown := answers.keys() - keys.keys():
        raise refuse_answer(sorted(unknown)[0][:80], "answers no request of this call")
    if missing := keys.keys() - answers.keys():
        raise refuse_answer(min(missing), "is missing: answer each request of the call")
    if any(answer.action == "cancel" for answer in answers.values()):
        return None
    approvals = [to_approval(key, call, answers[key]) for key, call in keys.items() if is_decision(call)]
    results = [to_result(key, call, answers[key]) for key, call in keys.items() if not call.approval]
    filled: dict[str, dict[str, ElicitResult]] = {}
    for key, call in keys.items():
        if call.form is not None:
            filled.setdefault(call.call_id, {})[call.form] = answers[key]
    approvals += [to_input(call_id, forms) for call_id, forms in filled.items()]
    return TurnResumeRequest(tool_responses=results, approvals=approvals or None)


def is_decision(call: AskedCall) -> bool:
    return call.approval and call.form is None


def to_input(call_id: str, forms: Mapping[str, ElicitResult]) -> ToolApproval:
    """Return what is filled into the forms of a call, which the turn checks against them."""
    if any(answer.action == "decline" for answer in forms.values()):
        return ToolApproval(call_id=call_id, approve=False, reason=DECLINED_APPROVAL)
    contents = {form: answer.content or {} for form, answer in forms.items()}
    only = contents[min(contents)] if len(contents) == 1 else contents
    return ToolApproval(call_id=call_id, approve=True, input={**only})


def to_approval(key: str, call: AskedCall, answer: ElicitResult) -> ToolApproval:
    if answer.action == "decline":
        return ToolApproval(call_id=call.call_id, approve=False, reason=DECLINED_APPROVAL)
    content = answer.content or {}
    approve, reason = content.get("approve"), content.get("reason")
    if not isinstance(approve, bool) or not isinstance(reason, str | None):
        raise refuse_answer(key, "needs content with approve, true or false, and may have a reason, a string")
    return ToolApproval(call_id=call.call_id, approve=approve, reason=reason or None)


def to_result(key: str, call: AskedCall, answer: ElicitResult) -> ToolResponse:
    if answer.action == "decline":
        return ToolResponse(
            call_id=call.call_id, tool_name=call.tool_name, content=DECLINED_RESULT, metadata={"error": True}
        )
    result = (answer.content or {}).get("result")
    if not isinstance(result, str):
        raise refuse_answer(key, "needs content with result, a string")
    return ToolResponse(call_id=call.call_id, tool_name=call.tool_name, content=result)


def refuse_answer(key: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"The answer {key!r} {reason}.", code="invalid_answer", param=f"params.inputResponses.{key}")
