"""Turns of messages that wait for their session, as readers see them."""

from contextlib import suppress
from typing import Protocol

from stint.domain.errors import NotFound
from stint.domain.llama_stack.turns import Turn, TurnCreateRequest, TurnStatus
from stint.domain.steps import CompletionMessage
from stint.domain.waiting_messages import MessageState
from stint.store.store import Store


def to_turn(message_id: str, session_id: str, state: MessageState) -> Turn:
    """Return a message that no turn has taken as a turn without steps."""
    status = TurnStatus.in_progress
    if state.cancelled:
        status = TurnStatus.cancelled
    if state.error is not None:
        status = TurnStatus.failed
    return Turn(
        turn_id=message_id,
        session_id=session_id,
        input_messages=TurnCreateRequest.model_validate_json(state.message.body).messages,
        steps=[],
        output_message=CompletionMessage(),
        started_at=state.message.accepted_at,
        status=status,
        error=state.error,
    )


class TurnReader(Protocol):
    """Reads turns. Its `store` has those of `tenant`."""

    tenant: str
    store: Store

    async def get(self, agent_id: str, session_id: str, turn_id: str) -> Turn:
        """Return a turn. Raises NotFound."""
        ...


async def read_waiting(turns: TurnReader, agent_id: str, session_id: str, message_id: str) -> Turn:
    """Return the turn that has a message, or a turn without steps if none has it. Raises NotFound."""
    state = await turns.store.session_line(turns.tenant, agent_id, session_id).get(message_id)
    if state is None:
        raise NotFound("Turn", message_id)
    if state.claimed_by is not None and state.claimed_by != message_id:
        with suppress(NotFound):
            return await turns.get(agent_id, session_id, state.claimed_by)
    return to_turn(message_id, session_id, state)
