"""The buffered functions of the stack, which the engine runs with their sample events."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from infra.local.intrinsics import STACK
from infra.local.invoke import EVENTS, prepare
from infra.local.proxy_response import parse_buffered
from infra.openapi.document import describe_api
from tests.deploy.account import Account
from tests.deploy.callers import authorize, create_key
from tests.deploy.conftest import Update
from tests.deploy.contents import sample_environment
from tests.deploy.deployed_functions import WRAPPER, function_names
from tests.samples.answers import FILES, STATUSES, Operation, check_answer, operation_of

STREAMING = {"turns", "responses", "knowledge", "october", "openai_agents", "protocols"}
BUFFERED = [file for file in FILES if file.parent.name not in STREAMING]
HTTP = {"agents", "registry", "admin"}
ENDPOINT = ("get_webhook_endpoint", "update_webhook_endpoint", "delete_webhook_endpoint", "rotate_webhook_secret")
WITHOUT_KEY = {"create_webhook_endpoint": 400, "test_webhook_endpoint": 404} | dict.fromkeys(ENDPOINT, 404)
"""The statuses of webhook endpoints, because the stack has no key for their secrets."""
OPENAPI = describe_api()
OPERATIONS = Operation.all(OPENAPI)


class Replay:
    """Events for the functions of a stack. The samples are stored again if an event may have changed them."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._environment = sample_environment(account, STACK)
        self._changed = True

    def invoke(self, file: Path) -> tuple[Any, str | None]:
        event = file.read_bytes()
        if self._changed:
            asyncio.run(prepare(event, self._environment))
        self._changed = json.loads(event).get("httpMethod") != "GET"
        answer, error = self._account.invoke(f"{STACK}-{file.parent.name}", event)
        return json.loads(answer), error


@pytest.fixture(scope="module")
def replay(stacks: Update, account: Account) -> Replay:
    return Replay(account)


def test_the_functions_of_the_events_are_deployed(stacks: Update, account: Account) -> None:
    deployed = {name.removeprefix(f"{STACK}-") for name in function_names(account, STACK)}
    variables = {
        name: account.functions.get_function_configuration(FunctionName=f"{STACK}-{name}")["Environment"]["Variables"]
        for name in deployed
    }

    assert deployed == {file.parent.name for file in FILES} | {"console"}
    assert {name for name in deployed if WRAPPER in variables[name]} == STREAMING | {"console"}


@pytest.mark.parametrize("file", BUFFERED, ids=[f"{file.parent.name}/{file.stem}" for file in BUFFERED])
def test_a_deployed_function_answers_its_event(replay: Replay, file: Path) -> None:
    answer, error = replay.invoke(file)

    if file.parent.name in HTTP:
        assert error is None
        check_http_answer(file, answer)
    elif file.parent.name == "worker":
        assert error is None
        check_worker_answer(file, answer)
    elif file.parent.name == "sandbox":
        assert error is None
        assert (answer["exit_code"], answer["stdout"]) == (0, "2\n")
    else:
        assert (error, answer["errorMessage"]) == ("Unhandled", "Unauthorized")


def check_http_answer(file: Path, answer: Any) -> None:
    operation = operation_of(file, OPERATIONS)
    head, body = parse_buffered(json.dumps(answer).encode())
    assert head.status == (STATUSES | WITHOUT_KEY).get(operation.name, 200), body
    check_answer(OPENAPI, operation, head, body, json.loads(file.read_text())["queryStringParameters"])


def check_worker_answer(file: Path, answer: Any) -> None:
    if file.stem.startswith("start_"):
        assert answer["status"] == "completed"
    elif file.stem.startswith("object_"):
        assert answer is None
    else:
        assert answer == {"batchItemFailures": []}


def test_the_first_key_is_accepted_and_creates_another_one(stacks: Update, account: Account) -> None:
    context = authorize(account, STACK, create_key(account, STACK))
    event = json.loads((EVENTS / "admin" / "create_key.json").read_text())
    event["requestContext"]["authorizer"] = context

    answer, error = account.invoke(f"{STACK}-admin", json.dumps(event).encode())

    assert error is None
    created = json.loads(json.loads(answer)["body"])
    assert authorize(account, STACK, created["key"]) is not None
    assert authorize(account, STACK, f"{created['key'][:-8]}{'0' * 8}") is None
