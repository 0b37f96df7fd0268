"""Calls of routes' functions without FastAPI's search for their arguments.

FastAPI can fill in many kinds of parameters, and looks for each kind in every request, and again for each dependency.
Most functions of POST routes need little of it, so that `DirectCall` fills in their arguments itself:

    parameter         its argument
    an id             the part of the path
    the body          the JSON object of the request, as the model of the parameter, whose unknown fields are named
    the request       itself
    a dependency      what its function returns for the request

FastAPI calls the functions that have others. It also reads the bodies that are not JSON objects, and checks the others
by the same field, so the errors are the same.
"""

from collections.abc import Awaitable, Callable, Mapping
from inspect import iscoroutinefunction, signature
from types import NoneType
from typing import Any, get_args

from fastapi import Request, Response
from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.params import Body, Form
from fastapi.routing import APIRoute
from pydantic import BaseModel

from stint.dataclasses import dataclass
from stint.domain.schema import has_unknown_fields

PopObject = Callable[[], Awaitable[dict[str, Any] | None]]
"""A function that returns the JSON object of a request's body once; None if it is none."""

OTHER_PARAMETERS = (
    "query_params",
    "header_params",
    "cookie_params",
    "websocket_param_name",
    "http_connection_param_name",
    "response_param_name",
    "background_tasks_param_name",
    "security_scopes_param_name",
)
"""The attributes of FastAPI's description of a function with the kinds of parameters that only FastAPI fills in."""


@dataclass(frozen=True)
class DirectCall:
    """The function of a route, with the parameters of its body, of the request, and of its dependencies."""

    endpoint: Callable[..., Awaitable[Response]]
    body: ModelField
    request: str | None
    dependencies: Mapping[str, Callable[[Request], Awaitable[object]]]

    async def find_arguments(self, request: Request, pop_object: PopObject) -> dict[str, object] | None:
        """Return the arguments of the function; None if the body is no JSON object, so that FastAPI refuses it.

        Nothing keeps the object while the function runs. Raises RequestValidationError if the body is invalid, and
        InvalidRequest for a misspelled field of OpenAI's API.
        """
        body = await pop_object()
        if body is None:
            return None
        arguments: dict[str, object] = dict(request.path_params)
        if self.request is not None:
            arguments[self.request] = request
        for name, find in self.dependencies.items():
            arguments[name] = await find(request)
        arguments[self.body.name], errors = self.body.validate(body, loc=("body",))
        if errors:
            raise RequestValidationError(errors, body=body)
        check_fields(body, arguments[self.body.name], request)
        return arguments


def check_fields(given: object, read: object, request: Request) -> None:
    """Name the unknown fields of a body in a header of the response. `read` is what was read from the body.

    Raises InvalidRequest for a misspelled field of OpenAI's API.
    """
    if has_unknown_fields(given, read):
        from stint.http.unknown_fields import note_unknown_fields  # noqa: PLC0415 - few requests have any

        note_unknown_fields(given, read, request.scope)


def direct_call_of(route: APIRoute) -> DirectCall | None:
    """Return the direct call of a route's function; None if FastAPI must call it."""
    described, body = route.dependant, route.body_field
    if body is None or route._embed_body_fields or not is_model(body):
        return None
    if has_other_parameters(described) or not answers_itself(route.endpoint):
        return None
    if {field.name for field in described.path_params if is_text(field)} != set(route.param_convertors):
        return None
    if not all(is_plain(each) for each in described.dependencies):
        return None
    dependencies = {str(each.name): each.call for each in described.dependencies if each.call is not None}
    return DirectCall(route.endpoint, body, described.request_param_name, dependencies)


def has_other_parameters(described: Dependant) -> bool:
    return any(getattr(described, name) for name in OTHER_PARAMETERS)


def is_plain(dependency: Dependant) -> bool:
    """Return whether a dependency is a coroutine function of the request alone, whose result is an argument."""
    return not (
        has_other_parameters(dependency)
        or dependency.dependencies
        or dependency.path_params
        or dependency.body_params
        or dependency.concurrency
        or not dependency.name
        or list(signature(dependency.call or is_plain).parameters) != [dependency.request_param_name]
        or not iscoroutinefunction(dependency.call)
    )


def is_model(body: ModelField) -> bool:
    """Return whether a body is one object of a model, which may be missing."""
    info = body.field_info
    kinds = {info.annotation} if info.is_required() else set(get_args(info.annotation)) - {NoneType}
    is_json = isinstance(info, Body) and not isinstance(info, Form)
    return is_json and len(kinds) == 1 and all(isinstance(kind, type) and issubclass(kind, BaseModel) for kind in kinds)


def is_text(field: ModelField) -> bool:
    """Return whether a parameter of the path is any text."""
    return field.field_info.annotation is str and not field.field_info.metadata and field.alias == field.name


def answers_itself(endpoint: Callable[..., Any]) -> bool:
    """Return whether a function is a coroutine function that returns a response, and not what FastAPI writes as one."""
    returned = signature(endpoint, eval_str=True).return_annotation
    return iscoroutinefunction(endpoint) and isinstance(returned, type) and issubclass(returned, Response)
