"""Checks that function calls have outputs."""

from collections import Counter
from collections.abc import Iterable

from stint.domain.errors import InvalidRequest
from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.items import FunctionCall, FunctionCallOutput
from stint.services.responses.links import Context


def unanswered_calls(context: Context, resolved: Iterable[StoredItem]) -> list[str]:
    """Return the calls without an output at the end of a context and in the input (`resolved`).

    An output may come before its call. Calls that an earlier request skipped, calls of server tools, and calls of a
    failed response, which its client may not have seen, are not among them.
    """
    functions = context.function_calls - context.excused
    waiting = dict.fromkeys(call_id for call_id in context.reader.transcript.open if call_id in functions)
    early: Counter[str] = Counter()
    for stored in resolved:
        match stored.item:
            case FunctionCall(call_id=call_id) if early[call_id]:
                early[call_id] -= 1
            case FunctionCall(call_id=call_id):
                waiting[call_id] = None
            case FunctionCallOutput(call_id=call_id) if call_id in waiting:
                del waiting[call_id]
            case FunctionCallOutput(call_id=call_id):
                early[call_id] += 1
    return list(waiting)


def refuse_unanswered(call_ids: Iterable[str]) -> None:
    """Raise InvalidRequest with OpenAI's message for the first of these calls."""
    for call_id in call_ids:
        raise InvalidRequest(
            f"No tool output found for function call {call_id}.", code="missing_tool_output", param="input"
        )
