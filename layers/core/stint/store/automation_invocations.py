"""Invocations of automations. One process at a time has an invocation's lease, and delivers it.

The id of what the delivery creates is in the record before the delivery begins. So a process that takes over knows the
id under which the session or the message may exist, and looks there first, as for a request with an idempotency key. It
is a new id: one that followed from the time of a schedule would sort before what the session has got since.

    invocation    record                     acquire
    of a time     none                       one write, with the lease; the caller's `object_id` counts
    of a request  stored with the request    one write; the record's `object_id` counts, and nothing was delivered
    interrupted   lease has lapsed, or was   takes over: an earlier process may have delivered it
                  released (end 0)
    running       lease is held              Conflict `invocation_running`
    ended         `outcome`, no lease        no write: the outcome

Records expire after KEPT_SECONDS. Their order is that of their times.
"""

import secrets
import time
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress

from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, NotFound, StoreUnavailable
from stint.domain.openai.automations import OVERDUE_SECONDS, AutomationInvocation, InvocationOutcome, InvocationSource
from stint.domain.paging import Page
from stint.store import keys
from stint.store.documents import Documents, fitting, json_size
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.lease import Attempt, Lease, Leases
from stint.store.records import is_live
from stint.store.table import SMALL_PAGE, Table, take

KEPT_SECONDS = 30 * 86_400
"""Seconds for which an invocation is known."""

RUNNING = "invocation_running"

QUEUE_TIMEOUT = "queue_timeout"
NOT_DELIVERED = (
    "No worker has delivered the input within a day. Check the worker's log and the dead-letter queue of the stack "
    "(WorkDeadLetters). Invoke the automation again."
)

MOST_EXAMINED = 25
"""Invocations in which the last message is looked for, the newest first."""

NO_BLOBS = ""
"""The prefix of objects in S3, which no invocation needs: an automation is small."""


@dataclass(frozen=True, slots=True)
class InvocationRecord:
    """The record of an invocation that this process delivers, or that has an `outcome`."""

    lease: Lease
    source: InvocationSource
    outcome: InvocationOutcome | None = None
    is_new: bool = False
    """No process has begun to deliver it before."""

    @property
    def object_id(self) -> str:
        return str(self.lease.item["object_id"])

    @property
    def end_user(self) -> str | None:
        """Return the end user for whom a request has asked for it."""
        return self.lease.item.get("end_user")

    async def renew(self, seconds: float) -> None:
        """Extend the lease. Raises Interrupted if it is lost."""
        await self.lease.renew(seconds)

    async def release(self) -> None:
        """Release the lease, so that another delivery takes over at once; do nothing if it is lost."""
        await self.lease.release()

    async def put_object_id(self, object_id: str) -> None:
        """Store another id of what is created, before it is. Raises Interrupted if the lease is lost."""
        await self.lease.update({"object_id": object_id})

    async def put_outcome(self, outcome: InvocationOutcome) -> None:
        """Store the outcome in place of the lease. Raises Interrupted if the lease is lost."""
        text = outcome.model_dump_json()
        await self.lease.update({"outcome": text, "lock_id": None, "lock_until": None, "lock_seconds": None})


class InvocationStore:
    """The invocations of all tenants. Unknown ids raise NotFound."""

    def __init__(self, table: Table, documents: Documents) -> None:
        self._table = table
        self._documents = documents
        # A process that is late must not take over an invocation that ended after it read the record.
        self._leases = Leases(
            table,
            "lock_id",
            "lock_until",
            "attribute_not_exists(outcome)",
            released={"lock_until": 0},
            busy=RUNNING,
            holder_name="object_id",
        )

    async def put(
        self, tenant: str, place: tuple[str, str], object_id: str, source: InvocationSource, end_user: str | None
    ) -> None:
        """Store an invocation that a request asks for. A repetition changes nothing.

        `place` has the id of the automation and that of the invocation.
        """
        item = keys.automation_invocation(tenant, *place)._asdict() | new_attributes(object_id)
        item |= {"end_user": end_user} if end_user else {}
        with suppress(ConditionFailed):
            await self._documents.put_new(item, source, NO_BLOBS)

    async def begin(
        self, tenant: str, place: tuple[str, str], object_id: str, source: InvocationSource, seconds: float
    ) -> InvocationRecord:
        """Store the invocation of a time with its lease: one write if it is new. Otherwise as `acquire`."""
        key = keys.automation_invocation(tenant, *place)
        lease_id = secrets.token_hex(8)
        item = key._asdict() | new_attributes(object_id) | {"lock_id": lease_id} | self._leases.span_of(seconds)
        packed = await self._documents.pack(item, source, NO_BLOBS)
        try:
            await self._table.put_new(packed)
        except ConditionFailed:
            return await self.acquire(tenant, place, seconds)
        except StoreUnavailable as error:
            if error.unsure:  # no one knows of a lease whose answer was lost
                with suppress(StoreUnavailable):
                    await self._leases.release(key, lease_id)
            raise
        return InvocationRecord(Lease(self._leases, key, name_of_place(place), lease_id, packed), source, is_new=True)

    async def acquire(self, tenant: str, place: tuple[str, str], seconds: float) -> InvocationRecord:
        """Acquire the lease of an invocation, or return one that has ended.

        Raises:
            NotFound: there is none, or it has expired.
            Conflict: `invocation_running` while another process has the lease.
        """
        leases, key, resource = self._leases, keys.automation_invocation(tenant, *place), name_of_place(place)

        async def next_attempt(found: Item | None) -> Attempt | Lease:
            if not is_live(found):
                raise NotFound("Invocation", place[1])
            if "outcome" in found:
                return Lease(leases, key, resource, "", item=found)
            if leases.is_held(found):
                raise Conflict(f"{resource} is being delivered.", code=RUNNING)
            return leases.attempt(found, {})

        free = Attempt("attribute_exists(pk) AND attribute_not_exists(lock_id) AND attribute_not_exists(outcome)", {})
        lease = await leases.acquire(key, resource, seconds, free, next_attempt)
        source = InvocationSource.model_validate_json((await self._documents.read([lease.item]))[0])
        return InvocationRecord(lease, source, outcome_of(lease.item), is_new=lease.taken_over is None)

    async def get(self, tenant: str, automation_id: str, invocation_id: str) -> AutomationInvocation:
        item = await self._table.get(keys.automation_invocation(tenant, automation_id, invocation_id))
        if not is_live(item):
            raise NotFound("Invocation", invocation_id)
        return (await self._read(automation_id, [item]))[0]

    async def find_sent(self, tenant: str, automation_id: str, message_ids: Set[str]) -> str | None:
        """Return the last message that an automation has sent, if it is one of some ids; otherwise None.

        Skipped invocations name the message that they found in line, so that the newest ones tell.
        """
        pk = keys.automation_invocations(tenant, automation_id)
        newest = self._table.query(pk, newest_first=True, attributes="object_id, outcome", page=MOST_EXAMINED)
        for item in await take(newest, MOST_EXAMINED):
            outcome = outcome_of(item)
            sent = outcome.pending_id if outcome and outcome.status == "skipped" else item["object_id"]
            if sent in message_ids:
                return str(sent)
        return None

    async def list(
        self, tenant: str, automation_id: str, *, after: str | None, limit: int, newest_first: bool
    ) -> Page[AutomationInvocation]:
        """List invocations by time, starting after `after`. Raises NotFound if that does not exist."""
        if after is not None:
            await self.get(tenant, automation_id, after)
        pk = keys.automation_invocations(tenant, automation_id)
        found, sizes = list[Item](), list[int]()
        async for item in self._table.query(pk, after=after, newest_first=newest_first, page=SMALL_PAGE):
            if is_live(item):
                found.append(item)
                sizes.append(json_size(item))
            if len(found) > limit or fitting(sizes) < len(sizes):
                break
        shown = min(limit, fitting(sizes))
        return Page([*await self._read(automation_id, found[:shown])], len(found) > shown)

    async def delete(self, tenant: str, automation_id: str, record: InvocationRecord) -> None:
        """Delete an invocation of an automation that was deleted."""
        await self._table.delete(keys.automation_invocation(tenant, automation_id, record.lease.key.sk))

    async def _read(self, automation_id: str, items: Sequence[Item]) -> Sequence[AutomationInvocation]:
        return [
            show(automation_id, item, InvocationSource.model_validate_json(raw))
            for raw, item in zip(await self._documents.read(items), items, strict=True)
        ]


def new_attributes(object_id: str) -> Item:
    return {"object_id": object_id, "expires_at": int(time.time()) + KEPT_SECONDS}


def name_of_place(place: tuple[str, str]) -> str:
    return f"Invocation {place[1]}"


def outcome_of(item: Mapping[str, str]) -> InvocationOutcome | None:
    return InvocationOutcome.model_validate_json(item["outcome"]) if "outcome" in item else None


def show(automation_id: str, item: Item, source: InvocationSource) -> AutomationInvocation:
    """Return an invocation as it is now. Without an outcome it has failed once it is overdue."""
    outcome = outcome_of(item)
    if outcome is None and source.created_at + OVERDUE_SECONDS <= time.time():
        outcome = InvocationOutcome.failed(QUEUE_TIMEOUT, NOT_DELIVERED)
    return AutomationInvocation(
        id=item["sk"],
        automation_id=automation_id,
        created_at=source.created_at,
        scheduled_at=source.scheduled_at,
        session_id=outcome.session_id if outcome else None,
        automation=source.automation if source.scheduled_at is not None else None,
        status=outcome.status if outcome else "queued",
        skip_reason="pending_delivery" if outcome and outcome.status == "skipped" else None,
        error=outcome.error if outcome else None,
    )
