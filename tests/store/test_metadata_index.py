"""The index of metadata: what it finds, its orders of writes, and its calls and units."""

import time
from collections.abc import Mapping
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.services.knowledge.killable import Death, Killed, killable_store
from tests.store.conftest import Cloud
from tests.store.record_samples import agent, session

from stint.domain.errors import NotFound, StoreUnavailable
from stint.domain.ids import new_id
from stint.domain.llama_stack.agents import Agent
from stint.domain.llama_stack.sessions import SessionSettings
from stint.domain.paging import Window
from stint.domain.schema import now
from stint.store import keys, metadata_index
from stint.store.items import size
from stint.store.metadata_index import entry_keys, hash_pair, hash_pairs, split_pairs
from stint.store.store import Store

Metadata = Mapping[str, str]
WHOLE = {f"{number:02}" + "k" * 62: f"{number:02}" + "v" * 510 for number in range(16)}
"""As much metadata as an object may have."""


def settings(metadata: Metadata) -> SessionSettings:
    return SessionSettings(metadata={**metadata}, updated_at=now())


def labelled(metadata: Metadata, name: str | None = None) -> Agent:
    created = agent(name=name)
    config = created.agent_config.model_copy(update={"metadata": {**metadata}})
    return created.model_copy(update={"agent_config": config})


async def create(store: Store, tenant: str, agent_id: str, metadata: Metadata, expires_at: int | None = None) -> str:
    begun = session()
    await store.sessions.create(tenant, agent_id, begun, expires_at, settings=settings(metadata))
    return begun.session_id


async def change(store: Store, tenant: str, agent_id: str, session_id: str, metadata: Metadata) -> bool:
    record = await store.sessions.get(tenant, agent_id, session_id)
    return await store.sessions.set_settings(tenant, agent_id, record, settings(metadata))


async def find(store: Store, tenant: str, agent_id: str | None = None, **given: Any) -> list[str]:
    """Return the sessions that have the pairs `a` and `b` that are given."""
    metadata: dict[str, str] = {key: given.pop(key) for key in ("a", "b") if key in given}
    found = await store.metadata_index.find_sessions(tenant, Window(metadata=metadata, **given), agent_id)
    return [each.session_id for each in found.sessions]


def indexed(cloud: Cloud, tenant: str) -> list[dict[str, Any]]:
    return [item for item in cloud.items(tenant) if "#metadata:" in item["pk"]["S"]]


def bytes_of(item: dict[str, Any]) -> int:
    return size({name: next(iter(value.values())) for name, value in item.items()})


@pytest.fixture
async def agent_id(store: Store, tenant: str) -> str:
    created = agent()
    await store.agents.create(tenant, created)
    return created.agent_id


async def test_sessions_are_found_by_all_pairs_in_both_orders(store: Store, tenant: str, agent_id: str) -> None:
    given = [{"a": "1"}, {"a": "1", "b": "2"}, {"b": "2"}, {"a": "1", "b": "2", "c": "3"}, {"a": "2", "b": "1"}, {}]
    ids = [await create(store, tenant, agent_id, metadata) for metadata in given]

    assert await find(store, tenant, a="1") == [ids[0], ids[1], ids[3]]
    assert await find(store, tenant, a="1", b="2") == [ids[1], ids[3]]
    assert await find(store, tenant, a="1", b="2", newest_first=True) == [ids[3], ids[1]]
    assert await find(store, tenant, a="1", limit=1, after=ids[0]) == [ids[1]]
    assert await find(store, tenant, a="1", newest_first=True, after=ids[2]) == [ids[1], ids[0]]
    assert await find(store, tenant, a="") == []
    assert await find(store, "other", a="1") == []


async def test_sessions_of_other_agents_are_left_out(store: Store, tenant: str, agent_id: str) -> None:
    other = agent()
    await store.agents.create(tenant, other)
    mine, theirs = [await create(store, tenant, each, {"a": "1"}) for each in (agent_id, other.agent_id)]

    found = await store.metadata_index.find_sessions(tenant, Window(metadata={"a": "1"}))
    listed = await store.sessions.list(tenant, agent_id, Window(metadata={"a": "1"}))

    assert [tuple(each) for each in found.sessions] == [(agent_id, mine), (other.agent_id, theirs)]
    assert await find(store, tenant, other.agent_id, a="1") == [theirs]
    assert [each.session_id for each in listed.data] == [mine]
    assert not listed.has_more


async def test_a_page_says_exactly_whether_others_follow(store: Store, tenant: str, agent_id: str) -> None:
    ids = [await create(store, tenant, agent_id, {"a": "1", "b": str(number % 2)}) for number in range(5)]
    window = Window(metadata={"a": "1", "b": "0"}, limit=2)

    first = await store.metadata_index.find_sessions(tenant, window)
    last = await store.metadata_index.find_sessions(tenant, Window(metadata=window.metadata, limit=2, after=ids[2]))

    assert ([each.session_id for each in first.sessions], first.more, first.position) == (
        [ids[0], ids[2]],
        True,
        ids[2],
    )
    assert ([each.session_id for each in last.sessions], last.more) == ([ids[4]], False)


async def test_a_search_reads_a_bounded_part_and_says_where_to_go_on(
    store: Store, tenant: str, agent_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [await create(store, tenant, agent_id, {"a": "1", "b": str(number // 6)}) for number in range(7)]
    other = agent()
    await store.agents.create(tenant, other)
    ids.append(await create(store, tenant, other.agent_id, {"a": "1"}))
    monkeypatch.setattr(metadata_index, "SEARCHED", 3)

    pages = []
    after, more = None, True
    while more:
        window = Window(metadata={"a": "1"}, after=after, limit=10)
        found = await store.metadata_index.find_sessions(tenant, window, other.agent_id)
        pages.append([each.session_id for each in found.sessions])
        after, more = found.position, found.more

    assert pages == [[], [], [ids[7]]]


async def test_a_filter_reads_the_rarest_of_its_pairs(
    cloud: Cloud, tenant: str, agent_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_index, "SAMPLE", 3)
    store = cloud.store
    ids = [
        await create(store, tenant, agent_id, {"a": "1", **({"b": "2"} if number in (0, 8, 15, 16, 17) else {})})
        for number in range(18)
    ]
    monkeypatch.setattr(metadata_index, "SEARCHED", 5)

    assert await find(store, tenant, a="1", b="2", limit=5) == [ids[number] for number in (0, 8, 15, 16, 17)]
    cloud.forget()
    assert await find(store, tenant, a="1", b="none") == []
    assert cloud.calls == {"Query": 2}


async def test_a_change_replaces_the_pairs_of_a_session(cloud: Cloud, tenant: str, agent_id: str) -> None:
    store = cloud.store
    session_id = await create(store, tenant, agent_id, {"a": "1", "b": "2"})

    assert await change(store, tenant, agent_id, session_id, {"a": "1", "b": "3"})

    assert await find(store, tenant, a="1", b="2") == []
    assert await find(store, tenant, b="2") == []
    assert await find(store, tenant, a="1", b="3") == [session_id]
    assert await change(store, tenant, agent_id, session_id, {})
    assert indexed(cloud, tenant) == []


async def test_a_session_without_settings_gets_metadata(store: Store, tenant: str, agent_id: str) -> None:
    begun = session()
    await store.sessions.create(tenant, agent_id, begun, None)

    assert await change(store, tenant, agent_id, begun.session_id, {"a": "1"})

    assert await find(store, tenant, a="1") == [begun.session_id]


async def test_of_two_changes_at_once_one_is_refused(cloud: Cloud, tenant: str, agent_id: str) -> None:
    store = cloud.store
    session_id = await create(store, tenant, agent_id, {"a": "1"})
    seen = await store.sessions.get(tenant, agent_id, session_id)

    assert await store.sessions.set_settings(tenant, agent_id, seen, settings({"a": "2"}))
    assert not await store.sessions.set_settings(tenant, agent_id, seen, settings({"b": "1"}))

    assert (await store.sessions.get_settings(tenant, agent_id, session_id)).metadata == {"a": "2"}
    [entry] = indexed(cloud, tenant)
    assert entry["pk"]["S"] == f"{tenant}#metadata:session:{hash_pair('a', '2').hex()}"


async def test_a_write_that_meets_transactions_only_may_be_tried_again(
    cloud: Cloud, tenant: str, agent_id: str
) -> None:
    session_id = await create(cloud.store, tenant, agent_id, {"a": "1"})

    with cloud.proxy.fail("UpdateItem", "TransactionConflictException"), pytest.raises(StoreUnavailable):
        await cloud.store.sessions.note_input(tenant, agent_id, session_id)


async def test_a_deleted_session_gets_no_metadata(cloud: Cloud, tenant: str, agent_id: str) -> None:
    store = cloud.store
    session_id = await create(store, tenant, agent_id, {"a": "1"})
    seen = await store.sessions.get(tenant, agent_id, session_id)
    await store.sessions.mark_deleted(tenant, agent_id, session_id)

    with pytest.raises(NotFound):
        await store.sessions.set_settings(tenant, agent_id, seen, settings({"b": "1"}))

    assert await store.deletion.delete_session(tenant, agent_id, session_id, float("inf"))
    assert indexed(cloud, tenant) == []
    with pytest.raises(NotFound):
        await store.sessions.set_settings(tenant, agent_id, seen, settings({"b": "1"}))
    assert indexed(cloud, tenant) == []


async def test_entries_expire_with_their_session(cloud: Cloud, tenant: str, agent_id: str) -> None:
    store, end = cloud.store, int(time.time()) + 60
    session_id = await create(store, tenant, agent_id, {"a": "1"}, end)
    await change(store, tenant, agent_id, session_id, {"a": "2"})

    assert [item["expires_at"]["N"] for item in indexed(cloud, tenant)] == [str(end)]
    CLOCK.move(61)
    assert await find(store, tenant, a="2") == []


async def test_metadata_moves_with_a_session_of_the_other_key_layout(cloud: Cloud, tenant: str, agent_id: str) -> None:
    old = cloud.other_process("compatible")
    session_id = await create(old, tenant, agent_id, {"a": "1"})

    assert await change(cloud.store, tenant, agent_id, session_id, {"a": "2"})
    lease = await cloud.store.session_leases.acquire(tenant, agent_id, session_id, new_id(), resume=False, seconds=30)
    await lease.release()
    assert await change(old, tenant, agent_id, session_id, {"b": "3"})

    assert await find(cloud.store, tenant, b="3") == [session_id]
    await cloud.store.sessions.mark_deleted(tenant, agent_id, session_id)
    assert await cloud.store.deletion.delete_session(tenant, agent_id, session_id, float("inf"))
    assert indexed(cloud, tenant) == []


async def test_agents_are_found_by_metadata_and_name(cloud: Cloud, tenant: str) -> None:
    store = cloud.store
    made = [labelled({"a": "1", "b": str(number)}, f"bot {number}") for number in range(3)]
    for each in (*made, labelled({}), labelled({"a": "2"})):
        await store.agents.create(tenant, each)

    async def listed(metadata: Metadata, **window: Any) -> list[Agent]:
        return (await store.agents.list(tenant, Window(metadata=metadata, **window))).data

    assert await listed({"a": "1"}) == made
    assert await listed({"a": "1", "b": "1"}) == [made[1]]
    assert await listed({"a": "1"}, name="BOT 2") == [made[2]]
    assert await listed({"a": "1"}, newest_first=True, limit=1, after=made[2].agent_id) == [made[1]]
    await store.agents.mark_deleted(tenant, made[1].agent_id)
    assert await listed({"a": "1"}) == [made[0], made[2]]
    assert await store.deletion.delete_agent(tenant, made[1].agent_id, float("inf"))
    assert {item["sk"]["S"] for item in indexed(cloud, tenant)}.isdisjoint({made[1].agent_id})


async def test_a_change_replaces_the_pairs_of_an_agent(cloud: Cloud, tenant: str) -> None:
    store, created = cloud.store, labelled({"a": "1"})
    await store.agents.create(tenant, created)
    _, seen = await store.agents.get_latest(tenant, created.agent_id)
    changed = labelled({"b": "2"}).model_copy(update={"agent_id": created.agent_id})

    assert await store.agents.change(tenant, changed, seen)
    assert not await store.agents.change(
        tenant, labelled({"c": "3"}).model_copy(update={"agent_id": created.agent_id}), seen
    )

    assert (await store.agents.list(tenant, Window(metadata={"a": "1"}))).data == []
    assert (await store.agents.list(tenant, Window(metadata={"b": "2"}))).data == [changed]
    assert len(indexed(cloud, tenant)) == 1


@pytest.mark.parametrize("act", ["create", "change"])
async def test_a_process_that_dies_leaves_an_exact_index(cloud: Cloud, tenant: str, agent_id: str, act: str) -> None:
    done, moment = False, 0
    while not done:
        moment += 1
        store, own = cloud.store, f"{tenant}-{moment}"
        created = agent()
        await store.agents.create(own, created)
        ids = [] if act == "create" else [await create(store, own, created.agent_id, {"a": "1", "b": "2"})]
        dead = killable_store(cloud, Death(moment))
        try:
            if act == "create":
                await create(dead, own, created.agent_id, {"a": "2", "b": "2"})
            else:
                await change(dead, own, created.agent_id, ids[0], {"a": "2", "c": "3"})
            done = True
        except Killed:
            pass

        page = await store.sessions.list(own, created.agent_id, Window())
        for each in page.data:
            kept = (await store.sessions.get_settings(own, created.agent_id, each.session_id)).metadata
            expected = set(entry_keys(own, "session", each.session_id, split_pairs(hash_pairs(kept))))
            assert {(item["pk"]["S"], item["sk"]["S"]) for item in indexed(cloud, own)} == expected
        assert page.data or indexed(cloud, own) == []
        await store.agents.mark_deleted(own, created.agent_id)
        assert await store.deletion.delete_agent(own, created.agent_id, float("inf"))
        assert indexed(cloud, own) == []
    assert moment > 5


async def test_a_deletion_that_dies_leaves_nothing_once_it_is_repeated(
    cloud: Cloud, tenant: str, agent_id: str
) -> None:
    done, moment = False, 0
    while not done:
        moment += 1
        session_id = await create(cloud.store, tenant, agent_id, {"a": "1", "b": "2"})
        await cloud.store.sessions.mark_deleted(tenant, agent_id, session_id)
        try:
            done = await killable_store(cloud, Death(moment)).deletion.delete_session(
                tenant, agent_id, session_id, float("inf")
            )
        except Killed:
            assert await cloud.store.deletion.delete_session(tenant, agent_id, session_id, float("inf"))
        assert indexed(cloud, tenant) == []


async def test_a_creation_for_a_deleted_agent_leaves_no_entry(cloud: Cloud, tenant: str) -> None:
    with pytest.raises(NotFound):
        await create(cloud.store, tenant, new_id(), {"a": "1"})

    assert cloud.items(tenant) == []


@pytest.mark.parametrize("pairs", [0, 1, 16])
async def test_each_pair_costs_two_units_in_the_same_transaction(
    cloud: Cloud, tenant: str, agent_id: str, pairs: int
) -> None:
    metadata = dict(list(WHOLE.items())[:pairs])
    cloud.forget()

    session_id = await create(cloud.store, tenant, agent_id, metadata)

    assert (cloud.calls["TransactWriteItems"], cloud.units["TransactWriteItems"]) == (1, 6 + 2 * pairs)
    cloud.forget()
    assert await change(cloud.store, tenant, agent_id, session_id, {"a": "1"})
    assert (cloud.calls["TransactWriteItems"], cloud.units["TransactWriteItems"]) == (1, 4 + 2 + 2 * pairs)
    cloud.forget()
    await cloud.store.agents.create(tenant, labelled(dict.fromkeys(map(str, range(pairs)), "x")))
    assert (cloud.calls, cloud.units["TransactWriteItems"]) == ({"TransactWriteItems": 1}, 4 + 2 * pairs)


async def test_a_page_of_a_pair_is_one_query(cloud: Cloud, tenant: str, agent_id: str) -> None:
    for _ in range(30):
        await create(cloud.store, tenant, agent_id, {"a": "1"})
    cloud.forget()

    assert len(await find(cloud.store, tenant, a="1", limit=20)) == 20

    assert cloud.calls == {"Query": 1}
    # The engine does not count the bytes of what it reads as DynamoDB does.
    assert 4_096 < 30 * bytes_of(indexed(cloud, tenant)[0]) < 2 * 4_096


async def test_an_entry_has_hashes_and_one_unit(cloud: Cloud, tenant: str, agent_id: str) -> None:
    await create(cloud.store, tenant, agent_id, WHOLE)

    entries = indexed(cloud, tenant)

    assert len(entries) == 16
    for entry in entries:
        assert set(entry) == {"pk", "sk", "agent_id", "pairs"}
        assert bytes_of(entry) < 600
        assert "kkk" not in str(entry)
        assert "vvv" not in str(entry)


@pytest.mark.parametrize("pair", ["", "#", "a" * 31, "A" * 32, "a" * 32 + "\n"])
def test_a_key_has_the_hash_of_a_pair_only(pair: str) -> None:
    for partition in (keys.session_pairs, keys.agent_pairs):
        with pytest.raises(ValueError, match="is not the hash of a pair"):
            partition("acme", pair)


def test_pairs_with_the_same_letters_have_other_hashes() -> None:
    pairs = [("a", "bc"), ("ab", "c"), ("", "abc"), ('a","b', "c"), ("a", 'b","c'), ("a", "BC"), ("a", "bc ")]

    assert len({hash_pair(*pair) for pair in pairs}) == len(pairs)
