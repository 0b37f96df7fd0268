from typing import Any

import pytest

from stint.bootstrap.access import make_tokens
from stint.domain.credentials import AccessRefused
from stint.domain.principals import NO_BUDGETS, Principal
from stint.services.access.claims import ClaimNames
from stint.settings import Settings, SettingsError, read_settings

NAMES = ClaimNames(tenant="https://stint/tenant", scopes="scp", scope_prefix="stint/", models="models")
CLAIMS: dict[str, Any] = {
    "https://stint/tenant": "acme",
    "sub": "ada",
    "scp": "openid stint/use stint/registry:write admin",
    "models": ["openai/*"],
}


def test_claims_are_read_by_the_names_in_the_settings() -> None:
    assert NAMES.principal_of(CLAIMS) == Principal(
        "acme", "ada", frozenset({"use", "registry:write"}), "", ("openai/*",), NO_BUDGETS
    )


def test_a_fixed_tenant_is_used_without_a_claim_of_it() -> None:
    principal = ClaimNames(fixed_tenant="acme").principal_of({"sub": "ada", "scope": "use", "tenant": "other"})

    assert (principal.tenant, principal.models) == ("acme", ())


def test_a_configured_claim_is_never_replaced_by_the_fixed_tenant() -> None:
    with pytest.raises(AccessRefused, match="tenant"):
        ClaimNames(tenant="tenant", fixed_tenant="acme").principal_of({"sub": "ada", "scope": "use"})


@pytest.mark.parametrize("scopes", ["stint/use", ["stint/use"], ["stint/use", "stint/use", "other"], " stint/use\n"])
def test_scopes_are_a_list_or_a_text(scopes: Any) -> None:
    assert NAMES.principal_of({**CLAIMS, "scp": scopes}).scopes == {"use"}


def test_scopes_without_the_prefix_are_those_of_other_apis() -> None:
    assert NAMES.principal_of({**CLAIMS, "scp": "use admin"}).scopes == frozenset()


@pytest.mark.parametrize(
    "change",
    [
        {"https://stint/tenant": None},
        {"https://stint/tenant": "ACME"},
        {"https://stint/tenant": "acme#session"},
        {"https://stint/tenant": ["acme"]},
        {"https://stint/tenant": 7},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": {"a": 1}},
        {"sub": "a\nb"},
        {"sub": "s" * 256},
        {"scp": None},
        {"scp": {"stint/use": True}},
        {"scp": ["stint/use", 7]},
        {"scp": 7},
        {"scp": ["stint/use"] * 1_001},
        {"models": None},
        {"models": []},
        {"models": ""},
        {"models": [7]},
        {"models": ["m"] * 21},
        {"models": ["m" * 101]},
    ],
    ids=repr,
)
def test_a_valid_token_with_other_claims_has_no_rights(change: dict[str, Any]) -> None:
    with pytest.raises(AccessRefused):
        NAMES.principal_of({**CLAIMS, **change})


def test_tokens_need_an_issuer_an_audience_and_a_tenant() -> None:
    issuer = "https://login.example"

    assert make_tokens(Settings()) is None
    with pytest.raises(SettingsError, match="STINT_OIDC_AUDIENCE"):
        make_tokens(Settings(oidc_issuer=issuer, oidc_tenant="acme"))
    with pytest.raises(SettingsError, match="STINT_OIDC_TENANT"):
        make_tokens(Settings(oidc_issuer=issuer, oidc_audience="stint"))
    assert make_tokens(Settings(oidc_issuer=issuer, oidc_audience="stint", oidc_tenant_claim="t"))


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("STINT_OIDC_ISSUER", "http://login.example"),
        ("STINT_OIDC_ISSUER", "http://127.0.0.1.example"),
        ("STINT_OIDC_ISSUER", "https://login.example?x"),
        ("STINT_OIDC_ALGORITHMS", "HS256"),
        ("STINT_OIDC_ALGORITHMS", "RS256,none"),
        ("STINT_OIDC_ALGORITHMS", "RS256,"),
        ("STINT_OIDC_ALGORITHMS", "rs256"),
        ("STINT_OIDC_TENANT", "ACME"),
    ],
)
def test_settings_that_would_weaken_the_verification_are_refused(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=variable):
        read_settings({variable: value})


@pytest.mark.parametrize("issuer", ["https://login.example/tenant", "http://127.0.0.1:8080", "http://localhost/a"])
def test_issuers_have_https_except_on_this_machine(issuer: str) -> None:
    assert read_settings({"STINT_OIDC_ISSUER": issuer}).oidc_issuer == issuer
