"""The tools of a turn: the client's, and those of the toolgroups of the agent and the turn.

Models know a tool by one name without its toolgroup, so a name must be unique in a turn: two tools with the same name
are refused by the names of their owners. The same tool of the same toolgroup may be named again, for example by the
turn; the later arguments win, one by one, and approvals add up (`tool_approvals.py`).

All toolgroups of a turn list their tools at the same time. Lists are cached by the providers, and a turn whose server
does not answer fails here, before it is stored.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any, TypeGuard

from stint.dataclasses import dataclass, replace
from stint.domain.approvals import Approval
from stint.domain.errors import InvalidRequest, StintError, ToolUnavailable, UnresolvableURL
from stint.domain.inference import ToolSignature
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.registrations import ToolGroup
from stint.domain.tools import AgentToolGroup, AgentToolGroupWithArgs, ServerWithVaults
from stint.loop.toolbox import ServerTool, Toolbox, refuse_too_many
from stint.services.registry.registry import Registry
from stint.services.registry.selections import Selection, as_port, name_for_model
from stint.services.registry.tool_schemas import signature_of
from stint.services.registry.unsupported_tools import refuse_not_offered
from stint.tools.list_budget import shared_list_budget
from stint.tools.port import (
    MCP_SERVER,
    REMOTE_EXECUTION,
    SEARCH_PROVIDERS,
    SERVER_REFUSED,
    WEB_SEARCH_GROUP,
    ToolProvider,
)

logger = logging.getLogger(__name__)

NONE = frozenset[str]()
SERVER_OF = attrgetter("server")


@dataclass(frozen=True, slots=True)
class Tools:
    """The server tools of a tenant. `result_bytes` is the maximum of a result that a model gets."""

    registry: Registry
    providers: Mapping[str, ToolProvider]
    result_bytes: int

    async def make_toolbox(
        self,
        config: AgentConfig,
        added: Sequence[AgentToolGroup],
        provider_data: Mapping[str, Any],
        approval: Approval | None = None,
    ) -> Toolbox:
        """Collect the tools of a turn: the client's, and those of the agent's and the turn's toolgroups.

        `approval` is that of the turn for all tools.

        Raises:
            InvalidRequest: a toolgroup or tool is unknown, two tools have the same name, or there are too many.
            ToolUnavailable: a toolgroup's provider cannot list its tools, and there is no cached list.
        """
        client = {tool.name: signature_of(tool) for tool in config.client_tools}
        named = (*config.toolgroups, *added)
        selections = [await self.select(wanted) for wanted in named if not is_disabled(wanted)]
        # A toolgroup is listed once, however many of its tools are named.
        groups = {selection.toolgroup.identifier: selection.toolgroup for selection in selections}
        optional = find_optional(selections) if any(map(SERVER_OF, selections)) else ()
        with shared_list_budget():
            listing = [
                (self.list_optional if name in optional else self.signatures)(group, provider_data)
                for name, group in groups.items()
            ]
            listed = await asyncio.gather(*listing) if listing else []
        signatures = dict(zip(groups, listed, strict=True))
        server: dict[str, ServerTool] = {}
        for selection in selections:
            for tool in self.select_tools(selection, signatures[selection.toolgroup.identifier]):
                add_tool(server, tool, client)
        refuse_too_many(server, "toolgroups", "Name the ones to use as group/tool.")
        approvals = NONE
        of_all = [each for each in (config.require_approval, approval) if each is not None]
        off = [each.require_approval for each in named if is_disabled(each) and each.require_approval is not None]
        if of_all or off or any(selection.may_ask for selection in selections):
            from stint.services.registry import tool_approvals as asked  # noqa: PLC0415 - few turns ask for approval

            rules = [*asked.read_rules(of_all, selections, signatures, server), *map(asked.rule_of_search, off)]
            generators = await asked.find_generators(server, self.find_known)
            approvals = asked.find_approvals(server, rules, generators)
        return Toolbox(client, server, provider_data, self.result_bytes, approvals)

    async def select(self, wanted: AgentToolGroup) -> Selection:
        """Find the toolgroup that an agent names as `group` or `group/tool`.

        Raises:
            InvalidRequest: there is no such toolgroup.
        """
        name, args = (wanted, {}) if isinstance(wanted, str) else (wanted.name, wanted.args)
        approval = None if isinstance(wanted, str) else wanted.require_approval
        if name == REMOTE_EXECUTION:
            from stint.services.registry.inline_toolgroups import define_toolgroup  # noqa: PLC0415 - few agents have it

            return Selection(define_toolgroup(args), None, {}, approval=approval)
        if name == MCP_SERVER:
            from stint.services.registry.inline_toolgroups import define_server, read_server  # noqa: PLC0415 - likewise

            server = read_server(args)
            sealed = None if isinstance(wanted, str) else wanted.sealed
            vaults = wanted.vaults if isinstance(wanted, ServerWithVaults) else None
            return Selection(define_server(server, args, sealed, vaults), None, {}, server, approval)
        found = await self.registry.find_toolgroup(name)
        if found is None:
            refuse_not_offered(name)
            raise InvalidRequest(
                f"Toolgroup {name!r} is not registered. GET /v1/toolgroups lists the registered ones.",
                code="toolgroup_not_found",
                param="toolgroups",
            )
        return Selection(*found, args, approval=approval)

    async def find_known(self, name: str, args: Mapping[str, Any]) -> list[ServerTool]:
        """Return the tools of a `group` or `group/tool`, as far as no request is needed; none if it cannot be used."""
        with suppress(StintError):
            selection = await self.select(AgentToolGroupWithArgs(name=name, args=dict(args)))
            return self.select_tools(selection, self.known(selection.toolgroup, {}) or [])
        return []

    async def signatures(
        self, group: ToolGroup, provider_data: Mapping[str, Any], param: str = "toolgroups"
    ) -> list[ToolSignature]:
        """List a toolgroup's tools under their names in the registry.

        Raises:
            ToolUnavailable: the provider cannot list them. The message names the toolgroup.
            InvalidRequest: its URL is not allowed, or its host does not resolve. The message names the toolgroup, and
                `param` the field that refers to it.
        """
        provider = self.provider_of(group)
        try:
            return await provider.list_tools(as_port(group), dict(provider_data))
        except (ToolUnavailable, InvalidRequest) as error:
            if isinstance(error, InvalidRequest) and error.param is None:
                error.param = param
            raise name_toolgroup(group, error) from error

    async def list_optional(self, group: ToolGroup, provider_data: Mapping[str, Any]) -> list[ToolSignature]:
        """List the tools of an MCP server that a turn can do without: none if it cannot be reached.

        Raises:
            InvalidRequest: its URL is not allowed, or its definition is malformed.
        """
        try:
            return await self.signatures(group, provider_data)
        except (ToolUnavailable, UnresolvableURL) as error:
            failure = error.message
        except InvalidRequest as error:
            if error.code != SERVER_REFUSED:
                raise
            failure = error.message
        extra = {"toolgroup_id": group.identifier, "error": failure}
        logger.warning("A turn runs without the tools of an MCP server that does not answer", extra=extra)
        return []

    def known(self, group: ToolGroup, provider_data: Mapping[str, Any]) -> list[ToolSignature] | None:
        """Return a toolgroup's tools without a request; None if a server would have to be contacted."""
        return self.provider_of(group).known_tools(as_port(group), dict(provider_data))

    def provider_of(self, group: ToolGroup) -> ToolProvider:
        """Return the provider of a toolgroup. Raises ToolUnavailable if the configured provider does not exist."""
        provider = self.providers.get(group.provider_id)
        if provider is None:
            raise ToolUnavailable(
                f"Toolgroup {group.identifier!r} uses the provider {group.provider_id!r}, which does not exist. Check "
                "STINT_REGISTRY."
            )
        return provider

    def select_tools(self, selection: Selection, signatures: list[ToolSignature]) -> list[ServerTool]:
        """Select the tools of a toolgroup.

        Raises InvalidRequest if it has no tool with the name, or does not support its args.
        """
        group, provider = as_port(selection.toolgroup), self.provider_of(selection.toolgroup)
        args = selection.args
        if args and group.provider_id in SEARCH_PROVIDERS:
            from stint.services.registry.web_searches import read_search_args  # noqa: PLC0415 - few agents have args

            args = read_search_args(args)
        names = [signature.name for signature in signatures]
        shown = [(name_for_model(group.provider_id, signature.name), signature) for signature in signatures]
        wanted = [
            ServerTool(replace(signature, name=name), group, provider, args, alias=alias_of(signature, name))
            for name, signature in shown
            if selection.tool_name in (None, signature.name, name)
        ]
        if selection.tool_name is not None and not wanted:
            raise InvalidRequest(
                f"Toolgroup {group.toolgroup_id!r} has no tool {selection.tool_name!r}. Its tools are: {names}",
                code="tool_not_found",
                param="toolgroups",
            )
        return wanted


def is_disabled(group: AgentToolGroup) -> TypeGuard[AgentToolGroupWithArgs]:
    """Return whether a toolgroup is a web search that says only that the model gets none."""
    return not isinstance(group, str) and group.name == WEB_SEARCH_GROUP and group.args.get("mode") == "disabled"


def find_optional(selections: Sequence[Selection]) -> set[str]:
    """Return the identifiers of the MCP servers that a turn can do without.

    Raises:
        InvalidRequest: two inline servers have one label, or their credentials are too long.
    """
    from stint.services.registry.inline_toolgroups import refuse_conflicts  # noqa: PLC0415 - few agents have one

    inline = [(each.toolgroup.identifier, each.server) for each in selections if each.server is not None]
    refuse_conflicts(server for _, server in inline)
    return {identifier for identifier, server in inline if not server.required}


def add_tool(server: dict[str, ServerTool], tool: ServerTool, client: Mapping[str, ToolSignature]) -> None:
    """Add a tool by its name. A repeated tool gets the later args; another tool with that name is refused."""
    name = tool.signature.name
    other = server.get(name)
    # A server must not take the place of a client's tool, whose calls wait for the client.
    if name in client or (other is not None and other.toolgroup.toolgroup_id != tool.toolgroup.toolgroup_id):
        owner = "a client tool" if other is None else f"toolgroup {other.toolgroup.toolgroup_id!r}"
        raise InvalidRequest(
            f"Tool {name!r} of toolgroup {tool.toolgroup.toolgroup_id!r} has the same name as {owner}. "
            "Tool names must be unique.",
            code="duplicate_tool",
            param="toolgroups",
        )
    server[name] = tool if other is None else replace(tool, args={**other.args, **tool.args})


def name_toolgroup(group: ToolGroup, error: StintError) -> StintError:
    """Return a provider's error with the toolgroup's name."""
    return type(error)(f"Toolgroup {group.identifier!r}: {error.message}", code=error.code, param=error.param)


def alias_of(signature: ToolSignature, name: str) -> str | None:
    """Return the name of a tool in the registry, if models know it by another `name`."""
    return signature.name if signature.name != name else None
