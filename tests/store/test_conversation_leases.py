import asyncio
import time
from typing import Self

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.domain.ids import new_name
from stint.store import keys
from stint.store.lease import Lease
from stint.store.records import mark_deleted


class LeaseFixture:
    """The record of a conversation with a few attributes, and acquisitions of its lease."""

    def __init__(self, cloud: Cloud, tenant: str) -> None:
        self.table = cloud.table
        self.leases = cloud.store.conversation_leases
        self.ids = (tenant, new_name("conv"))
        self.key = keys.conversation(*self.ids)

    @classmethod
    async def create(cls, cloud: Cloud, tenant: str) -> Self:
        made = cls(cloud, tenant)
        await made.table.put({"pk": made.key.pk, "sk": made.key.sk, "colour": "red"})
        return made

    async def acquire(self, holder: str = "resp_one", seconds: float = 30) -> Lease:
        return await self.leases.acquire(*self.ids, holder, seconds)

    async def outcome(self) -> str:
        try:
            lock = await self.acquire(new_name("resp"))
        except Conflict as conflict:
            return conflict.code
        return f"took over {lock.taken_over}"


@pytest.fixture
async def conversation(cloud: Cloud, tenant: str) -> LeaseFixture:
    return await LeaseFixture.create(cloud, tenant)


async def test_a_lock_gives_the_record_as_it_stands_for_one_unit(cloud: Cloud, conversation: LeaseFixture) -> None:
    cloud.forget()

    with CLOCK.stop():
        lock = await conversation.acquire()
        until = round((time.time() + 30) * 1000)

    assert lock.item["colour"] == "red"
    assert lock.item["lock_until"] == until
    assert lock.taken_over is None
    assert cloud.units == {"UpdateItem": 1}


async def test_a_locked_record_names_who_holds_it(conversation: LeaseFixture) -> None:
    await conversation.acquire("resp_one")

    with pytest.raises(Conflict, match=f"Conversation {conversation.ids[1]} is running resp_one. Wait") as raised:
        await conversation.acquire("resp_two")

    assert raised.value.code == "conversation_locked"


async def test_a_released_lock_can_be_taken_again_and_leaves_only_its_id(conversation: LeaseFixture) -> None:
    await (await conversation.acquire()).release()

    again = await conversation.acquire("resp_two")

    assert again.taken_over is None
    await again.release()
    left = {"pk": conversation.key.pk, "sk": "meta", "colour": "red", "lock_until": again.lease_id}
    assert await conversation.table.get(conversation.key) == left


async def test_a_lock_names_the_one_after_whose_release_it_was_acquired(conversation: LeaseFixture) -> None:
    first = await conversation.acquire()
    await first.release()
    second = await conversation.acquire("resp_two")
    await second.renew(30)
    await second.release()
    third = await conversation.acquire("resp_three")

    assert not first.last
    assert second.last == first.lease_id
    assert third.last == second.lease_id


async def test_a_lock_of_an_earlier_release_in_between_is_not_overlooked(conversation: LeaseFixture) -> None:
    await (await conversation.acquire()).release()
    taken = {"lock_id": "0123456789abcdef", "lock_holder": "resp_old", "lock_until": 1, "lock_seconds": 30}
    await conversation.table.update(conversation.key, taken, "attribute_not_exists(lock_id)")
    await conversation.table.update(conversation.key, dict.fromkeys(taken), "attribute_exists(lock_id)")

    lock = await conversation.acquire("resp_two")

    assert not lock.last


async def test_locks_that_lapsed_or_were_cleared_are_not_named(conversation: LeaseFixture) -> None:
    await (await conversation.acquire()).release()
    dead = await conversation.acquire("resp_dead", seconds=-0.001)
    over = await conversation.acquire("resp_two", seconds=-0.001)
    lapsed = await conversation.leases.find_lapsed(*conversation.ids)
    assert lapsed is not None
    await conversation.leases.clear(*conversation.ids, lapsed)
    await dead.release()
    await over.release()

    after = await conversation.acquire("resp_three")

    assert (over.taken_over, over.last) == ("resp_dead", None)
    assert not after.last


async def test_a_lock_whose_answer_was_lost_and_that_is_acquired_again_names_none(
    own_cloud: Cloud, tenant: str
) -> None:
    conversation = await LeaseFixture.create(own_cloud, tenant)
    await (await conversation.acquire()).release()

    lost = own_cloud.proxy.lose_first_answer("UpdateItem")
    lock = await conversation.acquire("resp_two")

    assert len(lost) > 1
    assert lock.last is None
    assert lock.item["lock_holder"] == "resp_two"


async def test_a_lock_that_ran_out_is_taken_over_and_its_holder_told(conversation: LeaseFixture) -> None:
    dead = await conversation.acquire("resp_one", seconds=-0.001)

    lock = await conversation.acquire("resp_two")

    assert lock.taken_over == "resp_one"
    with pytest.raises(Interrupted, match=f"Conversation {conversation.ids[1]} was taken over"):
        await dead.renew(30)
    await dead.release()
    await lock.renew(30)


async def test_a_renewed_lock_is_not_taken_over(conversation: LeaseFixture) -> None:
    lock = await conversation.acquire(seconds=-0.001)

    await lock.renew(30)

    assert await conversation.outcome() == "conversation_locked"


@pytest.mark.parametrize("removed", [False, True])
async def test_the_lock_of_a_deleted_record_is_neither_given_nor_renewed(
    conversation: LeaseFixture, removed: bool
) -> None:
    lock = await conversation.acquire()
    await mark_deleted(conversation.table, conversation.key)
    if removed:
        await conversation.table.delete(conversation.key)

    with pytest.raises(Interrupted):
        await lock.renew(30)
    with pytest.raises(NotFound) as raised:
        await conversation.acquire()

    assert raised.value.code == "conversation_not_found"
    await lock.release()
    assert (await conversation.table.get(conversation.key) is None) is removed


async def test_one_of_32_requests_gets_the_lock(conversation: LeaseFixture) -> None:
    outcomes = await asyncio.gather(*(conversation.outcome() for _ in range(32)))

    assert outcomes.count("conversation_locked") == 31
    assert outcomes.count("took over None") == 1


async def test_a_takeover_of_a_lock_has_one_winner(conversation: LeaseFixture) -> None:
    await conversation.acquire("resp_dead", seconds=-0.001)

    outcomes = await asyncio.gather(*(conversation.outcome() for _ in range(32)))

    assert outcomes.count("conversation_locked") == 31
    assert outcomes.count("took over resp_dead") == 1


@pytest.mark.parametrize("dead", [False, True])
async def test_a_lock_whose_answer_was_lost_is_held_all_the_same(own_cloud: Cloud, tenant: str, dead: bool) -> None:
    conversation = await LeaseFixture.create(own_cloud, tenant)
    if dead:
        await conversation.acquire("resp_dead", seconds=-0.001)
    sent = own_cloud.proxy.lose_first_answer("UpdateItem", after=200)

    lock = await conversation.acquire()

    assert sent[-2:] == [200, 400]
    assert lock.taken_over == ("resp_dead" if dead else None)
    await lock.renew(30)
