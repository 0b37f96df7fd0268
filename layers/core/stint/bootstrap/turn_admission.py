"""Composition of the use cases that cancel turns, and admit them to sessions in use."""

from typing import TYPE_CHECKING

from stint.services.turns.turns import Turns

if TYPE_CHECKING:
    from stint.services.admission import Admission
    from stint.services.turns.cancellation import TurnCancellation


def make_turn_cancellation(turns: Turns) -> "TurnCancellation":
    """Make the use case of cancelling turns, whose modules are loaded now."""
    from stint.services.turns.cancellation import TurnCancellation  # noqa: PLC0415 - few turns are cancelled

    return TurnCancellation(turns)


def make_turn_admission(turns: Turns, agent_id: str, session_id: str) -> "Admission":
    """Make the admission of turns to a session, whose modules are loaded now."""
    from stint.services.turns.turn_admission import admit_turns  # noqa: PLC0415 - few turns wait

    return admit_turns(make_turn_cancellation(turns), agent_id, session_id)
