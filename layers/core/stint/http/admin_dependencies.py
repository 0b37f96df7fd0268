"""Dependencies of the routes of administration, which only one function has."""

from typing import Annotated

from fastapi import Depends, Request

from stint.apis.admin import AdminServices
from stint.caller import require_principal
from stint.domain.principals import Principal


async def admin_services_of(request: Request) -> AdminServices:
    """Return the services, which are the same for all tenants."""
    services: AdminServices = request.app.state.make_services(require_principal().tenant)
    return services


async def caller_of() -> Principal:
    """Return the caller."""
    return require_principal()


AdminServicesDep = Annotated[AdminServices, Depends(admin_services_of)]
CallerDep = Annotated[Principal, Depends(caller_of)]
