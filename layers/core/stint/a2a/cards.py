"""Agent cards: what a client of A2A reads before it sends a task.

The card of an agent has its name and what its `metadata.description` says. Instructions, model and tools are the
operator's. The card of the server is open, so it names nothing of a tenant: it says where the cards of agents are.
"""

from typing import Any

from stint.a2a.parts import INPUT_MODES, OUTPUT_MODES
from stint.a2a.schemas import A2AObject, format_milliseconds
from stint.dataclasses import dataclass
from stint.domain.fields import Omitted
from stint.domain.llama_stack.agents import Agent

PROTOCOL_VERSION, BINDING = "1.0", "JSONRPC"
CARD_PATH = ".well-known/agent-card.json"
NO_DESCRIPTION = "An agent of this server. Set metadata.description of the agent to say what it does."
SERVER = "Stint"
SERVER_DESCRIPTION = (
    "A server of agents. The URL of its interface is a template: put the id of an agent in place of {agent_id}. The "
    f"card of that agent is at the same URL, followed by /{CARD_PATH}, for callers with a key or token of this server."
)


class CardInterface(A2AObject):
    url: str
    protocol_binding: str = BINDING
    protocol_version: str = PROTOCOL_VERSION


class CardCapabilities(A2AObject):
    streaming: bool = True
    push_notifications: bool = False
    extended_agent_card: bool = False


class HttpScheme(A2AObject):
    scheme: str = "Bearer"
    description: str


class OpenIdScheme(A2AObject):
    open_id_connect_url: str
    description: str


class CardSecurity(A2AObject):
    """How callers prove who they are: one of the fields."""

    http_auth_security_scheme: Omitted[HttpScheme] = None
    open_id_connect_security_scheme: Omitted[OpenIdScheme] = None


class CardSkill(A2AObject):
    id: str
    name: str
    description: str
    tags: list[str]


class AgentCard(A2AObject):
    name: str
    description: str
    supported_interfaces: list[CardInterface]
    version: str
    capabilities: CardCapabilities
    security_schemes: Omitted[dict[str, CardSecurity]] = None
    security_requirements: Omitted[list[dict[str, Any]]] = None
    default_input_modes: list[str]
    default_output_modes: list[str]
    skills: list[CardSkill]


@dataclass(frozen=True, slots=True)
class CallerSchemes:
    """How the server knows its callers: not at all, or by keys, and by tokens of an issuer, if there is one."""

    needs_key: bool
    issuer: str = ""

    def schemes(self) -> dict[str, CardSecurity]:
        if not self.needs_key:
            return {}
        found = {"apiKey": CardSecurity(http_auth_security_scheme=HttpScheme(description="An API key of this server."))}
        if self.issuer:
            url = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
            tokens = OpenIdScheme(open_id_connect_url=url, description="A token of the server's issuer.")
            found["openId"] = CardSecurity(open_id_connect_security_scheme=tokens)
        return found


def make_card(
    name: str, description: str, url: str, skill_id: str, *, version: str, callers: CallerSchemes
) -> AgentCard:
    schemes = callers.schemes()
    return AgentCard(
        name=name,
        description=description,
        supported_interfaces=[CardInterface(url=url)],
        version=version,
        capabilities=CardCapabilities(),
        security_schemes=schemes or None,
        security_requirements=[{"schemes": {each: {"list": []}}} for each in schemes] or None,
        default_input_modes=[*INPUT_MODES],
        default_output_modes=[*OUTPUT_MODES],
        skills=[CardSkill(id=skill_id, name=name, description=description, tags=["agent"])],
    )


def card_of_agent(agent: Agent, url: str, callers: CallerSchemes) -> AgentCard:
    """Return the card of an agent. Its version is the time of its last change."""
    config = agent.agent_config
    description = (config.metadata or {}).get("description", "").strip() or NO_DESCRIPTION
    name = (config.name or "").strip() or f"agent-{agent.agent_id[-8:]}"
    version = format_milliseconds(agent.updated_at or agent.created_at)
    return make_card(name, description, url, agent.agent_id, version=version, callers=callers)


def card_of_server(url: str, callers: CallerSchemes) -> AgentCard:
    return make_card(SERVER, SERVER_DESCRIPTION, url, "agents", version=PROTOCOL_VERSION, callers=callers)
