"""The use cases of one tenant that the routes call."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from stint.apis.tenant import TenantServices
from stint.dataclasses import dataclass
from stint.domain.llama_stack.registry import Provider
from stint.domain.tasks import SendTask
from stint.lazy import Lazy, lazy
from stint.services.agents.agents import Agents
from stint.services.agents.sessions import Sessions
from stint.services.registry.registry import Registry
from stint.services.registry.shields import Shields
from stint.services.registry.toolgroups import Toolgroups
from stint.services.runs.webhook_events import WebhookEvents
from stint.services.turns.turns import Turns
from stint.spending.meters import Meters

if TYPE_CHECKING:
    from stint.services.runs.cache_keys import FindCacheKeys
    from stint.services.turns.step_inputs import StepInputs
    from stint.services.turns.turn_requests import TurnRequests
    from stint.services.turns.turn_traces import TurnTraces
    from stint.services.webhooks.webhook_endpoints import WebhookEndpoints


@dataclass(frozen=True)
class AgentsServices(TenantServices):
    """The use cases.

    `check_providers` returns providers with their health, which it looks at. `find_cache_keys` finds the keys of model
    calls. `send` sends tasks to the worker. `service_name` is that of traces. `webhooks` announces what is stored to
    webhook endpoints.
    """

    agents: Agents
    sessions: Sessions
    turns: Turns
    registry: Registry
    toolgroups: Toolgroups
    shields: Shields
    meters: Meters
    check_providers: Callable[[Sequence[Provider]], Awaitable[list[Provider]]]
    find_cache_keys: "FindCacheKeys"
    send: SendTask
    service_name: str
    webhooks: WebhookEvents
    make_webhook_endpoints: "Callable[[], WebhookEndpoints]"

    step_inputs: "ClassVar[Lazy[AgentsServices, StepInputs]]" = lazy(
        "stint.services.turns.step_inputs:StepInputs", lambda self, cls: cls(self.turns)
    )
    turn_requests: "ClassVar[Lazy[AgentsServices, TurnRequests]]" = lazy(
        "stint.services.turns.turn_requests:TurnRequests", lambda self, cls: cls(self.turns, self.send)
    )
    turn_traces: "ClassVar[Lazy[AgentsServices, TurnTraces]]" = lazy(
        "stint.services.turns.turn_traces:TurnTraces", lambda self, cls: cls(self.turns, self.service_name)
    )
