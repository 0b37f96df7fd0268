"""The plan of a response, made from its settings and checked before anything is stored.

A plan is complete before the header is stored: afterwards an error would be a failed response instead of a status of
HTTP. So all that can be refused is refused here: names, schemas, tools, features that the model's provider lacks.

Listing the tools of MCP servers takes the longest, so all servers are asked at once, with one budget of bytes. The
model sees only the tools that the choice allows, and cannot call others. Errors of the model's provider name
neutral fields, and are renamed to those of the Responses API.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stint.dataclasses import dataclass, replace
from stint.domain.approvals import needs_approval
from stint.domain.errors import InvalidRequest, error_param, rename_param
from stint.domain.inference import (
    AnswerFormat,
    JsonObjectResponseFormat,
    JsonSchemaResponseFormat,
    ToolSignature,
    to_options,
)
from stint.domain.limits import MAX_INFER_ITERS
from stint.domain.openai.code_interpreter import CodeInterpreterTool
from stint.domain.openai.file_search import FileSearchTool
from stint.domain.openai.image_generation import ImageGenerationTool
from stint.domain.openai.mcp_items import McpListTools
from stint.domain.openai.response_options import JsonObject, JsonSchema, PlainText
from stint.domain.openai.response_tools import (
    AllowedToolsChoice,
    FunctionTool,
    McpTool,
    ResponseTool,
    ResponseToolChoice,
    WebSearchTool,
)
from stint.domain.openai.stored_responses import ResponseSettings, tier_of
from stint.domain.tools import ToolChoice, ToolConfig
from stint.loop.plan import CompactionRule, Plan
from stint.loop.structured_output import check_schema
from stint.loop.toolbox import ServerTool, Toolbox, refuse_too_many
from stint.models.json_schemas import ANY_OBJECT
from stint.models.port import ChatModel
from stint.models.routing import Router
from stint.services.registry.registry import Registry
from stint.services.registry.selections import as_port, name_for_model, read_approval
from stint.services.registry.tools import Tools
from stint.services.responses.code_runs import CodeAccess, code_interpreter
from stint.services.responses.hosted_tools import WEB_SEARCH, HostedTools, callable_names, list_item, names_of
from stint.services.responses.masking import with_credentials
from stint.services.responses.search_items import without_markers
from stint.tools.list_budget import shared_list_budget
from stint.tools.port import MCP, SEARCH_PROVIDERS, WEB_SEARCH_GROUP, ProviderData, Toolgroup

if TYPE_CHECKING:  # few responses search files, and few models take cache keys
    from stint.services.runs.cache_keys import CacheKeys, FindCacheKeys
    from stint.tools.knowledge.file_search import KnowledgeSearch

SCHEMA = "text.format.schema"
NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class ResponsePlan:
    """A plan, and the listed tools of MCP servers. Its model calls have a key of `cache_keys`."""

    plan: Plan
    listed: list[McpListTools]
    cache_keys: "CacheKeys | None"


@dataclass(frozen=True, slots=True)
class ResponsePlanner:
    """Makes the plans of a tenant's responses. The functions return the search of its stores, and what runs code."""

    router: Router
    registry: Registry
    tools: Tools
    make_knowledge: Callable[[], "KnowledgeSearch"]
    make_code: Callable[[], CodeAccess]
    find_cache_keys: "FindCacheKeys"

    async def plan(
        self,
        model_id: str,
        settings: ResponseSettings,
        tools: Sequence[ResponseTool],
        provider_data: ProviderData,
        response_id: str = "",
    ) -> ResponsePlan:
        """Check the settings of a response, and list the tools of its MCP servers.

        `tools` has the request's tools with their credentials, which `settings` lacks.

        Raises:
            InvalidRequest: a model or tool is unknown, two tools have the same name, or the model's provider lacks a
                feature.
            ToolUnavailable: an MCP server cannot list its tools.
        """
        model, provider_model_id = self.router.resolve(await self.registry.route(model_id))
        toolbox, listed = await self.make_toolbox(settings, tools, provider_data, response_id)
        choice, toolbox = choose(settings.tool_choice, toolbox, listed)
        answer_format, schema = read_format(settings)
        plan = Plan(
            model=model,
            model_id=provider_model_id,
            instructions=settings.instructions or "",
            decoding=settings.to_decoding(),
            tool_config=ToolConfig(tool_choice=choice),
            toolbox=toolbox,
            max_infer_iters=settings.max_infer_iters or MAX_INFER_ITERS,
            response_format=answer_format,
            answer_schema=schema,
            parallel_tool_calls=settings.parallel_tool_calls,
            reasoning=to_options(settings.reasoning),
            verbosity=settings.text.verbosity if settings.text else None,
            max_output_tokens=settings.max_output_tokens,
            max_tool_calls=settings.max_tool_calls,
            shortens=settings.truncation == "auto",
            pauses_at_limit=True,
            cache=settings.choose_cache(self.router.cache),
            service_tier=tier_of(settings.service_tier, settings.background_options),
            compaction=CompactionRule.of(settings.context_management, without_markers),
        )
        check_model(model, plan, settings.fields)
        return ResponsePlan(plan, listed, await self.find_cache_keys(model))

    async def make_toolbox(
        self, settings: ResponseSettings, tools: Sequence[ResponseTool], provider_data: ProviderData, response_id: str
    ) -> tuple[Toolbox, list[McpListTools]]:
        """Collect the tools. The client runs functions, the server all others."""
        keys = with_credentials(tools, provider_data)
        servers = {place: tool for place, tool in enumerate(tools) if isinstance(tool, McpTool)}
        with shared_list_budget():
            listing = (self.list_server(place, server, keys) for place, server in servers.items())
            offered = await asyncio.gather(*listing)
        client = {tool.name: signature_of(tool) for tool in tools if isinstance(tool, FunctionTool)}
        hosted = [each for found in offered for each in found]
        refuse_too_many(hosted, "tools", "Choose some of them with allowed_tools.")
        for place, tool in enumerate(tools):
            if isinstance(tool, WebSearchTool):
                hosted.append(await self.web_search(tool, keys))
            if isinstance(tool, FileSearchTool):
                from stint.services.responses.file_searches import file_search  # noqa: PLC0415 - few responses have one

                with error_param(f"tools[{place}].vector_store_ids"):
                    hosted.append(await file_search(tool, self.make_knowledge(), self.tools.result_bytes, settings))
            if isinstance(tool, ImageGenerationTool):
                from stint.services.responses.image_items import image_generation  # noqa: PLC0415 - as few have one

                hosted.append(await image_generation(tool, place, self.tools.providers))
            if isinstance(tool, CodeInterpreterTool):
                hosted.append(await code_interpreter(tool, place, self.make_code(), settings, response_id=response_id))
        refuse_repeated([*client, *(each.signature.name for each in hosted)])
        listed = [list_item(server, found) for server, found in zip(servers.values(), offered, strict=True)]
        approvals = HostedTools.of(settings, listed).approvals
        server_tools = {each.signature.name: each for each in hosted}
        return Toolbox(client, server_tools, keys, self.tools.result_bytes, approvals=approvals), listed

    async def list_server(self, place: int, server: McpTool, provider_data: ProviderData) -> list[ServerTool]:
        """List the tools of an MCP server that the request allows.

        Raises:
            InvalidRequest: its URL is not allowed, or its host does not resolve. The message names the location in
                `tools`.
            ToolUnavailable: the server cannot list its tools.
        """
        group = Toolgroup(server.server_label, MCP, server.server_url)
        provider = self.tools.providers[MCP]
        with error_param(f"tools[{place}].server_url"):
            signatures = await provider.list_tools(group, dict(provider_data))
        return [ServerTool(each, group, provider) for each in signatures if server.allows(each.name)]

    async def web_search(self, tool: WebSearchTool, provider_data: ProviderData) -> ServerTool:
        """Return the registry's web search under the Responses API's name. An admin may have overridden it."""
        found = await self.registry.find_toolgroup(WEB_SEARCH_GROUP)
        if found is None:
            told = f"Web search needs the toolgroup {WEB_SEARCH_GROUP!r}, which is not registered. Register it."
            raise InvalidRequest(told, param="tools")
        group, provider = found[0], self.tools.provider_of(found[0])
        signatures = await self.tools.signatures(group, provider_data, "tools")
        signature = next((each for each in signatures if each.name == WEB_SEARCH), None)
        if signature is None:
            raise InvalidRequest(
                f"Web search is not possible: the toolgroup {WEB_SEARCH_GROUP!r} has no tool {WEB_SEARCH!r}.",
                param="tools",
            )
        from stint.services.registry.web_searches import PAGES  # noqa: PLC0415 - few responses search the web

        names = WEB_SEARCH, name_for_model(group.provider_id, WEB_SEARCH)
        if needs_approval(read_approval(group.args or {}, "tools"), *names) and tool.require_approval != "always":
            raise InvalidRequest(
                f"The calls of the toolgroup {WEB_SEARCH_GROUP!r} wait for approval. Set require_approval to 'always'.",
                param="tools",
            )
        limits = {"max_results": PAGES[tool.search_context_size]} if group.provider_id in SEARCH_PROVIDERS else {}
        return ServerTool(signature, as_port(group), provider, limits)


def signature_of(tool: FunctionTool) -> ToolSignature:
    return ToolSignature(tool.name, tool.description or "", tool.parameters or NO_PARAMETERS, tool.strict)


def check_model(model: ChatModel, plan: Plan, fields: Mapping[str, str]) -> None:
    """Raise InvalidRequest if a model's provider lacks a feature. The error has the API's name of the field."""
    try:
        model.check(plan.request(()))
    except InvalidRequest as error:
        error.param = rename_param(error.param, fields)
        raise


def refuse_repeated(names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InvalidRequest(
                f"Tool {name!r} is declared {count} times among functions, MCP servers and hosted tools. Names must "
                "be unique. Exclude one with allowed_tools, or rename the function.",
                code="duplicate_tool",
                param="tools",
            )


def choose(
    choice: ResponseToolChoice | None, toolbox: Toolbox, listed: Sequence[McpListTools]
) -> tuple[ToolChoice | str, Toolbox]:
    """Return the tool choice for the model, and the tools that it may call.

    Raises:
        InvalidRequest: the choice names a tool that its MCP server does not have.
    """
    names = callable_names(choice, listed)
    if names is not None:
        toolbox = only(toolbox, names)
    match choice:
        case None:
            return ToolChoice.auto, toolbox
        case "none" | "auto" | "required":
            return ToolChoice(choice), toolbox
        case AllowedToolsChoice(mode=mode):
            return ToolChoice(mode), toolbox
        case _:
            named = names_of(choice, listed)
            return named[0] if len(named) == 1 else ToolChoice.required, toolbox


def only(toolbox: Toolbox, names: frozenset[str]) -> Toolbox:
    """Return the tools that may be called. The model cannot call a tool that it does not see."""
    client = {name: tool for name, tool in toolbox.client.items() if name in names}
    server = {name: tool for name, tool in toolbox.server.items() if name in names}
    return replace(toolbox, client=client, server=server, approvals=toolbox.approvals & names)


def read_format(settings: ResponseSettings) -> tuple[AnswerFormat | None, dict[str, Any] | None]:
    """Return the response format for the model, and the schema of a strict one.

    Raises:
        InvalidRequest: the schema is invalid.
    """
    match settings.text.format if settings.text else PlainText():
        case JsonSchema(json_schema=schema) as wanted:
            check_schema(schema, SCHEMA)
            form = {"name": wanted.name, "schema": schema, "strict": wanted.strict}
            if wanted.description:
                form["description"] = wanted.description
            return JsonSchemaResponseFormat(json_schema=form), schema if wanted.strict else None
        case JsonObject():
            return JsonObjectResponseFormat(), ANY_OBJECT
        case _:
            return None, None
