"""The links from entities to documents."""

import pytest
from tests.store.conftest import Cloud

from stint.domain.ids import new_name
from stint.store.keys import document_key

CURIE, NOBEL = document_key("curie"), document_key("nobel")


@pytest.fixture
def store_id() -> str:
    return new_name("vs")


async def test_links_are_found_counted_and_removed(cloud: Cloud, tenant: str, store_id: str) -> None:
    links = cloud.store.entity_links
    await links.add(tenant, store_id, CURIE, ["nobel prize", "paris"])
    cloud.forget()
    await links.add(tenant, store_id, NOBEL, ["nobel prize"])
    units = cloud.units["BatchWriteItem"]

    found = await links.find_documents(tenant, store_id, ["nobel prize", "paris", "lima"], 10)
    [one] = await links.find_documents(tenant, store_id, ["nobel prize"], 1)
    known = await links.find_known(tenant, store_id, ["lima", "paris"])
    await links.remove(tenant, store_id, CURIE, ["nobel prize", "paris"])
    left = await links.find_known(tenant, store_id, ["nobel prize", "paris"])
    await links.remove(tenant, store_id, NOBEL, ["nobel prize"])

    assert [sorted(each) for each in found] == [sorted([CURIE, NOBEL]), [CURIE], []]
    assert (units, len(one), known, left) == (2, 1, ["paris"], ["nobel prize"])
    assert cloud.items(tenant) == []


async def test_an_entity_that_another_request_links_meanwhile_is_kept(
    cloud: Cloud, tenant: str, store_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = cloud.store.entity_links
    await links.add(tenant, store_id, CURIE, ["paris"])
    delete = links._table.delete

    async def link_first(*args: object, **options: object) -> None:
        await links.add(tenant, store_id, NOBEL, ["paris"])
        await delete(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(links._table, "delete", link_first)
    await links.remove(tenant, store_id, CURIE, ["paris"])

    assert await links.find_known(tenant, store_id, ["paris"]) == ["paris"]
    assert await links.find_documents(tenant, store_id, ["paris"], 10) == [[NOBEL]]
