"""Callers of a stack whose requests are signed with IAM credentials."""

import json
from typing import Any

import pytest

from stint.domain.errors import Forbidden, StintError, Unauthenticated
from stint.domain.principals import Budgets, Principal
from stint.services.access.iam_roles import authenticate_role

OWN, OTHER = "111122223333", "444455556666"
TABLE = json.dumps(
    {
        "app": {"tenant": "acme", "scopes": ["use"], "models": ["openai/*"], "budgets": {"requests_per_minute": 5}},
        f"arn:aws:iam::{OTHER}:role/path/partner": {"tenant": "zoo", "subject": "partner-team", "scopes": ["admin"]},
        f"arn:aws:iam::{OWN}:role/twin": {"tenant": "exact", "scopes": ["use"]},
        "twin": {"tenant": "plain", "scopes": ["use"]},
    }
)


def authenticate(arn: Any, account: str = OWN, table: str = TABLE) -> Principal:
    return authenticate_role(table, {"accountId": account, "identity": {"userArn": arn}})


def assumed(name: str, account: str = OWN, session: str = "s") -> str:
    return f"arn:aws:sts::{account}:assumed-role/{name}/{session}"


def test_a_role_of_the_own_account_is_found_by_its_name() -> None:
    budgets = Budgets(requests_per_minute=5)

    assert authenticate(assumed("app")) == Principal(
        "acme", f"{OWN}/app", frozenset({"use"}), "", ("openai/*",), budgets
    )


def test_the_name_of_the_session_changes_nothing() -> None:
    assert authenticate(assumed("app", session="twin")) == authenticate(assumed("app", session="i-0abc@x=,.+_-"))


def test_a_role_of_another_account_needs_its_arn() -> None:
    partner = authenticate(assumed("partner", OTHER))

    assert (partner.tenant, partner.subject, partner.scopes) == ("zoo", "partner-team", frozenset({"admin"}))
    assert authenticate(assumed("twin")).tenant == "exact"


def test_roles_with_one_name_in_two_accounts_are_two_subjects() -> None:
    table = json.dumps(
        {name: {"tenant": "acme", "scopes": ["use"]} for name in ("app", f"arn:aws:iam::{OTHER}:role/app")}
    )

    subjects = [authenticate(assumed("app", account), table=table).subject for account in (OWN, OTHER)]

    assert subjects == [f"{OWN}/app", f"{OTHER}/app"]


@pytest.mark.parametrize(
    "arn",
    [
        assumed("unknown"),
        assumed("app", OTHER),
        assumed("twin", OTHER),
        assumed("partner", OWN),
        assumed("App"),
        assumed("app") + "/app",
        assumed("app") + "\n",
        f"arn:aws:sts::{OWN}:assumed-role/app",
        f"arn:aws:sts::{OWN}:assumed-role/app/",
        f"arn:aws:sts::{OWN}:assumed-role//app/s",
        f"arn:aws:sts::{OWN}:assumed-role/x/app/s",
        f"arn:aws:sts::{OWN}:federated-user/app",
        f"arn:aws:iam::{OWN}:role/app",
        f"arn:aws:iam::{OWN}:user/app",
        f"arn:aws:iam::{OWN}:root",
        f"arn:evil:sts::{OWN}:assumed-role/app/s",
        f"xarn:aws:sts::{OWN}:assumed-role/app/s",
        f"arn:aws:sts::{OWN}1:assumed-role/app/s",
        "app",
        "a" * 100_000,
    ],
)
def test_any_other_caller_is_forbidden(arn: str) -> None:
    with pytest.raises(Forbidden) as caught:
        authenticate(arn)

    assert caught.value.code == "unknown_role"


def test_a_name_stands_for_no_role_if_the_apis_account_is_unknown() -> None:
    for context in (
        {"identity": {"userArn": assumed("app")}},
        {"accountId": None, "identity": {"userArn": assumed("app")}},
    ):
        with pytest.raises(Forbidden):
            authenticate_role(TABLE, context)


@pytest.mark.parametrize(
    "context", [{}, {"identity": None}, {"identity": {"userArn": None}}, {"identity": {"userArn": ""}}]
)
def test_an_unsigned_request_has_no_caller(context: dict[str, Any]) -> None:
    with pytest.raises(Unauthenticated):
        authenticate_role(TABLE, {"accountId": OWN, **context})


def test_an_empty_table_knows_nobody() -> None:
    with pytest.raises(Forbidden):
        authenticate(assumed("app"), table="")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("{", "it is not JSON"),
        ("[]", "valid dictionary"),
        ('{"app": {"scopes": ["use"]}}', "app.tenant: Field required"),
        ('{"app": {"tenant": "acme"}}', "app.scopes: Field required"),
        ('{"app": {"tenant": "acme", "scopes": ["all"]}}', "app.scopes"),
        ('{"app": {"tenant": "Acme", "scopes": []}}', "app.tenant"),
        ('{"app": {"tenant": "acme", "scopes": [], "extra": 1}}', "app.extra"),
        ('{"a/b": {"tenant": "acme", "scopes": []}}', "'a/b' is neither the name nor the ARN of a role"),
        ('{"arn:aws:iam::1:role/x": {"tenant": "acme", "scopes": []}}', "neither the name nor the ARN"),
        ('{"": {"tenant": "acme", "scopes": []}}', "neither the name nor the ARN"),
    ],
)
def test_a_malformed_table_lets_nobody_in(table: str, message: str) -> None:
    with pytest.raises(ValueError, match="STINT_IAM_ROLES is malformed") as caught:
        authenticate(assumed("app"), table=table)

    assert message in str(caught.value)
    assert not isinstance(caught.value, StintError)


@pytest.mark.parametrize("table", ["", "{}"])
def test_an_empty_table_says_what_to_configure(table: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(Forbidden, match="Set the parameter IamRoles") as refused:
        authenticate(assumed("app"), table=table)

    assert refused.value.code == "unknown_role"
    assert "STINT_IAM_ROLES is empty" in caplog.text
