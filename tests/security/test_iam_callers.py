"""Callers of a stack whose requests are signed with IAM credentials: identities that are forged or not in its table."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send
from tests.security.attacks import Attacks, Record
from tests.security.routes import OPEN, documented
from tests.security.stack import Stack

from stint.domain.principals import SCOPES, Principal
from stint.http.app import create_app
from stint.http.routes.inspection import list_parts

OWN, OTHER = "111122223333", "444455556666"
ROLES = json.dumps(
    {
        "app": {"tenant": "acme", "scopes": ["use"]},
        "boss": {"tenant": "acme", "scopes": ["use", "admin"]},
        f"arn:aws:iam::{OTHER}:role/partners/partner": {"tenant": "zoo", "scopes": ["use"]},
    }
)
TWINS = json.dumps(
    {name: {"tenant": "acme", "scopes": ["use"]} for name in ("twin", f"arn:aws:iam::{OTHER}:role/twin")}
)
ADMIN = Principal("acme", "eve", frozenset(SCOPES)).to_context()
SESSION = f"arn:aws:sts::{OWN}:assumed-role/boss/eve"


def signed(arn: object, **fields: object) -> dict[str, Any]:
    """Return the context of a request that API Gateway has authenticated as this identity."""
    return {"accountId": OWN, "identity": {"userArn": arn, "accountId": OWN, **fields}}


FORGED: Mapping[str, dict[str, Any]] = {
    "no context": {},
    "no identity": {"accountId": OWN, "identity": None},
    "an empty identity": signed(""),
    "a principal of an authorizer": {"accountId": OWN, "authorizer": ADMIN, "identity": {}},
    "another field with the role": {"accountId": OWN, "identity": {"caller": SESSION, "user": SESSION, "arn": SESSION}},
    "a list of identities": signed([SESSION]),
    "an object as the identity": signed({"arn": SESSION}),
    "a role of another account": signed(SESSION.replace(OWN, OTHER), accountId=OWN),
    "the account in another place": {"accountId": OTHER} | signed(SESSION.replace(OWN, OTHER)) | {"accountId": "boss"},
    "a role of the table's other account under the own one": signed(f"arn:aws:sts::{OWN}:assumed-role/partner/eve"),
    "a role that is not in the table": signed(f"arn:aws:sts::{OWN}:assumed-role/unknown/boss"),
    "a path that ends with a role": signed(f"arn:aws:sts::{OWN}:assumed-role/evil/boss/eve"),
    "a path before a role": signed(f"arn:aws:sts::{OWN}:assumed-role//boss/eve"),
    "a session with the name of a role": signed(f"arn:aws:sts::{OWN}:assumed-role/evil/boss"),
    "a session without a name": signed(f"arn:aws:sts::{OWN}:assumed-role/boss"),
    "a role in another case": signed(SESSION.replace("boss", "BOSS")),
    "a role with a part of the name": signed(SESSION.replace("boss", "bos")),
    "a role with an encoded name": signed(SESSION.replace("boss", "%62oss")),
    "a line break after the session": signed(SESSION + "\n"),
    "an ARN within a text": signed(f"x{SESSION}"),
    "another partition": signed(SESSION.replace("arn:aws:", "arn:evil:")),
    "the role itself": signed(f"arn:aws:iam::{OWN}:role/boss"),
    "a user with the name of a role": signed(f"arn:aws:iam::{OWN}:user/boss"),
    "a federated user": signed(f"arn:aws:sts::{OWN}:federated-user/boss"),
    "the root user": signed(f"arn:aws:iam::{OWN}:root"),
    "a long name": signed(f"arn:aws:sts::{OWN}:assumed-role/{'boss' * 25_000}/eve"),
}
CLAIMS = {
    **dict.fromkeys(("x-amz-security-token", "x-amzn-iam-arn", "x-caller-arn", "x-amzn-request-context"), SESSION),
    "authorization": f"AWS4-HMAC-SHA256 Credential={SESSION}",
}


def app_of(stack: Stack, context: Mapping[str, Any], roles: str = ROLES) -> ASGIApp:
    """Return the API of a stack that is built with AUTH=iam, whose requests all have this context."""
    settings = stack.settings.model_copy(update={"auth": "iam", "iam_roles": roles})
    app = create_app(
        "all",
        *list_parts(),
        make_services=stack.make_services,  # type: ignore[arg-type]  # the services of all functions in one
        read_settings=lambda: settings,
        buffered=False,
    )

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "aws.event": {"requestContext": dict(context)}}, receive, send)

    return serve


def client_of(app: ASGIApp) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api", headers=CLAIMS)


async def attack_all(app: ASGIApp, kind: str, attacks: Attacks) -> None:
    """Send a request to each route, and note those that were answered."""
    async with client_of(app) as http:
        for target in documented():
            if target.path in OPEN:
                continue
            with attacks.attack(target.name):
                answer = await http.request(target.method, target.path, json={})
            code = answer.json()["error"]["code"]
            if (answer.status_code, code) not in ((401, "unauthorized"), (403, "unknown_role")):
                attacks.got_in.append(f"{target.name} as {kind}: {answer.status_code} {answer.text[:200]}")


@pytest.mark.parametrize("kind", FORGED)
def test_an_identity_that_is_not_in_the_table_opens_nothing(stack: Stack, kind: str, record_property: Record) -> None:
    attacks = Attacks()

    asyncio.run(attack_all(app_of(stack, FORGED[kind]), kind, attacks))

    attacks.record(record_property)


def test_a_stack_without_roles_is_closed_for_everybody(stack: Stack, record_property: Record) -> None:
    attacks = Attacks()

    asyncio.run(attack_all(app_of(stack, signed(SESSION), roles=""), "a role", attacks))

    attacks.record(record_property)


@pytest.mark.parametrize(
    ("arn", "models", "keys"),
    [
        (f"arn:aws:sts::{OWN}:assumed-role/app/boss", 200, 403),
        (SESSION, 200, 200),
        (f"arn:aws:sts::{OTHER}:assumed-role/partner/eve", 200, 403),
    ],
)
def test_a_role_of_the_table_has_its_own_scopes(stack: Stack, arn: str, models: int, keys: int) -> None:
    async def ask() -> list[int]:
        async with client_of(app_of(stack, signed(arn))) as http:
            return [(await http.get(path)).status_code for path in ("/v1/models", "/v1/admin/keys")]

    assert stack.run(ask) == [models, keys]


def test_roles_with_one_name_in_two_accounts_do_not_share_an_idempotency_key(stack: Stack) -> None:
    async def create(account: str) -> str:
        twin = signed(f"arn:aws:sts::{account}:assumed-role/twin/s")
        async with client_of(app_of(stack, twin, TWINS)) as http:
            answer = await http.post("/v1/conversations", json={}, headers={"Idempotency-Key": "k-1"})
        return str(answer.json()["id"])

    async def create_all() -> list[str]:
        return [await create(account) for account in (OWN, OTHER, OWN)]

    first, of_other, again = stack.run(create_all)

    assert first == again != of_other
