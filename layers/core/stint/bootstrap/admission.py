"""Composition of the use cases that cancel runs, and admit them to sessions and conversations in use."""

from typing import TYPE_CHECKING

from stint.domain.llama_stack.turns import TurnCreateRequest
from stint.domain.tasks import SendTask
from stint.services.turns.turns import Turns
from stint.store.store import Store

if TYPE_CHECKING:
    from stint.domain.openai.response_requests import CreateResponse
    from stint.services.background.cancellation import ResponseCancellation
    from stint.services.background.waiting_responses import WaitingResponses
    from stint.services.responses.read import ResponseReader
    from stint.services.responses.recovery import Recovery
    from stint.services.responses.response_run import ResponseRun
    from stint.services.responses.responses import Responses
    from stint.services.runs.admission import Admission
    from stint.services.turns.cancellation import TurnCancellation
    from stint.services.turns.turn_run import TurnRun


def make_turn_cancellation(turns: Turns) -> "TurnCancellation":
    """Make the use case of cancelling turns, whose modules are loaded now."""
    from stint.services.turns.cancellation import TurnCancellation  # noqa: PLC0415 - few turns are cancelled

    return TurnCancellation(turns)


def make_turn_admission(
    turns: Turns, send: SendTask, agent_id: str, session_id: str
) -> "Admission[TurnCreateRequest, TurnRun]":
    """Make the admission of turns to a session, whose modules are loaded now."""
    from stint.services.runs.admission import Admission  # noqa: PLC0415 - few turns wait
    from stint.services.turns.turn_admission import TurnLine  # noqa: PLC0415 - few turns wait

    line = turns.store.session_line(turns.tenant, agent_id, session_id)
    return Admission(line, TurnLine(make_turn_cancellation(turns), send, agent_id, session_id))


def make_response_cancellation(tenant: str, store: Store, recovery: "Recovery") -> "ResponseCancellation":
    """Make the use case of cancelling responses, whose modules are loaded now."""
    from stint.services.background.cancellation import ResponseCancellation  # noqa: PLC0415 - few are cancelled

    return ResponseCancellation(tenant, store, recovery)


def make_response_admission(
    responses: "Responses", recovery: "Recovery", conversation_id: str
) -> "Admission[CreateResponse, ResponseRun]":
    """Make the admission of responses to a conversation, whose modules are loaded now."""
    from stint.services.background.response_admission import ResponseLine  # noqa: PLC0415 - few responses wait
    from stint.services.runs.admission import Admission  # noqa: PLC0415 - few responses wait

    line = responses.store.conversation_line(responses.tenant, conversation_id)
    cancellation = make_response_cancellation(responses.tenant, responses.store, recovery)
    return Admission(line, ResponseLine(responses, cancellation, conversation_id))


def make_waiting_responses(responses: "Responses", reader: "ResponseReader") -> "WaitingResponses":
    """Make the reader of messages that wait for their conversation, whose modules are loaded now."""
    from stint.services.background.waiting_responses import WaitingResponses  # noqa: PLC0415 - few responses wait

    return WaitingResponses(responses, reader)
