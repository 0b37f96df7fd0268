"""An update of a stack from the base build to the current one.

The engine replaces what AWS replaces, a table under the same name and without its items (`test_engine_gaps.py`). So
equal names and contents mean that no table and no bucket was replaced.
"""

import json

from infra.local.intrinsics import STACK
from infra.local.invoke import EVENTS
from infra.local.sample_ids import AGENT
from tests.deploy.account import Account
from tests.deploy.callers import authorize
from tests.deploy.conftest import Update
from tests.deploy.contents import STORES

NEW_IN_THE_ENGINE = {"AWS::ApiGateway::RestApi", "AWS::Lambda::Permission"}
"""What the engine replaces, and CloudFormation does not; see `tests.deploy.engine_gaps.NEW_API`."""
NEW_WITH_EACH_BUILD = {"AWS::Lambda::LayerVersion", "AWS::ApiGateway::Deployment"}


def test_an_update_keeps_the_tables_and_the_bucket_and_all_that_is_in_them(stacks: Update) -> None:
    before, after = stacks.contents, stacks.updated_contents

    assert before.stores.keys() == set(STORES)
    assert before.items
    assert before.keys
    assert before.objects
    assert after == before


def test_an_update_replaces_only_what_has_a_version(stacks: Update) -> None:
    before, after = stacks.resources, stacks.updated_resources

    replaced = {name: one.type for name, one in before.items() if name in after and after[name] != one}
    assert set(replaced.values()) <= NEW_WITH_EACH_BUILD | NEW_IN_THE_ENGINE
    assert after["Api"].type == before["Api"].type == "AWS::ApiGateway::RestApi"


def test_an_update_replaces_the_code_of_each_function_and_what_was_stored_before_is_read(
    stacks: Update, account: Account
) -> None:
    payload = (EVENTS / "agents" / "get_agent.json").read_bytes()

    answer = json.loads(account.invoke(f"{STACK}-agents", payload)[0])

    assert answer["statusCode"] == 200
    assert json.loads(answer["body"])["agent_id"] == AGENT


def test_a_key_from_before_the_update_is_accepted_after_it(stacks: Update, account: Account) -> None:
    context = authorize(account, STACK, stacks.key)

    assert context is not None
    assert context["tenant"] == "default"
