"""Statements of docs/security.md about callers are true and complete."""

import re
import shlex
from pathlib import Path

import pytest
import yaml
from tests.route_rules import ROUTE_SCOPES

from stint.cli.command_line import make_parser
from stint.services.access.iam_roles import read_iam_roles

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "security.md").read_text()
BLOCKS = re.findall(r"```sh\n(.*?)```", DOCS, re.DOTALL)
COMMANDS = [line.strip() for block in BLOCKS for line in block.replace("\\\n", " ").splitlines()]


def test_each_named_file_of_tests_exists() -> None:
    names = {path.name for path in (ROOT / "tests").rglob("*.py")}
    paths = re.findall(r"`(tests/[\w/]+(?:\.py)?)`", DOCS)

    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert set(re.findall(r"`(test_\w+\.py)`", DOCS)) <= names


def test_each_named_parameter_exists() -> None:
    class Loader(yaml.SafeLoader):
        """Reads the short tags of CloudFormation as nothing."""

    Loader.add_multi_constructor("!", lambda _loader, _suffix, _node: None)
    template = yaml.load((ROOT / "template.yaml").read_text(), Loader)
    parameters = {*template["Parameters"], "IamRoles"}  # that of AUTH=iam
    set_by_deploy = {name for each in re.findall(r'PARAMETERS="([^"]*)"', DOCS) for name in re.findall(r"(\w+)=", each)}
    named = set(re.findall(r"parameter(?:\s+of\s+the\s+template)?\s+`(\w+)`", DOCS)) | set_by_deploy

    assert len(named) > 8
    assert named - parameters == set()


@pytest.mark.parametrize("line", [line for line in COMMANDS if "-m stint.cli" in line])
def test_the_command_line_has_these_commands(line: str) -> None:
    words = shlex.split(line.partition(" > ")[0])

    assert words[:4] == ["PYTHONPATH=layers/core", ".venv/bin/python", "-m", "stint.cli"]
    make_parser().parse_args(words[4:])


def test_the_table_has_each_route_that_needs_another_scope_than_use() -> None:
    rows = re.findall(r"^\| `(/.*?)` \| (.*?) \| (.*?) \|$", DOCS, re.MULTILINE)
    stated = {(f"{method} {path}", scope) for path, methods, scope in rows for method in methods.split(", ")}

    others = {route: scope for route, scope in ROUTE_SCOPES.items() if scope != "use"}
    assert stated == {(route, f"`{scope}`" if scope else "none: open") for route, scope in others.items()}


def test_the_example_of_roles_can_be_used() -> None:
    [example] = re.findall(r"### Roles of IAM.*?```json\n(.*?)```", DOCS, re.DOTALL)

    roles = read_iam_roles(example)

    assert set(roles) == {("", "shop-backend"), ("111122223333", "deployer")}
