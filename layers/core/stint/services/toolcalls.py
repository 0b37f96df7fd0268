"""Tool responses that a client sends: do they answer the calls that a turn waits for?"""

from stint.domain.errors import InvalidRequest
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
