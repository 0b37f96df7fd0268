import secrets

import pytest
from tests.store.conftest import Cloud
from tests.store.record_samples import PROSE, agent

from stint.domain.errors import NotFound
from stint.domain.ids import new_id
from stint.domain.paging import MAX_BYTES, Window
from stint.store.items import size
from stint.store.keys import agent as agent_key
from stint.store.keys import agent_config
from stint.store.store import Store


async def test_an_agent_reads_back_as_it_was_created(store: Store, tenant: str) -> None:
    created = agent(name="helper")

    await store.agents.create(tenant, created)

    assert await store.agents.get(tenant, created.agent_id) == created


async def test_an_agent_is_read_in_one_call(cloud: Cloud, tenant: str) -> None:
    created = agent()
    await cloud.store.agents.create(tenant, created)
    cloud.forget()

    await cloud.store.agents.get(tenant, created.agent_id)

    assert cloud.calls == {"BatchGetItem": 1}


async def test_an_agent_of_another_tenant_is_not_found(store: Store, tenant: str) -> None:
    created = agent()
    await store.agents.create(tenant, created)

    with pytest.raises(NotFound) as raised:
        await store.agents.get("other", created.agent_id)

    assert raised.value.code == "agent_not_found"
    assert (await store.agents.list("other", Window())).data == []


@pytest.mark.parametrize("instructions", [secrets.token_urlsafe(375_000), PROSE * 2_500])
async def test_an_agent_of_500_kb_works(store: Store, tenant: str, instructions: str) -> None:
    created = agent(instructions)

    await store.agents.create(tenant, created)

    assert await store.agents.get(tenant, created.agent_id) == created
    assert (await store.agents.list(tenant, Window())).data == [created]


async def test_agents_are_listed_in_creation_order(store: Store, tenant: str) -> None:
    created = [agent() for _ in range(7)]
    for one in reversed(created):
        await store.agents.create(tenant, one)

    page = await store.agents.list(tenant, Window(2, 3))

    assert page.data == created[2:5]
    assert page.has_more


async def test_a_list_ends_before_it_is_too_large_for_one_answer(store: Store, tenant: str) -> None:
    created = [agent(PROSE * 5_000) for _ in range(6)]
    for one in created:
        await store.agents.create(tenant, one)

    first = await store.agents.list(tenant, Window())
    second = await store.agents.list(tenant, Window(len(first.data), None))

    assert first.has_more
    assert sum(len(one.model_dump_json()) for one in first.data) <= MAX_BYTES
    assert first.data + second.data == created


async def test_an_agent_whose_document_is_gone_is_left_out_of_a_list(cloud: Cloud, tenant: str) -> None:
    created = [agent(), agent()]
    for one in created:
        await cloud.store.agents.create(tenant, one)
    pk, sk = agent_config(tenant, created[0].agent_id)
    cloud.dynamodb.delete_item(TableName=cloud.table_name, Key={"pk": {"S": pk}, "sk": {"S": sk}})

    assert (await cloud.store.agents.list(tenant, Window())).data == created[1:]


async def test_ten_thousand_agents_are_listed_page_by_page(cloud: Cloud, tenant: str) -> None:
    ids = sorted(new_id() for _ in range(9_990))
    cloud.write(agent_key(tenant, agent_id)._asdict() | {"size": 750} for agent_id in ids)
    last = [agent() for _ in range(10)]
    for one in last:
        await cloud.store.agents.create(tenant, one)
    cloud.forget()

    page = await cloud.store.agents.list(tenant, Window(9_990, 10))

    assert page.data == last
    assert not page.has_more
    assert sum(cloud.calls.values()) <= 5


async def test_the_list_entry_is_small(cloud: Cloud, tenant: str) -> None:
    created = agent(PROSE * 100)

    await cloud.store.agents.create(tenant, created)

    [entry] = [item for item in cloud.items(tenant) if item["pk"]["S"] == f"{tenant}#agent"]
    assert size({name: next(iter(value.values())) for name, value in entry.items()}) < 300


@pytest.mark.parametrize("name", ["helper", "x" * 100_000, "\U0001f600" * 300])
async def test_the_list_entry_has_the_name_and_is_one_write_unit(cloud: Cloud, tenant: str, name: str) -> None:
    created = agent(name=name)

    await cloud.store.agents.create(tenant, created)

    [entry] = [item for item in cloud.items(tenant) if item["pk"]["S"] == f"{tenant}#agent"]
    assert size({key: next(iter(value.values())) for key, value in entry.items()}) <= 1_024
    assert await cloud.store.agents.require(tenant, created.agent_id) == (name[:200], None, b"")


async def test_a_marked_agent_is_gone_from_every_read(store: Store, tenant: str) -> None:
    created, other = agent(), agent()
    for one in (created, other):
        await store.agents.create(tenant, one)

    await store.agents.mark_deleted(tenant, created.agent_id)
    await store.agents.mark_deleted(tenant, created.agent_id)

    assert (await store.agents.list(tenant, Window())).data == [other]
    for read in (store.agents.get, store.agents.require):
        with pytest.raises(NotFound):
            await read(tenant, created.agent_id)


async def test_a_removed_agent_cannot_be_marked(store: Store, tenant: str) -> None:
    created = agent()
    await store.agents.create(tenant, created)

    await store.agents.remove(tenant, created.agent_id)

    with pytest.raises(NotFound):
        await store.agents.mark_deleted(tenant, created.agent_id)
    with pytest.raises(NotFound):
        await store.agents.get(tenant, created.agent_id)


async def test_the_check_that_an_agent_exists_is_one_read(cloud: Cloud, tenant: str) -> None:
    created = agent(PROSE * 1_000)
    await cloud.store.agents.create(tenant, created)
    cloud.forget()

    assert await cloud.store.agents.require(tenant, created.agent_id) == (None, None, b"")
    assert cloud.calls == {"GetItem": 1}
    assert cloud.units["GetItem"] == 1
