"""Leases of processes whose wall clock is wrong. Each reader is a process with the right monotonic clock."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from typing import Any, NamedTuple

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud
from tests.store.record_samples import SessionFixture
from tests.store.response_samples import Responder, conversation

from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.domain.ids import new_id, new_name
from stint.domain.schema import now
from stint.domain.waiting_messages import WaitingMessage, WaitingPlace
from stint.store.keys import Key
from stint.store.lease import MOST_SEEN, is_unrenewed
from stint.store.store import Store
from stint.store.table import Table
from stint.store.waiting_line import ALIVE_SECONDS

SECONDS = 30.0
WRONG = 600.0
DIGEST = sha256(b"key").hexdigest()


class Held(NamedTuple):
    """A lease that a process holds: its renewal, and whether a reader in another process finds it free."""

    renew: Callable[[], Awaitable[object]]
    is_free: Callable[[], Awaitable[bool]]
    seconds: float = SECONDS


def free_for(acquire: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[bool]]:
    async def is_free() -> bool:
        with suppress(Conflict):
            await acquire()
            return True
        return False

    return is_free


async def hold_session(holder: Store, reader: Store, tenant: str) -> Held:
    fixture = await SessionFixture.create(holder, tenant)
    lease = await fixture.acquire(seconds=SECONDS)
    ids = fixture.ids
    acquire = lambda: reader.session_leases.acquire(*ids, new_id(), resume=False, seconds=SECONDS)  # noqa: E731
    return Held(lambda: lease.renew(SECONDS), free_for(acquire))


async def hold_session_read(holder: Store, reader: Store, tenant: str) -> Held:
    """A reader that only waits for the session, as a message in line does."""
    fixture = await SessionFixture.create(holder, tenant)
    lease = await fixture.acquire(seconds=SECONDS)

    async def is_free() -> bool:
        return await reader.session_leases.find_holder(*fixture.ids) is None

    return Held(lambda: lease.renew(SECONDS), is_free)


async def hold_conversation(holder: Store, reader: Store, tenant: str) -> Held:
    made = conversation()
    await holder.conversations.create(tenant, made)
    lease = await holder.conversation_leases.acquire(tenant, made.id, new_name("resp"), SECONDS)
    acquire = lambda: reader.conversation_leases.acquire(tenant, made.id, new_name("resp"), SECONDS)  # noqa: E731
    return Held(lambda: lease.renew(SECONDS), free_for(acquire))


async def hold_event(holder: Store, reader: Store, tenant: str) -> Held:
    record = await holder.idempotency.acquire(tenant, "order-7", "", SECONDS)
    return Held(
        lambda: record.renew(SECONDS), free_for(lambda: reader.idempotency.acquire(tenant, "order-7", "", SECONDS))
    )


async def hold_background(holder: Store, reader: Store, tenant: str) -> Held:
    response_id = await Responder(holder, tenant).begin(background=True)
    lease = await holder.response_leases.acquire(tenant, response_id, SECONDS)

    async def is_free() -> bool:
        return (await reader.response_leases.get_state(tenant, response_id)).lapsed

    return Held(lambda: lease.renew(SECONDS), is_free)


async def hold_foreground(holder: Store, reader: Store, tenant: str) -> Held:
    response_id = await Responder(holder, tenant).begin()

    async def is_free() -> bool:
        return (await reader.responses.get(tenant, response_id)).has_lapsed

    await holder.response_leases.extend(tenant, response_id, 2 * SECONDS)
    return Held(lambda: holder.response_leases.extend(tenant, response_id, 2 * SECONDS), is_free, 2 * SECONDS)


async def hold_request(holder: Store, reader: Store, tenant: str) -> Held:
    record = await holder.requests.acquire(tenant, DIGEST, "body", "object", SECONDS)

    async def is_free() -> bool:
        return (await reader.requests.acquire(tenant, DIGEST, "body", "object", SECONDS)).is_own

    return Held(lambda: record.renew(SECONDS), is_free)


async def hold_place(holder: Store, reader: Store, tenant: str) -> Held:
    """The place of a message in line, which its request keeps."""
    ids, message_id = (tenant, new_id(), new_id()), new_id()
    line = holder.session_line(*ids)
    await line.accept(WaitingPlace(message_id, sender="", fingerprint=""), WaitingMessage(body="{}", accepted_at=now()))

    async def is_free() -> bool:
        [place] = await reader.session_line(*ids).read()
        return not place.alive

    return Held(lambda: line.renew(message_id), is_free, ALIVE_SECONDS)


KINDS = [
    hold_session,
    hold_session_read,
    hold_conversation,
    hold_event,
    hold_background,
    hold_foreground,
    hold_request,
    hold_place,
]
Hold = Callable[[Store, Store, str], Awaitable[Held]]


@pytest.fixture
def reader(cloud: Cloud) -> Store:
    """Return the store of another process."""
    return cloud.other_process()


@pytest.mark.parametrize("hold", KINDS)
async def test_what_a_dead_process_with_a_fast_clock_holds_is_free_after_one_lease_time(
    cloud: Cloud, reader: Store, tenant: str, hold: Hold
) -> None:
    with CLOCK.wrong(WRONG):
        held = await hold(cloud.store, reader, tenant)

    assert not await held.is_free()
    CLOCK.move(held.seconds / 2)
    assert not await held.is_free()
    CLOCK.move(held.seconds / 2)
    assert await held.is_free()


@pytest.mark.parametrize("hold", KINDS)
@pytest.mark.parametrize("ahead", [0.0, WRONG], ids=["right", "fast"])
async def test_a_slow_reader_never_ends_a_lease_that_is_renewed(
    cloud: Cloud, reader: Store, tenant: str, hold: Hold, ahead: float
) -> None:
    with CLOCK.wrong(ahead):
        held = await hold(cloud.store, reader, tenant)

    for _ in range(12):
        with CLOCK.wrong(-WRONG):
            assert not await held.is_free()
        CLOCK.move(held.seconds / 3)
        with CLOCK.wrong(ahead):
            await held.renew()
        with CLOCK.wrong(-WRONG):
            assert not await held.is_free()


@pytest.mark.parametrize("hold", KINDS)
async def test_a_slow_reader_frees_what_a_dead_process_holds(
    cloud: Cloud, reader: Store, tenant: str, hold: Hold
) -> None:
    held = await hold(cloud.store, reader, tenant)

    with CLOCK.wrong(-WRONG):
        assert not await held.is_free()
        CLOCK.move(held.seconds)
        assert await held.is_free()


@pytest.mark.parametrize("hold", KINDS)
async def test_a_fast_reader_finds_the_end_that_is_stored(cloud: Cloud, reader: Store, tenant: str, hold: Hold) -> None:
    """A lease that a clock shows as lapsed is free at once, as before; one that it shows as held is not."""
    with CLOCK.wrong(2 * WRONG):
        held = await hold(cloud.store, reader, tenant)
    with CLOCK.wrong(WRONG):
        assert not await held.is_free()

    with CLOCK.wrong(3 * WRONG):
        assert await held.is_free()


async def test_the_holder_of_a_lease_that_was_taken_over_is_refused(cloud: Cloud, reader: Store, tenant: str) -> None:
    with CLOCK.wrong(WRONG):
        held = await hold_session(cloud.store, reader, tenant)
    await held.is_free()
    CLOCK.move(SECONDS)
    assert await held.is_free()

    with pytest.raises(Interrupted):
        await held.renew()


async def test_a_holder_that_renews_late_keeps_a_lease_that_nobody_took(
    cloud: Cloud, reader: Store, tenant: str
) -> None:
    with CLOCK.wrong(WRONG):
        held = await hold_background(cloud.store, reader, tenant)
    await held.is_free()
    CLOCK.move(SECONDS)
    assert await held.is_free()

    await held.renew()

    assert not await held.is_free()


async def test_a_session_that_was_deleted_meanwhile_stays_deleted(cloud: Cloud, reader: Store, tenant: str) -> None:
    fixture = await SessionFixture.create(cloud.store, tenant)
    with CLOCK.wrong(WRONG):
        await fixture.acquire(seconds=SECONDS)
    await reader.session_leases.find_holder(*fixture.ids)
    await cloud.store.sessions.mark_deleted(*fixture.ids)
    CLOCK.move(SECONDS)

    with pytest.raises(NotFound):
        await reader.session_leases.find_holder(*fixture.ids)


async def test_a_lease_that_lapses_costs_one_write_and_others_none(cloud: Cloud, tenant: str) -> None:
    fixture = await SessionFixture.create(cloud.store, tenant)
    with CLOCK.wrong(WRONG):
        await fixture.acquire(seconds=SECONDS)
    cloud.forget()

    await cloud.store.session_leases.find_holder(*fixture.ids)
    assert cloud.calls["UpdateItem"] == 0
    CLOCK.move(SECONDS)
    await cloud.store.session_leases.find_holder(*fixture.ids)

    assert cloud.units["UpdateItem"] == 1


def test_a_process_remembers_a_limited_number_of_leases(cloud: Cloud) -> None:
    table, far = Table(cloud.client, cloud.table_name), 2**53
    for number in range(MOST_SEEN + 1):
        is_unrenewed(table, Key("pk", str(number)), far, SECONDS)
    assert len(table.seen_leases) == MOST_SEEN
    CLOCK.move(SECONDS)

    assert not is_unrenewed(table, Key("pk", "0"), far, SECONDS)
    assert is_unrenewed(table, Key("pk", str(MOST_SEEN)), far, SECONDS)
