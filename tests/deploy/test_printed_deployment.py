"""The commands on AWS of README.md, the tutorial and docs/how-to.md, run as printed, but for the build and names.

They update the second stack of these tests, whose parameters leave out what the local engine cannot create.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from infra.local.engine import ROOT
from tests.deploy.account import Account
from tests.deploy.callers import KEY, authorize
from tests.servers.ports import free_port
from tests.system.printed_commands import Block, Desk, read_blocks

PAGES = {"README.md": "Deploy", "docs/tutorial.md": "8. On AWS"}
"""The sections with these commands."""

TUTORIAL, HOW_TO = ROOT / "docs" / "tutorial.md", ROOT / "docs" / "how-to.md"
OWN_FUNCTION = "Call your own Lambda function"
PRINTED_ARN = "arn:aws:lambda:eu-west-1:111122223333:function:order-status"
BUILD = "make build\n"
STACK = "shop"
"""The name that the pages use."""


def aws_blocks(page: str) -> list[Block]:
    """Return the blocks of a page that need an account, but no API."""
    blocks = [each for each in read_blocks(ROOT / page) if each.heading == PAGES[page]]
    return [each for each in blocks if re.search(r"make (deploy|cli)", each.text)]


@pytest.fixture(scope="module")
def desk(account: Account, project: Path, second: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("printed") / "stint"
    with Desk(folder, free_port(), {BUILD: "", STACK: second}, account.environment()) as desk:
        shutil.copytree(project / ".aws-sam", folder / ".aws-sam", symlinks=True)
        yield desk


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_deploy_a_stack_and_print_a_key_for_it(
    account: Account, desk: Desk, second: str, page: str
) -> None:
    output = "".join(desk.run(block) for block in aws_blocks(page))

    (key,) = KEY.findall(output)
    assert account.status(second) in ("CREATE_COMPLETE", "UPDATE_COMPLETE")
    assert (authorize(account, second, key) or {}).get("tenant") == "default"


def test_a_function_is_deployed_and_made_a_tool(account: Account, desk: Desk, second: str) -> None:
    made = next(each for each in read_blocks(TUTORIAL) if "/template.yaml <<" in each.text)
    function, allowed = (each for each in read_blocks(HOW_TO) if each.heading == OWN_FUNCTION and "deploy" in each.text)
    desk.run(made)

    (arn,) = set(re.findall(r"arn:aws:lambda:\S+:function:order-status", desk.run(function)))
    desk.replaced = {**desk.replaced, PRINTED_ARN: arn}
    desk.run(allowed)

    assert account.invoke("order-status", b'{"order": 17}') == (b'"packed"', None)
    assert account.parameters(second)["ToolFunctionArns"] == arn


def test_each_page_builds_and_deploys_the_same_stack(desk: Desk) -> None:
    for page, section in PAGES.items():
        printed = "".join(each.text for each in read_blocks(ROOT / page) if each.heading == section)

        assert BUILD in printed
        assert f"make deploy STACK={STACK}" in printed
