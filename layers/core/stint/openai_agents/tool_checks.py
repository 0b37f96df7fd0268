"""Checks of the tools of an agent, before it is stored."""

from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.agents import AgentConfig
from stint.services.agents.endpoints import check_endpoints
from stint.services.registry.tools import Tools


async def check_tools(config: AgentConfig, tools: Tools, param: str) -> None:
    """Check the addresses of an agent's tools without calling them. `param` is the field of the request with the tools.

    Raises InvalidRequest.
    """
    try:
        await check_endpoints(config.toolgroups, tools)
    except InvalidRequest as error:  # it names the field of Llama Stack's API
        message = error.message.removeprefix(f"{error.param}: ").replace("user_location:", "location:", 1)
        raise InvalidRequest(f"{param}: {message}", code=error.code, param=param) from error
