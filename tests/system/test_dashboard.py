"""The dashboard of the stack."""

import json
import re
from typing import Any

import pytest
from infra.local.engine import ROOT
from infra.local.translation import translate
from infra.scripts.lint_templates import VARIANTS
from infra.scripts.options import Options
from infra.scripts.published_versions import find_functions
from samtranslator.yaml_helper import yaml_parse

from stint.domain.prices import InfrastructurePrices
from stint.tools.code_interpreter.sandbox import MEMORY_MB as SANDBOX_MEMORY_MB

FREE_METRICS = 50
PARAMETERS = {
    "ApiName": "shop",
    "StageName": "prod",
    "TableName": "table",
    "WorkQueueName": "work",
    "MetricsNamespace": "Stint/shop",
    "StreamMemorySize": "256",
    "AWS::Region": "eu-west-1",
}
FUNCTIONS = {
    "agents",
    "turns",
    "responses",
    "knowledge",
    "october",
    "openai_agents",
    "protocols",
    "registry",
    "authorizer",
    "sandbox",
    "worker",
}
DIMENSIONS: dict[str, list[set[str]]] = {
    "AWS/Lambda": [set(), {"FunctionName"}],
    "AWS/ApiGateway": [{"ApiName", "Stage"}],
    "AWS/DynamoDB": [{"TableName"}],
    "AWS/SQS": [{"QueueName"}],
    "Stint/shop": [{"service"}],
}
"""The dimensions under which CloudWatch has the metrics of each namespace."""

Metric = tuple[str, str, tuple[tuple[str, str], ...]]


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml_parse((ROOT / "infra" / "aws" / "dashboard.yaml").read_text())
    return parsed


@pytest.fixture(scope="module")
def widgets(template: dict[str, Any]) -> list[dict[str, Any]]:
    body = template["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    rendered = re.sub(r"\$\{([A-Za-z:]+)\}", lambda name: PARAMETERS[name[1]], body)
    found: list[dict[str, Any]] = json.loads(rendered)["widgets"]
    return found


def metrics_of(widgets: list[dict[str, Any]]) -> set[Metric]:
    """Return the metrics, as namespace, name and dimensions."""
    rows = [row for widget in widgets for row in widget["properties"]["metrics"] if isinstance(row[0], str)]
    texts = [[value for value in row if isinstance(value, str)] for row in rows]
    return {(row[0], row[1], tuple(zip(row[2::2], row[3::2], strict=True))) for row in texts}


def named(widgets: list[dict[str, Any]], metric: str) -> set[str]:
    return {value for _, name, dimensions in metrics_of(widgets) if name == metric for _, value in dimensions}


def test_functions_that_serve_agents_have_duration_errors_and_throttles(widgets: list[dict[str, Any]]) -> None:
    functions = {f"shop-{function}" for function in FUNCTIONS}

    assert named(widgets, "Duration") == named(widgets, "Throttles") == functions
    assert named(widgets, "Errors") == functions - {"shop-authorizer"}  # it ends in an error to refuse a credential


def test_the_api_has_its_requests_latency_and_errors(widgets: list[dict[str, Any]]) -> None:
    api = {name for namespace, name, _ in metrics_of(widgets) if namespace == "AWS/ApiGateway"}

    assert api == {"Count", "Latency", "4XXError", "5XXError"}


def test_metrics_have_the_dimensions_that_cloudwatch_has(widgets: list[dict[str, Any]]) -> None:
    for namespace, name, dimensions in metrics_of(widgets):
        assert {key for key, _ in dimensions} in DIMENSIONS[namespace], (namespace, name)


def test_it_has_no_more_metrics_than_a_free_dashboard(widgets: list[dict[str, Any]]) -> None:
    assert len(metrics_of(widgets)) <= FREE_METRICS


def test_widgets_do_not_overlap(widgets: list[dict[str, Any]]) -> None:
    cells = [
        (x, y)
        for widget in widgets
        for x in range(widget["x"], widget["x"] + widget["width"])
        for y in range(widget["y"], widget["y"] + widget["height"])
    ]

    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_expressions_use_metrics_of_their_widget(widgets: list[dict[str, Any]]) -> None:
    for widget in widgets:
        options = [row[-1] for row in widget["properties"]["metrics"] if isinstance(row[-1], dict)]
        ids = {each["id"] for each in options if "id" in each}
        used = set(re.findall(r"FILL\((\w+)", " ".join(each.get("expression", "") for each in options)))
        assert used <= ids


def test_costs_have_the_prices_of_receipts(widgets: list[dict[str, Any]]) -> None:
    rows = [row[0] for widget in widgets for row in widget["properties"]["metrics"] if isinstance(row[0], dict)]
    expressions = {row["id"]: row["expression"] for row in rows}
    prices = InfrastructurePrices()

    assert float(expressions["functions"].split("1024000 * ")[1].split()[0]) == prices.gb_seconds
    assert float(expressions["functions"].rsplit("* ", 1)[1]) * 1_000_000 == pytest.approx(prices.invocations)
    written, read = re.findall(r"\* ([\d.]+)", expressions["storage"])
    assert float(written) * 1_000_000 == pytest.approx(prices.write_units)
    assert float(read) * 1_000_000 == pytest.approx(prices.read_units)


def test_costs_have_the_memory_of_the_functions(widgets: list[dict[str, Any]]) -> None:
    rows = [row[0] for widget in widgets for row in widget["properties"]["metrics"] if isinstance(row[0], dict)]
    (expression,) = [row["expression"] for row in rows if row["id"] == "functions"]
    groups = re.findall(r"(?:SUM\(\[([^\]]*)\]\)|(FILL\(ms_worker, 0\))) \* (\d+)", expression)
    memory = {name: size for many, one, size in groups for name in re.findall(r"ms_(\w+)", many or one)}
    translated = translate(ROOT / "template.yaml", "us-east-1")
    names, resources = find_functions(translated), translated["Resources"]

    assert set(memory) == FUNCTIONS
    for name, size in memory.items():
        given = resources[names[name]]["Properties"]["MemorySize"]
        assert size == (str(given) if isinstance(given, int) else "256")
    assert str(SANDBOX_MEMORY_MB) == memory["sandbox"]


@pytest.mark.parametrize("options", VARIANTS, ids=lambda options: f"{options.auth} {options.start} {options.scale}")
def test_every_build_has_it_unless_a_parameter_turns_it_off(options: Options, template: dict[str, Any]) -> None:
    translated = translate(ROOT / "template.yaml", "us-east-1", change=options.apply)
    nested = translated["Resources"]["OperatorDashboard"]

    assert nested["Condition"] == "HasDashboard"
    assert translated["Conditions"]["HasDashboard"] == {"Fn::Equals": [{"Ref": "Dashboard"}, "true"]}
    assert set(nested["Properties"]["Parameters"]) == set(template["Parameters"])


def test_the_time_of_managed_instances_has_no_price() -> None:
    translated = translate(ROOT / "template.yaml", "us-east-1", change=Options(scale="managed").apply)

    assert translated["Resources"]["OperatorDashboard"]["Properties"]["Parameters"]["StreamMemorySize"] == "0"
