"""Whether the calls of functions in a context have their outputs."""

from collections.abc import Iterable

from stint.domain.errors import InvalidRequest
from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.items import FunctionCall, FunctionCallOutput
from stint.services.responses.context import Context


def unanswered_calls(context: Context, resolved: Iterable[StoredItem]) -> list[str]:
    """List the calls that are open at the end of a context, and those of the input (`resolved`), without an output.

    A call that an earlier request passed over is not among them, nor are those of tools that the server runs, nor those
    of a response that failed: its client need not have seen them.
    """
    functions = {stored.item.call_id for stored in context.known.values() if isinstance(stored.item, FunctionCall)}
    waiting = dict.fromkeys(
        call_id for call_id in context.reader.transcript.open if call_id in functions - context.excused
    )
    for stored in resolved:
        match stored.item:
            case FunctionCall(call_id=call_id):
                waiting[call_id] = None
            case FunctionCallOutput(call_id=call_id):
                waiting.pop(call_id, None)
    return list(waiting)


def refuse_unanswered(call_ids: Iterable[str]) -> None:
    """Raise InvalidRequest, in OpenAI's words, for the first of these calls."""
    for call_id in call_ids:
        raise InvalidRequest(
            f"No tool output found for function call {call_id}.", code="missing_tool_output", param="input"
        )
