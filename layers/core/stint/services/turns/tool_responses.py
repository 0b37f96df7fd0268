"""Checks of a client's tool responses."""

from collections import Counter
from collections.abc import Collection

from stint.domain.errors import Conflict, InvalidRequest
from stint.domain.tools import ToolCall, ToolResponse

MOST_RESPONSES = 128
"""Maximum calls that a client parses from one answer, as many as OpenAI's maximum of tools."""


def match_responses(calls: list[ToolCall], responses: list[ToolResponse]) -> list[ToolResponse]:
    """Check that the responses answer every waiting call exactly once, and no other.

    They are returned in the order of the calls, with the calls' names.

    Raises:
        InvalidRequest: ids are missing, unknown or repeated. The message names them.
    """
    wanted = [call.call_id for call in calls]
    known, given = set(wanted), Counter(response.call_id for response in responses)
    problems = {
        "missing": [call_id for call_id in wanted if call_id not in given],
        "unknown": [call_id for call_id in given if call_id not in known],
        "given twice": repeated_in(given),
    }
    if any(problems.values()):
        details = "; ".join(f"{name}: {shorten(ids)}" for name, ids in problems.items() if ids)
        raise InvalidRequest(
            f"Send exactly one response for each waiting tool call, and no others. {details}. "
            f"The turn still waits for: {shorten(wanted)}.",
            code="tool_responses_mismatch",
            param="tool_responses",
        )
    by_id = {response.call_id: response for response in responses}
    return [by_id[call.call_id].model_copy(update={"tool_name": call.tool_name}) for call in calls]


def check_new_responses(turn_id: str, taken: Collection[str], responses: list[ToolResponse]) -> None:
    """Check that the responses to a completed turn answer new calls, each once.

    Raises:
        InvalidRequest: there is no response, or a call is answered twice.
        Conflict: a call's id is `taken`. The message names the ids.
    """
    counts = Counter(response.call_id for response in responses)
    twice = repeated_in(counts)
    if twice or not 1 <= len(responses) <= MOST_RESPONSES:
        problem = f"given twice: {shorten(twice)}" if twice else f"there are {len(responses)} responses"
        raise InvalidRequest(
            f"Turn {turn_id} is complete. Send one response for each tool call in its output message, "
            f"1 to {MOST_RESPONSES} at once; {problem}.",
            code="tool_responses_mismatch",
            param="tool_responses",
        )
    repeated = [call_id for call_id in counts if call_id in taken]
    if repeated:
        raise Conflict(
            f"Turn {turn_id} does not wait for these tool responses: its status is completed, and these call ids "
            f"are already used: {shorten(repeated)}. "
            "Answer the calls of its output message with new ids, or start a new turn.",
            code="turn_not_awaiting_input",
        )


def repeated_in(counts: Counter[str]) -> list[str]:
    return [call_id for call_id, count in counts.items() if count > 1]


def shorten(call_ids: list[str]) -> str:
    """Return a short text of ids for a message. Clients' ids may be many and long."""
    shown = [call_id[:100] for call_id in call_ids[:20]]
    return ", ".join(shown) + (f" and {len(call_ids) - len(shown)} more" if len(call_ids) > len(shown) else "")
