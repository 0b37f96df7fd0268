import pytest

from stint.domain.api_keys import CreateApiKeyRequest
from stint.domain.errors import Forbidden
from stint.domain.principals import SCOPES, Budgets, Principal
from stint.services.access.key_administration import covers, refuse_excess, refuse_later_end


def grant(**rights: object) -> CreateApiKeyRequest:
    return CreateApiKeyRequest.model_validate({"tenant": "t", **rights})


def admin(models: tuple[str, ...] = (), **budgets: float) -> Principal:
    return Principal("t", "ann", frozenset({"use", "admin"}), "k", models, Budgets.model_validate(budgets))


def test_equal_and_fewer_rights_may_be_passed_on() -> None:
    refuse_excess(admin(), grant(scopes=["use", "admin"]))
    refuse_excess(admin(("openai/*",)), grant(models=["openai/*", "openai/gpt-4.1"]))
    refuse_excess(admin(tokens_per_minute=5), grant(budgets={"tokens_per_minute": 5, "requests_per_minute": 1}))
    refuse_later_end(100, grant(expires_at=100))
    refuse_later_end(None, grant())
    registrar = Principal("acme", "ada", frozenset({"use", "admin", "registry:write"}))
    refuse_excess(registrar, grant(scopes=["knowledge:write"]))


@pytest.mark.parametrize(
    ("grantor", "rights", "problem"),
    [
        (admin(), {"scopes": list(SCOPES)}, "the scope knowledge:write"),
        (admin(("openai/*",)), {}, "all models, instead of openai/*"),
        (admin(("openai/*",)), {"models": ["openai/gpt-4.1", "bedrock/*"]}, "the models bedrock/*"),
        (admin(requests_per_minute=5), {}, "requests_per_minute without limit, instead of 5"),
        (admin(dollars_per_month=5), {"budgets": {"dollars_per_month": 5.01}}, "dollars_per_month 5.01, instead of 5"),
    ],
)
def test_more_rights_are_refused(grantor: Principal, rights: dict[str, object], problem: str) -> None:
    with pytest.raises(Forbidden, match=problem.replace("*", r"\*")):
        refuse_excess(grantor, grant(**rights))


@pytest.mark.parametrize("end", [None, 101])
def test_a_key_cannot_outlive_its_creator(end: int | None) -> None:
    with pytest.raises(Forbidden, match="end no later, here at 100"):
        refuse_later_end(100, grant(expires_at=end))


@pytest.mark.parametrize(
    ("pattern", "other"),
    [("*", "a/*"), ("a/*", "a/b*"), ("a/*", "a/?"), ("a/*c", "a/b*c"), ("a/?", "a/b"), ("a/[bc]", "a/b"), ("?", "?")],
)
def test_a_pattern_covers_narrower_ones(pattern: str, other: str) -> None:
    assert covers(pattern, other)


@pytest.mark.parametrize(
    ("pattern", "other"),
    [("a/*", "*"), ("a/*", "?/*"), ("a/?", "a/*"), ("*ab*", "[ab]"), ("[*]", "*"), ("a/b", "a/?"), ("A/*", "a/b")],
)
def test_a_pattern_does_not_cover_wider_ones(pattern: str, other: str) -> None:
    assert not covers(pattern, other)
