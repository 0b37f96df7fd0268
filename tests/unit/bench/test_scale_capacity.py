import asyncio
import time

import pytest
from infra.bench.scale.capacity import OF_A_KEY, OF_A_NEW_TABLE, Capacity, Limit, read_units, write_units
from infra.bench.scale.virtual_time import VirtualClock, run_virtually, virtual_time


def admitted(capacity: Capacity, pk: str, units: float, now: float) -> int:
    """Return how many reads of so many units a key admits at a time."""
    count = 0
    while capacity.admits([pk], now):
        capacity.charge(pk, "read", units, now)
        count += 1
    return count


def test_a_key_admits_1000_writes_or_3000_reads_in_a_second() -> None:
    capacity = Capacity(key=OF_A_KEY)

    assert admitted(capacity, "a", 1, 0) == 3_000
    assert admitted(capacity, "b", 3, 0) == 1_000


def test_writes_leave_the_rest_of_a_second_for_reads() -> None:
    capacity = Capacity(key=OF_A_KEY)
    capacity.charge("a", "write", 900, 0)

    assert admitted(capacity, "a", 1, 0) == pytest.approx(300, abs=1)


def test_a_key_saves_no_more_than_a_second() -> None:
    capacity = Capacity(key=OF_A_KEY)
    admitted(capacity, "a", 1, 0)

    assert admitted(capacity, "a", 1, 0.5) == pytest.approx(1_500, abs=1)
    assert admitted(capacity, "a", 1, 300) == 3_000


def test_a_large_request_is_paid_by_those_after_it() -> None:
    capacity = Capacity(key=Limit(10, 10))
    capacity.charge("a", "write", 30, 0)

    assert not capacity.admits(["a"], 1.5)
    assert capacity.admits(["a"], 2.5)


def test_many_keys_exhaust_the_table() -> None:
    capacity = Capacity(OF_A_KEY, OF_A_NEW_TABLE)
    for key in "abcd":
        assert admitted(capacity, key, 1, 0) == 3_000

    assert not capacity.admits(["e"], 0)
    assert capacity.table(0).refused == 2  # and the last read of the fourth key
    assert capacity.keys["e"].refused == 0


def test_a_request_is_refused_if_one_of_its_keys_is_exhausted() -> None:
    capacity = Capacity(key=OF_A_KEY)
    admitted(capacity, "a", 1, 0)

    assert not capacity.admits(["b", "a"], 0)
    assert capacity.keys["b"].refused == 0


def test_the_peak_is_the_most_of_a_second() -> None:
    capacity = Capacity()
    for now, units in ((0.1, 2), (0.9, 3), (1.0, 4), (7.0, 1)):
        capacity.charge("a", "write", units, now)

    assert (capacity.keys["a"].writes.peak, capacity.keys["a"].writes.total) == (5, 10)


def test_units_are_rounded_up() -> None:
    assert [write_units(size) for size in (0, 1, 1_024, 1_025)] == [1, 1, 1, 2]
    assert [read_units(size, consistent=True) for size in (0, 4_096, 4_097)] == [1, 1, 2]
    assert read_units(4_097, consistent=False) == 1


def test_virtual_time_passes_only_in_waits() -> None:
    began = time.perf_counter()

    async def wait(clock: VirtualClock) -> tuple[float, float, float]:
        wall, monotonic = time.time(), time.monotonic()
        await asyncio.gather(asyncio.sleep(3_600), asyncio.sleep(7_200), asyncio.to_thread(int))
        return clock.now, time.time() - wall, time.monotonic() - monotonic

    assert run_virtually(wait) == pytest.approx((7_200, 7_200, 7_200))
    assert time.perf_counter() - began < 3_600


def test_timers_fire_in_order_of_their_times() -> None:
    async def note(_: VirtualClock) -> list[int]:
        seen: list[int] = []

        async def later(seconds: int) -> None:
            await asyncio.sleep(seconds)
            seen.append(seconds)

        await asyncio.gather(*(later(seconds) for seconds in (5, 1, 3)))
        return seen

    assert run_virtually(note) == [1, 3, 5]


def test_a_wait_that_no_timer_ends_is_an_error() -> None:
    async def wait(_: VirtualClock) -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="none of them for a timer"):
        run_virtually(wait)


def test_the_clocks_are_back_afterwards() -> None:
    before = time.time
    with virtual_time():
        assert time.time is not before
    assert time.time is before
