"""Check the tool responses that a client sends."""

from collections import Counter
from collections.abc import Collection

from stint.domain.errors import Conflict, InvalidRequest
from stint.domain.tools import ToolCall, ToolResponse


def match_responses(calls: list[ToolCall], responses: list[ToolResponse]) -> list[ToolResponse]:
    """Check that the responses answer every waiting call exactly once, and nothing else.

    They come back in the order of the calls, and with their names.

    Raises:
        InvalidRequest: names the ids that are missing, unknown or given twice.
    """
    wanted = [call.call_id for call in calls]
    given = [response.call_id for response in responses]
    problems = {
        "missing": [call_id for call_id in wanted if call_id not in given],
        "unknown": [call_id for call_id in dict.fromkeys(given) if call_id not in wanted],
        "given twice": [call_id for call_id in dict.fromkeys(given) if given.count(call_id) > 1],
    }
    if any(problems.values()):
        details = "; ".join(f"{name}: {', '.join(ids)}" for name, ids in problems.items() if ids)
        raise InvalidRequest(
            f"Every waiting tool call must be answered exactly once, and no other. {details}. "
            f"The turn still waits for: {', '.join(wanted)}.",
            code="tool_responses_mismatch",
            param="tool_responses",
        )
    by_id = {response.call_id: response for response in responses}
    return [by_id[call.call_id].model_copy(update={"tool_name": call.tool_name}) for call in calls]


def check_new_responses(turn_id: str, taken: Collection[str], responses: list[ToolResponse]) -> None:
    """Check that the responses to a complete turn answer calls of their own, each once.

    Raises:
        InvalidRequest: there is no response, or a call is answered twice.
        Conflict: a call's id is `taken`; names the ids.
    """
    counts = Counter(response.call_id for response in responses)
    twice = [call_id for call_id, count in counts.items() if count > 1]
    if not responses or twice:
        problem = f"given twice: {', '.join(twice)}" if twice else "there is no response"
        raise InvalidRequest(
            f"Every tool call must be answered exactly once; {problem}. Turn {turn_id} is complete: send a response "
            "for each tool call that you found in its output message.",
            code="tool_responses_mismatch",
            param="tool_responses",
        )
    repeated = [call_id for call_id in counts if call_id in taken]
    if repeated:
        raise Conflict(
            f"Turn {turn_id} does not wait for these tool responses: its status is completed, and the call ids "
            f"{', '.join(repeated)} are taken. Answer calls of its output message under new ids, or begin a new turn.",
            code="turn_not_awaiting_input",
        )
