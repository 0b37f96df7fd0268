"""The use cases of one tenant that the routes call."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from stint.dataclasses import dataclass
from stint.domain.llama_stack.registry import Provider
from stint.services.agents.agents import Agents
from stint.services.agents.sessions import Sessions
from stint.services.registry.registry import Registry
from stint.services.registry.shields import Shields
from stint.services.registry.toolgroups import Toolgroups
from stint.services.turns.turns import Turns
from stint.spending.meters import Meters

if TYPE_CHECKING:  # loaded by the first request that needs them
    from stint.services.idempotency.creations import Creations
    from stint.services.idempotency.requests import IdempotentRequests
    from stint.services.runs.cache_keys import FindCacheKeys
    from stint.services.turns.cancellation import TurnCancellation
    from stint.services.turns.turn_requests import TurnRequests


@dataclass(frozen=True, slots=True)
class AgentsServices:
    """The use cases. After `heartbeat_seconds` of silence, a connection gets a heartbeat.

    `check_providers` returns providers with their health, which it looks at. `make_idempotent_requests` makes the use
    cases of requests with an idempotency key once, when first needed. `make_turn_cancellation` makes the one that
    cancels turns. `find_cache_keys` finds the keys of model calls.
    """

    agents: Agents
    sessions: Sessions
    turns: Turns
    registry: Registry
    toolgroups: Toolgroups
    shields: Shields
    meters: Meters
    heartbeat_seconds: float
    make_turn_requests: "Callable[[], TurnRequests]"
    make_turn_cancellation: "Callable[[], TurnCancellation]"
    check_providers: Callable[[Sequence[Provider]], Awaitable[list[Provider]]]
    make_idempotent_requests: "Callable[[], IdempotentRequests]"
    make_creations: "Callable[[], Creations]"
    find_cache_keys: "FindCacheKeys"

    @property
    def turn_requests(self) -> "TurnRequests":
        """The requests of turns, whose modules the first one loads."""
        return self.make_turn_requests()
