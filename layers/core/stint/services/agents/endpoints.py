"""Checks of the endpoints that an agent's args define, before the agent is stored."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stint.domain.errors import InvalidRequest
from stint.domain.tools import AgentToolGroup, AgentToolGroupWithArgs
from stint.services.registry.inline_toolgroups import define_toolgroup
from stint.services.registry.tools import Tools, as_port
from stint.tools.port import QUERY_GENERATOR, REMOTE_EXECUTION
from stint.tools.secret_references import refuse_references

Args = Mapping[str, Any]


async def check_endpoints(toolgroups: Sequence[AgentToolGroup], tools: Tools) -> None:
    """Check the endpoints of an agent's tools, and of its query generator, without calling them.

    Raises InvalidRequest if one is malformed, may not be called, or names a secret.
    """
    for place, group in enumerate(toolgroups):
        for args in endpoints_of(group):
            await check_endpoint(args, tools, f"agent_config.toolgroups[{place}]")


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
    refuse_references(json.dumps(args), param)
    defined = define_toolgroup(args)
    try:
        await tools.provider_of(defined).check(as_port(defined))
    except InvalidRequest as error:
        raise InvalidRequest(f"{param}: {error.message}", code=error.code, param=param) from error
