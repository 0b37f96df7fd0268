"""Composition of the use cases that cancel runs, and admit them to sessions and conversations in use."""

from typing import TYPE_CHECKING

from stint.domain.tasks import SendTask
from stint.services.turns.turns import Turns
from stint.store.store import Store

if TYPE_CHECKING:
    from stint.services.background.cancellation import ResponseCancellation
    from stint.services.background.response_admission import ResponseAdmission
    from stint.services.background.waiting_responses import WaitingResponses
    from stint.services.responses.read import ResponseReader
    from stint.services.responses.recovery import Recovery
    from stint.services.responses.responses import Responses
    from stint.services.turns.cancellation import TurnCancellation
    from stint.services.turns.turn_admission import TurnAdmission


def make_turn_cancellation(turns: Turns) -> "TurnCancellation":
    """Make the use case of cancelling turns, whose modules are loaded now."""
    from stint.services.turns.cancellation import TurnCancellation  # noqa: PLC0415 - few turns are cancelled

    return TurnCancellation(turns)


def make_turn_admission(turns: Turns, send: SendTask, agent_id: str, session_id: str) -> "TurnAdmission":
    """Make the admission of turns to a session, whose modules are loaded now."""
    from stint.services.turns.turn_admission import TurnAdmission  # noqa: PLC0415 - few turns wait

    return TurnAdmission(make_turn_cancellation(turns), send, agent_id, session_id)


def make_response_cancellation(tenant: str, store: Store, recovery: "Recovery") -> "ResponseCancellation":
    """Make the use case of cancelling responses, whose modules are loaded now."""
    from stint.services.background.cancellation import ResponseCancellation  # noqa: PLC0415 - few are cancelled

    return ResponseCancellation(tenant, store, recovery)


def make_response_admission(responses: "Responses", recovery: "Recovery", conversation_id: str) -> "ResponseAdmission":
    """Make the admission of responses to a conversation, whose modules are loaded now."""
    from stint.services.background.response_admission import ResponseAdmission  # noqa: PLC0415 - few responses wait

    cancellation = make_response_cancellation(responses.tenant, responses.store, recovery)
    return ResponseAdmission(responses, cancellation, conversation_id)


def make_waiting_responses(responses: "Responses", reader: "ResponseReader") -> "WaitingResponses":
    """Make the reader of messages that wait for their conversation, whose modules are loaded now."""
    from stint.services.background.waiting_responses import WaitingResponses  # noqa: PLC0415 - few responses wait

    return WaitingResponses(responses, reader)
