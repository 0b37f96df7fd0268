"""Toolgroups: what an agent's tools are, and what the registry shows of them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stint.domain.agents import AgentConfig
from stint.domain.content import text_of
from stint.domain.errors import InvalidRequest, NotFound, NotSupported, StintError, ToolUnavailable
from stint.domain.ids import new_id
from stint.domain.inference import ToolSignature
from stint.domain.registrations import Tool, ToolGroup, ToolGroupRegisterRequest, ToolInvocationResult
from stint.domain.tools import AgentToolGroup
from stint.services.registry import Registry, toolgroup_of
from stint.services.signatures import parameters_of, signature_of
from stint.services.toolbox import ServerTool, Toolbox
from stint.tools.definitions import conceal
from stint.tools.outcomes import head_of
from stint.tools.port import MODEL_NAMES, SEARCH_PROVIDERS, Invocation, Toolgroup, ToolProvider

logger = logging.getLogger(__name__)

LIST_SECONDS = 5.0
"""How long a list of all tools waits for a toolgroup: one that hangs must not hide the others."""

NOT_OFFERED = ("code_interpreter", "image_generation")


@dataclass(frozen=True, slots=True)
class Selection:
    """What an agent or a turn wants of a toolgroup: all its tools, or one; `args` win over the model's arguments."""

    toolgroup: ToolGroup
    tool_name: str | None
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tools:
    """The server-side tools of a tenant. `check_url` raises InvalidRequest for a URL that may not be called."""

    registry: Registry
    providers: Mapping[str, ToolProvider]
    check_url: Callable[[str], Awaitable[None]]
    result_bytes: int

    async def open(
        self, config: AgentConfig, added: Sequence[AgentToolGroup], provider_data: Mapping[str, Any]
    ) -> Toolbox:
        """Gather the tools of a turn: the client's, and those of the agent's toolgroups and the added ones.

        Raises:
            InvalidRequest: an unknown toolgroup or tool, or two tools of one name; names it.
            ToolUnavailable: a toolgroup's provider cannot list its tools.
        """
        client = {tool.name: signature_of(tool) for tool in config.client_tools}
        selections = [await self.select(wanted) for wanted in (*config.toolgroups, *added)]
        groups = {selection.toolgroup.identifier: selection.toolgroup for selection in selections}
        listed = await asyncio.gather(*(self.signatures(group, provider_data) for group in groups.values()))
        signatures = dict(zip(groups, listed, strict=True))
        server: dict[str, ServerTool] = {}
        for selection in selections:
            for tool in self.chosen(selection, signatures[selection.toolgroup.identifier]):
                add_tool(server, tool, client)
        return Toolbox(client, server, provider_data, self.result_bytes)

    async def register(self, request: ToolGroupRegisterRequest) -> ToolGroup:
        """Register a toolgroup.

        Raises:
            InvalidRequest: its provider is unknown, or cannot use what the registration says.
            Conflict: the identifier is taken.
        """
        if request.mcp_endpoint is not None:
            await self.check_url(request.mcp_endpoint.uri)
        elif request.provider_id in self.providers:
            await self.signatures(toolgroup_of(request, None), {})
        return concealed(await self.registry.register_toolgroup(request))

    async def select(self, wanted: AgentToolGroup) -> Selection:
        """Find the toolgroup that an agent names as `group` or `group/tool`.

        Raises:
            InvalidRequest: there is none of this name.
        """
        name, args = (wanted, {}) if isinstance(wanted, str) else (wanted.name, wanted.args)
        found = await self.registry.find_toolgroup(name)
        if found is None:
            refuse_not_offered(name)
            raise InvalidRequest(
                f"Toolgroup {name!r} is not registered. GET /v1/toolgroups lists those that are.",
                code="toolgroup_not_found",
                param="toolgroups",
            )
        return Selection(*found, args)

    async def signatures(self, group: ToolGroup, provider_data: Mapping[str, Any]) -> list[ToolSignature]:
        """List a toolgroup's tools, named as in the registry."""
        return await self.provider_of(group).list_tools(as_port(group), dict(provider_data))

    def provider_of(self, group: ToolGroup) -> ToolProvider:
        """Give the provider of a toolgroup. Raises ToolUnavailable when the configuration names one that is not."""
        provider = self.providers.get(group.provider_id)
        if provider is None:
            raise ToolUnavailable(
                f"Toolgroup {group.identifier!r} names the provider {group.provider_id!r}, which there is not: mend "
                "STINT_REGISTRY."
            )
        return provider

    def chosen(self, selection: Selection, signatures: list[ToolSignature]) -> list[ServerTool]:
        """Pick the wanted tools of a toolgroup. Raises InvalidRequest when it has no tool of that name."""
        group, provider = as_port(selection.toolgroup), self.provider_of(selection.toolgroup)
        names = [signature.name for signature in signatures]
        if selection.tool_name is not None and selection.tool_name not in names:
            raise InvalidRequest(
                f"Toolgroup {group.toolgroup_id!r} has no tool {selection.tool_name!r}. Its tools are: {names}",
                code="tool_not_found",
                param="toolgroups",
            )
        return [
            ServerTool(replace(signature, name=name), group, provider, selection.args)
            for signature in signatures
            for name in [shown_name(group.provider_id, signature.name)]
            if selection.tool_name in (None, signature.name)
        ]

    async def toolgroups(self) -> list[ToolGroup]:
        """List the configured and registered toolgroups."""
        return [concealed(group) for group in (await self.registry.catalogue(fresh=True)).toolgroups.values()]

    async def toolgroup(self, identifier: str) -> ToolGroup:
        """Read a toolgroup. Raises NotFound."""
        return concealed(await self.registry.get_toolgroup(identifier))

    async def show(self, toolgroup_name: str | None, provider_data: Mapping[str, Any]) -> list[Tool]:
        """List the tools of a toolgroup (`group` or `group/tool`), or of all that answer.

        Raises:
            NotFound: there is no such toolgroup, or no such tool in it.
            ToolUnavailable: the provider of the one that was named cannot list its tools.
        """
        if toolgroup_name is not None:
            found = await self.registry.find_toolgroup(toolgroup_name)
            if found is None:
                refuse_not_offered(toolgroup_name)
                raise NotFound("Toolgroup", toolgroup_name)
            group, tool_name = found
            tools = describe(group, await self.signatures(group, provider_data))
            chosen = [tool for tool in tools if tool_name in (None, tool.identifier)]
            if not chosen and tool_name is not None:
                raise NotFound("Tool", toolgroup_name)
            return chosen
        groups = list((await self.registry.catalogue(fresh=True)).toolgroups.values())
        listed = await asyncio.gather(*(self.show_if_reachable(group, provider_data) for group in groups))
        return [tool for tools in listed for tool in tools]

    async def show_if_reachable(self, group: ToolGroup, provider_data: Mapping[str, Any]) -> list[Tool]:
        """List a toolgroup's tools; of one that cannot be reached, none."""
        try:
            async with asyncio.timeout(LIST_SECONDS):
                return describe(group, await self.signatures(group, provider_data))
        except TimeoutError:
            extra = {"toolgroup_id": group.identifier, "seconds": LIST_SECONDS}
            logger.warning("A toolgroup that does not answer is left out of the list of tools", extra=extra)
            return []
        except StintError as error:
            extra = {"toolgroup_id": group.identifier, "error": error.message}
            logger.warning("A toolgroup is left out of the list of tools", extra=extra)
            return []

    async def get(self, tool_name: str, provider_data: Mapping[str, Any]) -> Tool:
        """Find a tool by its name in any toolgroup.

        Raises:
            NotFound: no toolgroup that can be reached has it.
            InvalidRequest: several have it.
        """
        found = [
            tool
            for tool in await self.show(None, provider_data)
            if tool_name in (tool.identifier, shown_name(tool.provider_id, tool.identifier))
        ]
        if not found:
            raise NotFound("Tool", tool_name)
        if len(found) > 1:
            groups = ", ".join(tool.toolgroup_id for tool in found)
            raise InvalidRequest(
                f"Several toolgroups have a tool {tool_name!r}: {groups}. Use it in an agent as group/tool.",
                code="ambiguous_tool",
                param="tool_name",
            )
        return found[0]

    async def invoke(
        self, tool_name: str, arguments: dict[str, Any], provider_data: Mapping[str, Any]
    ) -> ToolInvocationResult:
        """Run a tool outside a turn. A tool that fails says so in the result.

        Raises:
            NotFound: no toolgroup that can be reached has it.
            ToolUnavailable: its provider cannot be reached.
        """
        refuse_not_offered(tool_name)
        tool = await self.get(tool_name, provider_data)
        group = (await self.registry.catalogue()).toolgroups[tool.toolgroup_id]
        invocation = Invocation(tool.identifier, arguments, f"call_{new_id()}", dict(provider_data))
        outcome = await self.provider_of(group).invoke(as_port(group), invocation)
        return ToolInvocationResult(
            content=head_of(outcome.content, self.result_bytes),
            error_message=text_of(outcome.content) if outcome.error else None,
            error_code=int(outcome.error),
            metadata=outcome.metadata or None,
        )


def refuse_not_offered(name: str) -> None:
    """Refuse by name what Llama Stack has and this server does not do. Raises NotSupported."""
    if any(offer in name for offer in NOT_OFFERED):
        raise NotSupported(f"{name!r} is not offered: Stint runs no code and makes no images.")


def concealed(group: ToolGroup) -> ToolGroup:
    """Show a toolgroup without the secrets in its args."""
    return group if group.args is None else group.model_copy(update={"args": conceal(group.args)})


def add_tool(server: dict[str, ServerTool], tool: ServerTool, client: Mapping[str, ToolSignature]) -> None:
    """Add a tool by its name. One that is chosen again gets the later args; another one of that name is refused."""
    name = tool.signature.name
    other = server.get(name)
    if name in client or (other is not None and other.toolgroup.toolgroup_id != tool.toolgroup.toolgroup_id):
        owner = "a client tool" if other is None else f"toolgroup {other.toolgroup.toolgroup_id!r}"
        raise InvalidRequest(
            f"Tool {name!r} of toolgroup {tool.toolgroup.toolgroup_id!r} has the name of {owner}; names must differ.",
            code="duplicate_tool",
            param="toolgroups",
        )
    server[name] = tool if other is None else replace(tool, args={**other.args, **tool.args})


def shown_name(provider_id: str, name: str) -> str:
    """Give the name by which models know a tool."""
    return MODEL_NAMES.get(name, name) if provider_id in SEARCH_PROVIDERS else name


def as_port(group: ToolGroup) -> Toolgroup:
    """Give a registered toolgroup as its provider takes it."""
    endpoint = group.mcp_endpoint.uri if group.mcp_endpoint else None
    return Toolgroup(group.identifier, group.provider_id, endpoint, group.args or {})


def describe(group: ToolGroup, signatures: Sequence[ToolSignature]) -> list[Tool]:
    """Show tools as the registry lists them."""
    return [
        Tool(
            identifier=signature.name,
            provider_id=group.provider_id,
            toolgroup_id=group.identifier,
            description=signature.description,
            parameters=parameters_of(signature),
        )
        for signature in signatures
    ]
