"""Shields: look-up by name, registration, and single checks.

An agent names shields, and its turns look them up by these names. So a name that means something else later would
change the protection of agents that exist. A shield that asks a model keeps the full id of that model from its
registration on: a model that somebody registers later under the same name is not asked instead.

Shields that were registered by an older version have only a name. For these the configuration decides, without
registrations, and without it they are refused.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from stint.dataclasses import dataclass, replace
from stint.domain.content import text_of
from stint.domain.errors import InvalidRequest
from stint.domain.inference import AssistantAnswer, ModelMessage, SystemText, ToolResult, UserInput
from stint.domain.llama_stack.agents import ToolShieldNames
from stint.domain.llama_stack.registrations import RegisteredShield, SafetyMessage, ShieldRegisterRequest, SystemMessage
from stint.domain.steps import CompletionMessage, SafetyViolation
from stint.domain.tools import ToolResponseMessage
from stint.loop.screening import BoundShield, ToolShields, run_shield
from stint.services.registry.catalogue import shield_of
from stint.services.registry.registry import Registry
from stint.shields.port import Shield, ShieldProvider, Touchpoint

MOST_SHIELDS = 8
"""Maximum shields of a list. Each may be a model call for each message."""

MOST_TOOL_SHIELDS = 16
"""Maximum different shields of all tools of an agent."""


@dataclass(frozen=True, slots=True)
class Shields:
    """The shields of a tenant. `window` is in characters; None buffers a whole answer until it is checked."""

    registry: Registry
    providers: Mapping[str, ShieldProvider]
    window: int | None

    async def find(self, names: Iterable[str], param: str) -> tuple[BoundShield, ...]:
        """Find the shields that an agent or a turn names in the field `param`.

        Raises:
            InvalidRequest: one of them is not registered, or there are too many.
        """
        names = list(names)
        refuse_many(names, param)
        return tuple([await self.bind(name, param) for name in names])

    async def find_of_tools(self, named: Mapping[str, ToolShieldNames] | None) -> dict[str, ToolShields]:
        """Find the shields that an agent names for its tools. Raises InvalidRequest as `find`."""
        if not named:
            return {}
        sides = [(f"tool_shields.{tool}", each.input_shields, each.output_shields) for tool, each in named.items()]
        names = dict.fromkeys(name for _, *lists in sides for each in lists for name in each)
        if len(names) > MOST_TOOL_SHIELDS:
            message = f"tool_shields has {len(names)} different shields; at most {MOST_TOOL_SHIELDS} are allowed."
            raise InvalidRequest(message, param="tool_shields")
        found = {name: await self.bind(name, "tool_shields") for name in names}
        for place, *lists in sides:
            for kind, each in zip(("input_shields", "output_shields"), lists, strict=True):
                refuse_many(each, f"{place}.{kind}")
        return {
            tool: ToolShields(
                tuple(found[name] for name in each.input_shields), tuple(found[name] for name in each.output_shields)
            )
            for tool, each in named.items()
        }

    async def bind(self, name: str, param: str) -> BoundShield:
        registered = await self.registry.find_shield(name)
        if registered is None:
            raise InvalidRequest(
                f"Shield {name!r} is not registered. GET /v1/shields lists the registered ones.",
                code="shield_not_found",
                param=param,
            )
        provider = self.providers.get(registered.provider_id)
        if provider is None:
            raise InvalidRequest(
                f"Shield {name!r} uses the provider {registered.provider_id!r}, which does not exist. Check "
                "STINT_REGISTRY.",
                code="provider_not_found",
                param=param,
            )
        return BoundShield(await self.prepare(registered, provider), provider)

    async def prepare(self, registered: RegisteredShield, provider: ShieldProvider) -> Shield:
        """Return a registered shield in the form of the port. Raises InvalidRequest if its provider refuses it."""
        shield = as_port(registered)
        if provider.asks_model:  # whoever registered the shield chose it, so it is no limit of callers
            model = registered.model or self.registry.find_configured_route(shield.provider_shield_id)
            shield = replace(shield, provider_shield_id=model)
        await asyncio.to_thread(provider.validate, shield)
        return shield

    async def register(self, request: ShieldRegisterRequest) -> RegisteredShield:
        """Register a shield.

        Raises:
            InvalidRequest: its provider is unknown, or refuses its parameters.
            Conflict: the identifier is taken.
            Forbidden: the caller may not use the shield's model.
        """
        shield = shield_of(request, None)
        if (provider := self.providers.get(shield.provider_id)) is None:
            return await self.registry.register_shield(request)
        # The one place where registrations count: the caller names the model now, with its own rights.
        if provider.asks_model:
            model = await self.find_model(shield.provider_resource_id)
            shield = shield.model_copy(update={"model": model})
        await self.prepare(shield, provider)
        if shield.model is not None:
            # Whoever runs the shield later pays for the model, whatever the limits of that key are.
            self.registry.access.require(shield.model)
        return await self.registry.register_shield(request, shield.model)

    async def find_model(self, name: str) -> str:
        """Return the full id of the model that a new shield names, which may be that of a registered one.

        Raises InvalidRequest.
        """
        try:
            return self.registry.find_configured_route(name)
        except InvalidRequest:
            return await self.registry.find_route(name)

    async def run(self, name: str, messages: Sequence[SafetyMessage]) -> SafetyViolation | None:
        """Check the last of some messages with one shield.

        Raises:
            InvalidRequest: there is no such shield, or there are no messages.
            ShieldFailed: it returned no verdict.
        """
        if not messages:
            raise InvalidRequest("There is no message to check.", param="messages")
        await self.registry.renew()
        shield = await self.bind(name, "shield_id")
        touchpoint: Touchpoint = "assistant-output" if isinstance(messages[-1], CompletionMessage) else "user-input"
        return await run_shield(shield, [as_model_message(each) for each in messages], touchpoint)


def refuse_many(names: Sequence[str], param: str) -> None:
    """Raise InvalidRequest if a list names too many shields."""
    if len(names) > MOST_SHIELDS:
        message = f"{param} has {len(names)} shields; at most {MOST_SHIELDS} are allowed."
        raise InvalidRequest(message, param=param)


def as_port(shield: RegisteredShield) -> Shield:
    """Return a registered shield in the form of the port."""
    return Shield(shield.identifier, shield.provider_id, shield.provider_resource_id, shield.params)


def as_model_message(message: SafetyMessage) -> ModelMessage:
    """Convert a message of the safety API for shields."""
    match message:
        case SystemMessage():
            return SystemText(text_of(message.content))
        case CompletionMessage():
            return AssistantAnswer(text_of(message.content), tuple(message.tool_calls))
        case ToolResponseMessage():
            return ToolResult(message.call_id, "", message.content)
        case _:
            return UserInput(message.content)
