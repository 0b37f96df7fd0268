"""Dependencies of the routes of the API of October 2024.

That API differs from the later ones in how it reads a request, and clients of that time rely on it:

    parameters        come from the query, from the body, or from both; the body overrides the query (`read_params`)
    methods           many routes answer GET and POST alike, so one function has several routes (`add_routes`)
    keys for tools    are in another header, whose malformed values are ignored

FastAPI would read a body or a query, but not both into one object, so the function of a route gets the whole request.
Validation and its errors are the same as for other routes.
"""

from collections.abc import Awaitable, Callable
from json import JSONDecodeError
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from stint.domain.errors import InvalidRequest
from stint.domain.json_text import parse_json
from stint.domain.schema import Request as RequestSchema
from stint.http.dependencies import PROVIDER_DATA_HEADER as LATER_HEADER
from stint.http.dependencies import provider_data_of, services_of
from stint.http.direct_calls import check_fields
from stint.http.requests import StrictRoute
from stint.october_2024.services import OctoberServices
from stint.tools.port import NO_PROVIDER_DATA, ProviderData

PROVIDER_DATA_HEADER = "x-llamastack-providerdata"

S = TypeVar("S", bound=RequestSchema)


class OctoberRoute(StrictRoute):
    """A route of the API of October 2024, which does not exist if a setting turns that API off."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the route. Raises HTTPException if it does not exist."""
        if not scope["app"].state.read_settings().october_api:
            raise HTTPException(404)
        await super().handle(scope, receive, send)


Endpoint = Callable[..., Any]


async def october_provider_data_of(request: Request) -> ProviderData:
    """Read the caller's keys for tools, in the header of October 2024 or that of 0.2.12.

    Anything but a JSON object in the header of October 2024 is ignored, as in the original. Raises InvalidRequest for
    the header of 0.2.12.
    """
    header = request.headers.get(PROVIDER_DATA_HEADER)
    if header is None:
        return await provider_data_of(request) if LATER_HEADER in request.headers else NO_PROVIDER_DATA
    try:
        data = parse_json(header.encode("latin-1"))
    except ValueError:
        return NO_PROVIDER_DATA
    return data if isinstance(data, dict) else NO_PROVIDER_DATA


def read_params(schema: type[S]) -> Callable[[Request], Awaitable[S]]:
    """Return a dependency that reads an object from the query and the body. The body overrides the query."""

    async def read(request: Request) -> S:
        query: dict[str, Any] = {}
        for name in request.query_params:
            values = request.query_params.getlist(name)
            query[name] = values if name.endswith("_ids") or len(values) > 1 else values[0]
        given = {**query, **await read_object(request)}
        try:
            params = schema.model_validate(given)
        except ValidationError as error:
            raise RequestValidationError(
                [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors(include_url=False)],
                body=given,
            ) from None
        check_fields(given, params, request)
        return params

    return read


async def read_object(request: Request) -> dict[str, Any]:
    """Return the JSON object in the body; an empty one without a body.

    Raises:
        InvalidRequest: the body is not a JSON object.
    """
    if not await request.body():
        return {}
    try:
        body = await request.json()
    except JSONDecodeError as error:
        raise InvalidRequest(f"The body cannot be read as JSON: {error.msg}", param="body") from None
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise InvalidRequest("The body must be a JSON object.", param="body")
    return body


def add_routes(
    router: APIRouter, path: str, schema: type[RequestSchema], *methods: str, **options: Any
) -> Callable[[Endpoint], Endpoint]:
    """Return a decorator that adds a route for each method, by default GET and POST.

    Its function reads `schema` with `read_params`. The first route has the function's name, the others that and the
    method's.
    """

    def add(endpoint: Endpoint) -> Endpoint:
        name = endpoint.__name__
        for method in methods or ("GET", "POST"):
            router.add_api_route(path, endpoint, methods=[method], name=name, openapi_extra=query_of(schema), **options)
            name = f"{endpoint.__name__}_with_{(methods or ('GET', 'POST'))[1].lower()}"
        return endpoint

    return add


def query_of(schema: type[RequestSchema]) -> dict[str, Any]:
    """Return the description of the parameters in the query, which the body may have instead."""
    array = {"type": "array", "items": {"type": "string"}}
    return {
        "parameters": [
            {
                "name": name,
                "in": "query",
                "required": False,
                "schema": array if name.endswith("_ids") else {"type": "string"},
            }
            for name in schema.model_fields
        ]
    }


OctoberServicesDep = Annotated[OctoberServices, Depends(services_of)]
OctoberProviderDataDep = Annotated[ProviderData, Depends(october_provider_data_of)]
