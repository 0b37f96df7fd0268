"""What the worker puts on the event bus when something has ended (docs/events.md)."""

from typing import Literal

from stint.domain.fields import Omitted
from stint.domain.responses import ResponseStatus, StoredResponse
from stint.domain.schema import Schema
from stint.domain.turns import TurnStatus

SOURCE = "stint"

DetailType = Literal["Stint Turn Completed", "Stint Turn Failed", "Stint Response Completed", "Stint Response Failed"]


class Failure(Schema):
    """Why something failed, in the words of the API's error body."""

    code: str
    message: str


class TurnEnded(Schema):
    """The end of a turn that an event began; without `turn_id` it was refused before it began.

    `event_id` is that of the event.
    """

    event_id: str
    agent_id: str
    session_id: str
    turn_id: Omitted[str] = None
    status: TurnStatus
    error: Omitted[Failure] = None

    @property
    def detail_type(self) -> DetailType:
        good = self.status in (TurnStatus.completed, TurnStatus.awaiting_input)
        return "Stint Turn Completed" if good else "Stint Turn Failed"


class ResponseEnded(Schema):
    """The end of a response in the background; without `response_id` it was refused before it began.

    `event_id` is that of the event that began it, if one did.
    """

    event_id: Omitted[str] = None
    response_id: Omitted[str] = None
    conversation_id: Omitted[str] = None
    status: ResponseStatus
    error: Omitted[Failure] = None

    @property
    def detail_type(self) -> DetailType:
        good = self.status in (ResponseStatus.completed, ResponseStatus.incomplete)
        return "Stint Response Completed" if good else "Stint Response Failed"

    @classmethod
    def of(cls, stored: StoredResponse, event_id: str | None = None) -> "ResponseEnded":
        """Tell how a stored response ended."""
        error = stored.ending.error if stored.ending else None
        return cls(
            event_id=event_id,
            response_id=stored.header.response_id,
            conversation_id=stored.header.conversation_id,
            status=stored.status,
            error=Failure(code=error.code, message=error.message) if error else None,
        )


Ended = TurnEnded | ResponseEnded
