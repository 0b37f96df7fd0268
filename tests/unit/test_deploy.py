"""`make deploy`: the command that it runs, and what it refuses. The SAM CLI is a program that notes its arguments."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml
from infra.scripts.deploy import ROOT, main

SAM = """#!/bin/sh
printf '%s\\n' "$@" > arguments
pwd > folder
env > environment
cp .aws-sam/parameters-*.yaml given 2> /dev/null
exit ${SAM_STATUS:-0}
"""
TEMPLATE = {
    "Parameters": {name: {} for name in ("Runtime", "Architecture", "StageName", "Models", "Registrations")},
    "Resources": {"CoreLayer": {"Metadata": {"BuildMethod": "python3.13", "BuildArchitecture": "arm64"}}},
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


def deploy(root: Path, **variables: str) -> int:
    return main({"PATH": os.defpath, **variables}, root)


def test_what_was_built_is_deployed_for_its_target_and_without_samconfig(root: Path) -> None:
    status = deploy(root, STACK="shop", PYTHONPATH="layers/core", AWS_PROFILE="mine")

    assert status == 0
    assert (root / "arguments").read_text().split() == [
        *("deploy", "--template-file", ".aws-sam/build/template.yaml", "--stack-name", "shop"),
        *("--resolve-s3", "--s3-prefix", "shop", "--no-confirm-changeset", "--no-fail-on-empty-changeset"),
        *("--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"),
        *("--parameter-overrides", "Runtime=python3.13", "Architecture=arm64"),
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
        ({"STACK": "s" * 55}, "is not a valid stack name"),
        ({"STACK": "shop", "RUNTIME": "python3.12"}, "python3.13 on arm64, not for python3.12 on arm64"),
        ({"STACK": "shop", "ARCHITECTURE": "x86_64"}, "make build RUNTIME=python3.13 ARCHITECTURE=x86_64"),
        ({"STACK": "shop", "PARAMETERS": "Architecture=x86_64"}, "not for python3.13 on x86_64"),
        ({"STACK": "shop", "PARAMETERS": "Stage=a"}, "'Stage=a' is not a Name=value of the template"),
        ({"STACK": "shop", "PARAMETERS": "StageName"}, "'StageName' is not a Name=value of the template"),
        ({"STACK": "shop", "PARAMETERS": "StageName='a"}, "PARAMETERS cannot be read"),
    ],
)
def test_what_cannot_be_deployed_is_refused(
    root: Path, capsys: pytest.CaptureFixture[str], variables: dict[str, str], complaint: str
) -> None:
    assert deploy(root, **variables) == 2

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
    command = ["make", "-s", "deploy", "STACK=1shop", "-o", ".venv-sam/.installed", "-o", ".venv/.installed"]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, "STACK=1shop is not a valid" in done.stderr) == (2, True), done.stderr


def build_with(root: Path, auth: str) -> None:
    """Change the build to one with an option AUTH."""
    template = {**TEMPLATE, "Globals": {"Function": {"Environment": {"Variables": {"STINT_AUTH": auth}}}}}
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
