"""Segments in the table: what a cold process reads, and what happens if a segment is missing or broken."""

import asyncio
import logging
import secrets
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud
from tests.store.record_samples import PROSE, SessionFixture, ending, header, record

from stint.domain.errors import Interrupted, NotFound
from stint.domain.ids import new_id
from stint.domain.inference import AssistantAnswer, UserInput
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.llama_stack.transcribed_turns import TranscribedTurn
from stint.domain.run_outcome import RunStatus
from stint.store.blobs import Blobs
from stint.store.documents import Documents
from stint.store.items import decode, size, write_units
from stint.store.sessions import LastTurn
from stint.store.store import Store
from stint.store.turn_documents import TurnDocuments
from stint.store.turns import History


@pytest.fixture
async def session_fixture(store: Store, tenant: str) -> SessionFixture:
    return await SessionFixture.create(store, tenant)


def transcribed(turns: Sequence[StoredTurn]) -> list[TranscribedTurn]:
    """Return turns of one message and one answer as the model sees them."""
    return [
        TranscribedTurn(
            turn.header.turn_id,
            turn.size,
            (
                UserInput(turn.header.input_messages[0].content),
                AssistantAnswer(str(turn.records[0].step.model_response.content)),  # type: ignore[union-attr]
            ),
        )
        for turn in turns
    ]


async def add_segments(
    session_fixture: SessionFixture, *lengths: int, expires_at: int | None = None
) -> list[TranscribedTurn]:
    """Write segments of the first turns of a session, and return all its turns."""
    turns = transcribed((await session_fixture.store.turns.history(*session_fixture.ids, segments=False)).turns)
    after, place = None, 0
    for length in lengths:
        after = await session_fixture.store.turns.put_segment(
            *session_fixture.ids, turns[place : place + length], after, expires_at
        )
        place += length
    return turns


async def fill(session_fixture: SessionFixture, count: int, answer: str = "Hi") -> None:
    for number in range(count):
        await session_fixture.turn(f"question {number}", answer)


def ids(history: History) -> tuple[list[str], list[str]]:
    """Return the ids of transcribed turns and of turns."""
    return [turn.turn_id for turn in history.transcribed], [turn.header.turn_id for turn in history.turns]


def all_ids(history: History) -> list[str]:
    older, newer = ids(history)
    return older + newer


def names(turns: Sequence[TranscribedTurn]) -> list[str]:
    return [turn.turn_id for turn in turns]


def segments(cloud: Cloud, tenant: str) -> list[dict[str, Any]]:
    found = [item for item in cloud.items(tenant) if item["sk"]["S"].startswith("history:")]
    return sorted(found, key=lambda item: str(item["sk"]["S"]))


def change(cloud: Cloud, item: dict[str, Any], **attributes: Any) -> None:
    """Replace attributes of a record; None removes one."""
    changed = {name: value for name, value in (item | attributes).items() if value is not None}
    cloud.dynamodb.put_item(TableName=cloud.table_name, Item=changed)


async def test_a_history_is_segments_and_the_turns_since_the_newest_one(
    cloud: Cloud, session_fixture: SessionFixture
) -> None:
    await fill(session_fixture, 7)
    turns = await add_segments(session_fixture, 2, 3)
    cloud.forget()

    history = await cloud.store.turns.history(*session_fixture.ids)

    assert cloud.calls == {"Query": 1}
    assert history.transcribed == turns[:5]
    assert ids(history)[1] == names(turns[5:])
    assert history.complete
    assert history.last == LastTurn(turns[-1].turn_id, 1)


@pytest.mark.parametrize("segments", [(4,), (1, 1, 1, 1, 1), (2, 3), (5,)])
async def test_a_bounded_history_has_the_same_turns_with_segments_as_without(
    session_fixture: SessionFixture, store: Store, segments: tuple[int, ...]
) -> None:
    for length in (10, 2_000, 400, 10, 3_000, 10):
        await session_fixture.turn("question", "x" * length)
    turns = await add_segments(session_fixture, *segments)
    sizes = [turn.size for turn in turns]
    limits = {sum(sizes[start:]) - less for start in range(6) for less in (0, 1)}

    for limit in [0, 1, *limits, sum(sizes) + 1]:
        plain = await store.turns.history(*session_fixture.ids, max_bytes=limit, segments=False)
        history = await store.turns.history(*session_fixture.ids, max_bytes=limit)
        assert all_ids(history) == ids(plain)[1]
        assert (history.complete, history.last) == (plain.complete, plain.last)


async def test_a_history_since_a_turn_reads_only_that_one_and_later_ones(
    cloud: Cloud, session_fixture: SessionFixture
) -> None:
    await fill(session_fixture, 6, PROSE * 30)
    turns = await add_segments(session_fixture, 3)
    cloud.forget()

    with measured_reads(cloud) as units:
        history = await cloud.store.turns.history(*session_fixture.ids, since=turns[4].turn_id)

    assert ids(history) == ([], names(turns[4:]))
    assert (history.complete, history.last) == (True, LastTurn(turns[-1].turn_id, 1))
    assert cloud.calls == {"Query": 1}
    assert units == [1]


async def test_a_segment_is_never_listed_as_a_turn(session_fixture: SessionFixture, store: Store) -> None:
    await fill(session_fixture, 4)
    turns = await add_segments(session_fixture, 2, 1)

    pages = [page async for page in store.turns.pages(*session_fixture.ids)]

    assert [[turn.header.turn_id for turn in page] for page, _ in pages] == [names(turns)]
    assert [turn.header.turn_id for turn in await session_fixture.turns()] == names(turns[3:])
    assert [(await store.turns.get(*session_fixture.ids, turn.turn_id)).header.turn_id for turn in turns] == names(
        turns
    )
    assert ids(await store.turns.history(*session_fixture.ids, segments=False)) == ([], names(turns))
    with pytest.raises(NotFound):
        await store.turns.get(*session_fixture.ids, f"history:{turns[0].turn_id}")


async def test_a_session_with_a_long_name_and_segments_reads_as_without_a_name(store: Store, tenant: str) -> None:
    session_fixture = await SessionFixture.create(store, tenant, name="n" * 2_000)
    await fill(session_fixture, 4)
    turns = await add_segments(session_fixture, 2)

    assert ids(await store.turns.history(*session_fixture.ids)) == (names(turns[:2]), names(turns[2:]))


@contextmanager
def measured_reads(cloud: Cloud) -> Iterator[list[int]]:
    """Yield a list of the read units of each Query: one for each 4 KB. The engine's own figure is always 1."""
    units: list[int] = []

    def measure(answer: dict[str, Any]) -> None:
        units.append(max(-(-sum(size(decode(item)) for item in answer["Items"]) // 4096), 1))

    with cloud.proxy.editing("Query", answer=measure):
        yield units


def units_of(cloud: Cloud, tenant: str) -> int:
    """Return the write units of a tenant's segments."""
    return sum(write_units(decode(item)) for item in segments(cloud, tenant))


BREAKS: dict[str, dict[str, Any]] = {
    "a newer version": {"doc": {"S": '{"version":2,"turns":"?"}'}},
    "no JSON": {"doc": {"S": "{"}},
    "damaged bytes": {"doc": {"B": b"damaged"}},
    "another document": {"doc": {"B": zlib.compress(b'{"version":1,"turns":[]}')}},
    "no document": {"doc": None},
    "no end": {"last": None},
    "another end": {"last": {"S": "f"}},
    "no size": {"turn_bytes": None},
    "another size": {"turn_bytes": {"N": "7"}},
    "no size of the last turn": {"last_bytes": None},
    "a missing blob": {
        "doc": None,
        "blob": {"S": "kept/none"},
        "length": {"N": "3"},
        "size": {"N": "9"},
        "sha256": {"B": b""},
    },
}


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
@pytest.mark.parametrize("place", [0, 1, 2])
async def test_the_turns_are_read_if_a_segment_is_broken(
    cloud: Cloud, session_fixture: SessionFixture, place: int, broken: dict[str, Any]
) -> None:
    await fill(session_fixture, 7)
    turns = await add_segments(session_fixture, 2, 2, 2)
    change(cloud, segments(cloud, session_fixture.tenant)[place], **broken)

    history = await cloud.store.turns.history(*session_fixture.ids)

    older, newer = ids(history)
    assert older + newer == names(turns)
    assert older == names(turns[: {0: 0, 1: 2, 2: 4}[place]]) or (place, older) == (0, names(turns[2:6]))
    assert history.complete


@pytest.mark.parametrize(("missing", "used"), [(0, 0), (1, 2), (2, 4)])
async def test_the_turns_are_read_if_a_segment_is_missing(
    cloud: Cloud, session_fixture: SessionFixture, missing: int, used: int
) -> None:
    await fill(session_fixture, 7)
    turns = await add_segments(session_fixture, 2, 2, 2)
    item = segments(cloud, session_fixture.tenant)[missing]
    cloud.dynamodb.delete_item(TableName=cloud.table_name, Key={"pk": item["pk"], "sk": item["sk"]})

    history = await cloud.store.turns.history(*session_fixture.ids)

    assert ids(history) == (names(turns[:used]), names(turns[used:]))
    assert history.complete


async def test_segments_above_a_gap_are_used_if_older_turns_do_not_fit(
    cloud: Cloud, session_fixture: SessionFixture
) -> None:
    await fill(session_fixture, 7)
    turns = await add_segments(session_fixture, 2, 2, 2)
    change(cloud, segments(cloud, session_fixture.tenant)[0], doc={"S": "{"})
    limit = sum(turn.size for turn in turns[3:])

    history = await cloud.store.turns.history(*session_fixture.ids, max_bytes=limit)

    assert ids(history) == (names(turns[3:6]), names(turns[6:]))
    assert not history.complete


async def test_a_segment_that_is_the_last_record_left_is_not_a_history(
    cloud: Cloud, session_fixture: SessionFixture
) -> None:
    await fill(session_fixture, 2)
    await add_segments(session_fixture, 1)
    for item in cloud.items(session_fixture.tenant):
        if item["sk"]["S"][0] == "0" and ":" + session_fixture.session_id in item["pk"]["S"]:
            cloud.dynamodb.delete_item(TableName=cloud.table_name, Key={"pk": item["pk"], "sk": item["sk"]})

    history = await cloud.store.turns.history(*session_fixture.ids)

    assert (history.turns, history.transcribed, history.last) == ([], [], None)


async def test_two_processes_write_one_segment_and_both_learn_its_end(
    cloud: Cloud, session_fixture: SessionFixture
) -> None:
    await fill(session_fixture, 6)
    turns = transcribed(await session_fixture.turns())
    parts = [turns[:3], turns[:5]]

    ends = await asyncio.gather(
        *(cloud.store.turns.put_segment(*session_fixture.ids, part, None, None) for part in parts)
    )

    assert ends[0] == ends[1] in (turns[2].turn_id, turns[4].turn_id)
    assert len(segments(cloud, session_fixture.tenant)) == 1
    history = await cloud.store.turns.history(*session_fixture.ids)
    assert all_ids(history) == names(turns)
    assert names(history.transcribed)[-1] == ends[0]


async def test_a_large_segment_that_was_refused_leaves_no_blob(cloud: Cloud, session_fixture: SessionFixture) -> None:
    await session_fixture.turn("large", secrets.token_urlsafe(600_000))
    await session_fixture.turn()
    turns = await add_segments(session_fixture, 1)
    before = cloud.blobs(session_fixture.tenant)

    await cloud.store.turns.put_segment(*session_fixture.ids, turns[:1], None, None)

    assert cloud.blobs(session_fixture.tenant) == before
    assert (await cloud.store.turns.history(*session_fixture.ids)).transcribed == turns[:1]


async def test_a_turn_of_4_mb_in_a_segment_is_read_only_if_it_fits(
    cloud: Cloud, session_fixture: SessionFixture
) -> None:
    await session_fixture.turn("large", secrets.token_urlsafe(3_000_000))
    await fill(session_fixture, 2)
    turns = await add_segments(session_fixture, 1, 1)

    cloud.forget()
    small = await cloud.store.turns.history(*session_fixture.ids, max_bytes=1_000_000)
    calls = dict(cloud.calls)
    whole = await cloud.store.turns.history(*session_fixture.ids, max_bytes=5_000_000)

    assert calls == {"Query": 2}
    assert (ids(small), small.complete) == ((names(turns[1:2]), names(turns[2:])), False)
    assert (whole.transcribed, whole.complete) == (turns[:2], True)


@pytest.mark.parametrize("expires_in", [None, 600])
async def test_a_deleted_session_leaves_no_segment(cloud: Cloud, tenant: str, expires_in: int | None) -> None:
    expires_at = None if expires_in is None else int(time.time()) + expires_in
    session_fixture = await SessionFixture.create(cloud.store, tenant, expires_at)
    await session_fixture.turn("large", secrets.token_urlsafe(600_000))
    await fill(session_fixture, 2)
    await add_segments(session_fixture, 1, 1, expires_at=expires_at)
    assert len(segments(cloud, tenant)) == 2
    assert all(("expires_at" in item) == (expires_in is not None) for item in segments(cloud, tenant))

    await cloud.store.sessions.mark_deleted(*session_fixture.ids)
    await cloud.store.deletion.delete_session(*session_fixture.ids, float("inf"))

    assert segments(cloud, tenant) == []
    assert cloud.blobs(tenant) == []


async def test_a_segment_that_is_written_after_the_deletion_is_removed(
    cloud: Cloud, session_fixture: SessionFixture
) -> None:
    await session_fixture.turn("large", secrets.token_urlsafe(600_000))
    await session_fixture.turn()
    turns = transcribed(await session_fixture.turns())
    await cloud.store.sessions.mark_deleted(*session_fixture.ids)
    await cloud.store.deletion.delete_session(*session_fixture.ids, float("inf"))

    with pytest.raises(NotFound):
        await cloud.store.turns.put_segment(*session_fixture.ids, turns[:1], None, None)

    assert segments(cloud, session_fixture.tenant) == []
    assert cloud.blobs(session_fixture.tenant) == []


async def test_a_deletion_that_begins_during_the_write_leaves_no_segment(own_cloud: Cloud, tenant: str) -> None:
    session_fixture = await SessionFixture.create(own_cloud.store, tenant)
    await session_fixture.turn("large", secrets.token_urlsafe(600_000))
    await session_fixture.turn()
    turns = transcribed(await session_fixture.turns())
    marking = asyncio.Event()

    async def write() -> None:
        await marking.wait()
        await own_cloud.store.turns.put_segment(*session_fixture.ids, turns[:1], None, None)

    writing = asyncio.create_task(write())
    await own_cloud.store.sessions.mark_deleted(*session_fixture.ids)
    marking.set()
    results = await asyncio.gather(
        writing, own_cloud.store.deletion.delete_session(*session_fixture.ids, float("inf")), return_exceptions=True
    )

    assert isinstance(results[0], NotFound)
    assert segments(own_cloud, tenant) == []
    assert own_cloud.blobs(tenant) == []


async def test_the_segments_of_an_expired_session_are_not_read(cloud: Cloud, tenant: str) -> None:
    expires_at = int(time.time()) + 60
    session_fixture = await SessionFixture.create(cloud.store, tenant, expires_at)
    await fill(session_fixture, 3)
    turns = await add_segments(session_fixture, 2, expires_at=expires_at)
    CLOCK.move(61)

    with pytest.raises(NotFound):
        await cloud.store.turns.history(*session_fixture.ids)
    with pytest.raises(NotFound):
        await cloud.store.turns.put_segment(*session_fixture.ids, turns[2:], turns[1].turn_id, expires_at)


async def test_a_writer_whose_lease_lapsed_adds_nothing_to_turns_in_a_segment(
    cloud: Cloud, session_fixture: SessionFixture
) -> None:
    await fill(session_fixture, 2)
    late = await session_fixture.begin(seconds=1)
    CLOCK.move(2)
    lease = await session_fixture.acquire()
    assert lease.taken_over_turn == late.turn_id
    await cloud.store.turns.seal(lease, late.turn_id, ending(RunStatus.failed))
    await cloud.store.turns.put_header(lease, header(lease.turn_id, session_fixture.session_id))
    await cloud.store.turns.append(lease, 0, record(lease.turn_id, "Hi", RunStatus.completed))
    stored = (await cloud.store.turns.history(*session_fixture.ids)).turns
    sealed = TranscribedTurn(late.turn_id, stored[2].size, (UserInput("Hello"),))
    await cloud.store.turns.put_segment(*session_fixture.ids, [*transcribed(stored[:2]), sealed], None, None)

    with pytest.raises(Interrupted):
        await cloud.store.turns.append(late, 0, record(late.turn_id, "too late", RunStatus.completed))

    history = await cloud.store.turns.history(*session_fixture.ids)
    assert (history.transcribed[-1], ids(history)[1]) == (sealed, [lease.turn_id])


async def test_a_segment_of_a_newer_version_is_logged_and_not_replaced(
    cloud: Cloud, session_fixture: SessionFixture, caplog: pytest.LogCaptureFixture
) -> None:
    await fill(session_fixture, 5)
    turns = await add_segments(session_fixture, 2)
    change(cloud, segments(cloud, session_fixture.tenant)[0], doc={"S": '{"version":2}'})
    newer = segments(cloud, session_fixture.tenant)

    with caplog.at_level(logging.WARNING):
        history = await cloud.store.turns.history(*session_fixture.ids)
    end = await cloud.store.turns.put_segment(*session_fixture.ids, turns[:3], None, None)

    assert ids(history) == ([], names(turns))
    assert "A segment of a history cannot be read" in caplog.text
    assert end == turns[1].turn_id
    assert segments(cloud, session_fixture.tenant) == newer


SENTENCES = [
    "Which tide is high enough for the harbour on the {} of March?",
    "Please book a table for {} people, and tell Marta.",
    "It is {} minutes by train from the station to the lighthouse.",
    "The lamp above the harbour has been out for {} days.",
]


async def write_long_session(cloud: Cloud, session_fixture: SessionFixture, count: int, texts: Sequence[str]) -> None:
    """Store a session of short turns with all segments that are due, and forget the calls."""
    turn_ids = [new_id() for _ in range(count)]
    pk = f"{session_fixture.tenant}#session:{session_fixture.agent_id}:{session_fixture.session_id}"
    documents = TurnDocuments(cloud.table, Documents(cloud.table, Blobs(cloud.objects)))
    items = []
    for place, turn_id in enumerate(turn_ids):
        question, answer = (texts[(place + step) % len(texts)].format(place * 37 + step) for step in (0, 1))
        key = {"pk": pk, "nonce": b"123456", "sk": turn_id}
        ended = key | {"sk": f"{turn_id}:0000", "ended_as": "completed"}
        items += [
            await documents.pack(key, header(turn_id, session_fixture.session_id, question), ""),
            await documents.pack(ended, record(turn_id, answer, RunStatus.completed), ""),
        ]
    cloud.write(items)
    await add_segments(session_fixture, *[50] * ((count - 1) // 50))
    cloud.forget()


@pytest.mark.parametrize(("texts", "most"), [(["short", "Hi"], 20), (SENTENCES, 26)], ids=["words", "sentences"])
async def test_a_cold_process_reads_a_thousand_turns_for_an_eighth_of_the_read_units(
    cloud: Cloud, session_fixture: SessionFixture, texts: list[str], most: int
) -> None:
    await write_long_session(cloud, session_fixture, 1_000, texts)

    with measured_reads(cloud) as units:
        history = await cloud.store.turns.history(*session_fixture.ids, max_bytes=4_000_000)
    calls = dict(cloud.calls)
    with measured_reads(cloud) as whole:
        await cloud.store.turns.history(*session_fixture.ids, max_bytes=4_000_000, segments=False)

    assert (len(history.transcribed), len(history.turns)) == (950, 50)
    assert history.complete
    assert calls == {"Query": 2}
    assert sum(units) <= most <= 32
    assert sum(units) <= sum(whole) / 8
    assert units_of(cloud, session_fixture.tenant) == 2 * 19


async def test_a_session_without_segments_costs_the_read_units_of_its_turns(
    cloud: Cloud, session_fixture: SessionFixture
) -> None:
    await write_long_session(cloud, session_fixture, 50, SENTENCES)

    with measured_reads(cloud) as units:
        await cloud.store.turns.history(*session_fixture.ids)
    with measured_reads(cloud) as plain:
        await cloud.store.turns.history(*session_fixture.ids, segments=False)

    assert sum(units) <= sum(plain) + 1 <= 12


async def test_a_segment_of_short_turns_costs_one_write_and_one_read(
    cloud: Cloud, session_fixture: SessionFixture
) -> None:
    await fill(session_fixture, 51)
    turns = transcribed((await cloud.store.turns.history(*session_fixture.ids)).turns)
    cloud.forget()

    await cloud.store.turns.put_segment(*session_fixture.ids, turns[:50], None, None)

    assert cloud.calls == {"PutItem": 1, "GetItem": 1}
    assert units_of(cloud, session_fixture.tenant) == 2 < 0.2 * 50
