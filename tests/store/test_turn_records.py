import secrets
import time

import pytest
from tests.store.conftest import Cloud
from tests.store.record_samples import PROSE, SessionFixture, header, pending, record

from stint.domain.errors import NotFound
from stint.domain.ids import new_id
from stint.domain.run_outcome import RunStatus
from stint.store.documents import to_json
from stint.store.sessions import LastTurn
from stint.store.store import Store


@pytest.fixture
async def session_fixture(store: Store, tenant: str) -> SessionFixture:
    return await SessionFixture.create(store, tenant)


async def test_a_turn_reads_back_as_it_was_written(session_fixture: SessionFixture, store: Store) -> None:
    lease = await session_fixture.acquire()
    begun = header(lease.turn_id, session_fixture.session_id)
    first, last = record(lease.turn_id, "one"), record(lease.turn_id, "two", RunStatus.completed)

    await store.turns.put_header(lease, begun)
    await store.turns.append(lease, 0, first)
    await store.turns.append(lease, 1, last)

    stored = await store.turns.get(*session_fixture.ids, lease.turn_id)
    assert stored.header == begun
    assert stored.records == [first, last]
    assert stored.status is RunStatus.completed
    assert stored.size == sum(len(to_json(document)) for document in (begun, first, last))
    assert await session_fixture.turns() == [stored]


async def test_history_is_in_creation_order_and_tells_where_it_ends(
    session_fixture: SessionFixture, store: Store
) -> None:
    ids = [await session_fixture.turn(f"question {number}") for number in range(5)]

    history = await store.turns.history(*session_fixture.ids)

    assert [turn.header.turn_id for turn in history.turns] == ids
    assert history.complete
    assert history.last == LastTurn(ids[-1], 1)
    assert (await store.sessions.get(*session_fixture.ids)).last == history.last


async def test_the_history_of_a_new_session_is_empty(session_fixture: SessionFixture, store: Store) -> None:
    history = await store.turns.history(*session_fixture.ids)

    assert (history.turns, history.complete, history.last) == ([], True, None)


async def test_a_bounded_history_is_the_newest_turns_that_fit(session_fixture: SessionFixture, store: Store) -> None:
    ids = [await session_fixture.turn(answer="x" * 1_000) for _ in range(6)]
    sizes = [turn.size for turn in await session_fixture.turns()]

    fitting = await store.turns.history(*session_fixture.ids, max_bytes=sum(sizes[-3:]))
    tighter = await store.turns.history(*session_fixture.ids, max_bytes=sum(sizes[-3:]) - 1)
    nothing = await store.turns.history(*session_fixture.ids, max_bytes=0)
    everything = await store.turns.history(*session_fixture.ids, max_bytes=sum(sizes))

    assert [turn.header.turn_id for turn in fitting.turns] == ids[-3:]
    assert [turn.header.turn_id for turn in tighter.turns] == ids[-2:]
    assert [turn.header.turn_id for turn in nothing.turns] == ids[-1:]
    assert [turn.header.turn_id for turn in everything.turns] == ids
    assert [shown.complete for shown in (fitting, tighter, nothing, everything)] == [False, False, False, True]
    assert nothing.last == LastTurn(ids[-1], 1)


async def test_pages_are_all_turns_in_creation_order_or_those_asked_for(
    session_fixture: SessionFixture, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [await session_fixture.turn(answer="x" * 1_000) for _ in range(5)]
    monkeypatch.setattr("stint.store.turns.MAX_BYTES", sum(turn.size for turn in (await session_fixture.turns())[:2]))

    pages = [page async for page in store.turns.pages(*session_fixture.ids)]
    picked = [page async for page in store.turns.pages(*session_fixture.ids, {ids[4], ids[1], "nowhere"})]

    assert [[turn.header.turn_id for turn in page] for page, _ in pages] == [ids[:2], ids[2:4], ids[4:]]
    assert [more for _, more in pages] == [True, True, False]
    assert [turn for page, _ in pages for turn in page] == await session_fixture.turns()
    assert [([turn.header.turn_id for turn in page], more) for page, more in picked] == [([ids[1], ids[4]], False)]
    assert [page async for page in store.turns.pages(*session_fixture.ids, {"nowhere"})] == [([], False)]


async def test_a_page_reads_no_blob_of_another_one(cloud: Cloud, session_fixture: SessionFixture) -> None:
    for _ in range(3):
        await session_fixture.turn(secrets.token_urlsafe(4_000_000))
    pages = cloud.store.turns.pages(*session_fixture.ids)
    cloud.forget()

    await anext(pages)

    assert cloud.calls["GetObject"] == 1


async def test_a_bounded_history_reads_no_blob_that_it_leaves_out(
    cloud: Cloud, session_fixture: SessionFixture
) -> None:
    await session_fixture.turn(secrets.token_urlsafe(600_000))
    await session_fixture.turn("short")
    cloud.forget()

    history = await cloud.store.turns.history(*session_fixture.ids, max_bytes=100_000)

    assert not history.complete
    assert cloud.calls == {"Query": 1}


@pytest.mark.parametrize("turn_id", ["01990000-0000-7000-8000-000000000000", "nonsense", ""])
async def test_a_turn_that_is_not_there_is_not_found(
    session_fixture: SessionFixture, store: Store, turn_id: str
) -> None:
    await session_fixture.turn()

    with pytest.raises(NotFound) as raised:
        await store.turns.get(*session_fixture.ids, turn_id)

    assert raised.value.code == "turn_not_found"


async def test_three_turns_of_2_mb_read_back(cloud: Cloud, session_fixture: SessionFixture) -> None:
    texts = [secrets.token_urlsafe(1_500_000) for _ in range(3)]
    for text in texts:
        await session_fixture.turn("show me", text)
    cloud.forget()

    turns = await session_fixture.turns()

    assert [turn.to_turn().output_message.content for turn in turns] == texts
    assert all(turn.size > 2_000_000 for turn in turns)
    assert cloud.calls == {"Query": 1, "GetObject": 3}


async def test_blobs_lie_where_their_session_is_deleted(cloud: Cloud, tenant: str) -> None:
    large = secrets.token_urlsafe(600_000)
    for expires_at, kept in ((None, "kept"), (int(time.time()) + 60, "ephemeral")):
        session_fixture = await SessionFixture.create(cloud.store, tenant, expires_at)

        turn_id = await session_fixture.turn(large)

        where = f"{kept}/{tenant}/{session_fixture.agent_id}/{session_fixture.session_id}/{turn_id}/"
        assert [key for key in cloud.blobs(tenant) if key.startswith(where)]


async def test_a_session_of_a_thousand_turns_reads_back(cloud: Cloud, session_fixture: SessionFixture) -> None:
    ids = [new_id() for _ in range(1_000)]
    cloud.write(item for turn_id in ids for item in items_of(cloud, session_fixture, turn_id))
    cloud.forget()

    turns = await session_fixture.turns()

    assert [turn.header.turn_id for turn in turns] == ids
    assert {turn.status for turn in turns} == {RunStatus.completed}
    assert cloud.calls == {"Query": 3}  # one that is limited, because there could be segments, and one for each MB


def items_of(cloud: Cloud, session_fixture: SessionFixture, turn_id: str) -> list[dict[str, str]]:
    pk = f"{session_fixture.tenant}#session:{session_fixture.agent_id}:{session_fixture.session_id}"
    first = to_json(header(turn_id, session_fixture.session_id, "Why? " * 100)).decode()
    last = to_json(record(turn_id, "Hi", RunStatus.completed)).decode()
    return [
        {"pk": pk, "sk": turn_id, "doc": first},
        {"pk": pk, "sk": f"{turn_id}:0000", "doc": last, "ended_as": "completed"},
    ]


async def test_pending_calls_are_noted_replaced_and_forgotten(session_fixture: SessionFixture, store: Store) -> None:
    lease = await session_fixture.begin()
    where = (*session_fixture.ids, lease.turn_id)
    first, second = pending(lease.turn_id), pending(lease.turn_id, secrets.token_urlsafe(400_000))

    assert await store.turns.get_pending(*where) is None
    await store.turns.put_pending(lease, first)
    assert await store.turns.get_pending(*where) == first
    await store.turns.put_pending(lease, second)
    assert await store.turns.get_pending(*where) == second
    await store.turns.delete_pending(lease, lease.turn_id)
    await store.turns.delete_pending(lease, lease.turn_id)
    assert await store.turns.get_pending(*where) is None


@pytest.mark.parametrize("expires_at", [None, 2_000_000_000])
async def test_a_simple_turn_costs_four_write_units_and_one_query(
    cloud: Cloud, tenant: str, expires_at: int | None
) -> None:
    session_fixture = await SessionFixture.create(cloud.store, tenant, expires_at)
    await session_fixture.turn()
    cloud.forget()

    await session_fixture.turn(PROSE * 5, PROSE * 5)
    written = dict(cloud.units)
    calls = dict(cloud.calls)
    cloud.forget()
    await cloud.store.turns.history(*session_fixture.ids)

    assert written == {"UpdateItem": 2, "PutItem": 2}
    assert calls == {"UpdateItem": 2, "PutItem": 2}
    assert cloud.calls == {"Query": 1}
