"""Dependencies of the routes of administration, which only one function has."""

from typing import Annotated

from fastapi import Depends

from stint.apis.admin import AdminServices
from stint.caller import require_principal
from stint.domain.principals import Principal
from stint.http.dependencies import services_of


async def caller_of() -> Principal:
    """Return the caller."""
    return require_principal()


AdminServicesDep = Annotated[AdminServices, Depends(services_of)]
CallerDep = Annotated[Principal, Depends(caller_of)]
