"""The price of requests without a credential in docs/costs.md and docs/security.md."""

from pathlib import Path

from infra.bench import console_price
from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).parents[3]
DEFAULT = int(yaml_parse((ROOT / "template.yaml").read_text())["Parameters"]["ConsoleRateLimit"]["Default"])


def test_a_million_requests_without_a_credential_cost_what_the_document_says() -> None:
    assert console_price.table(DEFAULT) in (ROOT / "docs" / "costs.md").read_text()


def test_the_most_that_a_day_costs_is_where_the_routes_are_described() -> None:
    most = f"${console_price.most_in_a_day(DEFAULT):.0f} a day"

    assert most in " ".join((ROOT / "docs" / "security.md").read_text().split())


def test_each_method_of_the_console_has_a_limit() -> None:
    parsed = yaml_parse((ROOT / "template.yaml").read_text())
    settings = parsed["Resources"]["Api"]["Properties"]["MethodSettings"]

    assert len([each for each in settings if each["ResourcePath"] != "/*"]) == console_price.ROUTES
    assert parsed["Resources"]["Console"]["Properties"]["MemorySize"] == console_price.MEMORY_MB
