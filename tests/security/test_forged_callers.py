"""Requests that claim to have passed the gateway, and paths that would pass it unseen."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send
from tests.security.attacks import Attacks, Record
from tests.security.routes import OPEN, closed_targets, documented
from tests.security.stack import Stack

from stint.domain.principals import SCOPES, Principal

ADMIN = Principal("acme", "eve", frozenset(SCOPES)).to_context()
EVENTS: Mapping[str, dict[str, Any]] = {
    "no event": {},
    "no context": {"aws.event": {"requestContext": {}}},
    "a context without a principal": {"aws.event": {"requestContext": {"authorizer": {"principalId": "eve"}}}},
    "a tenant that is no name": {"aws.event": {"requestContext": {"authorizer": ADMIN | {"tenant": "a#b"}}}},
    "a principal in the body of the event": {"aws.event": {"authorizer": ADMIN, "body": json.dumps(ADMIN)}},
}
CLAIMS = {
    **{name: json.dumps(ADMIN) for name in ("authorizer", "x-authorizer", "x-amzn-request-context", "x-principal")},
    **dict.fromkeys(("tenant", "x-tenant", "x-stint-tenant", "x-test-tenant"), "acme"),
    "x-amzn-oidc-identity": "eve",
    "x-http-method-override": "GET",
    "x-original-url": "/v1/health",
    "x-rewrite-url": "/v1/health",
    "x-forwarded-prefix": "/v1/health",
}


@pytest.mark.parametrize("kind", EVENTS)
def test_the_app_is_closed_without_a_principal_of_the_gateway(stack: Stack, kind: str, record_property: Record) -> None:
    attacks = Attacks()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await stack.app({**scope, **EVENTS[kind]}, receive, send)

    async def attack_all() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api") as http:
            for target in documented():
                with attacks.attack(target.name):
                    answer = await http.request(target.method, target.path, json={}, headers=CLAIMS)
                if answer.status_code != 401 and target.path not in OPEN:
                    attacks.got_in.append(f"{target.name}: {answer.status_code} {answer.text[:200]}")

    asyncio.run(attack_all())
    attacks.record(record_property)


def test_headers_that_claim_a_principal_open_nothing(stack: Stack, record_property: Record) -> None:
    attacks = Attacks()
    with stack.client() as http:
        for target in closed_targets(stack.system):
            with attacks.attack(target.name):
                answer = http.request(target.method, target.path, json={}, headers=CLAIMS)
            if answer.status_code != 401:
                attacks.got_in.append(f"{target.name}: {answer.status_code}")

    attacks.record(record_property)


HEALTHY = {"status": "OK"}
DISGUISES = (
    "/v1/health/..{path}",
    "/v1/health/%2e%2e{path}",
    "/v1/health%2f..{path}",
    "/v1/health;{path}",
    "/v1/health?{path}/..",
    "/prod/v1/health/../..{path}",
    "/prod{path}",
    "/prod//{path}",
    "/{path}",
    "{path}/",
    "{path}//",
    "{path}%00",
    "{path}.json",
    "{path};jsessionid=1",
    "{path}%20",
    "/.{path}",
    "{path}/v1/health",
    "{upper}",
)
"""Paths that a router could take for another one."""


@pytest.mark.parametrize("form", DISGUISES)
def test_a_disguised_path_opens_nothing(stack: Stack, form: str, record_property: Record) -> None:
    attacks = Attacks()
    with stack.client() as http:
        for target in closed_targets(stack.system):
            path = form.format(path=target.path, upper=target.path.upper())
            with attacks.attack(target.name):
                answer = http.request(target.method, path, json={})
            if answer.status_code not in (401, 403, 404, 405) and answer.json() != HEALTHY:
                attacks.got_in.append(f"{target.method} {path}: {answer.status_code} {answer.text[:200]}")

    attacks.record(record_property)


@pytest.mark.parametrize("form", DISGUISES)
def test_the_app_takes_no_disguised_path_for_an_open_one(stack: Stack, form: str, record_property: Record) -> None:
    """The app checks paths itself: a gateway that matched one differently would open nothing."""
    attacks = Attacks()

    async def attack_all() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(stack.app), base_url="http://api") as http:
            for target in [each for each in documented() if each.path not in OPEN][::9]:
                path = form.format(path=target.path, upper=target.path.upper())
                with attacks.attack(target.name):
                    answer = await http.request(target.method, path, json={})
                if answer.status_code not in (307, 401, 405) and answer.json() != HEALTHY:
                    attacks.got_in.append(f"{target.method} {path}: {answer.status_code} {answer.text[:200]}")

    asyncio.run(attack_all())
    attacks.record(record_property)
