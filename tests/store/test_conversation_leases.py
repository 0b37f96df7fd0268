import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud, lose_first_answer

from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.domain.ids import new_name
from stint.store import keys
from stint.store.lease import Lease
from stint.store.table import Table
from stint.store.tombstones import mark_deleted


class Door:
    """A conversation's record of a few attributes, and who asks for its lease."""

    def __init__(self, cloud: Cloud, tenant: str) -> None:
        self.table = Table(cloud.dynamodb, cloud.table)
        self.leases = cloud.store.conversation_leases
        self.ids = (tenant, new_name("conv"))
        self.key = keys.conversation(*self.ids)
        self.table.put({"pk": self.key.pk, "sk": self.key.sk, "colour": "red"})

    def acquire(self, holder: str = "resp_one", seconds: float = 30) -> Lease:
        return self.leases.acquire(*self.ids, holder, seconds)

    def outcome(self) -> str:
        try:
            lock = self.acquire(new_name("resp"))
        except Conflict as conflict:
            return conflict.code
        return f"took over {lock.taken_over}"


@pytest.fixture
def door(cloud: Cloud, tenant: str) -> Door:
    return Door(cloud, tenant)


def test_a_lock_gives_the_record_as_it_stands_for_one_unit(cloud: Cloud, door: Door) -> None:
    cloud.forget()

    with CLOCK.stop():
        lock = door.acquire()
        until = round((time.time() + 30) * 1000)

    assert lock.item["colour"] == "red"
    assert lock.item["lock_until"] == until
    assert lock.taken_over is None
    assert cloud.units == {"UpdateItem": 1}


def test_a_locked_record_names_who_holds_it(door: Door) -> None:
    door.acquire("resp_one")

    with pytest.raises(Conflict, match=f"Conversation {door.ids[1]} is running resp_one. Wait") as raised:
        door.acquire("resp_two")

    assert raised.value.code == "conversation_locked"


def test_a_released_lock_can_be_taken_again_and_leaves_no_trace(door: Door) -> None:
    door.acquire().release()

    again = door.acquire("resp_two")

    assert again.taken_over is None
    again.release()
    assert door.table.get(door.key) == {"pk": door.key.pk, "sk": "meta", "colour": "red"}


def test_a_lock_that_ran_out_is_taken_over_and_its_holder_told(door: Door) -> None:
    dead = door.acquire("resp_one", seconds=-0.001)

    lock = door.acquire("resp_two")

    assert lock.taken_over == "resp_one"
    with pytest.raises(Interrupted, match=f"Conversation {door.ids[1]} was taken over"):
        dead.renew(30)
    dead.release()
    lock.renew(30)


def test_a_renewed_lock_is_not_taken_over(door: Door) -> None:
    lock = door.acquire(seconds=-0.001)

    lock.renew(30)

    assert door.outcome() == "conversation_locked"


@pytest.mark.parametrize("removed", [False, True])
def test_the_lock_of_a_deleted_record_is_neither_given_nor_renewed(door: Door, removed: bool) -> None:
    lock = door.acquire()
    mark_deleted(door.table, door.key)
    if removed:
        door.table.delete(door.key)

    with pytest.raises(Interrupted):
        lock.renew(30)
    with pytest.raises(NotFound) as raised:
        door.acquire()

    assert raised.value.code == "conversation_not_found"
    lock.release()
    assert (door.table.get(door.key) is None) is removed


def test_sixteen_requests_get_one_lock(door: Door) -> None:
    with ThreadPoolExecutor(16) as threads:
        outcomes = list(threads.map(lambda _: door.outcome(), range(32)))

    assert outcomes.count("conversation_locked") == 31
    assert outcomes.count("took over None") == 1


def test_a_takeover_of_a_lock_has_one_winner(door: Door) -> None:
    door.acquire("resp_dead", seconds=-0.001)

    with ThreadPoolExecutor(16) as threads:
        outcomes = list(threads.map(lambda _: door.outcome(), range(32)))

    assert outcomes.count("conversation_locked") == 31
    assert outcomes.count("took over resp_dead") == 1


@pytest.mark.parametrize("dead", [False, True])
def test_a_lock_whose_answer_was_lost_is_held_all_the_same(own_cloud: Cloud, tenant: str, dead: bool) -> None:
    door = Door(own_cloud, tenant)
    if dead:
        door.acquire("resp_dead", seconds=-0.001)
    sent = lose_first_answer(own_cloud, "UpdateItem", after=200)

    lock = door.acquire()

    assert sent[-2:] == [200, 400]
    assert lock.taken_over == ("resp_dead" if dead else None)
    lock.renew(30)
