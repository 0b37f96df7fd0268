"""A deletion that breaks off at any call is finished by the task that was sent before it."""

import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from tests.script_model import said, script
from tests.services.conftest import MakeWorkerFixture
from tests.services.deaths import counting, die_at
from tests.services.knowledge.knowledge_fixture import KnowledgeFixture
from tests.services.responses.responder import Responder
from tests.services.worker_fixture import WorkerFixture
from tests.store.conftest import Cloud

from stint.caller import set_end_user
from stint.domain.errors import NotFound, NotMarkedDeleted, StoreUnavailable
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.openai.conversations import CreateItems
from stint.domain.tasks import DeletionTask
from stint.services.deletions import Deletions

KINDS = ("agent", "session", "response", "conversation", "file", "vector_store")
LONG = secrets.token_urlsafe(400_000)
"""A text that is stored in S3."""


Delete = Callable[[], Coroutine[Any, Any, object]]


@dataclass
class Deleted:
    """An object to delete: how it is deleted and read, and where tasks are sent that precede marks."""

    delete: Delete
    read: Callable[[], Awaitable[object]]
    deletions: Deletions
    tasks: list[DeletionTask]

    async def finish(self) -> None:
        """Deliver the tasks, as the worker does."""
        tasks, self.tasks[:] = list(self.tasks), []
        for task in tasks:
            await self.deletions.continue_deletion(task, 30)

    async def finish_or_delete(self) -> None:
        """Deliver the tasks. An object that was not marked is still there for readers, and is deleted now."""
        with suppress(NotFound):
            await self.read()
            self.tasks.clear()
            await self.delete()
        await self.finish()


@dataclass
class Tenant:
    """A tenant whose objects belong to an end user. Those of most kinds have bodies in S3."""

    cloud: Cloud
    name: str
    make_worker_fixture: MakeWorkerFixture

    async def make(self, kind: str) -> Deleted:
        fixture = self.make_worker_fixture(script(said(LONG[:9_000])))
        knowledge = KnowledgeFixture(self.cloud, self.name)
        set_end_user("ann")
        try:
            match kind:
                case "file" | "vector_store":
                    return await self.make_knowledge(knowledge, kind)
                case "agent" | "session":
                    return await self.make_agent(fixture, kind)
            return await self.make_response(fixture, kind)
        finally:
            set_end_user("")

    async def make_agent(self, fixture: WorkerFixture, kind: str) -> Deleted:
        agents, sessions = fixture.turns.agents, fixture.turns.sessions
        agent_id = await agents.create(AgentConfig(model="test/m", instructions=LONG if kind == "agent" else ""))
        session_id = await sessions.create(agent_id, "talk")
        delete = (
            partial(sessions.delete, agent_id, session_id) if kind == "session" else partial(agents.delete, agent_id)
        )
        tasks = fixture.queue.early_deletions
        return Deleted(delete, partial(sessions.get, agent_id, session_id), fixture.deletions, tasks)

    async def make_response(self, fixture: WorkerFixture, kind: str) -> Deleted:
        services, tasks = fixture.services, fixture.queue.early_deletions
        if kind == "response":
            stored, response_id = services.stored_responses, (await fixture.finished(stream=True)).id
            return Deleted(
                partial(stored.delete, response_id), partial(stored.get, response_id), fixture.deletions, tasks
            )
        conversations, conversation_id = services.conversations, await fixture.conversation()
        added = CreateItems.model_validate({"items": [{"role": "user", "content": LONG}]}).items
        await conversations.add_items(conversation_id, added)
        delete, read = partial(conversations.delete, conversation_id), partial(conversations.get, conversation_id)
        return Deleted(delete, read, fixture.deletions, tasks)

    async def make_knowledge(self, knowledge: KnowledgeFixture, kind: str) -> Deleted:
        tasks, deletions = knowledge.queue.delayed, knowledge.deletions
        if kind == "file":
            file_id = await knowledge.upload(LONG)
            files = knowledge.files
            return Deleted(partial(files.delete, file_id), partial(files.get, file_id), deletions, tasks)
        store_id = await knowledge.create("Llamas live in Peru.")
        stores = knowledge.stores
        return Deleted(partial(stores.delete, store_id), partial(stores.get, store_id), deletions, tasks)

    def left(self, kind: str) -> set[str]:
        """Return the keys of records without seals, and of blobs, without a session's agent and a store's file."""
        found = [item for item in self.cloud.items(self.name) if "sealed_at" not in item]
        keys = {f"{item['pk']['S']} {item['sk']['S']}" for item in found} | set(self.cloud.blobs(self.name))
        spared = {"session": "#agent", "vector_store": "file"}.get(kind, "none")
        return {key for key in keys if spared not in key}


@pytest.fixture
def owner(cloud: Cloud, tenant: str, make_worker_fixture: MakeWorkerFixture) -> Tenant:
    return Tenant(cloud, tenant, make_worker_fixture)


async def points_of(owner: Tenant, kind: str) -> Counter[str]:
    """Delete an object, and count the calls of that."""
    first = await owner.make(kind)
    with counting(owner.cloud) as seen:
        await first.delete()
    return Counter(seen)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_deletion_whose_process_died_at_any_call_is_finished_by_its_task(owner: Tenant, kind: str) -> None:
    calls = await points_of(owner, kind)
    before = owner.left(kind)
    assert calls.total() >= 4

    for operation, count in calls.items():
        for number in range(count):
            deleted = await owner.make(kind)
            await die_at(owner.cloud, operation, number, deleted.delete)
            await deleted.finish_or_delete()

            assert owner.left(kind) == before, (operation, number)


async def test_a_repeated_deletion_of_an_ended_response_leaves_no_seals(cloud: Cloud, owner: Tenant) -> None:
    fixture = owner.make_worker_fixture(script(*(said() for _ in range(19))))
    responder, delete = Responder(fixture), fixture.services.stored_responses.delete
    first = (await responder.respond()).response.id
    with counting(cloud) as seen:
        await delete(first)

    for operation, count in Counter(seen).items():
        for number in range(count):
            response_id = (await responder.respond()).response.id
            await die_at(cloud, operation, number, partial(delete, response_id))
            with suppress(NotFound):
                await delete(response_id)

            assert [item for item in cloud.items(owner.name) if response_id in item["pk"]["S"]] == [], (
                operation,
                number,
            )


@pytest.mark.parametrize("performed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_deletion_that_met_a_fault_at_any_call_is_finished_by_its_task(
    owner: Tenant, kind: str, performed: bool
) -> None:
    calls = await points_of(owner, kind)
    before = owner.left(kind)

    for operation in calls:
        deleted = await owner.make(kind)
        with (
            owner.cloud.proxy.fail(operation, "InternalServerError", status=500, performed=performed),
            suppress(StoreUnavailable),
        ):
            await deleted.delete()
        await deleted.finish_or_delete()

        assert owner.left(kind) == before, operation


@pytest.mark.parametrize("kind", KINDS)
async def test_the_task_of_an_object_that_was_not_marked_deletes_nothing(owner: Tenant, kind: str) -> None:
    deleted = await owner.make(kind)
    before = owner.left(kind)
    with owner.cloud.proxy.failing(""), pytest.raises(StoreUnavailable):
        await deleted.delete()

    for task in deleted.tasks:
        with pytest.raises(NotMarkedDeleted):
            await deleted.deletions.continue_deletion(task, 30)

    assert owner.left(kind) == before
