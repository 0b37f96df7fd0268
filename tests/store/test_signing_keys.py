import asyncio

import pytest
from tests.store.conftest import Cloud

from stint.store import keys
from stint.store.signing_keys import KEY_BYTES, SigningKeys


def keys_of(cloud: Cloud) -> SigningKeys:
    return SigningKeys(cloud.table)


async def test_the_first_caller_makes_the_key_and_all_others_read_it(cloud: Cloud, tenant: str) -> None:
    first = await keys_of(cloud).get(tenant)
    cost = dict(cloud.calls), cloud.units["PutItem"]
    cloud.forget()

    assert await keys_of(cloud).get(tenant) == first
    assert (len(first), cost) == (KEY_BYTES, ({"GetItem": 1, "PutItem": 1}, 1))
    assert (dict(cloud.calls), cloud.units["GetItem"]) == ({"GetItem": 1}, 1)


async def test_processes_that_race_for_the_first_key_agree(cloud: Cloud, tenant: str) -> None:
    found = set(await asyncio.gather(*(keys_of(cloud).get(tenant) for _ in range(16))))

    assert len(found) == 1
    assert len(cloud.items(tenant)) == 1


async def test_a_key_whose_answer_was_lost_is_the_one_that_counts(own_cloud: Cloud, tenant: str) -> None:
    own_cloud.proxy.lose_first_answer("PutItem")

    first = await keys_of(own_cloud).get(tenant)

    assert await keys_of(own_cloud).get(tenant) == first


async def test_tenants_have_keys_of_their_own_which_never_expire(cloud: Cloud, tenant: str) -> None:
    assert await keys_of(cloud).get(tenant) != await keys_of(cloud).get(f"{tenant}b")

    [record] = cloud.items(tenant)
    assert {"expires_at", "deleted_at"} & set(record) == set()


@pytest.mark.parametrize("prefix", ["agent", "session", "response", "conversation", "registry", "event"])
def test_the_key_lies_in_no_partition_of_anything_else(tenant: str, prefix: str) -> None:
    assert not keys.signing_key(tenant).pk.startswith(f"{tenant}#{prefix}")
