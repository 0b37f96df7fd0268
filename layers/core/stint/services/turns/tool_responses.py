"""Checks of a client's tool responses: of their ids, and of their contents by the shields of the tools.

A paused turn waits for one response to each of its calls, and for no other. A completed one accepts responses to calls
that the client parsed from the answer's text, whose ids must be new in the session. Everything is checked before
anything is stored, so a refused request leaves the turn as it was, and the client can send it again. A result that a
shield refuses is replaced, which its metadata says, so that a repetition with the refused result counts as the same.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from stint.dataclasses import dataclass, field
from stint.domain.content import Content
from stint.domain.errors import Conflict, InvalidRequest
from stint.domain.llama_stack.turns import ToolApproval
from stint.domain.messages import InputMessage
from stint.domain.steps import ShieldCallStep, ToolExecutionStep
from stint.domain.tools import ToolCall, ToolResponse, ToolResponseMessage
from stint.loop.model_call import with_deadline
from stint.loop.toolbox import Toolbox
from stint.loop.transcript import Transcript
from stint.store.parallel import map_concurrently
from stint.tools.port import ToolOutcome

if TYPE_CHECKING:
    from stint.domain.elicitations import AnsweredInput
    from stint.loop.tool_shields import ResultCheck

REPLACED = "replaced"
"""Key of the metadata of a client's result that a shield has replaced."""

MOST_RESPONSES = 128
"""Maximum calls that a client parses from one answer, as many as OpenAI's maximum of tools."""


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """The answers of a client to a turn. `step` has its results, and those of denied calls; None if there are none.

    `approvals` are None if no call waited for one. The `approved` calls run next, some of them with the `inputs` that
    their servers have asked for.
    """

    step: ToolExecutionStep | None
    approvals: list[ToolApproval] | None = None
    approved: Sequence[ToolCall] = ()
    inputs: "Sequence[tuple[ToolCall, AnsweredInput]]" = ()


def match_responses(calls: list[ToolCall], responses: list[ToolResponse]) -> list[ToolResponse]:
    """Check that the responses answer every waiting call exactly once, and no other.

    They are returned in the order of the calls, with the calls' names.

    Raises:
        InvalidRequest: ids are missing, unknown or repeated. The message names them.
    """
    wanted = [call.call_id for call in calls]
    if problems := describe_mismatch(wanted, Counter(response.call_id for response in responses)):
        raise InvalidRequest(
            f"Send exactly one response for each waiting tool call, and no others. {problems}. "
            f"The turn still waits for: {shorten(wanted)}.",
            code="tool_responses_mismatch",
            param="tool_responses",
        )
    by_id = {response.call_id: response for response in responses}
    return [by_id[call.call_id].model_copy(update={"tool_name": call.tool_name}) for call in calls]


def describe_mismatch(wanted: Collection[str], answered: Counter[str]) -> str:
    """Return what differs between the ids of calls that wait and of their answers: nothing if each is answered once."""
    known = set(wanted)
    problems = {
        "missing": [call_id for call_id in wanted if call_id not in answered],
        "unknown": [call_id for call_id in answered if call_id not in known],
        "given twice": repeated_in(answered),
    }
    return "; ".join(f"{name}: {shorten(ids)}" for name, ids in problems.items() if ids)


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


def refuse_results(
    messages: Sequence[InputMessage], transcript: Transcript, asked: Collection[str], approvals: Collection[str]
) -> None:
    """Refuse results of calls that were `asked` for approval: nobody may make up those of the server's tools.

    Calls of tools with `approvals` count as such. They may be open from earlier than the last turn, if the model has
    refused the input of that.

    Raises InvalidRequest.
    """
    for call, _ in match_calls(messages, transcript.open).values():
        waits = call.call_id in asked or call.tool_name in approvals
        if waits and transcript.open.get(call.call_id) is call:
            raise InvalidRequest(
                f"Call {call.call_id[:100]} waits for approval, not for a result. Resume its turn with approvals, or "
                "start a turn without its result.",
                code="approvals_mismatch",
                param="messages",
            )


@dataclass(slots=True)
class ResultChecks:
    """The checks of the results that a client sends to a turn. `steps` has those of the results so far."""

    toolbox: Toolbox
    turn_id: str
    deadline: float
    steps: list[ShieldCallStep] = field(default_factory=list)

    async def check_messages(self, messages: list[InputMessage], transcript: Transcript) -> list[InputMessage]:
        """Return the messages of a turn, with an answer for the model in place of each blocked result."""
        if not self.toolbox.shields:
            return messages
        results = match_calls(messages, transcript.open)
        checked = await self.check(list(results.values()))
        answers = dict(zip(results, checked, strict=True))
        return [
            message.model_copy(update={"content": answers[place].content})
            if isinstance(message, ToolResponseMessage)
            else message
            for place, message in enumerate(messages)
        ]

    async def check_step(self, step: ToolExecutionStep) -> ToolExecutionStep:
        """Return the step of a client's results, with an answer for the model in place of each blocked one."""
        if not self.toolbox.shields:
            return step
        calls = {call.call_id: call for call in step.tool_calls}
        results = [
            (
                calls.get(each.call_id) or named_call(each.call_id, each.tool_name),
                ToolOutcome(each.content, each.metadata or {}),
            )
            for each in step.tool_responses
        ]
        checked = await self.check(results)
        responses = [
            response if outcome is given else replaced(response, outcome.content)
            for response, (_, given), outcome in zip(step.tool_responses, results, checked, strict=True)
        ]
        return step.model_copy(update={"tool_responses": responses})

    async def check(self, results: Sequence[tuple[ToolCall, ToolOutcome]]) -> list[ToolOutcome]:
        """Return the outcomes of calls, or others in place of those that a shield blocks."""
        from stint.loop.tool_shields import ResultCheck  # noqa: PLC0415 - few agents have shields of tools

        checks = [ResultCheck(self.toolbox.shields_of_result(call.tool_name), call) for call, _ in results]
        pairs = [(check, outcome) for check, (_, outcome) in zip(checks, results, strict=True)]
        checking = map_concurrently(inspect, pairs)
        outcomes = await with_deadline(self.deadline, checking)
        self.steps += [step for check in checks if (step := check.to_step(self.turn_id)) is not None]
        return outcomes


async def inspect(pair: "tuple[ResultCheck, ToolOutcome]") -> ToolOutcome:
    check, outcome = pair
    return await check.inspect(outcome)


def match_calls(
    messages: Sequence[InputMessage], waiting: Mapping[str, ToolCall]
) -> dict[int, tuple[ToolCall, ToolOutcome]]:
    """Return the results among some messages by their places, each with the call that it answers.

    A result with an empty call id is that of the first call that waits. One of no such call is known by its name.
    """
    left, found = {**waiting}, {}
    for place, message in enumerate(messages):
        if isinstance(message, ToolResponseMessage):
            call = left.pop(message.call_id or next(iter(left), ""), None)
            call = call or named_call(message.call_id, message.tool_name or "")
            found[place] = call, ToolOutcome(message.content)
    return found


def named_call(call_id: str, tool_name: str) -> ToolCall:
    """Return the call of a result that answers none of the model's calls."""
    return ToolCall(call_id=call_id, tool_name=tool_name, arguments={})


def replaced(response: ToolResponse, content: Content) -> ToolResponse:
    return response.model_copy(update={"content": content, "metadata": {"error": True, REPLACED: True}})
