"""Checks of the endpoints and templates in an agent's args, before the agent is stored."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.registrations import ToolGroup
from stint.domain.tools import AgentToolGroup, AgentToolGroupWithArgs
from stint.services.registry.inline_toolgroups import (
    define_server,
    define_toolgroup,
    find_servers,
    read_server,
    refuse_conflicts,
)
from stint.services.registry.selections import as_port, read_approval
from stint.services.registry.tools import Tools
from stint.services.registry.web_searches import read_search_args
from stint.tools.port import QUERY_GENERATOR, REMOTE_EXECUTION, WEB_SEARCH_GROUP
from stint.tools.secret_references import refuse_references

Args = Mapping[str, Any]


async def check_endpoints(toolgroups: Sequence[AgentToolGroup], tools: Tools) -> None:
    """Check the endpoints of an agent's tools and query generator, without calling them, and its prompt template.

    Raises InvalidRequest if an endpoint is malformed, may not be called, or names a secret, or for a template.
    """
    await check_servers(toolgroups, tools)
    for place, group in enumerate(toolgroups):
        if isinstance(group, AgentToolGroupWithArgs):
            check_query_template(group.args, f"agent_config.toolgroups[{place}].args")
            if group.name.partition("/")[0] == WEB_SEARCH_GROUP:
                read_search_args(group.args, f"agent_config.toolgroups[{place}].args")
        for args in endpoints_of(group):
            await check_endpoint(args, tools, f"agent_config.toolgroups[{place}]")


async def check_servers(toolgroups: Sequence[AgentToolGroup], tools: Tools) -> None:
    """Check the MCP servers that an agent names without a registration, without contacting them.

    Raises InvalidRequest.
    """
    servers = []
    for place, group in find_servers(toolgroups):
        param = f"agent_config.toolgroups[{place}]"
        server = read_server(group.args, param)
        await check_toolgroup(define_server(server, group.args), group.args, tools, param)
        servers.append(server)
    refuse_conflicts(servers, "agent_config.toolgroups")


def endpoints_of(group: AgentToolGroup) -> Iterator[Args]:
    """Yield the args that define endpoints."""
    if not isinstance(group, AgentToolGroupWithArgs):
        return
    if group.name == REMOTE_EXECUTION:
        yield group.args
    generator = group.args.get(QUERY_GENERATOR)
    if isinstance(generator, Mapping) and generator.get("toolgroup") == REMOTE_EXECUTION:
        args = generator.get("args")
        yield args if isinstance(args, Mapping) else {}


async def check_endpoint(args: Args, tools: Tools, param: str) -> None:
    """Check one endpoint, whose error names the field `param`. Raises InvalidRequest."""
    await check_toolgroup(define_toolgroup(args), args, tools, param)


async def check_toolgroup(defined: ToolGroup, args: Args, tools: Tools, param: str) -> None:
    """Check a toolgroup that args define. Raises InvalidRequest."""
    # A reference would let whoever writes an agent send a secret of the operator to an address of its choice.
    refuse_references(json.dumps(args), param)
    read_approval(args, param)
    try:
        await tools.provider_of(defined).check(as_port(defined))
    except InvalidRequest as error:
        raise InvalidRequest(f"{param}: {error.message}", code=error.code, param=param) from error


def check_query_template(args: Args, param: str) -> None:
    """Check the template with which args let a model write queries. `param` names the args.

    Raises InvalidRequest. It says what is wrong, and in which line.
    """
    config = args.get("query_config")
    for path, holder in ((param, args), (f"{param}.query_config", config)):
        generator = holder.get(QUERY_GENERATOR) if isinstance(holder, Mapping) else None
        if not isinstance(generator, Mapping) or generator.get("type") != "llm":
            continue
        if isinstance(template := generator.get("template"), str):
            from stint.jinja.template import check_template  # noqa: PLC0415 - few agents have a template

            check_template(template, f"{path}.{QUERY_GENERATOR}.template")
