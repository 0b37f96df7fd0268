"""The events of a turn as messages of a call: progress, for a client that asked for it, and the result at the end."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from stint.dataclasses import dataclass
from stint.domain.llama_stack.events import NumberedEvent, TurnAwaitingInput, TurnComplete, TurnFailed, TurnStart
from stint.domain.llama_stack.turns import Turn
from stint.domain.run_events import StepComplete, StepStart
from stint.domain.steps import StepType, ToolExecutionStep
from stint.mcp_server.schemas import ProgressParams, Token

STARTED = "The turn has started."
STEPS: dict[StepType, str] = {
    "inference": "The agent thinks.",
    "tool_execution": "The agent runs tools.",
    "shield_call": "Messages are checked.",
    "memory_retrieval": "The agent searches documents.",
}
MOST_NAMES = 5
"""Maximum names of tools in a message."""


@dataclass(slots=True)
class CallProgress:
    """The progress of one call. Without a token there is none."""

    token: Token | None
    count: int = 0

    async def follow(self, events: AsyncGenerator[NumberedEvent, None]) -> AsyncGenerator[ProgressParams | Turn, None]:
        """Yield progress while a turn runs, and the turn when it has ended or waits for its client."""
        async with aclosing(events):
            async for numbered in events:
                event = numbered.event
                if isinstance(event, TurnComplete | TurnAwaitingInput | TurnFailed):
                    yield event.turn
                    return
                if self.token is None:
                    continue
                if (message := describe_event(event)) is not None:
                    self.count += 1
                    yield ProgressParams(progress_token=self.token, progress=self.count, message=message)


def describe_event(event: object) -> str | None:
    """Return what happens in a turn, without what anyone has said; None for an event that is no progress."""
    if isinstance(event, TurnStart):
        return STARTED
    if isinstance(event, StepStart):
        return STEPS[event.step_type]
    if isinstance(event, StepComplete) and isinstance(event.step_details, ToolExecutionStep):
        names = list(dict.fromkeys(call.tool_name for call in event.step_details.tool_calls))
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        return f"The agent has called {', '.join(names[:MOST_NAMES])}{more}."
    return None
