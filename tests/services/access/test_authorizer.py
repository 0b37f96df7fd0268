"""The function of the authorizer, with keys in the table of keys."""

import io
import json
import time
from collections.abc import Coroutine, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from functions.authorizer import app
from infra.local.engine import Engine
from infra.local.invoke import EVENTS
from tests.servers.issuer import Issuer, jwk_of, rsa_key, sign
from tests.store.conftest import Cloud

from stint.domain.api_keys import CreateApiKeyRequest
from stint.domain.principals import Principal
from stint.services.access.api_keys import ApiKeys
from stint.settings import Settings
from stint.store.api_keys import ApiKeyStore
from stint.store.table import Table

STAGE = "arn:aws:execute-api:us-east-1:123456789012:a1b2c3d4e5/prod/*/*"
CONTEXT = SimpleNamespace(aws_request_id="request-1")


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return app.make_runner().run(work)


@pytest.fixture
def keys(own_cloud: Cloud, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> ApiKeys:
    """Return the use cases that the function has."""
    keys = ApiKeys(ApiKeyStore(Table(own_cloud.client, engine.outputs["KeysTableName"])))
    monkeypatch.setitem(vars(app.composition), "settings", Settings(keys_table=engine.outputs["KeysTableName"]))
    monkeypatch.setitem(vars(app.composition), "api_keys", keys)
    vars(app.composition).pop("authentication", None)
    return keys


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    """Yield an issuer whose tokens the function accepts, and no API keys."""
    with Issuer() as issuer:
        issuer.publish(jwk_of(rsa_key(), "rsa"))
        settings = Settings(oidc_issuer=issuer.url, oidc_audience="stint", oidc_tenant_claim="tenant")
        monkeypatch.setitem(vars(app.composition), "settings", settings)
        vars(app.composition).pop("authentication", None)
        yield issuer


def token_of(issuer: Issuer, **changes: object) -> str:
    claims = {"iss": issuer.url, "aud": "stint", "sub": "ada", "tenant": "acme", "scope": "openid use"}
    payload = claims | {"exp": time.time() + 60} | changes
    return sign({"alg": "RS256", "kid": "rsa"}, payload, rsa_key(), "RS256")


def create(keys: ApiKeys, tenant: str, **fields: object) -> str:
    request = CreateApiKeyRequest.model_validate({"tenant": tenant, **fields})
    key: str = run(keys.create(request)).key
    return key


def event_with(*headers: str, name: str = "Authorization") -> dict[str, Any]:
    event: dict[str, Any] = json.loads((EVENTS / "authorizer" / "unknown_key.json").read_text())
    for part in ("headers", "multiValueHeaders"):
        del event[part]["Authorization"]
    if headers:
        event["headers"][name], event["multiValueHeaders"][name] = headers[-1], list(headers)
    return event


def test_a_valid_key_may_call_the_whole_stage_as_its_principal(keys: ApiKeys, tenant: str) -> None:
    key = create(keys, tenant, subject="bot", scopes=["use", "admin"], models=["openai/*"])

    answer = app.handler(event_with(f"Bearer {key}"), CONTEXT)

    [statement] = answer["policyDocument"]["Statement"]
    assert statement == {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": STAGE}
    principal = Principal.from_context(answer["context"])
    assert (principal.tenant, principal.subject, principal.models) == (tenant, "bot", ("openai/*",))
    assert (set(principal.scopes), principal.key_id) == ({"use", "admin"}, key.split("_")[1])
    assert answer["principalId"] == "bot"


@pytest.mark.parametrize(("name", "scheme"), [("authorization", "bearer"), ("AUTHORIZATION", "BEARER")])
def test_names_of_headers_and_schemes_have_no_case(keys: ApiKeys, tenant: str, name: str, scheme: str) -> None:
    answer = app.handler(event_with(f"{scheme} {create(keys, tenant)}", name=name), CONTEXT)

    assert answer["policyDocument"]["Statement"][0]["Effect"] == "Allow"


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ("",),
        ("{key}",),
        ("Basic {key}",),
        ("Bearer",),
        ("Bearer ",),
        ("Bearer {key} x",),
        ("Bearer {key}\x00",),
        ("Bearer {key}0",),
        ("Bearer é",),
        ("Bearer " + "a" * 9_000,),
        ("Bearer a.b.c",),
        ("Bearer {key}", "Bearer {key}"),
    ],
    ids=repr,
)
def test_everything_else_is_unauthorized(keys: ApiKeys, tenant: str, headers: tuple[str, ...]) -> None:
    key = create(keys, tenant)

    with pytest.raises(Exception, match=r"^Unauthorized$") as caught:
        app.handler(event_with(*(each.format(key=key) for each in headers)), CONTEXT)

    assert caught.value.__suppress_context__


def test_a_key_is_not_accepted_where_only_tokens_are(
    keys: ApiKeys, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = create(keys, tenant)
    monkeypatch.setitem(vars(app.composition), "settings", Settings(keys_table=""))

    with pytest.raises(Exception, match=r"^Unauthorized$"):
        app.handler(event_with(f"Bearer {key}"), CONTEXT)


def test_a_failing_store_is_neither_401_nor_403(own_cloud: Cloud, keys: ApiKeys, tenant: str) -> None:
    key = create(keys, tenant)
    own_cloud.proxy.down = True

    with pytest.raises(Exception, match="database"):
        app.handler(event_with(f"Bearer {key}"), CONTEXT)


def test_lines_of_the_log_name_the_caller_or_the_reason_and_no_secret(
    keys: ApiKeys, tenant: str, written: io.StringIO
) -> None:
    key = create(keys, tenant)
    wrong = key[:-1] + ("0" if key[-1] != "0" else "1")

    app.handler(event_with(f"Bearer {key}"), CONTEXT)
    with pytest.raises(Exception, match="Unauthorized"):
        app.handler(event_with(f"Bearer {wrong}"), CONTEXT)

    accepted, refused = map(json.loads, written.getvalue().splitlines())
    assert (accepted["tenant"], accepted["key_id"], accepted["status"]) == (tenant, key.split("_")[1], 200)
    assert (refused["status"], refused["reason"]) == (401, "The API key is unknown, wrong, expired or revoked.")
    assert key[-20:-1] not in written.getvalue()


def test_a_principal_of_the_largest_key_fits_into_the_answer(keys: ApiKeys, tenant: str) -> None:
    models = [f"{number:02d}{'m' * 98}" for number in range(20)]
    key = create(keys, tenant, subject="s" * 100, name="n" * 100, models=models, scopes=["use", "admin", "users:act"])

    answer = app.handler(event_with(f"Bearer {key}"), CONTEXT)

    assert len(json.dumps(answer)) < 8_000


def test_a_token_of_the_issuer_may_call_as_its_principal(issuer: Issuer) -> None:
    end = int(time.time()) + 60
    answer = app.handler(event_with(f"Bearer {token_of(issuer, exp=end)}"), CONTEXT)

    assert answer["policyDocument"]["Statement"][0]["Effect"] == "Allow"
    assert Principal.from_context(answer["context"]) == Principal("acme", "ada", frozenset({"use"}), expires_at=end)


@pytest.mark.parametrize("changes", [{"tenant": "ACME"}, {"tenant": 7}, {"scope": "openid"}, {"sub": ""}], ids=repr)
def test_a_valid_token_without_rights_is_denied_the_whole_stage(issuer: Issuer, changes: dict[str, object]) -> None:
    answer = app.handler(event_with(f"Bearer {token_of(issuer, **changes)}"), CONTEXT)

    [statement] = answer["policyDocument"]["Statement"]
    assert (statement["Effect"], statement["Resource"], answer["context"]) == ("Deny", STAGE, {})


def test_a_token_of_another_issuer_is_unauthorized_and_its_text_is_not_logged(
    issuer: Issuer, written: io.StringIO
) -> None:
    token = token_of(issuer, iss="https://other.example")

    with pytest.raises(Exception, match=r"^Unauthorized$"):
        app.handler(event_with(f"Bearer {token}"), CONTEXT)

    [line] = map(json.loads, written.getvalue().splitlines())
    assert (line["status"], line["reason"]) == (401, "The token was not issued by the configured issuer.")
    assert not any(part in written.getvalue() for part in token.split("."))


def test_an_issuer_that_is_down_is_neither_401_nor_403(issuer: Issuer) -> None:
    issuer.status = 500

    with pytest.raises(Exception, match="OpenID Connect issuer cannot be fetched"):
        app.handler(event_with(f"Bearer {token_of(issuer)}"), CONTEXT)
