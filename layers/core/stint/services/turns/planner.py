"""The plan of a turn: the agent's configuration with the turn's overrides, checked before anything is stored.

A plan is complete before the turn is stored, so that whatever can be refused is refused with a status of HTTP. The
overrides of a turn replace whole fields of the agent, except `sampling_params` and `tool_config`, of which they replace
those that they set, and toolgroups and approvals, which add to the agent's in `Tools.make_toolbox`.

The registry is renewed while the session is opened (`prepare`); if that fails, the plan reads it again, and that error
counts.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from stint.dataclasses import dataclass, replace
from stint.domain.errors import InvalidRequest, StoreUnavailable
from stint.domain.inference import (
    GrammarResponseFormat,
    JsonSchemaResponseFormat,
    ToolSignature,
    to_options,
    to_tier,
)
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.turns import TurnOverrides
from stint.domain.schema import Schema
from stint.domain.tools import LONGEST_TOOL_NAME, ToolChoice, ToolConfig, is_tool_name
from stint.loop.plan import CompactionRule, Plan
from stint.loop.screening import ToolShields
from stint.loop.structured_output import check_schema
from stint.loop.toolbox import NO_SHIELDS, Toolbox
from stint.models.json_schemas import read_schema
from stint.models.routing import Router
from stint.services.registry.registry import Registry
from stint.services.registry.shields import Shields
from stint.services.registry.tool_schemas import insert_definitions
from stint.services.registry.tools import Tools
from stint.services.turns.retrieval import make_retriever, without_hidden
from stint.tools.port import CallerSession, ProviderData

if TYPE_CHECKING:  # few models take cache keys
    from stint.services.runs.cache_keys import FindCacheKeys

ADDITIONS = ("toolgroups", "require_approval")
"""The overrides of a turn that replace nothing. In place of the agent's, a turn could remove an approval."""


@dataclass(frozen=True, slots=True)
class Planner:
    """Makes the plans of a tenant's turns."""

    router: Router
    registry: Registry
    tools: Tools
    shields: Shields
    find_cache_keys: "FindCacheKeys"

    @property
    def is_prepared(self) -> bool:
        """Return whether `prepare` would read nothing."""
        return self.registry.is_current

    async def prepare(self) -> None:
        """Read the registry while a session is opened. Without this, the plan reads it itself."""
        with suppress(StoreUnavailable):
            await self.registry.renew()

    async def plan(
        self,
        agent: AgentConfig,
        overrides: TurnOverrides,
        provider_data: ProviderData,
        session: CallerSession | None = None,
    ) -> Plan:
        """Merge and check the settings of a turn in a session.

        Raises:
            InvalidRequest: something is unknown, two tools have one name, or the model's provider lacks a parameter.
        """
        config = override(agent, overrides)
        input_shields = await self.shields.find(config.input_shields, "input_shields")
        output_shields = await self.shields.find(config.output_shields, "output_shields")
        schema = answer_schema(config.response_format)
        refuse_bad_names([tool.name for tool in config.client_tools])
        model, model_id = self.router.resolve(await self.registry.route(config.model))
        toolbox = await self.tools.make_toolbox(config, overrides.toolgroups, provider_data, overrides.require_approval)
        named = await self.shields.find_of_tools(config.tool_shields)
        toolbox = replace(toolbox, session=session, shields=name_shields(toolbox, named))
        if toolbox.approvals:
            from stint.services.turns.approvals import ApprovalToolbox  # noqa: PLC0415 - few turns ask for approval

            toolbox = ApprovalToolbox.of(toolbox)
        retriever = make_retriever(toolbox)
        toolbox = without_hidden(toolbox, retriever)
        refuse_unknown_choice(config.tool_config, [signature.name for signature in toolbox.signatures])
        if config.tool_config.tool_choice is ToolChoice.none:  # the result of any call is then an error
            toolbox = replace(toolbox, client={}, server={})
        plan = Plan(
            model=model,
            model_id=model_id,
            instructions=write_instructions(config, toolbox.signatures),
            decoding=config.sampling_params.to_decoding(),
            tool_config=config.tool_config,
            toolbox=toolbox,
            max_infer_iters=max(config.max_infer_iters, 1),
            response_format=config.response_format,
            answer_schema=schema,
            input_shields=input_shields,
            output_shields=output_shields,
            shield_window=self.shields.window,
            retriever=retriever,
            cache=self.router.cache,
            compaction=CompactionRule.of(config.context_management),
            reasoning=to_options(config.reasoning),
            verbosity=config.verbosity,
            service_tier=to_tier(config.service_tier),
        )
        model.check(plan.request(()))
        return await self.with_cache_key(plan, session)

    async def with_cache_key(self, plan: Plan, session: CallerSession | None) -> Plan:
        """Return a plan whose model calls have the key of their session, if the model's server takes one."""
        keys = await self.find_cache_keys(plan.model)
        if keys is None or session is None:
            return plan
        return replace(plan, cache_key=keys.derive("session", session.session_id))


def name_shields(toolbox: Toolbox, shields: Mapping[str, ToolShields]) -> dict[str, ToolShields]:
    """Return the shields of tools by the tools' names in the toolbox. Those of both names of a tool are merged.

    Raises:
        InvalidRequest: there is no such tool.
    """
    named: dict[str, ToolShields] = {}
    for name, each in shields.items():
        own = toolbox.name_of(name)
        if own not in {*toolbox.server, *toolbox.client}:
            tools = [signature.name for signature in toolbox.signatures]
            raise InvalidRequest(
                f"tool_shields names the tool {name[:100]!r}, which this agent does not have. Its tools are: {tools}",
                code="tool_not_found",
                param="tool_shields",
            )
        named[own] = named.get(own, NO_SHIELDS).merge(each)
    return named


def write_instructions(config: AgentConfig, tools: Iterable[ToolSignature]) -> str:
    """Return the system message with the instructions, which have the tools' definitions if the agent says so."""
    replaces = config.tool_config.system_message_behavior == "replace"
    return insert_definitions(config.instructions, tools) if replaces else config.instructions


def answer_schema(response_format: JsonSchemaResponseFormat | GrammarResponseFormat | None) -> dict[str, Any] | None:
    """Return the JSON schema of answers, if there is one.

    Raises:
        InvalidRequest: the format is a grammar, which no provider supports, or an invalid schema.
    """
    if response_format is None:
        return None
    schema = read_schema(response_format).schema
    check_schema(schema, "response_format.json_schema")
    return schema


def override(agent: AgentConfig, overrides: TurnOverrides) -> AgentConfig:
    """Return the agent's configuration with the turn's overrides, except those that add to it."""
    changes = set_fields(overrides, but=ADDITIONS)
    for name in ("sampling_params", "tool_config"):
        if name in changes:
            base: Schema = getattr(agent, name)
            changes[name] = base.model_copy(update=set_fields(changes[name]))
    return agent.model_copy(update=changes)


def set_fields(overrides: Schema, *, but: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields that have a value."""
    fields = {name: getattr(overrides, name) for name in type(overrides).model_fields if name not in but}
    return {name: value for name, value in fields.items() if value is not None}


def refuse_bad_names(names: Sequence[str]) -> None:
    refuse_unusable_names(names)
    refuse_repeated_names(names)


def refuse_unusable_names(names: Iterable[str]) -> None:
    for name in names:
        if not is_tool_name(name):
            raise InvalidRequest(
                f"Tool {name[:100]!r} has an invalid name: providers accept names of 1 to {LONGEST_TOOL_NAME} letters, "
                "digits, _ and -. Rename it.",
                code="invalid_tool_name",
                param="client_tools",
            )


def refuse_repeated_names(names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InvalidRequest(
                f"Tool {name!r} is declared {count} times. Tool names must be unique.",
                code="duplicate_tool",
                param="client_tools",
            )


def refuse_unknown_choice(tool_config: ToolConfig, names: list[str]) -> None:
    choice = tool_config.tool_choice
    if isinstance(choice, ToolChoice) or choice in names:
        return
    raise InvalidRequest(
        f"Tool choice {choice!r} is unknown. Use auto, required, none or the name of a tool: {names}",
        code="tool_not_found",
        param="tool_config.tool_choice",
    )
