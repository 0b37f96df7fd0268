"""Toolgroups and their tools in the registry, and calls of tools outside a turn.

Registering a toolgroup makes other requests call its server. So its provider, its URL and its secrets are checked
before it is stored; credentials are encrypted, and every answer of the API shows masks instead. The masks come back
when a client registers what it has read, and are refused: they would replace the credentials.

A tool is looked up by name in this order, so that neither a slow server nor a stranger's registration decides:

  1. `group/tool`, which names one toolgroup
  2. configured toolgroups: those whose tools are known, then those whose server must be asked
  3. registered toolgroups, likewise

All servers are asked at the same time, each for LIST_SECONDS, and all lists together have one budget. One that does not
answer is an entry of the answer, not an error, as long as another toolgroup has the tool.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from stint.caller import find_attempt, next_object_id
from stint.dataclasses import dataclass
from stint.domain.content import URL, text_of
from stint.domain.errors import InvalidRequest, NotFound, StintError, ToolUnavailable
from stint.domain.known_secrets import redact
from stint.domain.limits import too_long
from stint.domain.llama_stack.registrations import (
    Owner,
    Tool,
    ToolGroup,
    ToolGroupRegisterRequest,
    ToolInvocationResult,
    ToolList,
    UnavailableToolGroup,
    without_marks,
)
from stint.services.registry.catalogue import Registered, split_groups, toolgroup_of
from stint.services.registry.masking import masked_toolgroup
from stint.services.registry.registry import Registry
from stint.services.registry.selections import as_port, name_for_model, read_approval
from stint.services.registry.tool_schemas import describe
from stint.services.registry.tools import Tools, name_toolgroup
from stint.services.registry.unsupported_tools import refuse_not_offered
from stint.tools.encrypted_credentials import EncryptedCredentials
from stint.tools.list_budget import shared_list_budget
from stint.tools.masking import mask_url, refuse_masked
from stint.tools.outcomes import head_of
from stint.tools.port import MCP, Invocation
from stint.tools.redaction import warn_of_short_secrets
from stint.tools.secret_references import has_references, refuse_references

logger = logging.getLogger(__name__)

LIST_SECONDS = 5.0
"""Maximum seconds to wait for one toolgroup when all are listed, so that one that hangs does not block the others."""


@dataclass(frozen=True, slots=True)
class Toolgroups:
    """The toolgroups of a tenant. `check_url` raises InvalidRequest for a URL that is not allowed."""

    tools: Tools
    check_url: Callable[[str], Awaitable[None]]
    credentials: EncryptedCredentials

    async def register(self, request: ToolGroupRegisterRequest) -> ToolGroup:
        """Register a toolgroup.

        Raises:
            InvalidRequest: its provider is unknown, or refuses the registration.
            Conflict: the identifier is taken.
            Forbidden: it names a secret, or its identifier has a meaning already, and the caller is no admin.
            StoreUnavailable: it cannot be stored, or its credentials cannot be encrypted.
        """
        refuse_masked(request.args, "args")
        refuse_masked(request.mcp_endpoint and request.mcp_endpoint.uri, "mcp_endpoint")
        if (provider := self.tools.providers.get(request.provider_id)) is not None:
            await provider.check(as_port(toolgroup_of(request, None)))
        read_approval(request.args or {}, "args")
        if request.mcp_endpoint is not None and request.provider_id != MCP:
            await self.check_endpoint(request.mcp_endpoint)
        # Of what the request contains, before anything is encrypted.
        secret = has_references([request.args, request.mcp_endpoint and request.mcp_endpoint.uri])
        toolgroup = await store_toolgroup(self.tools.registry, self.credentials, request, names_secret=secret)
        warn_of_short_secrets(toolgroup.identifier, toolgroup.args)
        return masked_toolgroup(toolgroup)

    async def check_endpoint(self, endpoint: URL) -> None:
        """Refuse an endpoint that is too long or not allowed. Raises InvalidRequest."""
        if fault := too_long("mcp_endpoint", endpoint.uri):
            raise InvalidRequest(fault, param="mcp_endpoint")
        try:
            await self.check_url(endpoint.uri)
        except InvalidRequest as error:
            raise InvalidRequest(
                f"The mcp_endpoint cannot be used: {error.message}", code=error.code, param="mcp_endpoint"
            ) from error

    async def unregister(self, identifier: str) -> None:
        """Unregister a toolgroup. Raises NotFound and Conflict, see `Registry.unregister`."""
        await self.tools.registry.unregister("tool_group", identifier)

    async def list(self) -> list[ToolGroup]:
        """List the configured and registered toolgroups."""
        groups = await self.all()
        return await asyncio.to_thread(lambda: [masked_toolgroup(group) for group in groups])

    async def get(self, identifier: str) -> ToolGroup:
        """Return a toolgroup. Raises NotFound."""
        return await asyncio.to_thread(masked_toolgroup, await self.tools.registry.get_toolgroup(identifier))

    async def all(self) -> Sequence[ToolGroup]:
        return list((await self.tools.registry.catalogue(fresh=True)).toolgroups.values())

    async def tools_of(
        self, name: str | None, provider_data: Mapping[str, Any], endpoint: str | None = None
    ) -> ToolList:
        """List the tools of a toolgroup (`group` or `group/tool`), or of all toolgroups, with those that do not answer.

        With an `endpoint`, list the tools of that MCP server, under the toolgroup's name if there is one.

        Raises:
            NotFound: there is no such toolgroup, or no such tool in it.
            ToolUnavailable: the named toolgroup's provider cannot list its tools.
            InvalidRequest: its server refuses the connection, or its URL cannot be used.
        """
        if endpoint is not None:
            return ToolList(data=[*await self.tools_at(endpoint, name, provider_data)])
        if name is None:
            groups = await self.all()
            return make_list(groups, await self.list_each(groups, provider_data))
        return ToolList(data=[*await self.named_tools(name, provider_data)])

    async def named_tools(self, name: str, provider_data: Mapping[str, Any]) -> Sequence[Tool]:
        """List the tools of a toolgroup; see `tools_of`."""
        await self.tools.registry.renew()
        found = await self.tools.registry.find_toolgroup(name)
        if found is None:
            refuse_not_offered(name)
            raise NotFound("Toolgroup", name)
        group, tool_name = found
        tools = describe(group, await self.tools.signatures(group, provider_data, "toolgroup_id"))
        chosen = tools if tool_name is None else matching(tool_name, tools)
        if not chosen and tool_name is not None:
            raise NotFound("Tool", name)
        return chosen

    async def tools_at(self, endpoint: str, name: str | None, provider_data: Mapping[str, Any]) -> Sequence[Tool]:
        """List the tools of the MCP server at an endpoint, which need not be registered."""
        refuse_references(endpoint, "mcp_endpoint")
        await self.check_endpoint(URL(uri=endpoint))
        request = ToolGroupRegisterRequest.model_construct(  # nothing is registered, so a name of any form is possible
            toolgroup_id=name or mask_url(endpoint, endpoint=True), provider_id=MCP, mcp_endpoint=URL(uri=endpoint)
        )
        group = toolgroup_of(request, None)
        return describe(group, await self.tools.signatures(group, provider_data, "mcp_endpoint"))

    async def list_each(
        self, groups: Sequence[ToolGroup], provider_data: Mapping[str, Any]
    ) -> Sequence[Sequence[Tool] | StintError]:
        """List the tools of several toolgroups concurrently, within one budget."""
        with shared_list_budget():
            return await asyncio.gather(*(self.list_or_error(group, provider_data) for group in groups))

    async def list_or_error(self, group: ToolGroup, provider_data: Mapping[str, Any]) -> Sequence[Tool] | StintError:
        """List a toolgroup's tools, or return the error if it is unreachable or slow."""
        try:
            async with asyncio.timeout(LIST_SECONDS):
                return describe(group, await self.tools.signatures(group, provider_data))
        except TimeoutError:
            failure: StintError = name_toolgroup(
                group, ToolUnavailable(f"It did not respond within {LIST_SECONDS:g} s")
            )
        except StintError as error:
            failure = error
        extra = {"toolgroup_id": group.identifier, "error": failure.message}
        logger.warning("A toolgroup cannot list its tools", extra=extra)
        return failure

    async def tool(self, name: str, provider_data: Mapping[str, Any]) -> Tool:
        """Find a tool by its name in any toolgroup, or by `group/tool`.

        Configured toolgroups come first. Of these, and then of the registered ones, servers are contacted only if no
        cached list has the tool.

        Raises:
            NotFound: no toolgroup has it.
            InvalidRequest: several have it, and none of them is built in.
            ToolUnavailable: no toolgroup that answers has it, and some do not answer.
        """
        from stint.services.registry.found_tools import choose_tool, tool_not_found  # noqa: PLC0415 - few requests name one

        if "/" in name and (found := await self.tools.registry.find_toolgroup(name)) and found[1] is not None:
            return (await self.named_tools(name, provider_data))[0]
        failures: list[StintError] = []
        for groups in split_groups(await self.all()):
            tools, failed = await self.find_tools(name, groups, provider_data)
            if tools:
                return choose_tool(name, tools, self.tools.registry.configured.toolgroups)
            failures += failed
        if failures:
            raise tool_not_found(name, failures)
        raise NotFound("Tool", name)

    async def find_tools(
        self, name: str, groups: Sequence[ToolGroup], provider_data: Mapping[str, Any]
    ) -> tuple[Sequence[Tool], Sequence[StintError]]:
        """Return the tools of some toolgroups with a name, and the errors of those that cannot list their tools."""
        known = {group.identifier: self.known(group, provider_data) for group in groups}
        tools = matching(name, [tool for tools in known.values() for tool in tools or ()])
        if tools:
            return tools, ()
        looks = await self.list_each([group for group in groups if known[group.identifier] is None], provider_data)
        tools = matching(name, [tool for look in looks if not isinstance(look, StintError) for tool in look])
        return tools, [look for look in looks if isinstance(look, StintError)]

    def known(self, group: ToolGroup, provider_data: Mapping[str, Any]) -> Sequence[Tool] | None:
        """Return a toolgroup's tools without a request; None if they are unknown."""
        try:
            signatures = self.tools.known(group, provider_data)
        except StintError:
            return None
        return None if signatures is None else describe(group, signatures)

    async def invoke(
        self, tool_name: str, arguments: dict[str, Any], provider_data: Mapping[str, Any]
    ) -> ToolInvocationResult:
        """Run a tool outside a turn. A failure of the tool is in the result.

        Raises:
            NotFound: no toolgroup has it.
            Conflict: an earlier request with the same idempotency key may have run it.
            ToolUnavailable: its provider cannot be reached. The message names the toolgroup.
        """
        try:
            tool = await self.tool(tool_name, provider_data)
        except NotFound:
            refuse_not_offered(tool_name)
            raise
        group = (await self.tools.registry.catalogue()).toolgroups[tool.toolgroup_id]
        # A call must not run twice. Whether an earlier attempt has sent it decides about the repetition.
        if find_attempt().repeated:
            from stint.services.registry.repetitions import refuse_repetition  # noqa: PLC0415 - few requests are

            await refuse_repetition(self.tools, tool, group, provider_data)
        invocation = Invocation(tool.identifier, arguments, f"call_{next_object_id()}", dict(provider_data))
        try:
            outcome = await self.tools.provider_of(group).invoke(as_port(group), invocation)
        except (ToolUnavailable, InvalidRequest) as error:
            raise name_toolgroup(group, error) from error
        return ToolInvocationResult(
            content=head_of(outcome.content, self.tools.result_bytes),
            error_message=text_of(outcome.content) if outcome.error else None,
            error_code=int(outcome.error),
            metadata=outcome.metadata or None,
        )


def make_list(groups: Sequence[ToolGroup], listed: Sequence[Sequence[Tool] | StintError]) -> ToolList:
    """Return the tools of all toolgroups, and the reasons of those that cannot list theirs, without credentials."""
    unavailable = [
        UnavailableToolGroup(toolgroup_id=group.identifier, reason=redact(found.message))
        for group, found in zip(groups, listed, strict=True)
        if isinstance(found, StintError)
    ]
    tools = [tool for found in listed if not isinstance(found, StintError) for tool in found]
    return ToolList(data=tools, unavailable=unavailable)


def matching(name: str, tools: Sequence[Tool]) -> Sequence[Tool]:
    """Return the tools with a name, either the registry's or the models'."""
    return [tool for tool in tools if name in (tool.identifier, name_for_model(tool.provider_id, tool.identifier))]


async def store_toolgroup(
    registry: Registry, credentials: EncryptedCredentials, request: ToolGroupRegisterRequest, *, names_secret: bool
) -> ToolGroup:
    """Register a toolgroup, and return it as it was sent; see `Registry.register`.

    Its credentials are encrypted before. The same toolgroup may be registered again.

    Raises:
        InvalidRequest: its credentials are too long.
        StoreUnavailable: they cannot be encrypted.
    """
    toolgroup = toolgroup_of(request, Owner())

    async def is_equal(known: Registered, _: Registered) -> bool:
        if isinstance(known, ToolGroup) and known.sealed:
            known = await decrypt_toolgroup(known, credentials)
        return without_marks(known) == without_marks(toolgroup)

    encrypted = await encrypt_toolgroup(toolgroup, credentials)
    stored = await registry.register("tool_group", encrypted, is_equal=is_equal, names_secret=names_secret)
    return toolgroup.model_copy(update={"owner": stored.owner, "override": stored.override})


async def encrypt_toolgroup(toolgroup: ToolGroup, credentials: EncryptedCredentials) -> ToolGroup:
    """Return a toolgroup with encrypted credentials. Without a key, or without credentials, it is unchanged."""
    encrypted = await credentials.encrypt(as_port(toolgroup))
    if not encrypted.sealed:
        return toolgroup
    endpoint = encrypted.mcp_endpoint and URL(uri=encrypted.mcp_endpoint)
    update = {"args": encrypted.config or toolgroup.args, "mcp_endpoint": endpoint, "sealed": encrypted.sealed}
    return toolgroup.model_copy(update=update)


async def decrypt_toolgroup(toolgroup: ToolGroup, credentials: EncryptedCredentials) -> ToolGroup:
    """Return a toolgroup with its credentials. Raises StoreUnavailable."""
    decrypted = await credentials.decrypt(as_port(toolgroup))
    endpoint = decrypted.mcp_endpoint and URL(uri=decrypted.mcp_endpoint)
    update = {"args": decrypted.config or toolgroup.args, "mcp_endpoint": endpoint, "sealed": None}
    return toolgroup.model_copy(update=update)
