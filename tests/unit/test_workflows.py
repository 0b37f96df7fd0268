"""The workflows of GitHub: their actions cannot change, and their tokens have the least rights."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

WORKFLOWS = sorted(Path(".github/workflows").glob("*.y*ml"))
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
RIGHTS = {"contents": "read", "id-token": "write"}
"""All that a job may need: the code, and a token for a role of AWS."""


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.name)
def text(request: pytest.FixtureRequest) -> str:
    path: Path = request.param
    return path.read_text()


def test_actions_are_pinned_by_commit_with_their_version(text: str) -> None:
    used = re.findall(r"uses:\s*(.+)", text)

    assert used
    assert [each for each in used if not PINNED.fullmatch(each)] == []


def test_tokens_have_the_least_rights(text: str) -> None:
    workflow: dict[str, Any] = yaml.safe_load(text)

    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["permissions"].items() <= RIGHTS.items()
        assumes = any("configure-aws-credentials" in step.get("uses", "") for step in job["steps"])
        assert ("id-token" in job["permissions"]) == assumes


def test_checkouts_leave_no_token_in_the_work_tree(text: str) -> None:
    steps = [step for job in yaml.safe_load(text)["jobs"].values() for step in job["steps"]]
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]

    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
