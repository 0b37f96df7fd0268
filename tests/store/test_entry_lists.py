"""Lists of agents and sessions by order, id, name and status, and their calls and units."""

import time
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud
from tests.store.record_samples import SessionFixture, agent, ending, record, session

from stint.domain.errors import NotFound
from stint.domain.ids import new_id, time_of
from stint.domain.llama_stack.turns import TurnStatus
from stint.domain.paging import Window
from stint.domain.run_outcome import RunStatus
from stint.store import entry_pages, keys
from stint.store.items import size
from stint.store.keys import KeyLayout
from stint.store.sessions import UNKNOWN, LastTurn
from stint.store.store import Store


def read_units(items: list[dict[str, Any]]) -> int:
    """Return the units of one strongly consistent Query that reads these items: one for 4 KB."""
    return -(-sum(map(bytes_of, items)) // 4_096)


def bytes_of(item: dict[str, Any]) -> int:
    return size({name: next(iter(value.values())) for name, value in item.items()})


async def agents_of(store: Store, tenant: str, names: list[str | None]) -> list[str]:
    created = [agent(name=name) for name in names]
    for one in created:
        await store.agents.create(tenant, one)
    return [one.agent_id for one in created]


async def found_agents(store: Store, tenant: str, window: Window) -> tuple[list[str], bool, str | None]:
    page = await store.agents.list(tenant, window)
    return [one.agent_id for one in page.data], page.has_more, page.position


async def test_agents_are_listed_newest_first_after_an_id(store: Store, tenant: str) -> None:
    ids = await agents_of(store, tenant, [None] * 5)

    first = await found_agents(store, tenant, Window(limit=2, newest_first=True))
    second = await found_agents(store, tenant, Window(limit=2, newest_first=True, after=ids[3]))
    last = await found_agents(store, tenant, Window(limit=2, newest_first=True, after=ids[1]))

    assert first == ([ids[4], ids[3]], True, ids[3])
    assert second == ([ids[2], ids[1]], True, ids[1])
    assert last == ([ids[0]], False, ids[0])
    assert (await found_agents(store, tenant, Window(limit=2, after=ids[1])))[0] == ids[2:4]
    assert (await found_agents(store, tenant, Window(1, 2, after=ids[0], newest_first=True)))[0] == []


async def test_a_list_goes_on_after_an_entry_that_was_deleted(store: Store, tenant: str) -> None:
    ids = await agents_of(store, tenant, [None] * 4)
    await store.agents.mark_deleted(tenant, ids[1])
    await store.agents.remove(tenant, ids[1])

    assert (await found_agents(store, tenant, Window(after=ids[1])))[0] == ids[2:]
    assert (await found_agents(store, tenant, Window(after=ids[1], newest_first=True)))[0] == ids[:1]


@pytest.mark.parametrize("after", ["nonsense", "", "state", "\x00"])
async def test_a_list_after_what_is_no_id_is_not_found(store: Store, tenant: str, after: str) -> None:
    with pytest.raises(NotFound):
        await store.agents.list(tenant, Window(after=after))
    with pytest.raises(NotFound):
        await store.sessions.list(tenant, new_id(), Window(after=after))


async def test_agents_are_found_by_a_text_in_their_names_in_any_case(store: Store, tenant: str) -> None:
    ids = await agents_of(store, tenant, ["Weather", None, "the WEATHER bot", "Straße", "x" * 190 + "deep" + "y" * 90])

    async def named(text: str) -> list[str]:
        return (await found_agents(store, tenant, Window(name=text)))[0]

    assert await named("weather") == [ids[0], ids[2]]
    assert await named("STRASSE") == [ids[3]]
    assert await named("deep") == [ids[4]]
    assert await named("nothing") == []
    newest = await found_agents(store, tenant, Window(limit=1, name="weather", newest_first=True))
    assert newest == ([ids[2]], True, ids[2])
    assert await found_agents(store, tenant, Window(limit=1, name="weather", newest_first=True, after=ids[2])) == (
        [ids[0]],
        False,
        ids[0],
    )


async def test_a_search_of_names_reads_a_bounded_number_of_entries_and_says_where_to_go_on(
    cloud: Cloud, tenant: str
) -> None:
    [wanted] = await agents_of(cloud.store, tenant, ["needle"])
    ids = sorted(new_id() for _ in range(entry_pages.SEARCHED + 10))
    cloud.write(keys.agent(tenant, each)._asdict() | {"size": 750, "name": "hay"} for each in ids)
    cloud.forget()

    first = await found_agents(cloud.store, tenant, Window(name="needle", newest_first=True))
    calls = cloud.calls["Query"]
    second = await found_agents(cloud.store, tenant, Window(name="needle", newest_first=True, after=first[2]))

    assert first == ([], True, ids[10])
    assert second == ([wanted], False, wanted)
    assert calls == entry_pages.SEARCHED / entry_pages.SEARCHED_PER_CALL


async def test_a_name_that_is_found_at_once_costs_one_call(cloud: Cloud, tenant: str) -> None:
    await agents_of(cloud.store, tenant, [f"helper {number}" for number in range(30)])
    cloud.forget()

    page = await cloud.store.agents.list(tenant, Window(limit=20, name="helper"))

    assert (len(page.data), page.has_more) == (20, True)
    assert cloud.calls == {"Query": 1, "BatchGetItem": 1}


async def test_sessions_are_found_by_the_first_200_bytes_of_their_names(cloud: Cloud, tenant: str) -> None:
    store, created = cloud.store, agent()
    await store.agents.create(tenant, created)
    begun = [session(name) for name in ("Trip to Rome", "é" * 3_000 + "rome", "Rome " * 2_000, "")]
    for one in begun:
        await store.sessions.create(tenant, created.agent_id, one, None)

    async def named(text: str) -> list[str]:
        page = await store.sessions.list(tenant, created.agent_id, Window(name=text))
        return [one.session_id for one in page.data]

    assert await named("rome") == [begun[0].session_id, begun[2].session_id]
    assert await named("ÉÉ") == [begun[1].session_id]
    assert (await store.sessions.get(tenant, created.agent_id, begun[2].session_id)).name == "Rome " * 2_000
    stored = [item for item in cloud.items(tenant) if "name_start" in item]
    assert all(bytes_of(item) < 700 for item in stored)


async def last_turns(store: Store, begun: SessionFixture) -> list[tuple[str, str] | None]:
    page = await store.sessions.list(begun.tenant, begun.agent_id, Window(), last_turns=True)
    turns = [one.last_turn for one in page.data]
    return [(turn.turn_id, turn.status.value) if turn else None for turn in turns]


@pytest.mark.parametrize("layout", ["compatible", "spread"])
@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "awaiting_input"])
async def test_the_last_turn_has_the_status_of_its_ending(
    cloud: Cloud, tenant: str, layout: KeyLayout, status: str
) -> None:
    store = cloud.other_process(layout)
    begun = await SessionFixture.create(store, tenant)
    assert await last_turns(store, begun) == [None]
    await begun.turn()
    turn_id = await begun.turn(status=RunStatus(status))

    assert await last_turns(store, begun) == [(turn_id, status)]
    assert await last_turns(cloud.other_process("spread"), begun) == [(turn_id, status)]
    [shown] = (await store.sessions.list(tenant, begun.agent_id, Window(), last_turns=True)).data
    assert shown.last_turn is not None
    assert shown.last_turn.started_at == time_of(turn_id)
    assert abs(shown.last_turn.started_at.timestamp() - time.time_ns() / 1e9) < 3_600  # other tests move `time.time`


@pytest.mark.parametrize("layout", ["compatible", "spread"])
async def test_a_turn_without_an_ending_runs_while_the_lease_is_held(
    cloud: Cloud, tenant: str, layout: KeyLayout
) -> None:
    store = cloud.other_process(layout)
    begun = await SessionFixture.create(store, tenant)
    lease = await begun.begin(seconds=30)

    assert await last_turns(store, begun) == [(lease.turn_id, "in_progress")]
    await store.turns.append(lease, 0, record(lease.turn_id))
    assert await last_turns(store, begun) == [(lease.turn_id, "in_progress")]
    CLOCK.move(31)
    assert await last_turns(store, begun) == [(lease.turn_id, "failed")]


async def test_a_turn_whose_release_failed_has_the_status_of_its_ending(store: Store, tenant: str) -> None:
    begun = await SessionFixture.create(store, tenant)
    lease = await begun.begin()
    await store.turns.append(lease, 0, record(lease.turn_id, status=RunStatus.completed))

    assert await last_turns(store, begun) == [(lease.turn_id, "completed")]


async def test_a_turn_whose_records_are_not_counted_is_looked_up(store: Store, tenant: str) -> None:
    begun = await SessionFixture.create(store, tenant)
    lease = await begun.begin()
    await store.turns.append(lease, 0, record(lease.turn_id, status=RunStatus.awaiting_input))
    lease.last = LastTurn(lease.turn_id, UNKNOWN)
    await lease.release()

    assert await last_turns(store, begun) == [(lease.turn_id, "awaiting_input")]


async def test_a_turn_that_never_began_is_not_the_last_one(store: Store, tenant: str) -> None:
    begun = await SessionFixture.create(store, tenant)
    turn_id = await begun.turn()
    lease = await begun.acquire(seconds=30)
    assert await last_turns(store, begun) == [(lease.turn_id, "in_progress")]

    CLOCK.move(31)

    assert await last_turns(store, begun) == [(turn_id, "completed")]


async def test_a_hundred_sessions_with_their_last_turns_cost_three_calls(cloud: Cloud, tenant: str) -> None:
    first = await SessionFixture.create(cloud.store, tenant)
    sessions = [first]
    for _ in range(99):
        one = session()
        await cloud.store.sessions.create(tenant, first.agent_id, one, None)
        sessions.append(SessionFixture(cloud.store, tenant, first.agent_id, one.session_id))
    for each in sessions:
        await each.turn()
    cloud.forget()

    page = await cloud.store.sessions.list(
        tenant, first.agent_id, Window(limit=100, newest_first=True), last_turns=True
    )

    calls = dict(cloud.calls)
    assert len([one for one in page.data if one.last_turn]) == 100
    assert (calls["Query"], calls["BatchGetItem"], sum(calls.values())) == (1, 2, 3)
    # BatchGetItem reads each record for itself.
    read = [item for item in cloud.items(tenant) if item["sk"]["S"] == "state" or item["sk"]["S"].endswith(":0000")]
    assert sum(read_units([item]) for item in read) == 200
    entries = [item for item in cloud.items(tenant) if item["pk"]["S"] == keys.sessions(tenant, first.agent_id)]
    assert read_units(entries) <= 5


async def test_sessions_are_found_by_the_status_of_their_last_turns(cloud: Cloud, tenant: str) -> None:
    store, first = cloud.store, await SessionFixture.create(cloud.store, tenant)
    expected = []
    for number in range(12):
        one = session(f"talk {number}")
        await store.sessions.create(tenant, first.agent_id, one, None)
        failed = number % 3 == 0
        begun = SessionFixture(store, tenant, first.agent_id, one.session_id)
        await begun.turn(status=RunStatus.failed if failed else RunStatus.completed)
        expected += [one.session_id] if failed else []

    async def failed_sessions(window: Window) -> tuple[list[str], bool, str | None]:
        page = await store.sessions.list(tenant, first.agent_id, window, status=TurnStatus.failed)
        assert all(one.last_turn and one.last_turn.status == "failed" for one in page.data)
        return [one.session_id for one in page.data], page.has_more, page.position

    everything, more, _ = await failed_sessions(Window())
    assert (everything, more) == (expected, False)
    assert await failed_sessions(Window(limit=2)) == (expected[:2], True, expected[1])
    assert (await failed_sessions(Window(limit=2, after=expected[1])))[0] == expected[2:]
    assert (await failed_sessions(Window(limit=1, newest_first=True)))[0] == [expected[3]]
    assert (await failed_sessions(Window(name="TALK 9")))[0] == [expected[3]]
    assert (await failed_sessions(Window(name="talk 8")))[0] == []


async def test_a_search_of_a_status_looks_at_a_thousand_sessions(cloud: Cloud, tenant: str) -> None:
    store, first = cloud.store, await SessionFixture.create(cloud.store, tenant)
    lone = {"name": "talk", "started_at": "2026-01-01T00:00:00Z"}
    ids = sorted(new_id() for _ in range(1_000))
    cloud.write(keys.session(tenant, first.agent_id, each)._asdict() | lone for each in ids)
    cloud.forget()

    page = await store.sessions.list(
        tenant, first.agent_id, Window(limit=5, newest_first=True), status=TurnStatus.failed
    )

    assert (page.data, page.has_more, page.position) == ([], True, ids[0])
    assert sum(cloud.calls.values()) <= 30


async def test_deleted_sessions_are_in_no_list_with_last_turns(store: Store, tenant: str) -> None:
    begun = await SessionFixture.create(store, tenant)
    await begun.turn()
    await store.sessions.mark_deleted(*begun.ids)

    assert await last_turns(store, begun) == []


async def test_turns_are_read_newest_first_page_by_page(cloud: Cloud, tenant: str) -> None:
    store, begun = cloud.store, await SessionFixture.create(cloud.store, tenant)
    made = [await begun.turn(f"say {number}") for number in range(45)]
    cloud.forget()

    async def page(**given: object) -> tuple[list[str], bool]:
        turns, more = await store.turns.page(*begun.ids, **given)  # type: ignore[arg-type]  # of several types
        return [turn.header.turn_id for turn in turns], more

    assert await page(limit=20) == (made[:24:-1], True)
    assert cloud.calls == {"Query": 1}
    records = [item for item in cloud.items(tenant) if item["sk"]["S"].partition(":")[0] in made]
    assert read_units(records[-64:]) <= 7
    assert await page(limit=20, after=made[25]) == (made[24:4:-1], True)
    assert await page(limit=20, after=made[5]) == (made[4::-1], False)
    assert await page(limit=5, after=made[5]) == (made[4::-1], False)
    assert await page(limit=2, newest_first=False) == (made[:2], True)
    assert await page(limit=2, newest_first=False, after=made[1]) == (made[2:4], True)
    assert await page(limit=2, newest_first=False, after=made[43]) == (made[44:], False)


async def test_a_page_of_large_turns_ends_after_four_megabytes(store: Store, tenant: str) -> None:
    begun = await SessionFixture.create(store, tenant)
    made = [await begun.turn("x" * 1_500_000) for _ in range(5)]

    turns, more = await store.turns.page(*begun.ids)

    assert ([turn.header.turn_id for turn in turns], more) == (made[:1:-1], True)


async def test_turns_that_never_began_are_not_on_a_page(store: Store, tenant: str) -> None:
    begun = await SessionFixture.create(store, tenant)
    turn_id = await begun.turn()
    lease = await begun.acquire()
    await store.turns.seal(lease, new_id(), ending(RunStatus.failed))

    turns, more = await store.turns.page(*begun.ids, limit=1)

    assert ([turn.header.turn_id for turn in turns], more) == ([turn_id], False)
