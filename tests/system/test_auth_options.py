"""The templates that `make build AUTH=...` builds, and who may call their routes."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from infra.local.engine import ROOT
from infra.local.system import System
from infra.local.translation import translate
from infra.scripts.auth_options import OPEN
from infra.scripts.lint_templates import VARIANTS
from infra.scripts.options import Options, Refused, choose_template, main
from tests.system.data_outputs import OUTPUTS

OPEN_ROUTES = {
    "/v1/health",
    "/health",
    "/.well-known/agent-card.json",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/v1/mcp",
    "/v1/mcp/.well-known/oauth-protected-resource",
}
PAGES = {"/console", "/console/{proxy+}"}
"""The routes of the console. It also has `/`, unless the build has none."""
INTEGRATION = "x-amazon-apigateway-integration"
REFUSALS = {
    "UNAUTHORIZED": (401, "authentication_error", "unauthorized"),
    "EXPIRED_TOKEN": (401, "authentication_error", "unauthorized"),
    "INVALID_SIGNATURE": (401, "authentication_error", "unauthorized"),
    "ACCESS_DENIED": (403, "permission_error", "forbidden"),
    "AUTHORIZER_FAILURE": (500, "server_error", "authorizer_failure"),
    "AUTHORIZER_CONFIGURATION_ERROR": (500, "server_error", "authorizer_failure"),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the template alone, in which variants are written."""
    folder = tmp_path_factory.mktemp("root")
    (folder / "template.yaml").write_text((ROOT / "template.yaml").read_text())
    (folder / "infra").symlink_to(ROOT / "infra")
    return folder


@pytest.fixture(scope="module", params=["authorizer", "iam", "none", "authorizer snapstart"])
def variant(request: pytest.FixtureRequest, root: Path) -> tuple[str, dict[str, Any]]:
    """Return a value of AUTH, and the translation of its template."""
    auth, _, start = request.param.partition(" ")
    return auth, translate(choose_template(Options(auth=auth, start=start or "plain"), root), "us-east-1")


def body_of(translated: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = translated["Resources"]["Api"]["Properties"]["Body"]
    return body


def test_every_route_asks_who_calls_except_health_and_preflights(variant: tuple[str, dict[str, Any]]) -> None:
    auth, translated = variant
    schemes: dict[str, Any] = {"authorizer": [{"Authorizer": []}], "iam": [{"AWS_IAM": []}], "none": None}

    pages = PAGES & set(body_of(translated)["paths"])
    open_routes = OPEN_ROUTES | pages | ({"/"} if pages else set())
    for path, methods in body_of(translated)["paths"].items():
        for method, operation in methods.items():
            free = method == "options" or path in open_routes
            assert operation.get("security") in ((None, [{"NONE": []}]) if free else (schemes[auth],)), (path, method)


def test_every_integration_keeps_its_mode_and_its_permission(variant: tuple[str, dict[str, Any]], root: Path) -> None:
    """With InvokeRole, each caller of an API with AWS_IAM would need the permission to invoke the functions."""
    _, translated = variant
    integrations = [
        operation[INTEGRATION] for methods in body_of(translated)["paths"].values() for operation in methods.values()
    ]
    functions = [each for each in integrations if each["type"] == "aws_proxy"]

    assert len(functions) > 40
    for each in functions:
        assert "credentials" not in each
        streams = any(
            name in json.dumps(each["uri"])
            for name in ("Turns", "Responses", "Knowledge", "October", "OpenAIAgents", "Protocols", "Console")
        )
        assert each.get("responseTransferMode") == ("STREAM" if streams else None)


def test_functions_know_who_checks_their_callers(variant: tuple[str, dict[str, Any]]) -> None:
    auth, translated = variant

    system = System(ROOT / "template.yaml", translated, outputs=OUTPUTS)

    without = {each.logical_id for each in system.functions if "STINT_AUTH" not in each.environment}
    assert {each.environment.get("STINT_AUTH", auth) for each in system.functions} == {auth}
    assert without - {"Authorizer"} == {"Sandbox"}  # which no request of the API reaches
    assert ("stint-authorizer" in {each.name for each in system.functions}) == (auth == "authorizer")
    assert bool([name for name in translated["Parameters"] if name.startswith("Oidc")]) == (auth == "authorizer")


def test_roles_of_callers_are_a_parameter_of_a_stack_that_checks_signatures(
    variant: tuple[str, dict[str, Any]],
) -> None:
    auth, translated = variant
    roles = '{"deployer": {"tenant": "acme", "scopes": ["use"]}}'

    system = System(ROOT / "template.yaml", translated, outputs=OUTPUTS, parameters={"IamRoles": roles})

    asked = [function for function in system.functions if "STINT_AUTH" in function.environment]
    # The worker has no callers with a signature: it asks whether an automation needs a key.
    found = {each.environment.get("STINT_IAM_ROLES") for each in asked if each.logical_id != "Worker"}
    assert found == ({roles} if auth == "iam" else {None})
    assert translated["Parameters"].get("IamRoles", {}).get("Default") == ("" if auth == "iam" else None)


def test_the_authorizer_is_asked_about_the_header_and_its_answer_is_cached(root: Path) -> None:
    translated = translate(choose_template(Options(), root), "us-east-1")
    scheme = body_of(translated)["components"]["securitySchemes"]["Authorizer"]["x-amazon-apigateway-authorizer"]
    permission = translated["Resources"]["ApiAuthorizerAuthorizerPermission"]["Properties"]

    assert (scheme["type"], scheme["identitySource"]) == ("request", "method.request.header.Authorization")
    assert translated["Parameters"]["AuthorizerCacheSeconds"]["Default"] == 60
    assert scheme["authorizerResultTtlInSeconds"] == 60
    assert permission["FunctionName"] == {"Fn::GetAtt": ["Authorizer", "Arn"]}


def test_with_snapstart_the_alias_of_the_authorizer_is_asked(root: Path) -> None:
    translated = translate(choose_template(Options(start="snapstart"), root), "us-east-1")
    permission = translated["Resources"]["ApiAuthorizerAuthorizerPermission"]["Properties"]

    assert permission["FunctionName"] == {"Ref": "AuthorizerAliaslive"}
    assert "AuthorizerAliaslive" in json.dumps(body_of(translated)["components"])


def test_refusals_have_the_error_body_and_name_the_scheme(variant: tuple[str, dict[str, Any]]) -> None:
    auth, translated = variant
    scheme = "AWS4-HMAC-SHA256" if auth == "iam" else "Bearer"
    responses = System(ROOT / "template.yaml", translated, outputs=OUTPUTS).gateway_responses

    for kind, (status, error_type, code) in REFUSALS.items():
        found = responses[kind]
        document = json.loads(found.template)
        assert (found.status, document["error"]["type"], document["error"]["code"]) == (status, error_type, code)
        assert document["detail"] == document["error"]["message"]
        assert found.headers.get("WWW-Authenticate") == (scheme if status == 401 else None)
        assert found.headers["Cache-Control"] == "no-store"
        assert found.headers.get("x-should-retry") == (None if kind == "AUTHORIZER_FAILURE" else "false")


def test_without_a_signature_iam_answers_401_and_the_others_have_no_such_route(
    variant: tuple[str, dict[str, Any]],
) -> None:
    auth, translated = variant
    missing = System(ROOT / "template.yaml", translated, outputs=OUTPUTS).gateway_responses[
        "MISSING_AUTHENTICATION_TOKEN"
    ]

    code = json.loads(missing.template)["error"]["code"]
    scheme = missing.headers.get("WWW-Authenticate")
    expected = (401, "unauthorized", "AWS4-HMAC-SHA256") if auth == "iam" else (404, "route_not_found", None)
    assert (missing.status, code, scheme) == expected


def test_every_parameter_has_a_default_so_that_a_guided_deployment_needs_no_answer(
    variant: tuple[str, dict[str, Any]],
) -> None:
    _, translated = variant

    assert [name for name, each in translated["Parameters"].items() if "Default" not in each] == []


def test_parameters_must_accept_some_credential_and_be_complete(root: Path) -> None:
    rules = translate(choose_template(Options(), root), "us-east-1")["Rules"]
    issuer = {"Fn::Not": [{"Fn::Equals": [{"Ref": "OidcIssuer"}, ""]}]}

    [some] = rules["SomeCredentialIsAccepted"]["Assertions"]
    assert some["Assert"] == {"Fn::Or": [{"Fn::Equals": [{"Ref": "AuthKeys"}, "true"]}, issuer]}
    assert rules["OidcIsComplete"]["RuleCondition"] == issuer
    assert len(rules["OidcIsComplete"]["Assertions"]) == 2


@pytest.mark.parametrize(
    ("auth", "start", "scale"),
    list(product(("authorizer", "iam", "none"), ("plain", "snapstart"), ("ondemand", "managed"))),
)
def test_auth_is_combined_with_the_other_options(root: Path, auth: str, start: str, scale: str) -> None:
    environment = {"AUTH": auth, "START": start, "SCALE": scale}
    if (start, scale) == ("snapstart", "managed"):
        with pytest.raises(Refused, match="exclude each other"):
            Options.of(environment)
        return

    chosen = choose_template(Options.of(environment), root)

    assert (chosen.name == "template.yaml") == ((auth, start, scale) == ("authorizer", "plain", "ondemand"))


def test_an_unknown_value_is_refused_by_name(root: Path) -> None:
    with pytest.raises(Refused, match="AUTH=off is not one of: authorizer, iam, none"):
        Options.of({"AUTH": "off"})


@pytest.mark.parametrize("auth", ["authorizer", "iam", "none"])
def test_only_an_open_build_prints_a_warning(root: Path, auth: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main({"AUTH": auth}, root) == 0

    printed = capsys.readouterr()
    assert (OPEN in printed.err) == (auth == "none")
    assert printed.out.strip() in ("template.yaml", ".template.json")


def test_every_value_is_linted_by_make_validate() -> None:
    assert {each.auth for each in VARIANTS} == {"authorizer", "iam", "none"}
