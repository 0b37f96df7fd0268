import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import Self

import pytest
from tests.store.conftest import Cloud
from tests.store.response_samples import conversation, message, stored

from stint.domain.errors import Conflict, Interrupted, NotFound, NotMarkedDeleted
from stint.domain.ids import hex_of, item_name, new_id, new_name
from stint.domain.openai.conversations import Conversation, StoredItem
from stint.domain.openai.items import FunctionCall, FunctionCallOutput, Item, ReasoningItem
from stint.domain.openai.parts import SummaryText
from stint.store.conversations import ConversationStore
from stint.store.documents import to_json
from stint.store.store import Store


class ConversationFixture:
    """A stored conversation, and what is done to it."""

    def __init__(self, store: Store, tenant: str, *texts: str) -> None:
        self.store, self.tenant = store, tenant
        self.all: ConversationStore = store.conversations
        self.created: Conversation = conversation(topic="ferries")
        self.first = stored(*texts)
        self.ids = (tenant, self.created.id)

    @classmethod
    async def create(cls, store: Store, tenant: str, *texts: str) -> Self:
        made = cls(store, tenant, *texts)
        await made.all.create(tenant, made.created, made.first)
        return made

    async def add(self, *added: StoredItem) -> list[StoredItem]:
        await self.all.add_items(*self.ids, added)
        return list(added)

    async def history(self, max_bytes: int | None = None) -> list[StoredItem]:
        return (await self.all.history(*self.ids, max_bytes)).items


@pytest.fixture
async def conversation_fixture(cloud: Cloud, tenant: str) -> ConversationFixture:
    return await ConversationFixture.create(cloud.store, tenant, "one", "two")


@pytest.fixture(params=["cloud", "mocked"])
async def any_conversation_fixture(request: pytest.FixtureRequest, tenant: str) -> ConversationFixture:
    """Two implementations of DynamoDB that know nothing of each other."""
    return await ConversationFixture.create(request.getfixturevalue(request.param).store, tenant, "one", "two")


async def test_a_conversation_reads_back_with_its_first_items(any_conversation_fixture: ConversationFixture) -> None:
    assert await any_conversation_fixture.all.get(*any_conversation_fixture.ids) == any_conversation_fixture.created
    assert await any_conversation_fixture.history() == any_conversation_fixture.first


async def test_a_conversation_is_created_in_one_call(cloud: Cloud, tenant: str) -> None:
    cloud.forget()

    await ConversationFixture.create(cloud.store, tenant, "one", "two")

    assert cloud.calls == {"BatchWriteItem": 1}
    assert cloud.units == {"BatchWriteItem": 4}


async def test_the_metadata_of_a_conversation_is_replaced(any_conversation_fixture: ConversationFixture) -> None:
    updated = await any_conversation_fixture.all.update(*any_conversation_fixture.ids, {"mood": "höflich"})

    assert updated.metadata == {"mood": "höflich"}
    assert updated.created_at == any_conversation_fixture.created.created_at
    assert await any_conversation_fixture.all.get(*any_conversation_fixture.ids) == updated
    assert await any_conversation_fixture.history() == any_conversation_fixture.first


async def test_items_of_every_kind_read_back_in_the_order_of_their_ids(
    any_conversation_fixture: ConversationFixture,
) -> None:
    question, step = message("What does it cost?"), new_id()
    made: list[Item] = [
        question,
        ReasoningItem(id=item_name("rs", step, 0), summary=[SummaryText(text="Look it up.")]),
        *(
            FunctionCall(id=item_name("fc", step, place), call_id=f"c{place}", name="look", arguments="{}")
            for place in (2, 3, 11, 102)
        ),
        FunctionCallOutput(id=new_name("fco"), call_id="c2", output="Nine."),
    ]
    added = [StoredItem(item=item, texts=["a file's text"]) for item in made]

    await any_conversation_fixture.add(*added[::-1])

    assert await any_conversation_fixture.history() == any_conversation_fixture.first + added


async def test_items_are_added_for_a_unit_each_and_two_for_the_conversation(
    cloud: Cloud, conversation_fixture: ConversationFixture
) -> None:
    cloud.forget()

    await conversation_fixture.add(*stored(*("Hello",) * 20))

    assert cloud.calls == {"BatchWriteItem": 1, "UpdateItem": 2}
    assert cloud.units == {"BatchWriteItem": 20, "UpdateItem": 2}


async def test_any_number_of_items_is_added(conversation_fixture: ConversationFixture) -> None:
    added = await conversation_fixture.add(*stored(*map(str, range(130))))

    assert await conversation_fixture.history() == conversation_fixture.first + added


async def test_concurrent_additions_lose_nothing_and_keep_their_own_order(
    conversation_fixture: ConversationFixture,
) -> None:
    batches = [stored(*(f"{writer}.{number}" for number in range(30))) for writer in range(8)]

    await asyncio.gather(*(conversation_fixture.add(*batch) for batch in batches))

    found = [one.item.id for one in await conversation_fixture.history()]
    assert len(found) == len(set(found)) == 2 + 8 * 30
    for batch in batches:
        ids = [one.item.id for one in batch]
        assert [one for one in found if one in ids] == ids


@pytest.mark.parametrize("size", [400_000, 2_000_000])
async def test_an_item_may_be_of_any_size(cloud: Cloud, conversation_fixture: ConversationFixture, size: int) -> None:
    [large] = await conversation_fixture.add(*stored(secrets.token_urlsafe(size)))

    assert await conversation_fixture.all.get_item(*conversation_fixture.ids, large.item.id) == large
    assert (await conversation_fixture.history())[-1] == large
    assert len(cloud.blobs(conversation_fixture.tenant)) == 1


async def test_items_are_listed_in_either_order(any_conversation_fixture: ConversationFixture) -> None:
    made = any_conversation_fixture.first + await any_conversation_fixture.add(*stored("three", "four"))

    newest = await any_conversation_fixture.all.list_items(*any_conversation_fixture.ids)
    oldest = await any_conversation_fixture.all.list_items(*any_conversation_fixture.ids, order="asc")

    assert newest.data == made[::-1]
    assert oldest.data == made
    assert not newest.has_more


@pytest.mark.parametrize("oldest_first", [False, True])
async def test_pages_of_items_join_without_gaps(
    any_conversation_fixture: ConversationFixture, oldest_first: bool
) -> None:
    made = any_conversation_fixture.first + await any_conversation_fixture.add(*stored("three", "four", "five"))
    shown: list[StoredItem] = []
    after, more = None, True

    while more:
        page = await any_conversation_fixture.all.list_items(
            *any_conversation_fixture.ids, after=after, limit=2, order="asc" if oldest_first else "desc"
        )
        shown += page.data
        after, more = shown[-1].item.id, page.has_more

    assert shown == (made if oldest_first else made[::-1])


async def test_a_page_of_items_takes_two_calls(cloud: Cloud, conversation_fixture: ConversationFixture) -> None:
    await conversation_fixture.add(*stored(*map(str, range(50))))
    cloud.forget()

    page = await conversation_fixture.all.list_items(
        *conversation_fixture.ids, after=conversation_fixture.first[0].item.id, limit=10, order="asc"
    )

    assert len(page.data) == 10
    assert cloud.calls == {"BatchGetItem": 1, "Query": 1}


async def test_a_list_of_large_items_ends_where_the_answer_is_full(conversation_fixture: ConversationFixture) -> None:
    added = await conversation_fixture.add(*stored(*(secrets.token_hex(900_000) for _ in range(3))))

    page = await conversation_fixture.all.list_items(*conversation_fixture.ids)

    assert page.data == added[:0:-1]
    assert page.has_more


async def test_items_behind_one_that_is_not_there_are_not_found(conversation_fixture: ConversationFixture) -> None:
    for after in (new_name("msg"), "nonsense"):
        with pytest.raises(NotFound, match="Item"):
            await conversation_fixture.all.list_items(*conversation_fixture.ids, after=after)


async def test_one_item_is_read_in_one_call(cloud: Cloud, conversation_fixture: ConversationFixture) -> None:
    cloud.forget()

    found = await conversation_fixture.all.get_item(*conversation_fixture.ids, conversation_fixture.first[1].item.id)

    assert found == conversation_fixture.first[1]
    assert cloud.calls == {"BatchGetItem": 1}


async def test_an_item_is_found_by_its_whole_id(conversation_fixture: ConversationFixture) -> None:
    digits = conversation_fixture.first[0].item.id.removeprefix("msg")

    for call in (conversation_fixture.all.get_item, conversation_fixture.all.delete_item):
        for item_id in (f"fc{digits}", new_name("msg"), "nonsense", ""):
            with pytest.raises(NotFound) as raised:
                await call(*conversation_fixture.ids, item_id)
            assert raised.value.code == "item_not_found"
    assert await conversation_fixture.history() == conversation_fixture.first


async def test_a_deleted_item_is_gone_with_its_blob(
    cloud: Cloud, any_conversation_fixture: ConversationFixture
) -> None:
    [large] = await any_conversation_fixture.add(*stored(secrets.token_urlsafe(400_000)))

    await any_conversation_fixture.all.delete_item(*any_conversation_fixture.ids, large.item.id)

    assert await any_conversation_fixture.history() == any_conversation_fixture.first
    assert cloud.blobs(any_conversation_fixture.tenant) == []
    with pytest.raises(NotFound):
        await any_conversation_fixture.all.delete_item(*any_conversation_fixture.ids, large.item.id)


async def test_a_bounded_history_of_items_is_newest_ones_that_fill_at_least_half_of_the_limit(
    any_conversation_fixture: ConversationFixture,
) -> None:
    made = any_conversation_fixture.first + await any_conversation_fixture.add(
        *stored(*(f"{number}" * 500 for number in range(6)))
    )
    sizes = [len(to_json(one)) for one in made]

    async def shown(max_bytes: int) -> tuple[list[StoredItem], bool]:
        history = await any_conversation_fixture.all.history(*any_conversation_fixture.ids, max_bytes)
        return history.items, history.complete

    assert await shown(sum(sizes)) == (made, True)
    for limit in (sum(sizes) - 1, sum(sizes[-4:]), sum(sizes[-2:])):
        items, complete = await shown(limit)
        assert items == made[-len(items) :]
        assert not complete
        assert limit / 2 <= sum(sizes[-len(items) :]) <= limit
    assert await shown(0) == (made[-1:], False)


async def test_a_history_is_read_in_one_call_and_reads_no_blob_that_it_leaves_out(
    cloud: Cloud, conversation_fixture: ConversationFixture
) -> None:
    await conversation_fixture.add(*stored(secrets.token_urlsafe(400_000)), *stored("three", "four"))
    cloud.forget()

    history = await conversation_fixture.all.history(*conversation_fixture.ids, 10_000)

    assert (len(history.items), history.complete) == (2, False)
    assert cloud.calls == {"Query": 1}


async def test_the_history_of_an_empty_conversation_is_empty(cloud: Cloud, tenant: str) -> None:
    conversation_fixture = await ConversationFixture.create(cloud.store, tenant)

    history = await conversation_fixture.all.history(*conversation_fixture.ids)

    assert (history.items, history.complete) == ([], True)


async def test_conversations_are_listed_newest_or_oldest_first(any_conversation_fixture: ConversationFixture) -> None:
    made = [
        any_conversation_fixture.created,
        *[
            (
                await ConversationFixture.create(any_conversation_fixture.store, any_conversation_fixture.tenant, "x")
            ).created
            for _ in range(11)
        ],
    ]

    newest = await any_conversation_fixture.all.list(any_conversation_fixture.tenant)
    first = await any_conversation_fixture.all.list(any_conversation_fixture.tenant, limit=7, order="asc")
    rest = await any_conversation_fixture.all.list(
        any_conversation_fixture.tenant, after=first.data[-1].id, limit=7, order="asc"
    )

    assert newest.data == made[::-1]
    assert first.data + rest.data == made
    assert (newest.has_more, first.has_more, rest.has_more) == (False, True, False)


async def test_conversations_behind_one_that_is_not_there_are_not_found(
    conversation_fixture: ConversationFixture,
) -> None:
    for after in (new_name("conv"), "nonsense"):
        with pytest.raises(NotFound, match="Conversation"):
            await conversation_fixture.all.list(conversation_fixture.tenant, after=after)


async def delete(conversation_fixture: ConversationFixture, deadline: float = float("inf")) -> bool:
    """Delete a conversation as a request does: marked first."""
    await conversation_fixture.all.mark_deleted(*conversation_fixture.ids)
    return await conversation_fixture.all.delete(*conversation_fixture.ids, deadline)


async def test_an_item_is_deleted_although_the_first_answer_is_lost(own_cloud: Cloud, tenant: str) -> None:
    made = await ConversationFixture.create(own_cloud.store, tenant, "one", "two")
    own_cloud.proxy.lose_first_answer("DeleteItem")

    await made.all.delete_item(*made.ids, made.first[0].item.id)

    assert await made.history() == made.first[1:]


async def test_a_conversation_that_is_not_marked_is_not_deleted(conversation_fixture: ConversationFixture) -> None:
    with pytest.raises(NotMarkedDeleted, match=f"Conversation '{conversation_fixture.created.id}' is not marked"):
        await conversation_fixture.all.delete(*conversation_fixture.ids)

    assert await conversation_fixture.history() == conversation_fixture.first


def missing(conversation_id: str) -> list[Callable[[ConversationFixture], Awaitable[object]]]:
    """All that can be asked of a conversation."""
    [one] = stored("x")
    return [
        lambda conversation_fixture: conversation_fixture.all.get(conversation_fixture.tenant, conversation_id),
        lambda conversation_fixture: conversation_fixture.all.update(conversation_fixture.tenant, conversation_id, {}),
        lambda conversation_fixture: conversation_fixture.all.mark_deleted(
            conversation_fixture.tenant, conversation_id
        ),
        lambda conversation_fixture: conversation_fixture.all.add_items(
            conversation_fixture.tenant, conversation_id, [one]
        ),
        lambda conversation_fixture: conversation_fixture.all.list_items(conversation_fixture.tenant, conversation_id),
        lambda conversation_fixture: conversation_fixture.all.get_item(
            conversation_fixture.tenant, conversation_id, one.item.id
        ),
        lambda conversation_fixture: conversation_fixture.all.delete_item(
            conversation_fixture.tenant, conversation_id, one.item.id
        ),
        lambda conversation_fixture: conversation_fixture.all.history(conversation_fixture.tenant, conversation_id),
        lambda conversation_fixture: conversation_fixture.store.conversation_leases.acquire(
            conversation_fixture.tenant, conversation_id, "resp_1", 30
        ),
    ]


@pytest.mark.parametrize("conversation_id", [f"conv_{hex_of('01990000-0000-7000-8000-000000000000')}", "nonsense", ""])
async def test_a_conversation_that_is_not_there_is_not_found(
    conversation_fixture: ConversationFixture, conversation_id: str
) -> None:
    for call in missing(conversation_id):
        with pytest.raises(NotFound) as raised:
            await call(conversation_fixture)
        assert raised.value.code == "conversation_not_found"


async def test_a_deleted_conversation_leaves_nothing_and_is_not_found(
    cloud: Cloud, conversation_fixture: ConversationFixture
) -> None:
    other = await ConversationFixture.create(conversation_fixture.store, conversation_fixture.tenant, "other")
    await conversation_fixture.add(*stored(*map(str, range(60))), *stored(secrets.token_urlsafe(400_000)))

    done = await delete(conversation_fixture)

    assert done
    assert not any(
        conversation_fixture.created.id in item["pk"]["S"] + item["sk"]["S"]
        for item in cloud.items(conversation_fixture.tenant)
    )
    assert cloud.blobs(conversation_fixture.tenant) == []
    for call in missing(conversation_fixture.created.id):
        with pytest.raises(NotFound) as raised:
            await call(conversation_fixture)
        assert raised.value.code == "conversation_not_found"
    assert await other.history() == other.first
    assert (await conversation_fixture.all.list(conversation_fixture.tenant)).data == [other.created]


async def test_what_is_added_to_a_deleted_conversation_is_taken_back(
    cloud: Cloud, conversation_fixture: ConversationFixture
) -> None:
    await delete(conversation_fixture)

    with pytest.raises(NotFound):
        await conversation_fixture.add(*stored("late", secrets.token_urlsafe(400_000)))

    assert cloud.items(conversation_fixture.tenant) == []
    assert cloud.blobs(conversation_fixture.tenant) == []


async def test_additions_while_a_conversation_is_deleted_leave_nothing(cloud: Cloud, tenant: str) -> None:
    for _ in range(5):
        conversation_fixture = await ConversationFixture.create(cloud.store, tenant)
        begun = asyncio.Event()
        writer = asyncio.create_task(add_until_refused(conversation_fixture, begun))
        await begun.wait()

        await delete(conversation_fixture)
        await writer

        assert cloud.items(tenant) == []


async def add_until_refused(conversation_fixture: ConversationFixture, begun: asyncio.Event) -> None:
    try:
        for number in range(500):
            await conversation_fixture.add(*stored("a", "b"))
            if number == 3:
                begun.set()
    except NotFound:
        return


async def test_the_deletion_of_a_conversation_stops_at_its_deadline_and_goes_on_later(
    cloud: Cloud, conversation_fixture: ConversationFixture
) -> None:
    done = await delete(conversation_fixture, deadline=0)

    assert not done
    with pytest.raises(NotFound):
        await conversation_fixture.all.get(*conversation_fixture.ids)
    assert await conversation_fixture.all.delete(*conversation_fixture.ids)
    assert cloud.items(conversation_fixture.tenant) == []


async def test_a_conversation_is_locked_by_one_response(conversation_fixture: ConversationFixture) -> None:
    lock = await conversation_fixture.store.conversation_leases.acquire(*conversation_fixture.ids, "resp_1", 30)

    with pytest.raises(Conflict, match=f"Conversation {conversation_fixture.created.id} is running resp_1") as raised:
        await conversation_fixture.store.conversation_leases.acquire(*conversation_fixture.ids, "resp_2", 30)

    assert raised.value.code == "conversation_locked"
    await lock.release()
    assert (
        await conversation_fixture.store.conversation_leases.acquire(*conversation_fixture.ids, "resp_2", 30)
    ).taken_over is None


async def test_whoever_holds_a_deleted_conversation_loses_it(conversation_fixture: ConversationFixture) -> None:
    lock = await conversation_fixture.store.conversation_leases.acquire(*conversation_fixture.ids, "resp_1", 30)

    await delete(conversation_fixture)

    with pytest.raises(Interrupted, match="was deleted"):
        await lock.renew(30)
    await lock.release()
    with pytest.raises(NotFound):
        await conversation_fixture.all.get(*conversation_fixture.ids)
