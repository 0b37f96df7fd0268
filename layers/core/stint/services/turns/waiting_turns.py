"""Turns of messages that wait for their session, as readers see them."""

from contextlib import suppress
from typing import Protocol

from stint.domain.errors import NotFound
from stint.domain.llama_stack.stored_turns import StoredTurn
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
    ids = turns.tenant, agent_id, session_id
    state = await turns.store.session_line(*ids).get(message_id)
    if state is None:  # it is deleted once its turn is stored
        return (await turns.store.turns.get(*ids, message_id)).to_turn()
    if state.claimed_by is not None and state.claimed_by != message_id:
        with suppress(NotFound):
            turn = await turns.get(agent_id, session_id, state.claimed_by)
            runs = state.merged_into is None or turn.status is TurnStatus.in_progress
            if runs or has_message(await turns.store.turns.get(*ids, state.claimed_by), message_id):
                return turn  # otherwise its process died; the message waits again
    return to_turn(message_id, session_id, state)


def has_message(turn: StoredTurn, message_id: str) -> bool:
    """Return whether a turn has taken a message."""
    return message_id in {each.message_id for each in turn.merged}
