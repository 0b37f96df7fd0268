"""Dependencies of the routes of knowledge, which only one function has."""

from typing import Annotated

from fastapi import Depends, Request

from stint.domain.ids import TENANT
from stint.services.knowledge_api import KnowledgeServices


def knowledge_services_of(request: Request) -> KnowledgeServices:
    """Return the services of the caller's tenant."""
    services: KnowledgeServices = request.app.state.make_services(TENANT)
    return services


KnowledgeServicesDep = Annotated[KnowledgeServices, Depends(knowledge_services_of)]
