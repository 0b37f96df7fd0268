"""`python -m stint.cli ... --stack NAME`. `create_key` of the other tests uses it, too."""

import subprocess
import sys

from infra.local.engine import ROOT
from infra.local.intrinsics import STACK
from tests.deploy.account import SAM_STACK, Account
from tests.deploy.conftest import Update


def list_keys(account: Account, stack: str, *unset: str) -> subprocess.CompletedProcess[str]:
    environment = account.environment() | {"PYTHONPATH": "layers/core"}
    for name in unset:
        environment[name] = ""
    command = [sys.executable, "-m", "stint.cli", "keys", "list", "--stack", stack]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_the_keys_of_a_stack_are_found_by_its_name(account: Account, stacks: Update) -> None:
    listed = list_keys(account, STACK)

    assert (listed.returncode, listed.stderr) == (0, "")
    assert stacks.key.split("_")[1] in listed.stdout


def test_a_stack_that_does_not_exist_is_named_with_its_region(account: Account, stacks: Update) -> None:
    listed = list_keys(account, "shopp")

    assert (listed.returncode, listed.stdout) == (1, "")
    assert listed.stderr == (
        f"stint: There is no stack shopp in {account.engine.region}. "
        "Check its name, and set AWS_REGION to its region.\n"
    )


def test_a_stack_of_others_is_refused(account: Account, stacks: Update) -> None:
    listed = list_keys(account, SAM_STACK)

    assert listed.returncode == 1
    assert "no output KeysTableName: it is not Stint's" in listed.stderr


def test_missing_credentials_are_named(account: Account, stacks: Update) -> None:
    listed = list_keys(account, STACK, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")

    assert (listed.returncode, listed.stderr.count("\n")) == (1, 1)
    assert "There are no AWS credentials. Set AWS_ACCESS_KEY_ID" in listed.stderr
