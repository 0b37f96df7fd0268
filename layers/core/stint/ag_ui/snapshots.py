"""The messages of stored turns, as AG-UI shows them.

The ids are the same in each snapshot, and in the events of the run that made the messages:

    message                                 id
    of the user, sent by AG-UI              the client's
    of the user, sent by another API        that of its turn, or of its message in line, and its place
    of the model                            that of its step
    of a tool that the server runs          that of its step, and its place
    of a tool that the client runs          the one that the client has for the result of this call, or as above
"""

from collections.abc import Iterable, Iterator, Sequence

from stint.ag_ui.contents import show_arguments, show_content, show_result
from stint.ag_ui.schemas.inputs import GivenResult, RunMessage
from stint.ag_ui.schemas.messages import (
    CalledTool,
    FunctionToolCall,
    ShownAssistantMessage,
    ShownMessage,
    ShownToolMessage,
    ShownUserMessage,
)
from stint.domain.content import text_of
from stint.domain.llama_stack.stored_turns import MergedMessage, StoredTurn
from stint.domain.messages import InputMessage, UserMessage
from stint.domain.steps import InferenceStep, ShieldCallStep, ToolExecutionStep
from stint.domain.tools import ToolCall, ToolResponseMessage

CONTEXT_ID = ""
"""The id, in a turn's header, of the message with the context of the application, which no snapshot shows."""


class ResultIds:
    """The ids that a client has for the results of calls. Models repeat the ids of calls, so the order counts."""

    def __init__(self, given: Sequence[RunMessage]) -> None:
        self._ids: dict[str, list[str]] = {}
        for message in reversed(given):
            if isinstance(message, GivenResult):
                self._ids.setdefault(message.tool_call_id, []).append(message.id)

    def take(self, call_id: str, default: str) -> str:
        """Return the id of the next result of a call."""
        left = self._ids.get(call_id)
        return left.pop() if left else default


def show_turns(turns: Iterable[StoredTurn], given: Sequence[RunMessage]) -> list[ShownMessage]:
    """Return the messages of turns. `given` are those of the client."""
    results = ResultIds(given)
    return [message for turn in turns for message in show_turn(turn, results)]


def show_turn(turn: StoredTurn, results: ResultIds) -> Iterator[ShownMessage]:
    header = turn.header
    yield from show_input(header.input_messages, header.turn_id, results, header.message_ids)
    entries = turn.entries
    for entry in entries:
        if isinstance(entry, MergedMessage):
            yield from show_input(entry.input_messages, entry.message_id, results)
        elif isinstance(entry, InferenceStep):
            yield show_answer(entry)
        elif isinstance(entry, ToolExecutionStep):
            yield from show_results(entry, results)
        elif isinstance(entry, ShieldCallStep) and entry is entries[-1] and entry.metadata is None and entry.violation:
            yield ShownAssistantMessage(id=entry.step_id, content=entry.violation.user_message or "")


def show_input(
    messages: Sequence[InputMessage], name: str, results: ResultIds, ids: Sequence[str] | None = None
) -> Iterator[ShownMessage]:
    """Yield messages to an agent. `ids` are the client's; without these, they are those of `name`."""
    for place, message in enumerate(messages):
        own = ids[place] if ids is not None and place < len(ids) else f"{name}-{place}"
        if isinstance(message, UserMessage):
            if own != CONTEXT_ID:
                yield ShownUserMessage(id=own, content=show_content(message.content))
        elif isinstance(message, ToolResponseMessage):
            shown = results.take(message.call_id, own or f"{name}-{place}")
            yield ShownToolMessage(id=shown, tool_call_id=message.call_id, content=show_result(message.content))


def show_answer(step: InferenceStep) -> ShownAssistantMessage:
    answer = step.model_response
    calls = [show_call(call) for call in answer.tool_calls]
    return ShownAssistantMessage(id=step.step_id, content=text_of(answer.content) or None, tool_calls=calls or None)


def show_call(call: ToolCall) -> FunctionToolCall:
    return FunctionToolCall(id=call.call_id, function=CalledTool(name=call.tool_name, arguments=show_arguments(call)))


def show_results(step: ToolExecutionStep, results: ResultIds) -> Iterator[ShownToolMessage]:
    for place, response in enumerate(step.tool_responses):
        own = results.take(response.call_id, result_id(step, place))
        yield ShownToolMessage(id=own, tool_call_id=response.call_id, content=show_result(response.content))


def result_id(step: ToolExecutionStep, place: int) -> str:
    """Return the id of a message with a result of the server's tools."""
    return f"{step.step_id}-{place}"
