"""`make deploy`: the command that it runs, and what it refuses. The SAM CLI is a program that notes its arguments."""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from infra.scripts.deploy import ROOT, main
from infra.scripts.deployment_sizes import Refused, read_deployed, refuse_large_environments, refuse_large_policies
from samtranslator.yaml_helper import yaml_parse

from stint.aws.environment import AwsEnvironment

SAM = """#!/bin/sh
printf '%s\\n' "$@" > arguments
pwd > folder
env > environment
cp .aws-sam/parameters-*.yaml given 2> /dev/null
exit ${SAM_STATUS:-0}
"""
TURNS = {"Fn::Sub": "${AWS::StackName}-turns"}
TEMPLATE: dict[str, Any] = {
    "Parameters": {name: {} for name in ("Runtime", "Architecture", "StageName", "Models", "Registrations")},
    "Resources": {
        "CoreLayer": {
            "Type": "AWS::Serverless::LayerVersion",
            "Metadata": {"BuildMethod": "python3.13", "BuildArchitecture": "arm64"},
        },
        "Turns": {"Type": "AWS::Serverless::Function", "Properties": {"FunctionName": TURNS}},
    },
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository whose build is current."""
    for name, text in {
        "template.yaml": "",
        "infra/aws/data.yaml": "",
        "functions/turns/app.py": "TURNS = 1",
        "layers/core/stint/a.py": "A = 1",
        ".aws-sam/build/Turns/app.py": "TURNS = 1",
        ".aws-sam/build/CoreLayer/python/stint/a.py": "A = 1",
        ".aws-sam/build/template.yaml": yaml.safe_dump(TEMPLATE),
        ".venv-sam/bin/sam": SAM,
    }.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (1_000, 1_000))
    (tmp_path / ".venv-sam/bin/sam").chmod(0o700)
    return tmp_path


def deploy(root: Path, deployed: Mapping[str, str] | None = None, **variables: str) -> int:
    """Deploy to a stack that has these parameters."""
    return main({"PATH": os.defpath, "AWS_REGION": "eu-west-1", **variables}, root, lambda *_: deployed or {})


def test_what_was_built_is_deployed_for_its_target_and_without_samconfig(root: Path) -> None:
    status = deploy(root, STACK="shop", PYTHONPATH="layers/core", AWS_PROFILE="mine")

    assert status == 0
    assert (root / "arguments").read_text().split() == [
        *("deploy", "--template-file", ".aws-sam/build/template.yaml", "--stack-name", "shop", "--region", "eu-west-1"),
        *("--resolve-s3", "--s3-prefix", "shop", "--no-confirm-changeset", "--no-fail-on-empty-changeset"),
        *("--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"),
        *("--tags", "application=stint", "--parameter-overrides", "Runtime=python3.13", "Architecture=arm64"),
    ]
    assert Path((root / "folder").read_text().strip()) == root
    environment = (root / "environment").read_text()
    assert "AWS_PROFILE=mine" in environment
    assert "PYTHONPATH" not in environment


def test_the_status_of_sam_is_that_of_the_deployment(root: Path) -> None:
    assert deploy(root, STACK="shop", SAM_STATUS="3") == 3


def test_the_target_may_be_named_when_it_is_that_of_the_build(root: Path) -> None:
    parameters = "Runtime=python3.13 StageName=test"

    assert deploy(root, STACK="shop", ARCHITECTURE="arm64", PARAMETERS=parameters) == 0
    assert yaml.safe_load((root / "given").read_text()) == {"StageName": '""test""'}


VALUES = {
    "StageName": "a b",
    "Models": "openai/a,bedrock/b",
    "Registrations": json.dumps({"toolgroups": [{"a": 'it\'s "q" \\ \\" z\\'}]}),
}


def test_parameters_arrive_as_they_are_written(root: Path) -> None:
    """SAM's own reader reads the file that it is given."""
    python = ROOT / ".venv-sam" / "bin" / "python"
    if not python.exists():
        assert os.environ.get("CI") != "true", "the SAM CLI is not installed: run `make validate`"
        pytest.skip("the SAM CLI is not installed: run `make validate`")
    words = [f"{name}='{value}'" if "'" not in value else f"{name}={quoted(value)}" for name, value in VALUES.items()]

    assert deploy(root, STACK="shop", PARAMETERS=" ".join(words)) == 0

    file = (root / "arguments").read_text().split()[-1]
    read = "from samcli.cli.types import CfnParameterOverridesType as T; import json, sys"
    program = f"{read}; print(json.dumps(T().convert((sys.argv[1],), None, None)))"
    done = subprocess.run([python, "-c", program, file], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == VALUES


def quoted(value: str) -> str:
    return "'" + value.replace("'", "'\"'\"'") + "'"


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({}, "usage: make deploy STACK=name"),
        ({"STACK": "1shop"}, "STACK=1shop is not a valid stack name"),
        ({"STACK": "--guided"}, "is not a valid stack name"),
        ({"STACK": "s" * 51}, "is not a valid stack name"),
        ({"STACK": "shop", "RUNTIME": "python3.12"}, "python3.13 on arm64, not for python3.12 on arm64"),
        ({"STACK": "shop", "ARCHITECTURE": "x86_64"}, "make build RUNTIME=python3.13 ARCHITECTURE=x86_64"),
        ({"STACK": "shop", "PARAMETERS": "Architecture=x86_64"}, "not for python3.13 on x86_64"),
        ({"STACK": "shop", "PARAMETERS": "Stage=a"}, "'Stage=a' is not a Name=value of the template"),
        ({"STACK": "shop", "PARAMETERS": "StageName"}, "'StageName' is not a Name=value of the template"),
        ({"STACK": "shop", "PARAMETERS": "StageName='a"}, "PARAMETERS cannot be read"),
        (
            {"STACK": "shop", "PARAMETERS": f"Models={'a' * 4097}"},
            "Models has 4097 bytes, and CloudFormation accepts 4096",
        ),
        ({"STACK": "shop", "TAGS": "team"}, "'team' is not a name=value of a tag"),
        ({"STACK": "shop", "TAGS": "aws:team=shop"}, "'aws:team=shop' is not a name=value of a tag"),
        ({"STACK": "shop", "TAGS": "team=a,b"}, "'team=a,b' is not a name=value of a tag"),
        ({"STACK": "shop", "TAGS": "team='a"}, "TAGS cannot be read"),
        ({"STACK": "shop", "TAGS": " ".join(f"t{number}=a" for number in range(40))}, "there are 41 tags, at most 40"),
    ],
)
def test_what_cannot_be_deployed_is_refused(
    root: Path, capsys: pytest.CaptureFixture[str], variables: dict[str, str], complaint: str
) -> None:
    assert deploy(root, None, **variables) == 2

    assert complaint in capsys.readouterr().err
    assert not (root / "arguments").exists()


def test_nothing_is_deployed_before_it_is_built(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / ".aws-sam/build/template.yaml").unlink()

    assert deploy(root, STACK="shop") == 2

    assert "nothing is built: run `make build` first" in capsys.readouterr().err


@pytest.mark.parametrize(
    "changed", ["template.yaml", "infra/aws/data.yaml", "functions/turns/app.py", "layers/core/stint/a.py"]
)
def test_a_build_that_is_older_than_its_source_is_not_deployed(
    root: Path, capsys: pytest.CaptureFixture[str], changed: str
) -> None:
    (root / changed).write_text("CHANGED = 1")

    assert deploy(root, STACK="shop") == 2

    assert f"{changed} was changed after the build: run `make build` again" in capsys.readouterr().err


def test_a_new_source_is_missed_in_the_build(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "layers/core/stint/new.py").write_text("NEW = 1")

    assert deploy(root, STACK="shop") == 2

    assert "layers/core/stint/new.py was changed" in capsys.readouterr().err


def test_make_hands_its_variables_over() -> None:
    command = ["make", "-s", "deploy", "STACK=1shop", "-o", ".venv-sam/.installed", "-o", ".venv/.run"]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, "STACK=1shop is not a valid" in done.stderr) == (2, True), done.stderr


def test_tags_are_those_of_the_command_and_of_the_project(root: Path) -> None:
    assert deploy(root, STACK="shop", TAGS="team=shop cost-centre=12/a") == 0
    words = (root / "arguments").read_text().split()
    assert words[words.index("--tags") + 1 : words.index("--parameter-overrides")] == [
        *("application=stint", "team=shop", "cost-centre=12/a")
    ]

    assert deploy(root, STACK="shop", TAGS="application=assistant") == 0
    assert "application=assistant" in (root / "arguments").read_text().split()


def sizes_of(parameters: Mapping[str, str]) -> None:
    refuse_large_environments(yaml_parse((ROOT / "template.yaml").read_text()), "shop", parameters)


def test_the_variables_of_each_function_of_the_template_fit_with_the_defaults() -> None:
    sizes_of({})


@pytest.mark.parametrize(
    ("text", "size"), [("x" * 3000, 3017), ('"' * 1500, 3017), ("\\" * 1500, 3017), ("\u20ac" * 1000, 6017)]
)
def test_settings_that_make_the_variables_of_a_function_too_large_are_refused(text: str, size: int) -> None:
    with pytest.raises(Refused) as caught:
        sizes_of({"Prices": text, "Tenants": "{}"})

    assert "the variables of the function Agents have" in str(caught.value)
    assert f"(STINT_PRICES {size}, " in str(caught.value)
    assert "Large settings" in str(caught.value)
    sizes_of({"Prices": "s3://settings/prices.json?versionId=v1", "CorsOrigin": text[:100]})


def test_variables_are_measured_as_lambda_measures_them() -> None:
    """Lambda measures the JSON of all variables: names, quotes, colons, commas and escapes."""
    function = {"Properties": {"Environment": {"Variables": {"A": {"Ref": "Models"}, "B": "b"}}}}
    template = {**TEMPLATE, "Resources": {"Turns": {"Type": "AWS::Serverless::Function", **function}}}
    longest = '"' * 2040  # in {"A":"","B":"b"}, which has 16 bytes

    refuse_large_environments(template, "shop", {"Models": longest})
    with pytest.raises(Refused, match="have 4097 bytes as JSON"):
        refuse_large_environments(template, "shop", {"Models": f"{longest}x"})


PROFILE = "arn:aws:bedrock:*:123456789012:inference-profile/global.anthropic.claude-sonnet-4-5-{}-v1:0"
FUNCTION = "arn:aws:lambda:ap-southeast-2:123456789012:function:tool-number-{}"


def test_arns_that_make_a_policy_too_long_are_refused() -> None:
    """Their parameters refuse them; the policy is that of models and tools."""
    template = yaml_parse((ROOT / "template.yaml").read_text())
    models = ",".join(PROFILE.format(number) for number in range(30))
    tools = ",".join(FUNCTION.format(number) for number in range(20))

    refuse_large_policies(template, "s" * 54, {})
    refuse_large_policies(template, "shop", {"ToolFunctionArns": tools})
    with pytest.raises(Refused) as caught:
        refuse_large_policies(template, "shop", {"ModelArns": models, "ToolFunctionArns": tools})

    assert re.match(r"the policy ModelsAndTools has \d+ characters ", str(caught.value))
    assert f"(ModelArns {len(models)}, ToolFunctionArns {len(tools)})" in str(caught.value)
    assert "IAM accepts 6144" in str(caught.value)


def test_a_policy_is_measured_without_white_space_and_with_what_the_stack_has(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    statement = {"Effect": "Allow", "Action": "a:B C", "Resource": {"Fn::Split": [",", {"Ref": "Models"}]}}
    policy = {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": {"Statement": [statement]}}}
    template = {**TEMPLATE, "Resources": {**TEMPLATE["Resources"], "Tools": policy}}
    (root / ".aws-sam/build/template.yaml").write_text(yaml.safe_dump(template))
    frame = len('{"Statement":[{"Effect":"Allow","Action":"a:BC","Resource":[""]}]}')
    longest = 6144 - frame

    assert deploy(root, {"Models": "m" * longest}, STACK="shop") == 0
    assert deploy(root, {"Models": "m" * (longest + 1)}, STACK="shop") == 2
    assert "the policy Tools has 6145 characters (Models" in capsys.readouterr().err


def test_parameters_that_the_stack_has_already_count_too(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    function = {
        "Type": "AWS::Serverless::Function",
        "Properties": {
            "FunctionName": TURNS,
            "Environment": {"Variables": {"STINT_REGISTRY": {"Ref": "Registrations"}, "B": {"Ref": "Models"}}},
        },
    }
    template = {**TEMPLATE, "Resources": {**TEMPLATE["Resources"], "Turns": function}}
    (root / ".aws-sam/build/template.yaml").write_text(yaml.safe_dump(template))

    assert deploy(root, {"Registrations": "r" * 3000}, STACK="shop", PARAMETERS=f"Models={'m' * 1000}") == 0
    assert deploy(root, {"Registrations": "r" * 3000}, STACK="shop", PARAMETERS=f"Models={'m' * 1200}") == 2

    assert "the variables of the function Turns have 4228 bytes" in capsys.readouterr().err


def test_a_stack_that_cannot_be_read_is_no_reason_to_refuse(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDFORMATION", "http://127.0.0.1:9")
    for name, value in {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
    }.items():
        monkeypatch.setenv(name, value)

    assert read_deployed("shop", "us-east-1") == {}
    assert "the parameters of the stack cannot be read" in capsys.readouterr().err


def test_a_deployment_without_credentials_says_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))

    with pytest.raises(Refused, match="there are no AWS credentials"):
        read_deployed("shop", "us-east-1")


@pytest.mark.parametrize(
    ("variables", "named"),
    [({"AWS_PROFILE": "nope"}, "nope"), ({"AWS_ACCESS_KEY_ID": "AKIA"}, "SECRET_ACCESS_KEY")],
)
def test_a_deployment_with_unusable_credentials_is_refused(
    variables: dict[str, str], named: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**variables, "AWS_CONFIG_FILE": str(tmp_path / "none")}.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(Refused, match=f"there are no AWS credentials: .*{named}"):
        read_deployed("shop", "us-east-1")


@pytest.mark.parametrize("text", [None, "[nonsense"])
def test_an_unusable_profile_without_a_region_is_one_line(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    if text is not None:
        (tmp_path / "config").write_text(text)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "nope")

    assert deploy(root, STACK="shop", AWS_REGION="") == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("variables", "region"),
    [
        ({"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "us-east-1"}, "eu-west-1"),
        ({"AWS_REGION": "", "AWS_DEFAULT_REGION": "us-east-1"}, "us-east-1"),
    ],
)
def test_the_region_is_that_of_the_operators_commands(root: Path, variables: dict[str, str], region: str) -> None:
    assert main({"PATH": os.defpath, "STACK": "shop", **variables}, root, lambda *_: {}) == 0
    assert f"--region {region} " in (root / "arguments").read_text().replace("\n", " ")
    assert AwsEnvironment(variables).region == region


def test_a_deployment_without_a_region_says_what_to_set(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))

    assert deploy(root, STACK="shop", AWS_REGION="") == 2
    assert "Set AWS_REGION" in capsys.readouterr().err


def build_with(root: Path, auth: str) -> None:
    """Change the build to one with an option AUTH."""
    properties = {"FunctionName": TURNS, "Environment": {"Variables": {"STINT_AUTH": auth}}}
    function = {"Type": "AWS::Serverless::Function", "Properties": properties}
    template = {**TEMPLATE, "Resources": {**TEMPLATE["Resources"], "Turns": function}}
    (root / ".aws-sam/build/template.yaml").write_text(yaml.safe_dump(template))


def test_another_auth_than_that_of_the_build_is_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build_with(root, "iam")

    assert (deploy(root, STACK="shop", AUTH="authorizer"), deploy(root, STACK="shop", AUTH="iam")) == (2, 0)
    assert "the build has AUTH=iam, not AUTH=authorizer: run `make build AUTH=authorizer`" in capsys.readouterr().err


@pytest.mark.parametrize("auth", ["authorizer", "iam", "none"])
def test_only_the_deployment_of_an_open_api_prints_a_warning(
    root: Path, auth: str, capsys: pytest.CaptureFixture[str]
) -> None:
    build_with(root, auth)

    assert deploy(root, STACK="shop") == 0
    assert ("AUTH=none: everyone" in capsys.readouterr().err) == (auth == "none")


@pytest.mark.parametrize(
    ("deployed", "given", "expected"),
    [
        (None, "", "spread"),
        (None, "KeyLayout=compatible", "compatible"),
        ({}, "", ""),
        ({"Runtime": "python3.13"}, "", ""),
    ],
)
def test_a_new_stack_has_no_keys_of_an_earlier_release(
    root: Path, deployed: Mapping[str, str] | None, given: str, expected: str
) -> None:
    template = TEMPLATE | {"Parameters": TEMPLATE["Parameters"] | {"KeyLayout": {}}}
    (root / ".aws-sam/build/template.yaml").write_text(yaml.safe_dump(template))
    os.utime(root / ".aws-sam/build/template.yaml", (1_000, 1_000))

    variables = {"PATH": os.defpath, "AWS_REGION": "eu-west-1", "STACK": "shop", "PARAMETERS": given}
    assert main(variables, root, lambda *_: deployed) == 0

    overrides = yaml.safe_load((root / "given").read_text()) if (root / "given").exists() else {}
    assert str(overrides.get("KeyLayout", "")).strip('"') == expected
