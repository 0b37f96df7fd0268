"""Dependencies of routes: the services of the caller's tenant.

All dependencies are coroutines, because FastAPI runs ordinary functions in a thread.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request

from stint.apis.agents import AgentsServices
from stint.caller import require_principal
from stint.domain.errors import InvalidRequest
from stint.domain.json_text import parse_json
from stint.http.requests import StrictRoute
from stint.tools.port import NO_PROVIDER_DATA, ProviderData

if TYPE_CHECKING:  # only one function has them, and they slow down a cold start
    from stint.apis.admin import AdminServices
    from stint.apis.knowledge import KnowledgeServices
    from stint.apis.openai import OpenAIServices

PROVIDER_DATA_HEADER = "x-llamastack-provider-data"

MakeServices = Callable[[str], "AgentsServices | OpenAIServices | KnowledgeServices | AdminServices"]


def find_services(request: Request) -> Any:
    """Return the function's services of the caller's tenant, as its composition makes or remembers them."""
    return request.app.state.make_services(require_principal().tenant)


async def services_of(request: Request) -> Any:
    return find_services(request)


async def provider_data_of(request: Request) -> ProviderData:
    """Read the caller's keys for tools.

    Raises:
        InvalidRequest: the header is not a JSON object.
    """
    header = request.headers.get(PROVIDER_DATA_HEADER)
    if header is None:
        return NO_PROVIDER_DATA
    try:
        data = parse_json(header.encode("latin-1"))
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise InvalidRequest("X-LlamaStack-Provider-Data must be a JSON object.", param=PROVIDER_DATA_HEADER)
    return data


def is_llama_stack_address(request: Request) -> bool:
    """Return whether a request was sent to /v1/openai/v1, the path of Llama Stack's OpenAI API."""
    return bool(request.scope.get("stint.llama_stack"))


class AgentRoute(StrictRoute):
    """A route below an agent. Log lines of invalid requests also have the agent's name, if it is cached."""

    def name_lines(self, request: Request) -> None:
        super().name_lines(request)
        services: AgentsServices = find_services(request)
        services.agents.name_lines(request.path_params.get("agent_id", ""))


AgentsServicesDep = Annotated[AgentsServices, Depends(services_of)]
ProviderDataDep = Annotated[ProviderData, Depends(provider_data_of)]
