"""Objects of the inbox: added, replaced and deleted in any order of their events."""

import asyncio
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.services.knowledge.knowledge_fixture import LEASE_SECONDS, KnowledgeFixture
from tests.store.conftest import Cloud

from stint.domain.errors import StoreUnavailable
from stint.domain.ids import new_name
from stint.domain.openai.vector_stores import UpdateVectorStoreFile
from stint.domain.vector_stores import FileContent
from stint.services.knowledge.inbox import InboxDocuments


class Objects:
    """The objects of a store's inbox, and the worker's handler of their events."""

    def __init__(self, knowledge: KnowledgeFixture, store_id: str) -> None:
        self.knowledge, self.store_id = knowledge, store_id
        self.s3, self.bucket = knowledge.cloud.s3, knowledge.cloud.bucket
        self.inbox = InboxDocuments(knowledge.tenant, knowledge.cloud.store, knowledge.documents, knowledge.insertions)

    def key(self, name: str) -> str:
        return f"inbox/{self.store_id}/{name}"

    def put(self, text: str, name: str = "a.txt") -> None:
        self.s3.put_object(Bucket=self.bucket, Key=self.key(name), Body=text.encode())

    def delete(self, name: str = "a.txt") -> None:
        self.s3.delete_object(Bucket=self.bucket, Key=self.key(name))

    async def notify(self, name: str = "a.txt", *, work: bool = True) -> None:
        """Deliver an event of an object, and run the worker."""
        await self.inbox.handle(self.key(name))
        if work:
            await self.knowledge.work()

    async def found(self, query: str = "llamas") -> list[str]:
        return await self.knowledge.find(self.store_id, query)


@pytest.fixture
async def objects(knowledge: KnowledgeFixture) -> Objects:
    return Objects(knowledge, await knowledge.create())


async def test_an_object_is_found_and_shown_as_a_file_of_the_store(objects: Objects) -> None:
    name = "animals/llamas & Ärger+1%20.txt"
    objects.put("Llamas live in Peru.", name)
    await objects.notify(name)

    assert await objects.found() == ["Llamas live in Peru."]
    documents = objects.knowledge.documents
    file_id = await objects.knowledge.file_of(objects.store_id)
    page = await documents.read_content(objects.store_id, file_id)
    assert (file_id[:4], page.filename) == ("doc-", name)
    assert (await documents.get(objects.store_id, file_id)).status == "completed"


async def test_a_deleted_object_leaves_nothing(objects: Objects) -> None:
    before = objects.knowledge.rest()
    objects.put("Llamas live in Peru.")
    await objects.notify()
    objects.delete()

    await objects.notify()

    assert await objects.found() == []
    assert objects.knowledge.rest() == [*before, *objects.knowledge.index.indexes]


async def test_a_replaced_object_replaces_its_text_and_keeps_its_attributes(objects: Objects) -> None:
    objects.put("Llamas live in Peru.")
    await objects.notify()
    knowledge = objects.knowledge
    file_id = await knowledge.file_of(objects.store_id)
    await knowledge.documents.update(
        objects.store_id, file_id, UpdateVectorStoreFile.model_validate({"attributes": {"kind": "fact"}})
    )
    await knowledge.work()

    objects.put("Llamas hum.")
    await objects.notify()

    assert await objects.found() == ["Llamas hum."]
    assert (await knowledge.documents.get(objects.store_id, file_id)).attributes == {"kind": "fact"}


async def test_repeated_and_late_events_change_nothing(objects: Objects) -> None:
    objects.put("Llamas live in Peru.")
    await objects.notify()
    before = objects.knowledge.rest()

    for _ in range(3):  # the object was deleted and created before, and each event may come now
        await objects.notify()

    assert objects.knowledge.rest() == before
    assert objects.knowledge.queue.ingestions == []


async def test_the_last_of_events_at_the_same_time_wins(objects: Objects) -> None:
    objects.put("Llamas live in Peru.")
    await objects.notify()
    objects.put("Llamas hum.")

    await asyncio.gather(*(objects.notify(work=False) for _ in range(4)))
    await objects.knowledge.work()

    assert await objects.found() == ["Llamas hum."]


async def test_an_object_that_is_deleted_while_its_event_is_handled_is_not_kept(
    objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects.put("Llamas live in Peru.")
    insert = type(objects.inbox.insertions).insert_one

    async def delete_first(*given: Any, **named: Any) -> None:
        objects.delete()
        await objects.inbox.handle(objects.key("a.txt"))  # its event comes before the document
        await insert(*given, **named)

    monkeypatch.setattr(type(objects.inbox.insertions), "insert_one", delete_first)

    await objects.notify()

    assert await objects.knowledge.statuses(objects.store_id) == []


async def test_an_object_that_is_replaced_while_it_is_ingested_is_found_in_its_new_form(objects: Objects) -> None:
    objects.put("Llamas live in Peru.")
    await objects.notify(work=False)
    [first], objects.knowledge.queue.ingestions[:] = list(objects.knowledge.queue.ingestions), []
    objects.put("Llamas hum.")
    await objects.notify(work=False)
    objects.knowledge.queue.ingestions.insert(0, first)

    await objects.knowledge.work()

    assert await objects.found() == ["Llamas hum."]


async def test_a_task_of_a_replaced_object_does_not_fail_the_new_one(
    objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects.put("Llamas live in Peru.")
    await objects.notify(work=False)
    inbox = objects.knowledge.cloud.store.inbox
    read = inbox.read

    async def replaced_meanwhile(content: Any) -> bytes:
        monkeypatch.setattr(inbox, "read", read)
        objects.put("Llamas hum.")
        await objects.notify(work=False)
        return await read(content)

    monkeypatch.setattr(inbox, "read", replaced_meanwhile)

    await objects.knowledge.work()
    assert await objects.knowledge.statuses(objects.store_id) == ["in_progress"]
    await objects.knowledge.work()

    assert await objects.found() == ["Llamas hum."]


async def test_attributes_that_are_posted_while_an_object_is_replaced_stay(
    objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects.put("Llamas live in Peru.")
    await objects.notify(work=False)
    knowledge, file_id = objects.knowledge, await objects.knowledge.file_of(objects.store_id)
    objects.put("Llamas hum.")
    documents = type(knowledge.cloud.store.vector_store_documents)
    replace = documents.replace

    async def post_first(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(documents, "replace", replace)
        request = UpdateVectorStoreFile.model_validate({"attributes": {"kind": "fact"}})
        await knowledge.documents.update(objects.store_id, file_id, request)
        return await replace(*given, **named)

    monkeypatch.setattr(documents, "replace", post_first)

    await objects.notify()

    assert await objects.found() == ["Llamas hum."]
    assert (await knowledge.documents.get(objects.store_id, file_id)).attributes == {"kind": "fact"}


async def test_an_object_that_is_replaced_while_attributes_are_posted_is_found(
    objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects.put("Llamas live in Peru.")
    await objects.notify(work=False)
    knowledge, file_id = objects.knowledge, await objects.knowledge.file_of(objects.store_id)
    documents = type(knowledge.cloud.store.vector_store_documents)
    replace = documents.replace

    async def put_first(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(documents, "replace", replace)
        objects.put("Llamas hum.")
        await objects.notify(work=False)
        return await replace(*given, **named)

    monkeypatch.setattr(documents, "replace", put_first)

    request = UpdateVectorStoreFile.model_validate({"attributes": {"kind": "fact"}})
    await knowledge.documents.update(objects.store_id, file_id, request)
    await knowledge.work()

    assert await objects.found() == ["Llamas hum."]
    assert (await knowledge.documents.get(objects.store_id, file_id)).attributes == {"kind": "fact"}


async def test_a_worker_with_the_lease_of_a_replaced_object_loses_it(cloud: Cloud, tenant: str) -> None:
    knowledge = KnowledgeFixture(cloud, tenant)
    objects = Objects(knowledge, await knowledge.create())
    objects.put("Llamas live in Peru.")
    await objects.notify(work=False)
    file_id = await knowledge.file_of(objects.store_id)
    documents, leases = cloud.store.vector_store_documents, cloud.store.document_leases
    stored = await documents.get(tenant, objects.store_id, file_id)
    await leases.acquire(tenant, objects.store_id, stored, "0" * 32, 1, LEASE_SECONDS)

    objects.put("Llamas hum.")
    await objects.notify()

    assert await objects.found() == ["Llamas hum."]
    assert knowledge.queue.ingestions == []


async def test_an_object_over_the_limit_fails_without_being_read(
    objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects.put("Llamas live in Peru.")
    inbox = objects.knowledge.cloud.store.inbox
    found = await inbox.find(objects.key("a.txt"))
    assert found is not None
    large = found.model_copy(update={"size": 50_000_001})

    async def find_large(_: str) -> Any:
        return large

    monkeypatch.setattr(inbox, "find", find_large)
    monkeypatch.setattr(inbox, "read", None)

    await objects.notify()

    file_id = await objects.knowledge.file_of(objects.store_id)
    file = await objects.knowledge.documents.get(objects.store_id, file_id)
    assert file.last_error is not None
    assert (file.status, file.last_error.code) == ("failed", "invalid_file")
    assert "50,000,001 bytes" in file.last_error.message


@pytest.mark.parametrize(
    "key",
    [
        "kept/default/registry/x",
        "inbox/",
        "inbox/a.txt",
        "inbox/{store}",
        "inbox/{store}/",
        "inbox/{store}/folder/",
        "inbox/../{store}/a.txt",
        "Inbox/{store}/a.txt",
        "inbox/{store}\n/a.txt",
        "inbox/vs_none/a.txt",
    ],
)
async def test_other_keys_are_not_read(objects: Objects, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setattr(objects.knowledge.cloud.store.inbox, "find", None)

    await objects.inbox.handle(key.format(store=objects.store_id))

    assert await objects.knowledge.statuses(objects.store_id) == []


async def test_objects_of_unknown_stores_are_ignored(knowledge: KnowledgeFixture) -> None:
    objects = Objects(knowledge, new_name("vs"))
    objects.put("Llamas live in Peru.")
    await objects.notify()
    objects.delete()
    await objects.notify()

    assert knowledge.rest() == []


async def test_objects_do_not_reach_the_store_of_a_session(objects: Objects) -> None:
    store = objects.knowledge.cloud.store.vector_stores
    stored = await store.get(objects.knowledge.tenant, objects.store_id)
    owned = stored.settings.model_copy(update={"owner": "agent/session"})
    session_store = new_name("vs")
    await store.create(objects.knowledge.tenant, session_store, owned)
    mine = Objects(objects.knowledge, session_store)
    mine.put("Llamas live in Peru.")

    await mine.notify()

    assert objects.knowledge.queue.ingestions == []
    assert await store_is_empty(mine)


async def store_is_empty(objects: Objects) -> bool:
    documents = objects.knowledge.cloud.store.vector_store_documents
    return [one async for one in documents.read(objects.knowledge.tenant, objects.store_id)] == []


async def test_objects_of_an_expired_store_are_ignored(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create(expires_after={"anchor": "last_active_at", "days": 1})
    objects = Objects(knowledge, store_id)
    objects.put("Llamas live in Peru.")
    CLOCK.move(2 * 86_400)

    await objects.notify()

    assert knowledge.queue.ingestions == []
    assert await store_is_empty(objects)


async def test_an_event_is_delivered_again_while_the_queue_is_down(objects: Objects) -> None:
    objects.put("Llamas live in Peru.")
    objects.knowledge.queue.refuses = True
    with pytest.raises(StoreUnavailable):
        await objects.notify()
    objects.knowledge.queue.refuses = False

    await objects.notify()

    assert await objects.found() == ["Llamas live in Peru."]


async def test_the_document_of_an_object_is_not_one_of_a_caller(objects: Objects) -> None:
    knowledge = objects.knowledge
    file_id = await knowledge.add(objects.store_id, "Alpacas.")
    objects.put("Llamas live in Peru.", file_id)
    await objects.notify(file_id)

    kept = await knowledge.cloud.store.vector_store_documents.get(knowledge.tenant, objects.store_id, file_id)
    assert kept.settings.content == FileContent(file_id=file_id)
    assert await objects.found() == ["Llamas live in Peru."]
