import json
import re
from pathlib import Path
from typing import Any

import pytest
from infra.local.cloud import TEMPLATE
from infra.local.proxy_event import HttpRequest, make_event
from infra.local.routing import Router
from infra.local.sample_ids import AGENT, AWAITING_TURN, COMPLETED_STEPS, COMPLETED_TURN, SESSION
from infra.local.system import Invoke, Mock, Route, System
from infra.local.translation import translate
from infra.openapi.document import describe_api
from tests.samples.answers import FILES, HTTP_FILES, Operation, operation_of
from tests.system.data_outputs import OUTPUTS

from stint.domain.ids import is_id
from stint.domain.principals import Principal

OPERATIONS = Operation.all(describe_api())
NULLABLE = {"queryStringParameters", "multiValueQueryStringParameters", "pathParameters", "stageVariables", "body"}


def read(file: Path) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(file.read_text())
    return event


def names(files: list[Path]) -> list[str]:
    return [f"{file.parent.name}/{file.stem}" for file in files]


@pytest.fixture(scope="module")
def system() -> System:
    translated = translate(TEMPLATE, "us-east-1")
    return System(TEMPLATE, translated, outputs=OUTPUTS)


def test_every_operation_has_an_event() -> None:
    covered = {operation_of(file, OPERATIONS).name for file in HTTP_FILES}

    assert covered == set(OPERATIONS)


def test_every_function_has_events(system: System) -> None:
    """The console has no operations."""
    functions = {function.code.name for function in system.functions}

    assert {file.parent.name for file in FILES} == functions - {"console"}


@pytest.mark.parametrize("file", HTTP_FILES, ids=names(HTTP_FILES))
def test_an_event_is_what_api_gateway_makes_of_its_request(file: Path, system: System) -> None:
    event, operation = read(file), operation_of(file, OPERATIONS)
    context = event["requestContext"]
    base_path = "/stint" if file.stem.endswith("_custom_domain") else ""

    match = Router(system.routes).match(event["httpMethod"], event["path"].removeprefix(base_path))

    assert match is not None
    assert isinstance(match.route.integration, Invoke)
    assert match.route.integration.function == f"stint-{file.parent.name}"
    assert (event["resource"], context["resourcePath"]) == (match.route.path, match.route.path)
    assert (event["pathParameters"] or {}) == match.path_parameters
    assert event["httpMethod"] == context["httpMethod"] == operation.method
    assert context["path"] == (event["path"] if base_path else f"/{context['stage']}{event['path']}")
    assert context["stage"] == system.stage
    made = make_event(request_of(event), match, system.stage, ())
    if match.route.authorizer:
        made["requestContext"]["authorizer"] = Principal.from_context(context["authorizer"])
    assert set(event) == set(made)
    assert set(context) == set(made["requestContext"])
    assert set(context["identity"]) == set(made["requestContext"]["identity"])
    for part in ("headers", "queryStringParameters"):
        several = event[f"multiValue{part[0].upper()}{part[1:]}"]
        assert (several is None) == (event[part] is None)
        assert event[part] == (several and {name: values[-1] for name, values in several.items()})
    assert {name for name, value in event.items() if value is None} <= NULLABLE


def request_of(event: dict[str, Any]) -> HttpRequest:
    return HttpRequest(event["httpMethod"], event["path"], "", "", [], b"", "127.0.0.1", "localhost", 80)


def test_events_ask_for_the_operations_they_are_named_for() -> None:
    for file in HTTP_FILES:
        event, operation = read(file), operation_of(file, OPERATIONS)

        assert Router([route_of(operation)]).match(event["httpMethod"], event["path"].removeprefix("/stint")), file


def route_of(operation: Operation) -> Route:
    """Its path, whose last variable may hold slashes."""
    return Route(operation.method, re.sub(r"}$", "+}", operation.path), Mock(200, {}, ""))


def test_events_name_the_samples_and_nothing_else_that_is_stored() -> None:
    known = {AGENT, SESSION, COMPLETED_TURN, AWAITING_TURN, *COMPLETED_STEPS[:2]}
    named = {
        value
        for file in HTTP_FILES
        for name, value in (read(file)["pathParameters"] or {}).items()
        if name.endswith("_id")
    }

    assert named == known
    assert all(map(is_id, known))
