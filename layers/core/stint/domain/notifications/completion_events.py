"""Completion events, which the worker publishes on the event bus (docs/events.md)."""

from typing import ClassVar, Literal

from stint.domain.errors import StintError
from stint.domain.fields import Omitted
from stint.domain.inference import Usage
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.openai.stored_responses import ResponseStatus, StoredResponse
from stint.domain.schema import Schema

SOURCE = "stint"

DetailType = Literal["Stint Turn Completed", "Stint Turn Failed", "Stint Response Completed", "Stint Response Failed"]


class Failure(Schema):
    """The reason of a failure, as in the API's error body."""

    code: str
    message: str

    @classmethod
    def of(cls, error: StintError) -> "Failure":
        return cls(code=error.code, message=error.message)


class TurnFinished(Schema):
    """The end of a turn that an event requested. Without `turn_id`, it was refused before it started.

    `event_id` is the id of the requesting event.
    """

    event_id: str
    agent_id: str
    session_id: str
    turn_id: Omitted[str] = None
    status: TurnStatus
    error: Omitted[Failure] = None
    usage: Omitted[Usage] = None

    kind: ClassVar = "Turn"

    @property
    def detail_type(self) -> DetailType:
        good = self.status in (TurnStatus.completed, TurnStatus.awaiting_input)
        return "Stint Turn Completed" if good else "Stint Turn Failed"

    @classmethod
    def of(cls, turn: Turn, agent_id: str, event_id: str) -> "TurnFinished":
        """Make the event of a turn."""
        error = turn.error
        return cls(
            event_id=event_id,
            agent_id=agent_id,
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            status=turn.status,
            error=Failure(code=error.code, message=error.message) if error else None,
            usage=turn.usage,
        )


class ResponseFinished(Schema):
    """The end of a background response. Without `response_id`, it was refused before it started.

    `event_id` is the id of the requesting event, if there was one.
    """

    event_id: Omitted[str] = None
    response_id: Omitted[str] = None
    conversation_id: Omitted[str] = None
    status: ResponseStatus
    error: Omitted[Failure] = None
    usage: Omitted[Usage] = None

    kind: ClassVar = "Response"

    @property
    def detail_type(self) -> DetailType:
        good = self.status in (ResponseStatus.completed, ResponseStatus.incomplete)
        return "Stint Response Completed" if good else "Stint Response Failed"

    @classmethod
    def of(cls, stored: StoredResponse, event_id: str | None = None) -> "ResponseFinished":
        """Make the event of a stored response."""
        error = stored.ending.error if stored.ending else None
        return cls(
            event_id=event_id,
            response_id=stored.header.response_id,
            conversation_id=stored.header.conversation_id,
            status=stored.status,
            error=Failure(code=error.code, message=error.message) if error else None,
            usage=stored.usage,
        )


CompletionEvent = TurnFinished | ResponseFinished
