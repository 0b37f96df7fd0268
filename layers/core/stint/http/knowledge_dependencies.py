"""Dependencies of the routes of knowledge, which only one function has."""

from typing import Annotated

from fastapi import Depends, Request

from stint.apis.knowledge import KnowledgeServices
from stint.caller import require_principal


async def knowledge_services_of(request: Request) -> KnowledgeServices:
    """Return the services of the caller's tenant."""
    services: KnowledgeServices = request.app.state.make_services(require_principal().tenant)
    return services


KnowledgeServicesDep = Annotated[KnowledgeServices, Depends(knowledge_services_of)]
