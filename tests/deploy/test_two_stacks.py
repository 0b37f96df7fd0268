"""Two stacks in one account: they share no resource, no data and no key, and one outlives the other."""

import json

from infra.local.intrinsics import STACK
from infra.local.invoke import EVENTS
from tests.deploy.account import Account
from tests.deploy.callers import authorize, create_key
from tests.deploy.conftest import Removal, Update

OF_THE_ACCOUNT = "AWS::ApiGateway::Account"
"""The role for access logs, which docs/production.md names."""

WITHIN_THE_API = "AWS::ApiGateway::Stage"
"""Its name is unique in its API."""


def agents_of(account: Account, stack: str) -> list[str]:
    answer, error = account.invoke(f"{stack}-agents", (EVENTS / "agents" / "list_agents.json").read_bytes())
    assert error is None
    return [agent["agent_id"] for agent in json.loads(json.loads(answer)["body"])["data"]]


def test_each_resource_belongs_to_one_stack(stacks: Update, account: Account, second: str) -> None:
    first, other = account.resources(STACK), account.resources(second)

    names = {(one.type, one.physical_id) for one in first.values() if one.type not in (OF_THE_ACCOUNT, WITHIN_THE_API)}
    assert len(names) > 100
    assert names & {(one.type, one.physical_id) for one in other.values()} == set()
    assert OF_THE_ACCOUNT not in {one.type for one in other.values()}


def test_each_uploaded_file_belongs_to_one_stack(stacks: Update, account: Account, second: str) -> None:
    """`sam delete` deletes what the template of the stack names."""
    first, other = account.uploads(STACK), account.uploads(second)

    assert len(first) > 10
    assert first & other == set()


def test_a_key_of_one_stack_is_refused_by_the_other(stacks: Update, account: Account, second: str) -> None:
    key = create_key(account, second)

    assert authorize(account, second, key) is not None
    assert authorize(account, STACK, key) is None
    assert authorize(account, second, stacks.key) is None


def test_a_stack_does_not_read_what_the_other_stores(stacks: Update, account: Account, second: str) -> None:
    payload = (EVENTS / "agents" / "create_agent.json").read_bytes()
    answer, error = account.invoke(f"{second}-agents", payload)
    created = json.loads(json.loads(answer)["body"])["agent_id"]

    assert error is None
    assert created in agents_of(account, second)
    assert created not in agents_of(account, STACK)
    assert not {*agents_of(account, second)} & {*agents_of(account, STACK)}


def test_a_stack_is_complete_after_the_other_was_deleted(removed: Removal, account: Account, second: str) -> None:
    created = json.loads(
        json.loads(account.invoke(f"{second}-agents", (EVENTS / "agents" / "create_agent.json").read_bytes())[0])[
            "body"
        ]
    )

    assert created["agent_id"] in agents_of(account, second)
    assert authorize(account, second, create_key(account, second)) is not None
    assert account.uploads(second) <= account.uploaded()
