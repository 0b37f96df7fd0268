"""The version of a conversation's items, and the changes that its record announces."""

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud
from tests.store.response_samples import message

from stint.domain.errors import NotFound, StoreUnavailable
from stint.domain.ids import new_name
from stint.domain.openai.conversations import Conversation, StoredItem
from stint.store.failures import ConditionFailed
from stint.store.item_changes import CHANGE_SECONDS, announce_change, version_of
from stint.store.items import Item
from stint.store.keys import conversation

ID = new_name("conv")


@pytest.fixture
async def made(cloud: Cloud, tenant: str) -> str:
    await cloud.store.conversations.create(tenant, Conversation(id=ID, created_at=1, metadata={}))
    return tenant


async def record(cloud: Cloud, tenant: str) -> Item:
    found = await cloud.table.get(conversation(tenant, ID))
    assert found is not None
    return found


async def version(cloud: Cloud, tenant: str) -> str | None:
    return version_of(await record(cloud, tenant))


async def test_a_new_conversation_has_an_empty_version(cloud: Cloud, made: str) -> None:
    assert await version(cloud, made) == ""


async def test_there_is_no_version_until_each_announced_change_is_complete(cloud: Cloud, made: str) -> None:
    one = await announce_change(cloud.table, made, ID)
    other = await announce_change(cloud.table, made, ID)
    assert await version(cloud, made) is None

    await other.complete()
    assert await version(cloud, made) is None

    await one.complete()
    assert await version(cloud, made) not in (None, "")


async def test_each_change_brings_a_version_of_its_own(cloud: Cloud, made: str) -> None:
    found = {await version(cloud, made)}
    for _ in range(3):
        await (await announce_change(cloud.table, made, ID)).complete()
        found.add(await version(cloud, made))
    added = StoredItem(item=message("one"))
    await cloud.store.conversations.add_items(made, ID, [added])
    found.add(await version(cloud, made))
    await cloud.store.conversations.delete_item(made, ID, added.item.id)
    found.add(await version(cloud, made))

    assert len(found - {None}) == 6


async def test_a_change_that_is_never_completed_changes_the_version_when_it_ends(cloud: Cloud, made: str) -> None:
    await announce_change(cloud.table, made, ID)
    CLOCK.move(CHANGE_SECONDS + 1)
    left = await version(cloud, made)
    assert left not in (None, "")

    await (await announce_change(cloud.table, made, ID)).complete()

    assert await version(cloud, made) not in (None, "", left)
    assert not [name for name in await record(cloud, made) if name.startswith("change_")]


async def test_an_addition_that_fails_stays_announced(own_cloud: Cloud, tenant: str) -> None:
    conversations = own_cloud.store.conversations
    await conversations.create(tenant, Conversation(id=ID, created_at=1, metadata={}))

    with own_cloud.proxy.failing("BatchWriteItem", times=20), pytest.raises(StoreUnavailable):
        await conversations.add_items(tenant, ID, [StoredItem(item=message("one"))])

    assert await version(own_cloud, tenant) is None


async def test_a_change_whose_answers_are_lost_has_its_effect_once(own_cloud: Cloud, tenant: str) -> None:
    await own_cloud.store.conversations.create(tenant, Conversation(id=ID, created_at=1, metadata={}))
    own_cloud.proxy.lose_first_answer("UpdateItem")
    change = await announce_change(own_cloud.table, tenant, ID)
    assert await version(own_cloud, tenant) is None

    own_cloud.proxy.lose_first_answer("UpdateItem")
    await change.complete()

    assert await version(own_cloud, tenant) not in (None, "")


async def test_a_deleted_conversation_takes_no_change(cloud: Cloud, made: str) -> None:
    change = await announce_change(cloud.table, made, ID)
    await cloud.store.conversations.mark_deleted(made, ID)

    with pytest.raises(NotFound):
        await announce_change(cloud.table, made, ID)
    with pytest.raises(ConditionFailed):
        await change.complete()


async def test_a_completion_that_arrives_twice_does_not_bring_an_earlier_version_back(cloud: Cloud, made: str) -> None:
    first = await announce_change(cloud.table, made, ID)
    await first.complete()
    seen = await version(cloud, made)
    await (await announce_change(cloud.table, made, ID)).complete()

    await first.complete()

    assert await version(cloud, made) != seen


async def test_any_number_of_changes_may_be_left_by_writers_that_died(cloud: Cloud, made: str) -> None:
    for _ in range(250):
        await announce_change(cloud.table, made, ID)
    CLOCK.move(CHANGE_SECONDS + 1)

    for number in range(8):
        await cloud.store.conversations.add_items(made, ID, [StoredItem(item=message(f"{number}"))])

    assert not [name for name in await record(cloud, made) if name.startswith("change_")]
