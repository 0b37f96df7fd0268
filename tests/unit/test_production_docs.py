"""The commands of docs/production.md exist, with their options."""

import re
import shlex
from pathlib import Path

import botocore.session
import pytest
from botocore import xform_name
from infra.scripts.options import Options
from infra.scripts.restore import make_parser
from infra.scripts.rollout_options import use_rollout
from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "production.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.replace("\\\n", " ").splitlines()]
INLINE = re.findall(r"`(aws [^`]+)`", TEXT)
MADE_BY_THE_CLI = {("cloudformation", "deploy"), ("s3", "rb"), ("dynamodb", "wait")}
"""Commands that the AWS CLI has and the services do not."""

AWS = [words for words in map(shlex.split, COMMANDS + INLINE) if words[0] == "aws"]


def parameters() -> set[str]:
    """Return the parameters of the template and of its variant with a canary."""
    template = yaml_parse((ROOT / "template.yaml").read_text())
    use_rollout(template, "canary")
    return set(template["Parameters"])


@pytest.mark.parametrize("words", [each for each in AWS if tuple(each[1:3]) not in MADE_BY_THE_CLI], ids=" ".join)
def test_operations_of_aws_have_these_options(words: list[str]) -> None:
    model = botocore.session.get_session().get_service_model(words[1].removesuffix("api"))  # s3api, of the CLI
    operations = {xform_name(name).replace("_", "-"): name for name in model.operation_names}

    shape = model.operation_model(operations[words[2]]).input_shape
    assert shape
    members = {f"--{xform_name(name).replace('_', '-')}" for name in shape.members}
    assert {word for word in words if word.startswith("--")} <= members
    required = {f"--{xform_name(name).replace('_', '-')}" for name in shape.required_members}
    assert required <= set(words)


def test_parameters_exist_in_the_template() -> None:
    named = [
        name for values in re.findall(r'PARAMETERS="([^"]*)"', TEXT) for name in re.findall(r"(?:^|\s)(\w+)=", values)
    ]

    assert len(named) > 5
    assert set(named) <= parameters()


def test_build_options_are_known() -> None:
    builds = [dict(re.findall(r"(\w+)=(\w+)", line)) for line in COMMANDS if line.startswith("make build")]

    assert [Options.of(each).rollout for each in builds] == ["all", "canary"]


def test_the_command_that_restores_has_these_options() -> None:
    (line,) = [line for line in COMMANDS if "infra.scripts.restore" in line]

    options = make_parser().parse_args(shlex.split(line)[3:])

    assert (len(options.table), len(options.bucket), options.at.year) == (2, 2, 2026)


def test_the_edge_has_the_parameters_of_its_command() -> None:
    (line,) = [line for line in COMMANDS if "edge.yaml" in line]
    edge = (ROOT / "docs" / "examples" / "edge.yaml").read_text()

    given = re.findall(r"(\w+)=", line)
    assert [name for name in given if f"\n  {name}:\n    Type: String" not in edge] == []


def test_every_linked_or_named_file_exists() -> None:
    links = [ROOT / "docs" / path for path in re.findall(r"\]\(([^)#:]+)\)", TEXT)]
    named = [ROOT / path for path in re.findall(r"`((?:tests|infra|events|docs)/[\w/.]+)`", TEXT)]

    assert [path for path in links + named if not path.exists()] == []


def test_alarms_are_those_of_the_stack() -> None:
    alarms = (ROOT / "infra" / "aws" / "alarms.yaml").read_text()
    listed = re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", TEXT.split("## Alarms")[1].split("## ")[0], re.MULTILINE)

    assert sorted(listed) == sorted(re.findall(r"^  (\w+):.*\n    Type: AWS::CloudWatch::Alarm", alarms, re.MULTILINE))
