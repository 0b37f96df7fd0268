import pytest

from stint.domain.principals import ANONYMOUS, SCOPES, Budgets, Principal, format_limit, is_tenant, scopes_of

PRINCIPAL = Principal(
    tenant="acme",
    subject="billing bot",
    scopes=frozenset({"use", "registry:write"}),
    key_id="0123",
    models=("openai/gpt-*", "bedrock/a,b"),
    budgets=Budgets(requests_per_minute=60, dollars_per_month=12.5),
    expires_at=1_900_000_000,
)


@pytest.mark.parametrize("principal", [PRINCIPAL, ANONYMOUS, Principal("t", "s", frozenset())])
def test_a_principal_survives_the_context_of_an_authorizer(principal: Principal) -> None:
    context = principal.to_context()

    assert all(isinstance(value, str) for value in context.values())
    assert Principal.from_context({**context, "principalId": "x", "integrationLatency": 3}) == principal


@pytest.mark.parametrize(
    "change",
    [
        {"tenant": "ACME"},
        {"tenant": ""},
        {"tenant": "a#b"},
        {"subject": ""},
        {"scopes": None},
        {"models": "["},
        {"budgets": '{"free": true}'},
        {"tenant": 7},
        {"expires_at": ""},
        {"expires_at": None},
        {"expires_at": True},
    ],
)
def test_an_invalid_context_has_no_principal(change: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        Principal.from_context({**PRINCIPAL.to_context(), **change})


def test_an_empty_context_has_no_principal() -> None:
    with pytest.raises(ValueError, match="no valid principal"):
        Principal.from_context({})


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("a", True),
        ("acme-1", True),
        ("0" * 32, True),
        ("0" * 33, False),
        ("", False),
        ("-a", False),
        ("A", False),
        ("a_b", False),
        ("a\n", False),
        ("a#b", False),
        ("é", False),
    ],
)
def test_names_of_tenants(name: str, valid: bool) -> None:
    assert is_tenant(name) is valid


def test_only_the_scope_registry_write_includes_another_scope() -> None:
    held = {scope: Principal("acme", "ann", frozenset({scope})) for scope in SCOPES}

    assert [scope for scope in SCOPES if held["registry:write"].has_scope(scope)] == [
        "knowledge:write",
        "registry:write",
    ]
    for scope in {*SCOPES} - {"registry:write"}:
        assert [other for other in SCOPES if held[scope].has_scope(other)] == [scope]


def test_model_patterns_limit_a_principal() -> None:
    assert PRINCIPAL.may_use_model("openai/gpt-5")
    assert PRINCIPAL.may_use_model("bedrock/a,b")
    assert not PRINCIPAL.may_use_model("openai/o3")
    assert not PRINCIPAL.may_use_model("OPENAI/gpt-5")
    assert ANONYMOUS.may_use_model("anything")


def test_unknown_scopes_are_ignored() -> None:
    assert scopes_of(["use", "openid", "Admin", "use"]) == {"use"}
    assert scopes_of(SCOPES) == ANONYMOUS.scopes


@pytest.mark.parametrize(
    ("limit", "text"), [(0.00001, "0.00001"), (12.5, "12.5"), (100, "100"), (1_000_000, "1000000"), (0.3, "0.3")]
)
def test_a_limit_is_shown_without_an_exponent(limit: float, text: str) -> None:
    assert format_limit(limit) == text
