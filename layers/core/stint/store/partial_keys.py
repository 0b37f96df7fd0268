"""The keys of parts of unfinished steps. They are in partitions of their own, which no history is read from."""

from typing import NamedTuple

from stint.store import keys
from stint.store.keys import Key

END = "g"
"""Sorts after all ids."""


class PartialPlace(NamedTuple):
    """Where the parts of a run's steps are: a partition, and the prefix of the run in it."""

    pk: str
    prefix: str

    def part(self, step_id: str, number: int) -> Key:
        """The part of a step with a number."""
        return Key(self.pk, f"{self.prefix}{step_id}:{number:06d}")

    def after_step(self, step_id: str | None) -> str:
        """Sorts after the parts of a step, and before those of later ones. Step ids sort by creation."""
        return f"{self.prefix}{step_id}:{END}" if step_id is not None else self.prefix or "0"

    @property
    def end(self) -> str:
        """Sorts after all parts of the run."""
        return f"{self.prefix}{END}"


def session_partials(tenant: str, agent_id: str, session_id: str) -> str:
    """The parts of steps of a session's turns."""
    agent, session = keys.session(tenant, agent_id, session_id)
    return f"{agent.replace('#session:', '#partial_step:', 1)}:{session}"


def turn_partials(tenant: str, agent_id: str, session_id: str, turn_id: str) -> PartialPlace:
    turn = keys.turn(tenant, agent_id, session_id, turn_id).sk
    return PartialPlace(session_partials(tenant, agent_id, session_id), f"{turn}:")


def response_partials(tenant: str, response_id: str) -> PartialPlace:
    partition = keys.response_records(tenant, response_id)
    return PartialPlace(partition.replace("#response:", "#partial_step:", 1), "")
