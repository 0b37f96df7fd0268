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
    from stint.services.turns.turn_admission import TurnAdmission
    from stint.services.turns.turn_retries import TurnRetries
    from stint.services.turns.turn_tail import TurnTail


@dataclass(frozen=True, slots=True)
class AgentsServices:
    """The use cases. After `heartbeat_seconds` of silence, a connection gets a heartbeat.

    `check_providers` returns providers with their health, which it looks at. `make_idempotent_requests` makes the use
    cases of requests with an idempotency key once, when first needed. `make_turn_tail` makes the reader of streams that
    are rejoined, `make_turn_retries` finds the turns that retries repeat, `make_turn_cancellation` cancels turns,
    and `make_turn_admission` starts those of a session in use. `find_cache_keys` finds the keys of model calls.
    """

    agents: Agents
    sessions: Sessions
    turns: Turns
    registry: Registry
    toolgroups: Toolgroups
    shields: Shields
    meters: Meters
    heartbeat_seconds: float
    make_turn_cancellation: "Callable[[], TurnCancellation]"
    make_turn_admission: "Callable[[str, str], TurnAdmission]"
    make_turn_tail: "Callable[[], TurnTail]"
    make_turn_retries: "Callable[[], TurnRetries]"
    check_providers: Callable[[Sequence[Provider]], Awaitable[list[Provider]]]
    make_idempotent_requests: "Callable[[], IdempotentRequests]"
    make_creations: "Callable[[], Creations]"
    find_cache_keys: "FindCacheKeys"
