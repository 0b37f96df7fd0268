"""Dependencies of the routes of knowledge, which only one function has."""

from typing import Annotated

from fastapi import Depends

from stint.apis.knowledge import KnowledgeServices
from stint.http.dependencies import services_of

KnowledgeServicesDep = Annotated[KnowledgeServices, Depends(services_of)]
