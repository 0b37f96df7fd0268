import asyncio
import time
from hashlib import sha256

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud

from stint.domain.errors import IdempotencyKeyReused
from stint.domain.idempotency import StoredAnswer
from stint.store.idempotent_requests import KEPT_SECONDS, RequestRecords

DIGEST = sha256(b"key").hexdigest()
ANSWER = StoredAnswer(status=200, headers={"content-type": "application/json"}, body='{"answer": 42}')


@pytest.fixture
def requests(cloud: Cloud) -> RequestRecords:
    return cloud.store.requests


async def test_the_lease_of_a_new_request_costs_one_unit(cloud: Cloud, requests: RequestRecords, tenant: str) -> None:
    cloud.forget()

    with CLOCK.stop():
        record = await requests.acquire(tenant, DIGEST, "body", "object", 30)
        now = int(time.time())

    assert cloud.units == {"UpdateItem": 1}
    assert (record.is_own, record.answered, record.object_id) == (True, False, "object")
    [item] = cloud.items(tenant)
    assert int(item["expires_at"]["N"]) == now + KEPT_SECONDS


async def test_one_of_many_equal_requests_gets_the_lease(requests: RequestRecords, tenant: str) -> None:
    async def acquire(number: int) -> bool:
        return (await requests.acquire(tenant, DIGEST, "body", f"object-{number}", 30)).is_own

    assert (await asyncio.gather(*map(acquire, range(16)))).count(True) == 1


async def test_another_body_with_the_same_key_is_refused(requests: RequestRecords, tenant: str) -> None:
    first = await requests.acquire(tenant, DIGEST, "body", "object", 30)
    with pytest.raises(IdempotencyKeyReused):
        await requests.acquire(tenant, DIGEST, "other", "object", 30)
    await requests.put_answer(tenant, DIGEST, first, ANSWER)
    with pytest.raises(IdempotencyKeyReused):
        await requests.acquire(tenant, DIGEST, "other", "object", 30)


@pytest.mark.parametrize("body", ['{"answer": 42}', "x" * 400_000], ids=["small", "large"])
async def test_an_answer_is_read_by_every_repetition(
    requests: RequestRecords, tenant: str, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stint.store.documents.MAX_ITEM", 300)
    answer = ANSWER.model_copy(update={"body": body})
    first = await requests.acquire(tenant, DIGEST, "body", "object", 30)
    await requests.put_answer(tenant, DIGEST, first, answer)

    for _ in range(2):
        again = await requests.acquire(tenant, DIGEST, "body", "other", 30)
        assert (again.is_own, again.answered) == (False, True)
        assert await requests.read_answer(again) == answer
    assert await requests.find_running(tenant, DIGEST) is None


async def test_a_lapsed_lease_is_taken_over_with_its_object(requests: RequestRecords, tenant: str) -> None:
    first = await requests.acquire(tenant, DIGEST, "body", "object", 30)
    assert await requests.find_running(tenant, DIGEST)
    CLOCK.move(30.1)

    assert await requests.find_running(tenant, DIGEST) is None
    second = await requests.acquire(tenant, DIGEST, "body", "other", 30)

    assert (second.is_own, second.taken_over, second.object_id) == (True, True, "object")
    await requests.put_answer(tenant, DIGEST, first, ANSWER)
    await requests.delete(first)
    assert (await requests.acquire(tenant, DIGEST, "body", "x", 30)).answered is False


async def test_a_request_that_was_removed_runs_again(requests: RequestRecords, tenant: str) -> None:
    await requests.delete(await requests.acquire(tenant, DIGEST, "body", "object", 30))

    again = await requests.acquire(tenant, DIGEST, "other body", "new", 30)

    assert (again.is_own, again.taken_over, again.object_id) == (True, False, "new")


async def test_a_request_is_forgotten_after_a_day(requests: RequestRecords, tenant: str) -> None:
    await requests.put_answer(tenant, DIGEST, await requests.acquire(tenant, DIGEST, "body", "object", 30), ANSWER)
    CLOCK.move(KEPT_SECONDS + 1)

    again = await requests.acquire(tenant, DIGEST, "other body", "new", 30)

    assert (again.is_own, again.answered, again.object_id) == (True, False, "new")


async def test_keys_of_other_tenants_are_other_requests(requests: RequestRecords, tenant: str) -> None:
    await requests.put_answer(tenant, DIGEST, await requests.acquire(tenant, DIGEST, "body", "object", 30), ANSWER)

    assert (await requests.acquire(f"{tenant}-b", DIGEST, "body", "object", 30)).is_own
