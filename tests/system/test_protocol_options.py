"""The templates that `make build PROTOCOLS=...` builds, and its package without folders of protocols."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from infra.local.engine import ROOT
from infra.local.translation import translate
from infra.scripts.build import Build
from infra.scripts.lint_templates import VARIANTS
from infra.scripts.options import Options, Refused
from infra.scripts.protocol_options import ALL, OPENAPI, PROTOCOLS, leave_out
from infra.scripts.published_versions import resources_of
from samtranslator.yaml_helper import yaml_parse
from tests.unit.test_template_parameters import resolver

from stint.http.routes.inspection import routes_of_api

PATHS = {
    "mcp": {
        "/v1/mcp",
        "/v1/mcp/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/v1/mcp",
        "/v1/agents/{agent_id}/mcp",
    },
    "a2a": {
        "/v1/agents/{agent_id}/a2a",
        "/v1/agents/{agent_id}/a2a/.well-known/agent-card.json",
        "/.well-known/agent-card.json",
    },
    "ag-ui": {"/v1/agents/{agent_id}/ag-ui"},
}
START = "import app, sys; print(sorted(name for name in sys.modules if name.startswith('stint.')))"
LIST_ROUTES = """
from stint.http.routes.inspection import routes_of_api
print(*sorted({route.route for route in routes_of_api()}))
"""


def translated(*protocols: str) -> dict[str, Any]:
    return translate(ROOT / "template.yaml", "us-east-1", change=Options(protocols=protocols).apply)


def source_template(*protocols: str, **options: str) -> dict[str, Any]:
    """Return the template that SAM builds, in which the functions still have their events."""
    template: dict[str, Any] = yaml_parse((ROOT / "template.yaml").read_text())
    Options(protocols=protocols, **options).apply(template)
    return template


def paths_of(template: dict[str, Any]) -> set[str]:
    """Return the paths of a template that SAM builds."""
    functions = resources_of(template, "AWS::Serverless::Function").values()
    events = [event for each in functions for event in each["Properties"].get("Events", {}).values()]
    return {event["Properties"]["Path"] for event in events if event["Type"] == "Api"}


@pytest.fixture(scope="module")
def everything() -> dict[str, Any]:
    return translated(*ALL)


@pytest.fixture(scope="module")
def nothing() -> dict[str, Any]:
    return translated()


@pytest.mark.parametrize("protocol", ALL)
def test_a_protocol_that_is_left_out_has_no_route(protocol: str) -> None:
    others = [name for name in ALL if name != protocol]

    assert paths_of(source_template(*ALL)) - paths_of(source_template(*others)) == PATHS[protocol]


@pytest.mark.parametrize(
    "options", [{}, {"auth": "none"}, {"auth": "iam", "rollout": "canary"}, {"scale": "managed"}], ids=str
)
def test_nothing_of_the_function_is_left_without_protocols(options: dict[str, str]) -> None:
    template = source_template(**options)
    resources = {name: each for name, each in template["Resources"].items() if name != "OperatorDashboard"}
    names = " ".join([*resources, *template["Parameters"], *template["Conditions"]])

    assert "Protocols" not in names
    assert not re.search(r"\bProtocols", json.dumps(resources))
    assert paths_of(template) & set().union(*PATHS.values()) == set()


def test_all_other_resources_are_the_same_in_both_builds(everything: dict[str, Any], nothing: dict[str, Any]) -> None:
    before, after = everything["Resources"], nothing["Resources"]
    changed = {before[name]["Type"] for name in set(before) & set(after) if before[name] != after[name]}

    assert {name for name in set(before) - set(after) if "Protocols" not in name and "Deployment" not in name} == set()
    assert changed <= {
        "AWS::ApiGateway::RestApi",
        "AWS::ApiGateway::Stage",
        "AWS::CloudFormation::Stack",
        "AWS::Events::EventBusPolicy",
    }


def test_routes_without_a_key_are_open_in_every_build_that_checks_callers(everything: dict[str, Any]) -> None:
    paths = everything["Resources"]["Api"]["Properties"]["Body"]["paths"]
    served = set().union(*PATHS.values())
    is_open = {
        path: all(each["security"] == [{"NONE": []}] for name, each in paths[path].items() if name != "options")
        for path in served
    }

    assert {path for path in served if is_open[path]} == {
        path for path in served if ".well-known" in path and "{agent_id}" not in path
    }


@pytest.mark.parametrize(
    ("audience", "named"),
    [
        ("", "'Bearer'"),
        ("stint", "'Bearer'"),
        ("https://a.example/v1/mcp/more", "'Bearer'"),
        (
            "https://a.example/prod/v1/mcp",
            """'Bearer resource_metadata="https://a.example/prod/v1/mcp/.well-known/oauth-protected-resource"'""",
        ),
    ],
)
def test_a_refused_credential_names_the_document_of_the_mcp_server(audience: str, named: str) -> None:
    parsed = source_template(*ALL)
    header = parsed["Resources"]["Api"]["Properties"]["GatewayResponses"]["UNAUTHORIZED"]["ResponseParameters"]

    assert resolver(parsed, OidcAudience=audience).resolve(header["Headers"]["WWW-Authenticate"], "Api") == named


def test_without_mcp_or_tokens_no_document_is_named() -> None:
    templates = source_template("a2a"), source_template(*ALL, auth="none"), source_template(*ALL, auth="iam")

    assert [template for template in templates if "NamesMcpResource" in json.dumps(template)] == []


@pytest.mark.parametrize(
    ("value", "protocols"),
    [("", ALL), ("none", ()), ("mcp", ("mcp",)), ("ag-ui, mcp", ("mcp", "ag-ui")), ("a2a,a2a", ("a2a",))],
)
def test_a_list_names_the_protocols_of_a_build(value: str, protocols: tuple[str, ...]) -> None:
    assert Options.of({"PROTOCOLS": value}).protocols == protocols


@pytest.mark.parametrize("value", ["ag_ui", "mcp,none", "mcp,", "all", ","])
def test_an_unknown_protocol_is_refused_by_name(value: str) -> None:
    message = f"PROTOCOLS={value} is neither none nor a list of: mcp, a2a, ag-ui"

    with pytest.raises(Refused, match=message):
        Options.of({"PROTOCOLS": value})


def test_make_validate_lints_it() -> None:
    assert () in {each.protocols for each in VARIANTS}


def build_package(folder: Path, *protocols: str) -> Build:
    """Return a build of the package alone, from which the other protocols were removed."""
    build = Build(folder, source_template(*protocols))
    build.package.parent.mkdir(parents=True)
    shutil.copytree(ROOT / "layers/core/stint", build.package)
    leave_out(build.package, build.left_out)
    return build


def files_of(build: Build) -> dict[str, int]:
    package = build.package
    files = [path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {str(path.relative_to(package)): path.stat().st_size for path in files}


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Build]:
    """Return a build of everything, and one without each protocol, by its name."""
    folder = tmp_path_factory.mktemp("builds")
    without = {name: [each for each in ALL if each != name] for name in ALL}
    return {name: build_package(folder / name, *kept) for name, kept in {"": ALL, **without}.items()}


def run(build: Build, function: str, program: str) -> str:
    paths = os.pathsep.join((str(ROOT / "functions" / function), str(build.package.parent)))
    environment = {"PATH": os.defpath, "PYTHONPATH": paths, "STINT_AUTH": "none"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("protocol", ALL)
def test_a_build_is_smaller_by_the_folder_of_the_protocol(protocol: str, builds: dict[str, Build]) -> None:
    before, after = files_of(builds[""]), files_of(builds[protocol])
    folder = f"{PROTOCOLS[protocol].folder}/"
    removed = {name for name in before if name.startswith(folder)}

    assert before.keys() - after.keys() == removed
    assert f"{folder}routes.py" in removed or any(name.startswith(f"{folder}routes/") for name in removed)
    assert {name for name in after if before[name] != after[name]} == {str(OPENAPI)}
    assert sum(before.values()) - sum(after.values()) > sum(before[name] for name in removed)


@pytest.mark.parametrize("protocol", ALL)
def test_a_build_without_a_protocol_starts_and_lists_no_route_of_it(protocol: str, builds: dict[str, Build]) -> None:
    build, folder = builds[protocol], f"stint.{PROTOCOLS[protocol].folder}"
    listed, everything = run(build, "registry", LIST_ROUTES).split(), {route.route for route in routes_of_api()}
    documented = json.loads((build.package / OPENAPI).read_text())
    missing = everything - set(listed)

    assert folder not in run(build, "protocols", START)
    assert missing
    assert not missing & set(documented["paths"])
    assert PROTOCOLS[protocol].tag not in [each["name"] for each in documented["tags"]]
    assert set(json.loads((builds[""].package / OPENAPI).read_text())["paths"]) - set(documented["paths"]) == missing


def test_what_was_left_out_does_not_make_a_build_old(builds: dict[str, Build], tmp_path: Path) -> None:
    sources = tmp_path / "layers/core/stint"
    shutil.copytree(ROOT / "layers/core/stint", sources, ignore=shutil.ignore_patterns("__pycache__"))
    build = builds["a2a"]
    copies = Build(tmp_path, build.template)
    copies.package.parent.mkdir(parents=True)
    shutil.copytree(build.package, copies.package)
    of_package = [(source, copy) for source, copy in copies._copies() if copy.is_relative_to(copies.package)]

    assert {source.parent.name for source, _ in of_package} >= {"mcp_server", "ag_ui"}
    assert all(copy.read_bytes() == copies._content(source) for source, copy in of_package)


def test_each_protocol_names_events_of_the_function() -> None:
    functions = resources_of(source_template(*ALL), "AWS::Serverless::Function")
    named = [event for protocol in PROTOCOLS.values() for event in protocol.events]

    assert sorted(functions["Protocols"]["Properties"]["Events"]) == sorted(named)
