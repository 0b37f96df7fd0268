"""The corpus of hostile inputs, sent through the authorizer: without a credential none passes, with one none fails.

`make test-adversarial` measures what they cost. Here, inputs that are long, or lead to another server, are only sent
without a credential, to bound the time.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import httpx
import pytest
from tests.adversarial import case as corpus
from tests.adversarial.case import Answer, Request
from tests.adversarial.peer import PEER
from tests.security.attacks import Attacks, Record
from tests.security.routes import documented
from tests.security.stack import Stack

for path in sorted(Path(corpus.__file__).parent.glob("*_cases.py")):
    import_module(f"tests.adversarial.{path.stem}")  # registers its cases

MOST_BYTES = 20_000
MOST_PATH = 10_240
"""Characters of a path with its query. API Gateway refuses longer ones before the authorizer."""

NO_HTTP = b"Invalid HTTP request received."
"""The answer of the server to a request that is not HTTP. API Gateway has an answer of its own."""

MOST_REQUESTS = 8
"""Requests of one case, of which some have thousands."""

TEMPLATES = {re.compile(re.sub(r"{\w+}", "[^/]+", each.template)): each.template for each in documented()}


@pytest.fixture(scope="module")
def caller(stack: Stack) -> Iterator[httpx.Client]:
    with stack.client(stack.create_key("hostile").key) as http:
        yield http


@pytest.mark.parametrize("part", range(4))
def test_hostile_inputs_open_nothing(stack: Stack, caller: httpx.Client, part: int, record_property: Record) -> None:
    attacks = Attacks()
    with stack.client() as stranger:
        for name in sorted(corpus.CASES)[part::4]:
            attack_with(corpus.CASES[name](), stranger, caller, attacks)

    attacks.record(record_property)


def attack_with(case: corpus.Case, stranger: httpx.Client, caller: httpx.Client, attacks: Attacks) -> None:
    """Send the requests of a case, until one is not to be sent with a credential."""
    request = next(case, None)
    for _ in range(MOST_REQUESTS):
        if not isinstance(request, Request) or len(request.path) > MOST_PATH:
            return
        where = route_of(request)
        with attacks.attack(where):
            refused = send_unread(stranger, request)
        if refused.status != 401 and refused.body != NO_HTTP:
            attacks.got_in.append(f"{request} without a credential: {refused.status} {refused.body[:200]!r}")
        if len(request.body) > MOST_BYTES or PEER in request.body:
            return
        with attacks.attack(where):
            answer = (send_unread if refused.body == NO_HTTP else send)(caller, request)
        if answer.status in (401, 403, 500, 504):
            attacks.got_in.append(f"{request}: {answer.status} {answer.body[:200]!r}")
        try:
            request = case.send(answer)
        except (StopIteration, AssertionError):  # a case may need a model server, which is missing here
            return


def send(http: httpx.Client, request: Request) -> Answer:
    answer = http.request(request.method, request.path, content=request.body, headers=request.headers)
    return Answer(answer.status_code, answer.content)


def send_unread(http: httpx.Client, request: Request) -> Answer:
    """Send a request whose body the server need not read: if it is not HTTP, the connection may be reset instead."""
    try:
        return send(http, request)
    except (httpx.ReadError, httpx.WriteError):
        return Answer(400, NO_HTTP)


def route_of(request: Request) -> str:
    """Return the route of a request, as the document names it."""
    path = request.path.partition("?")[0]
    found = next((template for pattern, template in TEMPLATES.items() if pattern.fullmatch(path)), "unknown")
    return f"{request.method} {found}"
