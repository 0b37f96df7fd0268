"""Dependencies of the routes of end users."""

from typing import Annotated

from fastapi import Depends, Request

from stint.apis.end_users import EndUserServices
from stint.http.dependencies import find_services


async def end_user_services_of(request: Request) -> EndUserServices:
    """Return the services of the caller's tenant. The first request of a process makes them."""
    services: EndUserServices = find_services(request).make_end_users()
    return services


EndUserServicesDep = Annotated[EndUserServices, Depends(end_user_services_of)]
