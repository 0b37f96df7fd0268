import json

import pytest

from stint.domain.principals import Budgets
from stint.domain.tenant_limits import NO_LIMITS, limits_of, parse_tenants


def test_a_tenant_has_its_own_limits_or_those_of_all_others() -> None:
    acme = {"models": ["openai/*"], "budgets": {"requests_per_minute": 5}}
    tenants = parse_tenants(json.dumps({"acme": acme, "*": {"budgets": {"dollars_per_month": 1}}}))

    assert limits_of("acme", tenants).budgets == Budgets(requests_per_minute=5)
    assert limits_of("acme", tenants).models == ("openai/*",)
    assert limits_of("other", tenants).budgets == Budgets(dollars_per_month=1)


def test_without_the_setting_no_tenant_has_limits() -> None:
    assert limits_of("acme", parse_tenants("")) == NO_LIMITS


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nonsense", "Invalid JSON"),
        ('{"acme": {"budget": {}}}', "Extra inputs"),
        ('{"acme": {"budgets": {"requests_per_minute": 0}}}', "greater than or equal to 1"),
    ],
)
def test_a_malformed_setting_is_refused_with_its_name(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"STINT_TENANTS is malformed.*{reason}"):
        parse_tenants(text)
