"""Composition of the services of OpenAI's Agents API. Only its own function loads this module."""

from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

from stint.apis.agents import AgentsServices
from stint.bootstrap.adapters import Adapters
from stint.bootstrap.agents import AgentsComposition
from stint.bootstrap.restore import per_tenant
from stint.bootstrap.schedules import make_schedules
from stint.dataclasses import fields
from stint.domain.ids import TENANT
from stint.openai_agents.services import MakeAutomations, OpenAIAgentsServices
from stint.services.deletions import Deletions
from stint.settings import Settings
from stint.store.store import Store

if TYPE_CHECKING:
    from stint.services.automations.automations import Automations
    from stint.services.automations.targets import Targets
    from stint.services.vaults.vaults import Vaults


class OpenAIAgentsComposition(AgentsComposition):
    """The parts of a process that serves sessions of OpenAI's Agents API."""

    def __init__(self, read_settings: Callable[[], Settings]) -> None:
        super().__init__(read_settings)
        self.make_agents_services: Callable[[str], OpenAIAgentsServices] = per_tenant(self.compose_agents_services)

    @cached_property
    def adapters(self) -> Adapters:
        return Adapters(self.settings, make_schedules=make_schedules)

    def compose_agents_services(self, tenant: str) -> OpenAIAgentsServices:
        services = self.make_services(tenant)
        return compose_openai_agents(services, self.settings, vaults_of(self, tenant), automations_of(self, tenant))

    def load_ahead(self) -> None:
        """Load what a stream and its turns need."""
        super().load_ahead()
        _ = self.make_agents_services(TENANT).agent_sessions


def vaults_of(parts: AgentsComposition, tenant: str) -> "Callable[[], Vaults]":
    """Return a function that makes the vaults of a tenant from the parts of a process."""
    return make_vaults(tenant, parts.adapters, parts.store, parts.deletions)


def make_vaults(tenant: str, adapters: Adapters, store: Store, deletions: Deletions) -> "Callable[[], Vaults]":
    """Return a function that makes the vaults of a tenant once, when they are first used."""

    @cache
    def make() -> "Vaults":
        from stint.bootstrap.vaults import compose_vaults  # noqa: PLC0415 - few sessions have vaults

        return compose_vaults(tenant, adapters, store, deletions)

    return make


def automations_of(parts: AgentsComposition, tenant: str) -> MakeAutomations:
    """Return a function that makes the automations of a tenant from the parts of a process, and from their targets."""
    return partial(make_automations, tenant, parts.adapters, parts.store, parts.deletions)


def make_automations(
    tenant: str, adapters: Adapters, store: Store, deletions: Deletions, targets: "Targets"
) -> "Automations":
    """Make the automations of a tenant, whose modules are loaded now."""
    from stint.bootstrap.automations import compose_automations  # noqa: PLC0415 - few requests need it

    return compose_automations(tenant, adapters, store, deletions, targets)


def targets_of(parts: AgentsComposition, tenant: str) -> "Targets":
    """Return the targets of a tenant's automations from the parts of a process, such as the worker's."""
    made = vaults_of(parts, tenant), automations_of(parts, tenant)
    return compose_openai_agents(parts.make_services(tenant), parts.settings, *made).automation_targets


def compose_openai_agents(
    services: AgentsServices, settings: Settings, get_vaults: "Callable[[], Vaults]", make: MakeAutomations
) -> OpenAIAgentsServices:
    """Make the use cases of a tenant, with those of its agents."""
    return OpenAIAgentsServices(
        **{field.name: getattr(services, field.name) for field in fields(AgentsServices)},
        get_vaults=get_vaults,
        make_automations=make,
        stream_seconds=settings.session_stream_seconds,
        stream_rest=settings.session_stream_seconds * (1 - settings.session_stream_share),
    )
