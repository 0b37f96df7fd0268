"""Creations whose process dies at any moment leave a whole object, or nothing once their task has arrived."""

import secrets
from typing import Any

import pytest
from tests.script_model import script
from tests.services.knowledge.killable import Death, Killed, killable_store
from tests.services.knowledge.knowledge_fixture import KnowledgeFixture
from tests.services.turn_fixture import TurnFixture
from tests.store.conftest import Cloud

from stint.domain.errors import StoreUnavailable
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.paging import Window
from stint.domain.tasks import UPLOAD_DELAY, DeletionTask
from stint.services.knowledge.files import NewFile

SMALL, LARGE = "Be brief.", secrets.token_urlsafe(375_000)
REQUEST = NewFile("a.txt", "assistants")


def orphans(tasks: list[DeletionTask]) -> list[DeletionTask]:
    """Return the tasks that were sent before a creation. They arrive when its process cannot run any more."""
    sent = [task for task in tasks if task.orphan]
    assert all(task.delay_seconds == UPLOAD_DELAY for task in sent)
    return sent


async def create_agent(cloud: Cloud, tenant: str, instructions: str, death: Death) -> tuple[str, TurnFixture]:
    """Create an agent in a process that may die, and return its id, which is empty if it died."""
    fixture, agent_id = TurnFixture(killable_store(cloud, death), tenant, script()), ""
    try:
        agent_id = await fixture.agents.create(AgentConfig(model="test/m", instructions=instructions))
    except Killed:
        assert death.reached
    return agent_id, fixture


@pytest.mark.parametrize("instructions", [SMALL, LARGE], ids=["small", "large"])
async def test_an_agent_whose_creation_dies_exists_or_leaves_nothing(
    cloud: Cloud, tenant: str, instructions: str
) -> None:
    agent_id, moment = "", 0
    while not agent_id:
        moment += 1
        own = f"{tenant}-{moment}"
        agent_id, dead = await create_agent(cloud, own, instructions, Death(moment))
        living = TurnFixture(cloud.store, own, script())
        for task in orphans(dead.inbox.tasks):
            await living.deletions.continue_deletion(task, 30)

        listed = (await living.agents.list(Window())).data
        assert not agent_id or [each.agent_id for each in listed] == [agent_id]
        for each in listed:
            assert await living.agents.get(each.agent_id) == each
        assert bool(cloud.items(own)) is bool(listed)
        assert bool(cloud.blobs(own)) is bool(listed and instructions is LARGE)
        assert not any("expires_at" in item for item in cloud.items(own))
    assert moment == (3 if instructions is SMALL else 5)


async def test_an_agent_costs_four_units_and_one_call(cloud: Cloud, tenant: str) -> None:
    fixture = TurnFixture(cloud.store, tenant, script())
    cloud.forget()

    await fixture.agents.create(AgentConfig(model="test/m", instructions=SMALL))

    assert (cloud.calls, cloud.units) == ({"TransactWriteItems": 1}, {"TransactWriteItems": 4})
    assert fixture.inbox.tasks == []


async def create_file(knowledge: KnowledgeFixture, content: bytes) -> str:
    try:
        return (await knowledge.files.create(REQUEST, content)).id
    except Killed:
        return ""


async def test_a_file_whose_creation_dies_exists_or_leaves_nothing(cloud: Cloud, tenant: str) -> None:
    file_id, moment = "", 0
    while not file_id:
        moment += 1
        own = f"{tenant}-{moment}"
        living = KnowledgeFixture(cloud, own)
        file_id = await create_file(KnowledgeFixture(cloud, own, living, Death(moment)), LARGE.encode())
        for task in orphans(living.queue.deletions):
            await living.deletions.continue_deletion(task, 30)

        listed = (await living.files.list(None, 10, "asc", None)).data
        assert not file_id or [each.id for each in listed] == [file_id]
        for each in listed:
            assert await (await living.files.open(each.id)).read() == LARGE.encode()
        assert (len(cloud.items(own)), len(cloud.blobs(own))) == (len(listed), len(listed))
        assert not any("expires_at" in item for item in cloud.items(own))
    assert moment == 5


@pytest.mark.parametrize(("content", "sent"), [(b"x" * 500, 0), (LARGE.encode(), 1)], ids=["small", "large"])
async def test_only_a_file_with_an_object_sends_a_task_before(
    cloud: Cloud, tenant: str, content: bytes, sent: int
) -> None:
    knowledge = KnowledgeFixture(cloud, tenant)

    await knowledge.files.create(REQUEST, content)

    assert len(knowledge.queue.deletions) == sent


async def test_no_object_is_stored_while_the_queue_accepts_nothing(cloud: Cloud, tenant: str) -> None:
    knowledge = KnowledgeFixture(cloud, tenant)
    knowledge.queue.refuses = True

    with pytest.raises(StoreUnavailable):
        await knowledge.files.create(REQUEST, LARGE.encode())

    stored: tuple[list[Any], list[str]] = (cloud.items(tenant), cloud.blobs(tenant))
    assert stored == ([], [])
