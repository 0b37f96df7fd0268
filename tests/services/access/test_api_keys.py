import asyncio
from typing import Any

import pytest
from infra.local.engine import Engine
from tests.store.conftest import Cloud

from stint.domain.api_keys import CreateApiKeyRequest, parse_key
from stint.domain.errors import Conflict, InvalidRequest, NotFound
from stint.domain.principals import Budgets, Principal
from stint.services.access.api_keys import ApiKeys
from stint.store.api_keys import ApiKeyStore
from stint.store.table import Table


class Keys:
    """The use cases with a clock of their own, and the table that they write."""

    def __init__(self, cloud: Cloud, name: str, tenant: str) -> None:
        self.cloud, self.name, self.tenant, self.time = cloud, name, tenant, 1_000_000_000.5
        self.api = ApiKeys(ApiKeyStore(Table(cloud.client, name)), lambda: self.time)

    async def create(self, **fields: object) -> str:
        request = CreateApiKeyRequest.model_validate({"tenant": self.tenant, **fields})
        return (await self.api.create(request)).key

    async def is_valid(self, key: str) -> bool:
        return await self.api.verify(key) is not None

    def record(self, key: str) -> dict[str, dict[str, Any]]:
        return self.read(f"api_key:{id_of(key)}", "meta")

    def read(self, pk: str, sk: str) -> dict[str, dict[str, Any]]:
        key = {"pk": {"S": pk}, "sk": {"S": sk}}
        found: dict[str, dict[str, Any]] = self.cloud.dynamodb.get_item(TableName=self.name, Key=key)["Item"]  # type: ignore[assignment]
        return found


def id_of(key: str) -> str:
    parsed = parse_key(key)
    assert parsed
    return parsed[0]


@pytest.fixture
def keys(cloud: Cloud, tenant: str, engine: Engine) -> Keys:
    return Keys(cloud, engine.outputs["KeysTableName"], tenant)


async def test_a_key_is_verified_by_one_read(keys: Keys) -> None:
    key = await keys.create(
        name=" Billing ", subject="bot", scopes=["use", "admin"], models=["openai/*"], budgets={"tokens_per_minute": 5}
    )
    keys.cloud.forget()

    principal = await keys.api.verify(key)

    assert principal == Principal(
        keys.tenant,
        "bot",
        frozenset({"use", "admin"}),
        id_of(key),
        ("openai/*",),
        Budgets(tokens_per_minute=5),
    )
    assert (dict(keys.cloud.calls), keys.cloud.units["GetItem"]) == ({"GetItem": 1}, 1)


async def test_a_text_that_is_no_key_reads_nothing(keys: Keys) -> None:
    keys.cloud.forget()

    assert not await keys.is_valid("stk_../meta")
    assert dict(keys.cloud.calls) == {}


async def test_another_secret_or_another_id_is_not_valid(keys: Keys) -> None:
    key, other = await keys.create(), await keys.create()

    assert not await keys.is_valid(key[:-1] + ("0" if key[-1] != "0" else "1"))
    assert not await keys.is_valid(f"stk_{id_of(other)}_{key[-64:]}")
    assert not await keys.is_valid(f"stk_{'0' * 32}_{key[-64:]}")


async def test_the_table_has_no_secret(keys: Keys) -> None:
    key = await keys.create()

    record = keys.record(key)

    assert key[-64:] not in str(record)
    assert bytes.fromhex(key[-64:]) not in [value.get("B") for value in record.values()]


async def test_a_key_without_a_subject_has_its_id(keys: Keys) -> None:
    key = await keys.create()

    principal = await keys.api.verify(key)

    assert principal is not None
    assert principal.subject == id_of(key)


async def test_expiry_is_honoured_at_once_and_the_record_is_removed_later(keys: Keys) -> None:
    key = await keys.create(expires_at=int(keys.time) + 10)
    before = await keys.is_valid(key)

    keys.time += 10

    assert (before, await keys.is_valid(key)) == (True, False)
    removal = {"N": str(1_000_000_010 + 30 * 86_400)}
    assert keys.record(key)["delete_at"] == removal
    assert keys.read(f"{keys.tenant}#api_key", id_of(key))["delete_at"] == removal


async def test_a_key_cannot_expire_in_the_past(keys: Keys) -> None:
    with pytest.raises(InvalidRequest, match="expires_at is in the past"):
        await keys.create(expires_at=int(keys.time))


async def test_keys_are_listed_for_their_tenant_without_secrets_the_newest_first(keys: Keys, cloud: Cloud) -> None:
    first, second = await keys.create(name="a"), await keys.create(name="b")
    await Keys(cloud, keys.name, f"{keys.tenant}-2").create()
    keys.cloud.forget()

    listed = (await keys.api.list_page(keys.tenant, None, 9)).data

    assert [(each.name, each.id) for each in listed] == [("b", id_of(second)), ("a", id_of(first))]
    assert "secret" not in str(listed)
    assert dict(keys.cloud.calls) == {"Query": 1, "BatchGetItem": 1}


async def test_a_tenant_without_keys_has_an_empty_list(keys: Keys) -> None:
    assert (await keys.api.list_page(keys.tenant, None, 9)).data == []


async def test_a_revoked_key_is_invalid_and_stays_in_the_list(keys: Keys) -> None:
    key = await keys.create()

    revoked = await keys.api.revoke(keys.tenant, id_of(key))
    keys.time += 100
    again = await keys.api.revoke(None, id_of(key))

    assert not await keys.is_valid(key)
    assert (revoked.revoked_at, again.revoked_at) == (1_000_000_000, 1_000_000_000)
    assert [each.revoked_at for each in (await keys.api.list_page(keys.tenant, None, 9)).data] == [1_000_000_000]
    assert keys.read(f"{keys.tenant}#api_key", id_of(key))["delete_at"]


@pytest.mark.parametrize("overlap", [0, 60])
async def test_rotation_replaces_the_secret_at_once_or_after_an_overlap(keys: Keys, overlap: int) -> None:
    key = await keys.create(name="n")

    rotated = await keys.api.rotate(keys.tenant, id_of(key), overlap)
    valid = [await keys.is_valid(each) for each in (rotated.key, key)]
    keys.time += overlap + 0.5

    assert (rotated.id, rotated.name, rotated.rotated_at) == (id_of(key), "n", 1_000_000_000)
    assert valid == [True, overlap > 0]
    assert [await keys.is_valid(each) for each in (rotated.key, key)] == [True, False]


async def test_a_second_rotation_ends_the_overlap_of_the_first(keys: Keys) -> None:
    first = await keys.create()
    second = await keys.api.rotate(keys.tenant, id_of(first), 1_000)
    third = await keys.api.rotate(keys.tenant, id_of(first), 1_000)

    assert [await keys.is_valid(each) for each in (first, second.key, third.key)] == [False, True, True]


async def test_a_rotation_without_overlap_ends_an_earlier_overlap(keys: Keys) -> None:
    first = await keys.create()
    second = await keys.api.rotate(keys.tenant, id_of(first), 1_000)
    await keys.api.rotate(keys.tenant, id_of(first))

    assert [await keys.is_valid(each) for each in (first, second.key)] == [False, False]


async def test_of_rotations_at_the_same_time_each_answer_is_true(keys: Keys) -> None:
    key = await keys.create()

    rotations = (keys.api.rotate(keys.tenant, id_of(key)) for _ in range(8))
    done = await asyncio.gather(*rotations, return_exceptions=True)

    issued = [each.key for each in done if not isinstance(each, BaseException)]
    refused = [each for each in done if isinstance(each, BaseException)]
    assert issued
    assert all(isinstance(each, Conflict) for each in refused)
    assert [await keys.is_valid(each) for each in issued].count(True) == 1


@pytest.mark.parametrize("operation", ["PutItem", "UpdateItem"])
async def test_a_write_whose_answer_was_lost_has_taken_effect_once(
    own_cloud: Cloud, keys: Keys, operation: str
) -> None:
    mine = Keys(own_cloud, keys.name, keys.tenant)
    if operation == "PutItem":
        own_cloud.proxy.lose_first_answer(operation)
    key = await mine.create()
    if operation == "UpdateItem":
        own_cloud.proxy.lose_first_answer(operation)

    rotated = await mine.api.rotate(keys.tenant, id_of(key))

    assert await keys.is_valid(rotated.key)
    assert not await keys.is_valid(key)


async def test_ended_keys_are_not_rotated(keys: Keys) -> None:
    revoked, expired = await keys.create(), await keys.create(expires_at=int(keys.time) + 1)
    await keys.api.revoke(keys.tenant, id_of(revoked))
    keys.time += 1

    for key in (revoked, expired):
        with pytest.raises(Conflict, match="revoked or expired"):
            await keys.api.rotate(keys.tenant, id_of(key))


async def test_keys_of_other_tenants_are_missing(keys: Keys) -> None:
    key = await keys.create()

    for call in (keys.api.get, keys.api.revoke, keys.api.rotate):
        with pytest.raises(NotFound):
            await call(f"{keys.tenant}-2", id_of(key))
        with pytest.raises(NotFound):
            await call(keys.tenant, "stk/../meta")
    assert await keys.is_valid(key)
    assert (await keys.api.get(None, id_of(key))).tenant == keys.tenant
