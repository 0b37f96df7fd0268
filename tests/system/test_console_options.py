"""The templates that `make build CONSOLE=on` and `off` build."""

import json
from pathlib import Path
from typing import Any

import pytest
from infra.local.engine import ROOT
from infra.local.system import System
from infra.local.translation import translate
from infra.scripts.lint_templates import VARIANTS
from infra.scripts.options import Options, Refused
from tests.system.data_outputs import OUTPUTS

INTEGRATION = "x-amazon-apigateway-integration"
PATHS = ("/", "/console", "/console/{proxy+}")


def build(**options: Any) -> dict[str, Any]:
    return translate(ROOT / "template.yaml", "us-east-1", change=Options(**options).apply)


@pytest.fixture(scope="module")
def built() -> dict[str, Any]:
    return build()


@pytest.fixture(scope="module", params=[{"console": "off"}, {"auth": "iam"}], ids=str)
def without(request: pytest.FixtureRequest) -> dict[str, Any]:
    return build(**request.param)


def paths_of(translated: dict[str, Any]) -> dict[str, Any]:
    paths: dict[str, Any] = translated["Resources"]["Api"]["Properties"]["Body"]["paths"]
    return paths


def test_nothing_of_the_console_is_left_without_it(without: dict[str, Any]) -> None:
    resources = without["Resources"]
    own = {name: each for name, each in resources.items() if name != "OperatorDashboard"}

    assert [name for name in own if "Console" in name] == []
    assert [name for name in without["Parameters"] if "Console" in name] == []
    assert [name for name in without["Conditions"] if "Console" in name] == []
    assert [path for path in paths_of(without) if "console" in path] == []
    settings = without["Resources"]["Apiprod" if "Apiprod" in resources else "ApiStage"]["Properties"]["MethodSettings"]
    assert [each["ResourcePath"] for each in settings] == ["/*"]
    assert "ConsoleRole" not in json.dumps(resources["NoRequestsOfThisStack"])


def test_all_other_resources_are_the_same_in_both_builds(built: dict[str, Any]) -> None:
    off = build(console="off")["Resources"]
    shared = set(built["Resources"]) & set(off)
    changed = {name for name in shared if built["Resources"][name] != off[name]}
    kinds = {built["Resources"][name]["Type"] for name in changed}

    assert {
        name for name in set(built["Resources"]) - shared if "Console" not in name and "Deployment" not in name
    } == set()
    assert kinds <= {
        "AWS::ApiGateway::RestApi",
        "AWS::ApiGateway::Stage",
        "AWS::Events::EventBusPolicy",
        "AWS::Lambda::Permission",
    }


def test_without_the_console_the_root_shows_where_clients_connect(without: dict[str, Any]) -> None:
    operation = paths_of(without)["/"]["x-amazon-apigateway-any-method"]

    assert "${Registry.Arn}" in json.dumps(operation[INTEGRATION]["uri"])
    assert operation["security"] == paths_of(without)["/v1/version"]["x-amazon-apigateway-any-method"]["security"]


def test_the_routes_of_the_console_are_open_and_stream(built: dict[str, Any]) -> None:
    for path in PATHS:
        operations = {method: each for method, each in paths_of(built)[path].items() if method != "options"}
        assert set(operations) == {"get", "head"}
        for operation in operations.values():
            assert operation["security"] == [{"NONE": []}]
            assert "${Console.Arn}" in json.dumps(operation[INTEGRATION]["uri"])
            assert operation[INTEGRATION]["responseTransferMode"] == "STREAM"


def test_the_routes_of_the_console_have_a_throttle_of_their_own(built: dict[str, Any]) -> None:
    [stage] = [each for each in built["Resources"].values() if each["Type"] == "AWS::ApiGateway::Stage"]
    settings = {(each["ResourcePath"], each["HttpMethod"]): each for each in stage["Properties"]["MethodSettings"]}

    for path in PATHS:
        for method in ("GET", "HEAD"):
            assert settings[path, method]["ThrottlingRateLimit"] == {"Ref": "ConsoleRateLimit"}
            assert settings[path, method]["ThrottlingBurstLimit"] == {"Ref": "ConsoleBurstLimit"}


def test_the_function_of_the_console_has_no_rights_and_no_names_of_data(built: dict[str, Any]) -> None:
    role = built["Resources"]["ConsoleRole"]["Properties"]
    function = built["Resources"]["Console"]["Properties"]

    assert "Policies" not in role
    named = [
        each["Fn::If"][1] if isinstance(each, dict) and "Fn::If" in each else each for each in role["ManagedPolicyArns"]
    ]
    assert {json.dumps(each).rpartition("/")[2].strip('"}') for each in named} <= {
        "AWSLambdaBasicExecutionRole",
        "AWSXRayDaemonWriteAccess",
        "AWSXrayWriteOnlyAccess",
    }
    assert set(function["Environment"]["Variables"]) == {
        "AWS_LAMBDA_EXEC_WRAPPER",
        "STREAM_ROUTE_TIMEOUT_SECONDS",
        "STINT_AUTH",
        "STINT_AUTH_KEYS",
        "STINT_OIDC_ISSUER",
        "STINT_OIDC_AUDIENCE",
        "STINT_CONSOLE_CLIENT_ID",
        "STINT_CONSOLE_SCOPES",
        "STINT_CONSOLE_TOKEN_ORIGIN",
        "STINT_CONSOLE_LOCAL",
    }
    assert function["MemorySize"] == 128


def test_an_open_api_has_a_console_without_sign_in() -> None:
    system = System(ROOT / "template.yaml", build(auth="none"), outputs=OUTPUTS)
    [console] = [function for function in system.functions if function.logical_id == "Console"]

    assert console.environment["STINT_AUTH"] == "none"
    assert "STINT_OIDC_ISSUER" not in console.environment


def test_on_managed_instances_the_console_stays_on_demand() -> None:
    console = build(scale="managed")["Resources"]["Console"]["Properties"]

    assert "CapacityProviderConfig" not in console
    assert console["MemorySize"] == 128


def test_an_unknown_value_is_refused_by_its_name() -> None:
    with pytest.raises(Refused, match="CONSOLE=maybe is not one of: on, off"):
        Options.of({"CONSOLE": "maybe"})


def test_make_validate_lints_both_builds() -> None:
    assert {each.console for each in VARIANTS} == {"on", "off"}


def test_the_sources_of_the_page_are_not_built_into_the_function() -> None:
    recipe = (Path(ROOT) / "functions" / "console" / "Makefile").read_text()

    assert [line.split()[-2] for line in recipe.splitlines() if line.startswith("\tcp")] == ["app.py", "static"]
