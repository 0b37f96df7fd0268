"""Conversations that are not read because their version has not changed, against late answers and late writes."""

import asyncio
from typing import Any

import pytest
from tests.script_model import said
from tests.services.conftest import MakeWorkerFixture
from tests.services.responses.test_remembered_conversations import Process, contexts_of, user

from stint.store.conversations import ConversationStore
from stint.store.item_changes import ItemChange
from stint.store.items import Item


@pytest.fixture
def warm(make_worker_fixture: MakeWorkerFixture) -> Process:
    return Process(make_worker_fixture, *(said(f"re {number}") for number in range(60)))


async def ids_of(process: Process, conversation: str) -> list[str]:
    return [item.id for item in (await process.conversations.list_items(conversation, None, 100, "asc")).data]


async def test_an_item_that_is_deleted_before_its_addition_is_answered_is_not_sent(
    warm: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation, complete = await warm.conversation(), ItemChange.complete
    await warm.talk(conversation, "one")
    written, answered = asyncio.Event(), asyncio.Event()

    async def complete_slowly(change: ItemChange) -> Item:
        record = await complete(change)
        written.set()
        await answered.wait()
        return record

    with monkeypatch.context() as patch:
        patch.setattr(ItemChange, "complete", complete_slowly)
        adding = asyncio.create_task(warm.add(conversation, user("secret")))
        await written.wait()
    await warm.other().conversations.delete_item(conversation, (await ids_of(warm, conversation))[-1])
    run = await warm.start("two", conversation=conversation)
    answered.set()
    await adding
    await warm.play(run)

    await warm.talk(conversation, "three")

    assert warm.heard == ["one", "re 0", "two", "re 1", "three"]


async def test_items_are_read_after_the_completion_of_an_earlier_change_arrives_twice(
    warm: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client has repeated the completion, and its first attempt arrives late."""
    conversation, other, complete = await warm.conversation(), warm.other(), ItemChange.complete
    changes: list[ItemChange] = []

    async def complete_noted(change: ItemChange) -> Item:
        changes.append(change)
        return await complete(change)

    monkeypatch.setattr(ItemChange, "complete", complete_noted)
    await other.add(conversation, user("first"))
    await warm.talk(conversation, "one")
    await other.add(conversation, user("second"))
    await complete(changes[0])

    await warm.talk(conversation, "two")

    assert warm.heard == ["first", "one", "re 0", "second", "two"]


async def test_a_slow_reader_that_adds_items_of_another_response_brings_no_deleted_one_back(
    warm: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation, other = await warm.conversation(), warm.other(said("dead"))
    await warm.talk(conversation, "one")
    run = await other.start("secret", conversation=conversation)
    with warm.cloud.proxy.failing("BatchWriteItem"):
        await other.play(run)
    put_items, written, answered = ConversationStore.put_items, asyncio.Event(), asyncio.Event()

    async def put_slowly(store: ConversationStore, *arguments: Any) -> None:
        await put_items(store, *arguments)
        written.set()
        await answered.wait()

    with monkeypatch.context() as patch:
        patch.setattr(ConversationStore, "put_items", put_slowly)
        reading = asyncio.create_task(ids_of(warm, conversation))
        await written.wait()
    for item in (await ids_of(other, conversation))[2:]:
        await other.conversations.delete_item(conversation, item)
    run = await warm.start("two", conversation=conversation)
    answered.set()
    await reading
    await warm.play(run)

    await warm.talk(conversation, "three")

    assert warm.heard == ["one", "re 0", "two", "re 1", "three"]


async def test_a_response_that_lost_its_lease_brings_no_deleted_item_back(warm: Process) -> None:
    """Another response of the same process has the conversation by now, and has listed the items."""
    conversation, other = await warm.conversation(), warm.other()
    await warm.talk(conversation, "one")
    [added] = await other.add(conversation, user("secret"))
    records = await warm.cloud.store.conversations.history(warm.tenant, conversation)
    await other.conversations.delete_item(conversation, added)
    run = await warm.start("two", conversation=conversation)
    warm.links.note_response(warm.tenant, conversation, records.records[-1:], "lost lease")
    await warm.play(run)

    await warm.talk(conversation, "three")

    assert warm.heard == ["one", "re 0", "two", "re 1", "three"]


async def test_a_conversation_that_is_cut_has_no_version(warm: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may keep items of it before this one drops it."""
    conversation, known = await warm.conversation(), []
    await warm.talk(conversation, "x" * 3_000, "y" * 3_000)
    put = warm.links.put_conversation

    def put_noted(tenant: str, conversation_id: str, found: Any) -> None:
        known.append(found)
        put(tenant, conversation_id, found)

    warm.links.forget(warm.tenant, conversation)
    monkeypatch.setattr(warm.links, "put_conversation", put_noted)
    contexts = contexts_of(warm, warm.links, 4_000)
    loop = asyncio.get_running_loop()
    context = await contexts.from_conversation(conversation, "resp_cut", loop.time() + 30, shortens=True)
    assert context.keeper is not None
    await context.keeper.release()

    assert [each.version for each in known] == [None]


async def test_an_earlier_state_that_another_thread_puts_back_hides_no_items(warm: Process) -> None:
    """It has read the state to change it, before a response has read the conversation."""
    conversation, other = await warm.conversation(), warm.other(said("elsewhere"))
    await warm.talk(conversation, "one")
    earlier = warm.known(conversation)
    await other.talk(conversation, "two")
    run = await warm.start("three", conversation=conversation)
    warm.links.put_conversation(warm.tenant, conversation, earlier)
    await warm.play(run)

    await warm.talk(conversation, "four")

    assert warm.heard == ["one", "re 0", "two", "elsewhere", "three", "re 1", "four"]
