"""Events of the stream of a session of OpenAI's Agents API.

`event_id` is unique, and whoever sends an event sets it.
"""

from typing import Annotated, Literal

from pydantic import Field

from stint.domain.fields import Omitted
from stint.domain.schema import Schema
from stint.openai_agents.schemas.contents import AgentOutputText
from stint.openai_agents.schemas.items import AgentItem
from stint.openai_agents.schemas.sessions import AgentSessionObject
from stint.openai_agents.schemas.turns import AgentTurnObject, AgentUsage

StateType = Literal[
    "agent.session.created",
    "agent.session.in_progress",
    "agent.session.idle",
    "agent.session.requires_action",
    "agent.session.failed",
]


class AgentEventCommon(Schema):
    event_id: str = ""
    obfuscation: Omitted[str] = None


class SessionStateEvent(AgentEventCommon):
    """The session after a change of its state."""

    type: StateType
    session: AgentSessionObject


class TurnEventCommon(AgentEventCommon):
    session_id: str
    turn_id: str


class TurnProgressEvent(TurnEventCommon):
    type: Literal["agent.session.turn.created", "agent.session.turn.in_progress"]
    turn: AgentTurnObject


class TurnEndedEvent(TurnEventCommon):
    type: Literal["agent.session.turn.completed", "agent.session.turn.failed", "agent.session.turn.cancelled"]
    turn: AgentTurnObject
    usage: AgentUsage | None = None


class ItemAddedEvent(TurnEventCommon):
    """A new item. The input of a turn has no `output_index`."""

    type: Literal["agent.session.turn.item.added"] = "agent.session.turn.item.added"
    item: AgentItem
    output_index: int | None = None


class ItemDoneEvent(TurnEventCommon):
    """An item of the model's output that is final."""

    type: Literal["agent.session.turn.item.done"] = "agent.session.turn.item.done"
    item: AgentItem
    output_index: int


class AgentPartCommon(TurnEventCommon):
    item_id: str
    output_index: int
    content_index: int = 0


class AgentPartEvent(AgentPartCommon):
    """A part of a message that begins, or is complete."""

    type: Literal["agent.session.turn.content_part.added", "agent.session.turn.content_part.done"]
    part: AgentOutputText


class AgentTextDeltaEvent(AgentPartCommon):
    type: Literal["agent.session.turn.output_text.delta"] = "agent.session.turn.output_text.delta"
    delta: str


class AgentTextDoneEvent(AgentPartCommon):
    type: Literal["agent.session.turn.output_text.done"] = "agent.session.turn.output_text.done"
    text: str


class AgentErrorDetails(Schema):
    code: str | None = None
    message: str
    param: str | None = None
    type: str


class AgentErrorEvent(AgentEventCommon):
    """An error of the stream, which then ends."""

    type: Literal["error"] = "error"
    error: AgentErrorDetails
    session_id: str


AgentTurnEvent = (
    TurnProgressEvent
    | TurnEndedEvent
    | ItemAddedEvent
    | ItemDoneEvent
    | AgentPartEvent
    | AgentTextDeltaEvent
    | AgentTextDoneEvent
)
"""An event of a turn."""

AgentStreamEvent = Annotated[AgentTurnEvent | SessionStateEvent | AgentErrorEvent, Field(discriminator="type")]
"""An event of the stream of a session."""
