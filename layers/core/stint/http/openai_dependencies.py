"""Dependencies of the OpenAI API's routes, which only one function has."""

from typing import Annotated

from fastapi import Depends, Request

from stint.apis.openai import OpenAIServices
from stint.caller import require_principal


async def openai_services_of(request: Request) -> OpenAIServices:
    """Return the services of the caller's tenant."""
    services: OpenAIServices = request.app.state.make_services(require_principal().tenant)
    return services


OpenAIServicesDep = Annotated[OpenAIServices, Depends(openai_services_of)]
