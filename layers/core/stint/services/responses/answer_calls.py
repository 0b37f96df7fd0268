"""The calls of one model answer, for the output and the context of a response."""

from stint.dataclasses import dataclass, field
from stint.domain.steps import InferenceStep
from stint.domain.tools import ToolCall


@dataclass(slots=True)
class AnswerCalls:
    """The calls of one model answer, and their state.

    `waiting` has the calls without an item so far, in the model's order; `requests` the ids of approval requests by
    call id; `dropped` the ids of calls that did not run because of a limit; `refused` those of calls that the tool
    choice forbids, which have no items.
    """

    waiting: list[ToolCall] = field(default_factory=list)
    requests: dict[str, str] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)

    def in_context(self, step: InferenceStep) -> InferenceStep:
        """Return the answer as later model calls see it.

        A call that waits for approval has the id of its request. Dropped calls are omitted.
        """
        if not self.requests and not self.dropped:
            return step
        answer = step.model_response
        calls = [
            call.model_copy(update={"call_id": self.requests.get(call.call_id, call.call_id)})
            for call in answer.tool_calls
            if call.call_id not in self.dropped
        ]
        return step.model_copy(update={"model_response": answer.model_copy(update={"tool_calls": calls})})
