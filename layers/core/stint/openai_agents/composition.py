"""Composition of the services of OpenAI's Agents API. Only its own function loads this module."""

from collections.abc import Callable

from stint.apis.agents import AgentsServices
from stint.bootstrap.agents import AgentsComposition
from stint.bootstrap.restore import per_tenant
from stint.dataclasses import fields
from stint.domain.ids import TENANT
from stint.openai_agents.services import OpenAIAgentsServices
from stint.settings import Settings


class OpenAIAgentsComposition(AgentsComposition):
    """The parts of a process that serves sessions of OpenAI's Agents API."""

    def __init__(self, read_settings: Callable[[], Settings]) -> None:
        super().__init__(read_settings)
        self.make_agents_services: Callable[[str], OpenAIAgentsServices] = per_tenant(self.compose_agents_services)

    def compose_agents_services(self, tenant: str) -> OpenAIAgentsServices:
        return compose_openai_agents(self.make_services(tenant), self.settings)

    def load_ahead(self) -> None:
        """Load what a stream and its turns need."""
        super().load_ahead()
        _ = self.make_agents_services(TENANT).agent_sessions


def compose_openai_agents(services: AgentsServices, settings: Settings) -> OpenAIAgentsServices:
    """Make the use cases of a tenant, with those of its agents."""
    return OpenAIAgentsServices(
        **{field.name: getattr(services, field.name) for field in fields(AgentsServices)},
        stream_seconds=settings.session_stream_seconds,
        stream_rest=settings.session_stream_seconds * (1 - settings.session_stream_share),
    )
