import json
from dataclasses import replace
from typing import Any

import pytest
from tests.store.conftest import Cloud

from stint.bootstrap.openai import delete_response_objects
from stint.documents.document_reader import DocumentReader
from stint.documents.served import InlineDocument
from stint.domain.errors import Conflict, InvalidRequest, NotFound
from stint.domain.openai.conversations import Conversation, CreateConversation, CreateItems, UpdateConversation
from stint.domain.openai.items import FunctionCallOutput, Item, Message, WebSearchCall
from stint.domain.openai.mcp_items import McpApprovalRequest, McpApprovalResponse, McpCall
from stint.domain.openai.parts import InputText
from stint.domain.tasks import DeletionTask, SentTask
from stint.services.conversations.conversations import Conversations
from stint.services.conversations.opaque_texts import OpaqueTexts
from stint.services.deletions import Deletions
from stint.services.responses.context import ConversationRecovery
from stint.services.responses.link_cache import LinkCache


class ConversationFixture:
    """The service over the local engine, with a web of one page and a worker that does nothing."""

    def __init__(self, cloud: Cloud, tenant: str) -> None:
        self.cloud = cloud
        self.tenant = tenant
        self.fetched: list[str] = []
        self.left: list[DeletionTask] = []
        self.store = cloud.store.conversations
        self.leases = cloud.store.conversation_leases
        opaque = OpaqueTexts(tenant, cloud.store.signing_keys)
        reader = DocumentReader(self.fetch, self.check_url)
        self.deletions = Deletions(delete_response_objects(cloud.store), self.send)
        links = LinkCache()
        recovery = ConversationRecovery(tenant, cloud.store, opaque, links)
        self.service = Conversations(tenant, self.store, reader, self.deletions, opaque, recovery.reconcile, links)

    async def send(self, task: SentTask) -> None:
        assert isinstance(task, DeletionTask)
        if not task.delay_seconds:
            self.left.append(task)

    async def fetch(self, url: str) -> InlineDocument:
        self.fetched.append(url)
        return InlineDocument("text/html", b"<p>Bees dance.</p>")

    async def check_url(self, url: str) -> None:
        if "forbidden" in url:
            raise InvalidRequest("The URL may not be called.", code="url_not_allowed")

    async def create(self, *items: Any, **metadata: str) -> Conversation:
        return await self.service.create(CreateConversation(items=list(items), metadata=metadata))

    async def add(self, conversation_id: str, *items: Any, include: tuple[str, ...] = ()) -> list[Item]:
        body = CreateItems.model_validate({"items": list(items)})
        return (await self.service.add_items(conversation_id, body.items, include)).data

    async def words(self, conversation_id: str) -> list[str]:
        page = await self.service.list_items(conversation_id, None, 100, "asc")
        return [words_of(item) for item in page.data]


@pytest.fixture
def conversations(cloud: Cloud, tenant: str) -> ConversationFixture:
    return ConversationFixture(cloud, tenant)


def say(words: str, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": words} | fields


def words_of(item: Item) -> str:
    assert isinstance(item, Message)
    [part] = item.content
    assert isinstance(part, InputText)
    return part.text


async def test_a_conversation_is_read_changed_and_deleted(conversations: ConversationFixture) -> None:
    created = await conversations.create(topic="plums")
    changed = await conversations.service.update(created.id, UpdateConversation(metadata={"topic": "pears"}))

    assert created.metadata == {"topic": "plums"}
    assert (
        await conversations.service.get(created.id)
        == changed
        == created.model_copy(update={"metadata": {"topic": "pears"}})
    )
    assert (await conversations.service.update(created.id, UpdateConversation(metadata=None))).metadata == {}
    assert (await conversations.service.delete(created.id)).id == created.id
    with pytest.raises(NotFound, match=created.id):
        await conversations.service.get(created.id)
    assert conversations.cloud.items(conversations.tenant) == []


async def test_conversations_are_listed_in_pages(conversations: ConversationFixture) -> None:
    ids = [(await conversations.create()).id for _ in range(3)]

    newest = await conversations.service.list(None, 2, "desc")
    rest = await conversations.service.list(newest.last_id, 2, "desc")
    oldest = await conversations.service.list(None, 3, "asc")

    assert ([each.id for each in newest.data], newest.has_more) == ([ids[2], ids[1]], True)
    assert ([each.id for each in rest.data], rest.has_more) == ([ids[0]], False)
    assert [each.id for each in oldest.data] == ids
    assert (newest.first_id, newest.last_id) == (ids[2], ids[1])


async def test_items_are_in_the_order_of_adding_whatever_their_ids_were(conversations: ConversationFixture) -> None:
    late, early = "msg_" + "f" * 32, "msg_" + "0" * 32
    conversation = (await conversations.create(say("one", id=late))).id

    added = await conversations.add(conversation, say("two", id=early), say("three", id=late), say("four", id=late))

    assert await conversations.words(conversation) == ["one", "two", "three", "four"]
    assert not {item.id for item in added} & {late, early}
    assert len({item.id for item in added}) == 3


async def test_items_are_read_and_deleted_one_by_one(conversations: ConversationFixture) -> None:
    conversation = (await conversations.create(say("one"), topic="plums")).id
    [two, three] = await conversations.add(conversation, say("two"), say("three"))

    left = await conversations.service.delete_item(conversation, two.id)

    assert left == await conversations.service.get(conversation)
    assert await conversations.service.get_item(conversation, three.id) == three
    assert await conversations.words(conversation) == ["one", "three"]
    with pytest.raises(NotFound, match=two.id):
        await conversations.service.get_item(conversation, two.id)
    with pytest.raises(NotFound, match=two.id):
        await conversations.service.delete_item(conversation, two.id)
    with pytest.raises(NotFound, match=two.id):
        await conversations.service.list_items(conversation, two.id, 20, "asc")


async def test_items_are_listed_in_pages(conversations: ConversationFixture) -> None:
    conversation = (await conversations.create()).id
    added = await conversations.add(conversation, *(say(str(number)) for number in range(5)))

    page = await conversations.service.list_items(conversation, None, 2, "desc")
    following = await conversations.service.list_items(conversation, page.last_id, 3, "desc")

    assert (page.data, page.has_more) == ([added[4], added[3]], True)
    assert (following.data, following.has_more) == ([added[2], added[1], added[0]], False)


@pytest.mark.parametrize("missing", ["conv_" + "0" * 32, "nonsense", "conv_#"])
async def test_a_conversation_that_is_none_is_named(conversations: ConversationFixture, missing: str) -> None:
    item = "msg_" + "0" * 32

    for call in (
        conversations.service.get(missing),
        conversations.service.update(missing, UpdateConversation(metadata={})),
        conversations.service.delete(missing),
        conversations.service.list(missing, 20, "asc"),
        conversations.service.list_items(missing, None, 20, "asc"),
        conversations.service.get_item(missing, item),
        conversations.service.delete_item(missing, item),
        conversations.add(missing, say("hello")),
    ):
        with pytest.raises(NotFound) as caught:
            await call
        assert caught.value.code == "conversation_not_found"
        assert missing in caught.value.message
    assert conversations.cloud.items(conversations.tenant) == []


async def test_a_file_is_fetched_once_when_its_item_is_added(conversations: ConversationFixture) -> None:
    conversation = (await conversations.create()).id
    file = {"type": "input_file", "file_url": "https://example.com/bees"}

    [added] = await conversations.add(conversation, say("look", content=[file, {"type": "input_text", "text": "?"}]))
    history = await conversations.store.history(conversations.tenant, conversation)

    assert [stored.texts for stored in history.items] == [["Bees dance."]]
    assert history.items[0].item == added
    assert "Bees" not in added.model_dump_json()
    assert conversations.fetched == ["https://example.com/bees"]


async def test_what_cannot_be_read_is_refused_and_nothing_is_added(conversations: ConversationFixture) -> None:
    conversation = (await conversations.create()).id
    image = {"type": "input_image", "image_url": "https://forbidden/x.png"}
    output = {"type": "function_call_output", "call_id": "c", "output": [image]}

    with pytest.raises(InvalidRequest) as caught:
        await conversations.add(conversation, say("fine"), output)

    assert (caught.value.code, caught.value.param) == ("url_not_allowed", "items[1].output[0].image_url")
    assert await conversations.words(conversation) == []


async def test_consents_and_calls_follow_the_new_id_of_what_asked_for_them(conversations: ConversationFixture) -> None:
    call = {"server_label": "s", "name": "n", "arguments": "{}"}
    conversation = (await conversations.create()).id

    added = await conversations.add(
        conversation,
        {"type": "mcp_approval_request", "id": "mcpr_1"} | call,
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        {"type": "mcp_call", "approval_request_id": "mcpr_1"} | call,
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_2", "approve": False},
        {"type": "web_search_call", "approval_request_id": "mcpr_1"},
    )

    [asked, consent, made, other, searched] = added
    assert isinstance(asked, McpApprovalRequest)
    assert isinstance(consent, McpApprovalResponse)
    assert isinstance(made, McpCall)
    assert isinstance(other, McpApprovalResponse)
    assert asked.id != "mcpr_1"
    assert isinstance(searched, WebSearchCall)
    assert consent.approval_request_id == made.approval_request_id == searched.approval_request_id == asked.id
    assert other.approval_request_id == "mcpr_2"


async def test_what_is_shown_on_request_is_stored_all_the_same(conversations: ConversationFixture) -> None:
    conversation = (await conversations.create()).id
    sources = [{"type": "url", "url": "https://example.com"}]
    search = {"type": "web_search_call", "action": {"type": "search", "query": "q", "sources": sources}}

    [shown] = await conversations.add(conversation, search)
    plain = await conversations.service.get_item(conversation, shown.id)
    whole = await conversations.service.get_item(conversation, shown.id, ["web_search_call.action.sources"])

    assert shown == plain
    assert "sources" not in json.loads(plain.model_dump_json())["action"]
    assert json.loads(whole.model_dump_json())["action"]["sources"] == sources


async def test_deleting_takes_a_conversation_from_the_response_that_runs_in_it(
    conversations: ConversationFixture,
) -> None:
    conversation = (await conversations.create(say("hello"))).id
    lease = await conversations.leases.acquire(conversations.tenant, conversation, "resp_1", 30)
    with pytest.raises(Conflict) as caught:
        await conversations.leases.acquire(conversations.tenant, conversation, "resp_2", 30)

    await conversations.service.delete(conversation)

    assert caught.value.code == "conversation_locked"
    assert lease.item["lock_holder"] == "resp_1"
    with pytest.raises(NotFound):
        await conversations.leases.acquire(conversations.tenant, conversation, "resp_2", 30)
    with pytest.raises(NotFound):
        await conversations.add(conversation, say("too late"))
    assert conversations.left == []


async def test_what_takes_too_long_to_delete_is_left_to_the_worker_who_ends_it(
    conversations: ConversationFixture,
) -> None:
    conversation = (await conversations.create(*(say(str(number)) for number in range(20)))).id
    task = DeletionTask(kind="delete_conversation", tenant=conversations.tenant, conversation_id=conversation)
    conversations.service.deletions = replace(conversations.deletions, request_seconds=-1.0)

    await conversations.service.delete(conversation)
    left = conversations.cloud.items(conversations.tenant)
    await conversations.deletions.continue_deletion(task, 20)

    assert conversations.left == [task]
    assert left
    assert conversations.cloud.items(conversations.tenant) == []
    await conversations.deletions.continue_deletion(task, 20)
    assert len(conversations.left) == 1


async def test_outputs_of_calls_are_items(conversations: ConversationFixture) -> None:
    conversation = (await conversations.create()).id
    output = {"type": "function_call_output", "call_id": "c", "output": "rain"}

    [added] = await conversations.add(conversation, output)

    assert isinstance(added, FunctionCallOutput)
    assert added.id.startswith("fco_")
