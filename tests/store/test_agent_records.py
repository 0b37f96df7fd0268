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


def test_an_agent_reads_back_as_it_was_created(store: Store, tenant: str) -> None:
    created = agent(name="helper")

    store.agents.create(tenant, created)

    assert store.agents.get(tenant, created.agent_id) == created


def test_an_agent_is_read_in_one_call(cloud: Cloud, tenant: str) -> None:
    created = agent()
    cloud.store.agents.create(tenant, created)
    cloud.forget()

    cloud.store.agents.get(tenant, created.agent_id)

    assert cloud.calls == {"BatchGetItem": 1}


def test_an_agent_of_another_tenant_is_not_found(store: Store, tenant: str) -> None:
    created = agent()
    store.agents.create(tenant, created)

    with pytest.raises(NotFound) as raised:
        store.agents.get("other", created.agent_id)

    assert raised.value.code == "agent_not_found"
    assert store.agents.list("other", Window()).data == []


@pytest.mark.parametrize("instructions", [secrets.token_urlsafe(375_000), PROSE * 2_500])
def test_an_agent_of_500_kb_works(store: Store, tenant: str, instructions: str) -> None:
    created = agent(instructions)

    store.agents.create(tenant, created)

    assert store.agents.get(tenant, created.agent_id) == created
    assert store.agents.list(tenant, Window()).data == [created]


def test_agents_are_listed_in_creation_order(store: Store, tenant: str) -> None:
    created = [agent() for _ in range(7)]
    for one in reversed(created):
        store.agents.create(tenant, one)

    page = store.agents.list(tenant, Window(2, 3))

    assert page.data == created[2:5]
    assert page.has_more


def test_a_list_ends_before_it_is_too_large_for_one_answer(store: Store, tenant: str) -> None:
    created = [agent(PROSE * 5_000) for _ in range(6)]
    for one in created:
        store.agents.create(tenant, one)

    first = store.agents.list(tenant, Window())
    second = store.agents.list(tenant, Window(len(first.data), None))

    assert first.has_more
    assert sum(len(one.model_dump_json()) for one in first.data) <= MAX_BYTES
    assert first.data + second.data == created


def test_an_agent_whose_document_is_gone_is_left_out_of_a_list(cloud: Cloud, tenant: str) -> None:
    created = [agent(), agent()]
    for one in created:
        cloud.store.agents.create(tenant, one)
    pk, sk = agent_config(tenant, created[0].agent_id)
    cloud.dynamodb.delete_item(TableName=cloud.table, Key={"pk": {"S": pk}, "sk": {"S": sk}})

    assert cloud.store.agents.list(tenant, Window()).data == created[1:]


def test_ten_thousand_agents_are_listed_page_by_page(cloud: Cloud, tenant: str) -> None:
    ids = sorted(new_id() for _ in range(9_990))
    cloud.write(agent_key(tenant, agent_id)._asdict() | {"size": 750} for agent_id in ids)
    last = [agent() for _ in range(10)]
    for one in last:
        cloud.store.agents.create(tenant, one)
    cloud.forget()

    page = cloud.store.agents.list(tenant, Window(9_990, 10))

    assert page.data == last
    assert not page.has_more
    assert sum(cloud.calls.values()) <= 5


def test_the_list_entry_is_small(cloud: Cloud, tenant: str) -> None:
    created = agent(PROSE * 100)

    cloud.store.agents.create(tenant, created)

    [entry] = [item for item in cloud.items(tenant) if item["pk"]["S"] == f"{tenant}#agent"]
    assert size({name: next(iter(value.values())) for name, value in entry.items()}) < 300


@pytest.mark.parametrize("name", ["helper", "x" * 100_000, "\U0001f600" * 300])
def test_the_list_entry_has_the_name_and_is_one_write_unit(cloud: Cloud, tenant: str, name: str) -> None:
    created = agent(name=name)

    cloud.store.agents.create(tenant, created)

    [entry] = [item for item in cloud.items(tenant) if item["pk"]["S"] == f"{tenant}#agent"]
    assert size({key: next(iter(value.values())) for key, value in entry.items()}) <= 1_024
    assert cloud.store.agents.require(tenant, created.agent_id) == name[:200]


def test_a_marked_agent_is_gone_from_every_read(store: Store, tenant: str) -> None:
    created, other = agent(), agent()
    for one in (created, other):
        store.agents.create(tenant, one)

    store.agents.mark_deleted(tenant, created.agent_id)
    store.agents.mark_deleted(tenant, created.agent_id)

    assert store.agents.list(tenant, Window()).data == [other]
    for read in (store.agents.get, store.agents.require):
        with pytest.raises(NotFound):
            read(tenant, created.agent_id)


def test_a_removed_agent_cannot_be_marked(store: Store, tenant: str) -> None:
    created = agent()
    store.agents.create(tenant, created)

    store.agents.remove(tenant, created.agent_id)

    with pytest.raises(NotFound):
        store.agents.mark_deleted(tenant, created.agent_id)
    with pytest.raises(NotFound):
        store.agents.get(tenant, created.agent_id)


def test_the_check_that_an_agent_exists_is_one_read(cloud: Cloud, tenant: str) -> None:
    created = agent(PROSE * 1_000)
    cloud.store.agents.create(tenant, created)
    cloud.forget()

    assert cloud.store.agents.require(tenant, created.agent_id) is None
    assert cloud.calls == {"GetItem": 1}
    assert cloud.units["GetItem"] == 1
