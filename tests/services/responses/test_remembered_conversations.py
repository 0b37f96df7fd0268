"""Conversations that a warm process remembers, which other processes add to and delete from."""

import asyncio
import base64
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import Part, called, said, script, words_of
from tests.services.conftest import MakeWorkerFixture
from tests.services.responses.responder import Responder
from tests.services.worker_fixture import FUNCTION, MCP_TOOL, WorkerFixture
from tests.store.conftest import Cloud
from tests.store.response_samples import message

from stint.dataclasses import replace
from stint.domain.errors import Conflict, NotFound
from stint.domain.inference import ReasoningChunk, ToolResult
from stint.domain.openai.conversations import CreateItems, StoredItem
from stint.models.port import ChatModel
from stint.services.conversations.conversations import Conversations
from stint.services.responses.context import Contexts
from stint.services.responses.conversation_reader import MOST_FETCHED, ConversationReader
from stint.services.responses.link_cache import MOST_LATER, CachedConversation, LinkCache
from stint.services.responses.links import Context
from stint.store.conversations import ConversationStore, ItemKeys
from stint.store.item_changes import CHANGE_SECONDS, announce_change
from stint.store.keys import Key
from stint.store.lease import Leases
from stint.store.table import LIVE, Table

KNOWN = {"UpdateItem": 2, "BatchWriteItem": 2, "PutItem": 1, "GetItem": 2}
"""The calls of a response in a conversation whose items are known to be those that the process remembers."""

LISTED = KNOWN | {"Query": 1}
"""The calls of one whose items are listed, or read."""


class Process(Responder):
    """A process with a model that gives these answers."""

    def __init__(self, make: Callable[[ChatModel], WorkerFixture], *answers: list[Part]) -> None:
        self.model = script(*answers)
        super().__init__(make(self.model))
        self.links, self.tenant = self.worker_fixture.links, self.worker_fixture.tenant

    @property
    def heard(self) -> list[str]:
        """Return the texts of the model's last request."""
        return [words_of(each) for each in self.model.requests[-1].messages]

    @property
    def conversations(self) -> Conversations:
        return self.worker_fixture.services.conversations

    def other(self, *answers: list[Part]) -> "Process":
        """Return another process."""
        return Process(self.worker_fixture.other_process, *answers)

    async def talk(self, conversation: str, *texts: str) -> None:
        """Create responses in a conversation."""
        for text in texts:
            await self.respond(text, conversation=conversation)

    async def add(self, conversation: str, *items: dict[str, Any]) -> list[str]:
        """Add items like the route, and return their ids."""
        body = CreateItems.model_validate({"items": list(items)})
        return [item.id for item in (await self.conversations.add_items(conversation, body.items)).data]

    def remembered(self, conversation: str) -> CachedConversation | None:
        return self.links.get_conversation(self.tenant, conversation)

    def known(self, conversation: str) -> CachedConversation:
        found = self.remembered(conversation)
        assert found is not None
        return found


@pytest.fixture
def warm(make_worker_fixture: MakeWorkerFixture) -> Process:
    return Process(make_worker_fixture, *(said(f"re {number}") for number in range(60)))


@pytest.fixture
def early(make_worker_fixture: MakeWorkerFixture) -> Process:
    """Return a process beside which an earlier release may write, so it lists the items of each conversation."""
    make = partial(make_worker_fixture, key_layout="compatible")
    return Process(make, *(said(f"re {number}") for number in range(60)))


def contexts_of(responder: Responder, links: LinkCache | None = None, history_bytes: int = 1_000_000) -> Contexts:
    """Return the contexts of a process with this memory, or a new one."""
    fixture = responder.worker_fixture
    recovery, cache = fixture.services.background.recovery, LinkCache() if links is None else links
    return Contexts(fixture.tenant, fixture.store, recovery, recovery.opaque, 30, history_bytes, cache)


async def read(responder: Responder, conversation: str, links: LinkCache | None = None, **limits: int) -> Context:
    return await contexts_of(responder, links, **limits).peek(conversation, shortens=True)


def state(context: Context) -> dict[str, object]:
    """Return all that a context of a conversation is made of."""
    reader, transcript = context.reader, context.reader.transcript
    return {
        "messages": transcript.messages,
        "open": transcript.open,
        "call ids": transcript.call_ids,
        "answered": transcript.answered,
        "own": (transcript.own, transcript.compacted),
        "known": context.known,
        "function calls": context.function_calls,
        "excused": context.excused,
        "sources": context.sources,
        "containers": context.containers,
        "size": context.size,
        "opaque": reader.opaque.left,
        "approvals": (reader.lenient, reader.approved, reader.later),
    }


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


CALL = {"type": "function_call", "call_id": "c0", "name": "ask_user", "arguments": "{}"}


def model_says(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text}


async def test_a_response_after_the_process_s_own_reads_no_items(warm: Process) -> None:
    conversation = await warm.conversation()
    await warm.add(conversation, *(user(f"x{number}" * 100) for number in range(20)))
    await warm.talk(conversation, "one", "two")
    for text in ("three", "four"):
        warm.cloud.forget()
        await warm.respond(text, conversation=conversation)
        assert warm.cloud.calls == KNOWN

    assert warm.heard[-5:] == ["two", "re 1", "three", "re 2", "four"]


async def test_items_that_are_being_added_are_looked_for_until_they_are_all_there(warm: Process) -> None:
    conversation = await warm.conversation()
    await warm.talk(conversation, "one", "two")
    store = warm.cloud.store.conversations
    first, second = (StoredItem(item=message(text)) for text in ("first", "second"))

    change = await announce_change(warm.cloud.table, warm.tenant, conversation)
    await warm.cloud.table.put_many(await store.pack_items(warm.tenant, conversation, [first], None))
    await warm.talk(conversation, "three")
    assert warm.heard[-2:] == ["first", "three"]

    await warm.cloud.table.put_many(await store.pack_items(warm.tenant, conversation, [second], None))
    await change.complete()
    warm.cloud.forget()
    await warm.talk(conversation, "four")
    assert "second" in warm.heard
    assert warm.cloud.calls == LISTED | {"BatchGetItem": 1}

    warm.cloud.forget()
    await warm.talk(conversation, "five")
    assert warm.cloud.calls == KNOWN


async def test_items_of_a_writer_that_died_are_looked_for_also_when_its_change_has_ended(warm: Process) -> None:
    conversation = await warm.conversation()
    await warm.talk(conversation, "one", "two")
    await announce_change(warm.cloud.table, warm.tenant, conversation)
    lost = StoredItem(item=message("from the dead"))
    packed = await warm.cloud.store.conversations.pack_items(warm.tenant, conversation, [lost], None)
    await warm.cloud.table.put_many(packed)

    CLOCK.move(CHANGE_SECONDS + 1)
    await warm.talk(conversation, "three")

    assert "from the dead" in warm.heard
    warm.cloud.forget()
    await warm.talk(conversation, "four")
    assert warm.cloud.calls == KNOWN


async def test_items_that_a_caller_adds_after_the_lease_was_acquired_are_read_by_the_next_response(
    warm: Process,
) -> None:
    conversation, other = await warm.conversation(), warm.other()
    await warm.talk(conversation, "one")
    run = await warm.start("two", conversation=conversation)
    await other.add(conversation, user("meanwhile"))
    await warm.play(run)

    await warm.talk(conversation, "three")

    assert sorted(warm.heard) == sorted(["one", "re 0", "meanwhile", "two", "re 1", "three"])


async def test_a_reader_without_the_lease_does_not_hide_the_items_of_a_response_that_ends(warm: Process) -> None:
    """It has listed the items before, and remembers them after the response has added its own."""
    conversation = await warm.conversation()
    await warm.talk(conversation, "one")
    run = await warm.start("two", conversation=conversation)
    await read(warm, conversation, warm.links)
    late = warm.known(conversation)
    await warm.play(run)
    warm.links.put_conversation(warm.tenant, conversation, late)

    await warm.talk(conversation, "three")

    assert warm.heard == ["one", "re 0", "two", "re 1", "three"]


async def test_a_large_item_of_a_response_is_looked_for(warm: Process) -> None:
    """Its record is not kept, so the items that are known are not all."""
    conversation = await warm.conversation()
    await warm.talk(conversation, "one", "x" * 500_000)

    await warm.talk(conversation, "three")

    assert [len(each) for each in warm.heard] == [3, 4, 500_000, 4, 5]


async def test_a_conversation_that_is_listed_costs_the_calls_and_units_of_one_that_is_read(early: Process) -> None:
    conversation = await early.conversation()
    await early.add(conversation, *(user(f"x{number}" * 100) for number in range(20)))
    await early.talk(conversation, "one", "two")
    units = []
    for text in ("three", "four"):
        early.cloud.forget()
        await early.respond(text, conversation=conversation)
        units.append(dict(early.cloud.units))
        assert early.cloud.calls == LISTED

    cold = early.other(said("cold"), said("cold"))
    await cold.respond(store=False)
    early.cloud.forget()
    await cold.respond("five", conversation=conversation)

    assert early.cloud.calls == LISTED
    assert units == [dict(early.cloud.units)] * 2


async def test_a_conversation_is_remembered_by_the_keys_of_its_items(warm: Process) -> None:
    conversation = await warm.conversation()
    await warm.talk(conversation, "a plum", "a pear")
    known = warm.known(conversation)

    listed = await warm.cloud.store.conversations.list_keys(warm.tenant, conversation)

    assert listed.keys == (*known.keys, *known.later)
    assert len(known.keys) == 2  # those of the response before the last one
    assert len(known.later) == 2


async def test_the_messages_of_earlier_responses_are_the_same_objects(warm: Process) -> None:
    conversation = await warm.conversation()
    await warm.talk(conversation, "one", "two", "three")
    first = (await read(warm, conversation, warm.links)).reader.transcript.messages

    second = (await read(warm, conversation, warm.links)).reader.transcript.messages

    assert [id(each) for each in first] == [id(each) for each in second]
    assert first is not second


async def test_a_process_lists_the_items_in_the_round_trip_that_takes_the_lease(early: Process) -> None:
    conversation = await early.conversation()
    await early.talk(conversation, "one", "two")

    with early.cloud.proxy.held_in_rounds(["GetItem", "UpdateItem", "Query"], ["BatchWriteItem"]):
        run = await early.start("three", conversation=conversation)

    await early.play(run)


async def test_a_process_that_another_one_followed_lists_the_items_under_its_lease(early: Process) -> None:
    conversation = await early.conversation()
    other = early.other(*(said("elsewhere") for _ in range(9)))
    for number, queries in enumerate((2, 1, 1)):
        await early.talk(conversation, "here")
        await other.talk(conversation, "there")
        early.cloud.forget()
        await early.talk(conversation, "again")
        assert early.cloud.calls == LISTED | {"Query": queries, "BatchGetItem": 1}, number
        await other.talk(conversation, "there")

    assert early.heard[-4:] == ["re 4", "there", "elsewhere", "again"]


async def test_a_process_that_has_the_conversation_for_itself_again_lists_early_again(early: Process) -> None:
    conversation = await early.conversation()
    await early.talk(conversation, "one")
    await early.other(said("elsewhere")).talk(conversation, "two")
    await early.talk(conversation, "three", "four")

    with early.cloud.proxy.held_in_rounds(["GetItem", "UpdateItem", "Query"], ["BatchWriteItem"]):
        run = await early.start("five", conversation=conversation)

    await early.play(run)
    assert early.heard == ["one", "re 0", "two", "elsewhere", "three", "re 1", "four", "re 2", "five"]


@pytest.mark.parametrize("earlier_release", [False, True])
async def test_items_of_a_response_that_ends_between_the_list_and_the_lease_are_read(
    early: Process, monkeypatch: pytest.MonkeyPatch, earlier_release: bool
) -> None:
    """The list is as it was before that response, and the lease is free again when it is acquired."""
    conversation, other = await early.conversation(), early.other(said("elsewhere"))
    await early.talk(conversation, "one")
    acquire = Contexts.acquire_lease

    async def acquire_late(contexts: Contexts, *args: Any, **options: Any) -> Any:
        await reader.wait()
        monkeypatch.setattr(Contexts, "acquire_lease", acquire)
        with monkeypatch.context() as patch:
            if earlier_release:
                patch.setattr(early.cloud.store.conversation_leases, "_leases", earlier_leases(early.cloud.table))
            await other.talk(conversation, "two")
        return await acquire(contexts, *args, **options)

    reader = ListedFirst(monkeypatch)
    monkeypatch.setattr(Contexts, "acquire_lease", acquire_late)
    await early.talk(conversation, "three")

    assert reader.listed == 2
    assert early.heard == ["one", "re 0", "two", "elsewhere", "three"]


class ListedFirst:
    """Counts the lists of conversations, and waits for the first one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done, self.listed, list_keys = asyncio.Event(), 0, ConversationStore.list_keys

        async def note(store: ConversationStore, *args: Any, **options: Any) -> ItemKeys:
            found = await list_keys(store, *args, **options)
            self.listed += 1
            self.done.set()
            return found

        monkeypatch.setattr(ConversationStore, "list_keys", note)

    async def wait(self) -> None:
        await self.done.wait()


def earlier_leases(table: Table) -> Leases:
    """Return the leases of conversations as the release before had them."""
    names = ("lock_id", "lock_holder", "lock_until", "lock_seconds")
    released, busy = dict.fromkeys(names), "conversation_locked"
    return Leases(table, "lock_id", "lock_until", LIVE, released=released, busy=busy, holder_name="lock_holder")


async def test_a_response_whose_own_process_still_ends_the_one_before_reads_its_items(warm: Process) -> None:
    conversation = await warm.conversation()
    await warm.talk(conversation, "one")
    run = await warm.start("two", conversation=conversation)

    assert warm.known(conversation).last_lease is not None  # that of the first response
    await warm.play(run)
    await warm.talk(conversation, "three")

    assert warm.heard == ["one", "re 0", "two", "re 1", "three"]


async def test_a_conversation_in_use_is_not_listed_by_each_attempt(early: Process) -> None:
    conversation = await early.conversation()
    await early.talk(conversation, "one")
    other = early.other(said("elsewhere"))
    run = await other.start("two", conversation=conversation)
    for most in (1, 0, 0):  # the first attempt may be refused before its list is requested
        early.cloud.forget()
        with pytest.raises(Conflict):
            await early.start("three", conversation=conversation)
        assert early.cloud.calls["Query"] <= most

    await other.play(run)
    await early.talk(conversation, "three")
    assert early.heard == ["one", "re 0", "two", "elsewhere", "three"]


async def test_a_list_that_fails_beside_the_lease_is_made_again(own_cloud: Cloud, tenant: str) -> None:
    process = Process(lambda model: WorkerFixture(own_cloud, tenant, model), *(said(f"re {n}") for n in range(3)))
    conversation = await process.conversation()
    await process.talk(conversation, "one")

    with own_cloud.proxy.failing("Query", times=1):
        await process.talk(conversation, "two")

    assert process.heard == ["one", "re 0", "two"]


async def test_a_request_that_is_cancelled_while_the_items_are_listed_releases_its_lease(
    early: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = await early.conversation()
    await early.talk(conversation, "one", "two")
    list_keys, acquired = ConversationStore.list_keys, asyncio.Event()

    async def wait(*_: Any, **__: Any) -> ItemKeys:
        await asyncio.Event().wait()
        raise AssertionError

    def note_acquired(reader: ConversationReader, *arguments: Any) -> None:
        acquired.set()

    monkeypatch.setattr(ConversationStore, "list_keys", wait)
    monkeypatch.setattr(ConversationReader, "note_acquired", note_acquired)
    asking = asyncio.create_task(early.talk(conversation, "three"))
    await acquired.wait()
    asking.cancel()
    await asyncio.wait([asking])
    monkeypatch.setattr(ConversationStore, "list_keys", list_keys)

    await early.talk(conversation, "four")

    assert "three" not in early.heard


async def test_items_that_another_process_adds_are_fetched_alone(warm: Process) -> None:
    conversation = await warm.conversation()
    await warm.talk(conversation, "one", "two")
    await warm.other().add(conversation, user("by another"), model_says("indeed"))
    warm.cloud.forget()

    await warm.respond("three", conversation=conversation)

    assert warm.heard == ["one", "re 0", "two", "re 1", "by another", "indeed", "three"]
    assert warm.cloud.calls == LISTED | {"BatchGetItem": 1}


async def test_a_response_of_another_process_is_seen(warm: Process) -> None:
    conversation, other = await warm.conversation(), warm.other(said("elsewhere"), said("again"))
    await warm.talk(conversation, "one")
    await other.talk(conversation, "two")
    await warm.talk(conversation, "three")
    await other.talk(conversation, "four")

    assert warm.heard == ["one", "re 0", "two", "elsewhere", "three"]
    assert other.heard == ["one", "re 0", "two", "elsewhere", "three", "re 1", "four"]


async def test_items_that_the_process_itself_adds_are_not_fetched(warm: Process) -> None:
    conversation = await warm.conversation()
    await warm.talk(conversation, "one", "two")
    await warm.add(conversation, user("by a client"))
    warm.cloud.forget()

    await warm.respond("three", conversation=conversation)

    assert warm.heard[-2:] == ["by a client", "three"]
    assert warm.cloud.calls == LISTED


@pytest.mark.parametrize("place", [0, 1, 3, 5])
async def test_an_item_that_another_process_deletes_is_not_sent(warm: Process, place: int) -> None:
    conversation = await warm.conversation()
    await warm.talk(conversation, "one", "two", "three")
    listed = await warm.conversations.list_items(conversation, None, 100, "asc")
    texts = ["one", "re 0", "two", "re 1", "three", "re 2", "four"]
    texts.pop(place)

    await warm.other().conversations.delete_item(conversation, listed.data[place].id)
    await warm.respond("four", conversation=conversation)

    assert warm.heard == texts


async def test_writers_that_know_of_no_cache_are_seen(early: Process) -> None:
    """Earlier releases write and delete the records of items, and no others."""
    conversation = await early.conversation()
    late = StoredItem(item=message("written first, arrived last"))  # its id is before those of all others
    await early.talk(conversation, "one", "two")
    [record] = await early.cloud.store.conversations.pack_items(early.tenant, conversation, [late], None)

    await early.cloud.table.put(record)
    await early.talk(conversation, "three")
    assert early.heard == ["written first, arrived last", "one", "re 0", "two", "re 1", "three"]

    await early.cloud.table.delete(Key(record["pk"], early.known(conversation).keys[3]))
    await early.talk(conversation, "four")
    assert early.heard == ["written first, arrived last", "one", "re 0", "re 1", "three", "re 2", "four"]


@pytest.mark.parametrize("settled", [False, True])
async def test_a_process_that_missed_many_items_reads_all(warm: Process, settled: bool) -> None:
    conversation, first = await warm.conversation(), [] if settled else [CALL]
    await warm.add(conversation, user("one"), *first)
    await read(warm, conversation, warm.links)
    for start in range(0, MOST_FETCHED + 8, 20):
        await warm.other().add(conversation, *(user(f"{start + place}") for place in range(20)))
    warm.cloud.forget()

    context = await read(warm, conversation, warm.links)

    assert warm.cloud.calls == {"Query": 2}
    assert state(context) == state(await read(warm, conversation))


async def test_a_conversation_that_another_process_deletes_is_not_found_and_forgotten(warm: Process) -> None:
    conversation = await warm.conversation()
    await warm.talk(conversation, "one", "two")
    await warm.other().conversations.delete(conversation)

    with pytest.raises(NotFound):
        await read(warm, conversation, warm.links)

    assert warm.remembered(conversation) is None


@pytest.mark.parametrize("what", ["conversation", "item"])
async def test_what_is_deleted_leaves_the_memory_of_its_process(warm: Process, what: str) -> None:
    conversation = await warm.conversation()
    await warm.talk(conversation, "one", "two")
    service = warm.conversations
    first = (await service.list_items(conversation, None, 1, "asc")).data[0].id

    await (service.delete(conversation) if what == "conversation" else service.delete_item(conversation, first))

    assert warm.remembered(conversation) is None


async def test_other_tenants_neither_use_nor_drop_a_remembered_conversation(warm: Process) -> None:
    conversation = await warm.conversation()
    await warm.talk(conversation, "one")
    contexts = contexts_of(warm, warm.links)
    other = replace(contexts, tenant="other")

    with pytest.raises(NotFound):
        await other.peek(conversation, shortens=False)

    assert warm.remembered(conversation) is not None


async def test_a_conversation_with_texts_of_files_is_read_each_time(warm: Process) -> None:
    """A repeated request reads the file anew, and stores what it has then under the same ids."""
    conversation, data = await warm.conversation(), base64.b64encode(b"Bees dance.").decode()
    part = {"type": "input_file", "filename": "bees.txt", "file_data": f"data:text/plain;base64,{data}"}
    await warm.add(conversation, {"type": "message", "role": "user", "content": [part]})
    await warm.talk(conversation, "one")

    assert warm.remembered(conversation) is None
    assert "Bees dance." in warm.heard[0]


async def test_a_conversation_over_the_limit_is_read_each_time(warm: Process) -> None:
    conversation, links = await warm.conversation(), LinkCache()
    await warm.talk(conversation, *(f"{number}" * 200 for number in range(4)))
    warm_state = [state(await read(warm, conversation, links, history_bytes=1_500)) for _ in range(2)]

    assert warm_state == [state(await read(warm, conversation, history_bytes=1_500))] * 2
    assert links.bytes == 0


async def test_a_remembered_conversation_that_grows_over_the_limit_is_cut_like_one_that_is_read(
    warm: Process,
) -> None:
    conversation, links = await warm.conversation(), LinkCache()
    for number in range(8):
        await warm.talk(conversation, f"{number}" * 200)
        seen = state(await read(warm, conversation, links, history_bytes=2_000))
        assert seen == state(await read(warm, conversation, history_bytes=2_000)), number


async def test_many_items_after_a_call_without_a_result_are_not_kept(warm: Process) -> None:
    conversation, links = await warm.conversation(), LinkCache()
    await warm.add(conversation, CALL)
    await read(warm, conversation, links)
    assert links.bytes > 0
    records = {f"item:{number}": {"sk": f"item:{number}", "doc": "{}"} for number in range(MOST_LATER + 1)}

    links.note_items(warm.tenant, conversation, list(records.values()))

    assert links.bytes == 0


THOUGHT: list[Part] = [ReasoningChunk("Plums, I think."), *said("Plums")]


async def test_calls_approvals_reasoning_and_failures_are_remembered_as_they_are_read(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    failure: list[Part] = [RuntimeError("no")]
    answers = [called("ask_user"), THOUGHT, called("buy"), said("Bought"), failure, called("look"), said("ok")]
    responder = Process(make_worker_fixture, *answers, said("end"))
    tools = {"tools": [FUNCTION, MCP_TOOL | {"require_approval": {"always": {"tool_names": ["buy"]}}}]}
    conversation, links = await responder.conversation(), LinkCache()
    output = {"type": "function_call_output", "call_id": "c0", "output": "yes"}
    inputs: list[Any] = ["go", [output], "buy", None, "fail", "look", "end"]
    for number, given in enumerate(inputs):
        if given is None:
            listed = await responder.conversations.list_items(conversation, None, 1, "desc")
            given = [{"type": "mcp_approval_response", "approval_request_id": listed.data[0].id, "approve": True}]
        await responder.respond(given, conversation=conversation, **tools)

        assert state(await read(responder, conversation, links)) == state(await read(responder, conversation)), number


@pytest.mark.parametrize("before", [0, 1])
async def test_an_output_that_comes_later_than_other_messages_follows_its_call(warm: Process, before: int) -> None:
    conversation, links = await warm.conversation(), LinkCache()
    output = {"type": "function_call_output", "call_id": "c0", "output": "late"}
    await warm.add(conversation, user("one"), CALL, user("two"), model_says("three"))
    await read(warm, conversation, links)
    await warm.other().add(conversation, *[user("four")] * before, output)

    messages = (await read(warm, conversation, links)).reader.transcript.messages

    assert [isinstance(each, ToolResult) for each in messages] == [False, False, True, False, False] + [False] * before
    assert words_of(messages[2]) == "late"


async def test_an_approved_call_without_a_result_is_read_with_what_follows_it(warm: Process) -> None:
    conversation, links = await warm.conversation(), LinkCache()
    asked = {"type": "mcp_approval_request", "id": "a", "server_label": "shop", "name": "buy", "arguments": "{}"}
    approval = {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True}
    await warm.add(conversation, user("one"), asked, approval)
    await read(warm, conversation, links)
    await warm.other().add(conversation, user("two"))

    assert state(await read(warm, conversation, links)) == state(await read(warm, conversation))


async def test_an_answer_that_another_process_continues_is_one_answer(warm: Process) -> None:
    conversation, links = await warm.conversation(), LinkCache()
    await warm.add(conversation, user("one"), model_says("a"))
    await read(warm, conversation, links)
    await warm.other().add(conversation, model_says("b"))

    assert state(await read(warm, conversation, links)) == state(await read(warm, conversation))


async def test_a_context_is_the_requests_own(warm: Process) -> None:
    conversation, links = await warm.conversation(), LinkCache()
    await warm.talk(conversation, "one", "two")
    for _ in range(2):
        context = await read(warm, conversation, links)
        context.reader.transcript.remove_input()
        context.reader.read([message("more")])
        context.known.clear()
        context.containers.append("c")
        context.sources["f"] = "g"

        assert state(await read(warm, conversation, links)) == state(await read(warm, conversation))


async def test_the_memory_of_a_process_is_bounded(warm: Process) -> None:
    links = LinkCache(20_000)
    for number in range(6):
        conversation = await warm.conversation()
        await warm.add(conversation, *(user(f"{number}" * 300) for _ in range(5)))
        await read(warm, conversation, links)

        assert 0 < links.bytes <= 20_000


async def test_a_large_item_is_remembered_without_its_object_in_the_bucket(warm: Process) -> None:
    conversation, links = await warm.conversation(), LinkCache()
    await warm.add(conversation, user(secrets.token_urlsafe(400_000)))
    await warm.add(conversation, CALL)
    first = state(await read(warm, conversation, links))
    known = links.get_conversation(warm.tenant, conversation)
    assert known is not None
    assert len(known.later) == 1

    assert state(await read(warm, conversation, links)) == first
