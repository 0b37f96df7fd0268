"""Records of requests with an idempotency key. One process at a time has a request's lease; others get its answer.

The id of the object that a request creates is stored with the lease, before the request runs. So a repetition knows the
id under which the object may exist, whenever the first process died.

    request       record                     acquire                              put_answer        erase_answer
    new           none                       one write, `is_own`                  -                 nothing
    running       lease is held              without a lease, not `answered`      by its holder     nothing
    interrupted   lease has lapsed, or was   `is_own`, with the earlier id;       by its holder,    deletes
                  released (end 0)           `taken_over`                         if not replaced
    answered      `answered`, no lease       without a lease, `answered`          nothing           deletes
    forgotten     `expires_at` has passed    deletes the record, then as new      as above          as above
    any of these, with another body          422 IdempotencyKeyReused; forgotten: as new

`taken_over` and `sent` show a repetition that the first process may have done a part. What may follow depends on the
request: the caller follows the object, runs the request again, or refuses it.

The answer replaces the whole record in one conditional write, and with it the lease: a process that has lost its lease
cannot answer, and no repetition can find an answer that still has a lease.
"""

import time
from collections.abc import Callable

from stint.dataclasses import dataclass
from stint.domain.errors import IdempotencyKeyReused, NotFound
from stint.domain.idempotency import StoredAnswer
from stint.store import keys
from stint.store.documents import Documents
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.lease import Attempt, Lease, Leases
from stint.store.owners import add_entries
from stint.store.table import NEW, Table

KEPT_SECONDS = 86_400
"""Seconds for which a request is known."""

IN_USE = "idempotency_key_in_use"


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """The record of a request. `is_own`: the caller has its lease. `answered`: it has an answer, and no lease.

    `object_id` is the id of the object that the request creates, if it creates one that can be followed. A lease that
    was `taken_over` had a holder whose process may have created it. `sent`: a holder has sent a call that must not be
    sent again, and whose result is stored nowhere.
    """

    lease: Lease

    @property
    def is_own(self) -> bool:
        return bool(self.lease.lease_id)

    @property
    def answered(self) -> bool:
        return "answered" in self.lease.item

    @property
    def object_id(self) -> str:
        return str(self.lease.item["object_id"])

    @property
    def taken_over(self) -> bool:
        return self.lease.taken_over is not None

    @property
    def sent(self) -> bool:
        return "sent" in self.lease.item

    async def mark_sent(self) -> None:
        """Note that such a call is being sent, with one unit for the first one. Raises Interrupted as `renew`."""
        if not self.sent:
            self.lease.item.update(await self.lease.update({"sent": 1}))

    async def renew(self, seconds: float) -> None:
        """Extend the lease. Raises Interrupted if it is lost."""
        await self.lease.renew(seconds)

    async def release(self) -> None:
        """Release the lease, so that a repetition takes over at once; do nothing if it is lost."""
        await self.lease.release()

    async def put_object_id(self, object_id: str) -> None:
        """Store another id for the object, before it is created. Raises Interrupted if the lease is lost."""
        await self.lease.update({"object_id": object_id})


class RequestRecords:
    """The records of a tenant's requests. Each expires after KEPT_SECONDS. `key_of` returns a record's key."""

    def __init__(
        self, table: Table, documents: Documents, key_of: Callable[[str, str], Key] = keys.idempotency
    ) -> None:
        self._table = table
        self._key_of = key_of
        self._documents = documents
        unanswered = "attribute_not_exists(answered)"
        self._leases = Leases(
            table, "lock_id", "lock_until", unanswered, released={"lock_until": 0}, busy=IN_USE, holder_name="object_id"
        )

    async def acquire(self, tenant: str, digest: str, body_hash: str, object_id: str, seconds: float) -> RequestRecord:
        """Acquire the lease of a request: one write of one unit if it is new.

        Return the record without a lease if another process has it, or if the request was answered.

        Raises:
            IdempotencyKeyReused: the key was sent with another body.
        """
        leases, key, now = self._leases, self._key_of(tenant, digest), int(time.time())
        new = {"body_hash": body_hash, "object_id": object_id, "expires_at": now + KEPT_SECONDS}

        async def next_attempt(found: Item | None) -> Attempt | Lease:
            if found is not None and found["expires_at"] <= now:
                # By its end: another process may have replaced it by a new record in the meantime.
                await self._table.delete(key, condition="expires_at = :end", values={":end": found["expires_at"]})
                found = None
            if found is None:
                return Attempt(NEW, new)
            if found["body_hash"] != body_hash:
                raise IdempotencyKeyReused(
                    "The Idempotency-Key was sent before with another body. Send a new key with a new request."
                )
            if "answered" in found or leases.is_held(found):
                return Lease(leases, key, "The request", "", item=found)
            return leases.attempt(found, {"object_id": found["object_id"]})

        return RequestRecord(await leases.acquire(key, "The request", seconds, Attempt(NEW, new), next_attempt))

    async def find_running(self, tenant: str, digest: str) -> str | None:
        """Return the id of the object of a request that a process runs; None if none does, or it has an answer."""
        item = await self._leases.read(self._key_of(tenant, digest))
        runs = item is not None and "answered" not in item and self._leases.is_held(item)
        return str(item["object_id"]) if item is not None and runs else None

    async def put_answer(
        self,
        tenant: str,
        digest: str,
        record: RequestRecord,
        answer: StoredAnswer,
        owners: str = "",
        end: int | None = None,
    ) -> None:
        """Store the answer of a request in place of its lease; do nothing if the lease is lost.

        `owners` are the hashes of the end users to whom it belongs, for a unit each. It does not outlive `end`.
        """
        # What a repetition is compared with. The lease, `sent` and the nonce go.
        names = ("pk", "sk", "body_hash", "object_id", "expires_at")
        item = {name: record.lease.item[name] for name in names} | {"answered": 1}
        ends = item["expires_at"] = int(item["expires_at"]) if end is None else min(int(item["expires_at"]), end)
        # Before the answer, as for all objects of end users: none exists that their index does not have.
        item |= await add_entries(self._table, tenant, owners, "idempotent_request", digest, expires_at=ends)
        prefix, held = keys.idempotency_blobs(tenant, digest), {":held": record.lease.lease_id}
        try:
            await self._documents.put_new(item, answer, prefix, condition="lock_id = :held", values=held)
        except ConditionFailed:
            return

    async def read_answer(self, record: RequestRecord) -> StoredAnswer:
        """Return the answer of a request. Raises NotFound if the bucket has removed it."""
        [raw] = await self._documents.read([record.lease.item])
        return StoredAnswer.model_validate_json(raw)

    async def find_answer(self, tenant: str, digest: str) -> StoredAnswer:
        """Return the answer of a request. Raises NotFound if there is none."""
        item = await self._table.get(self._key_of(tenant, digest))
        if item is None or "answered" not in item:
            raise NotFound("Request", digest)
        [raw] = await self._documents.read([item])
        return StoredAnswer.model_validate_json(raw)

    async def erase_answer(self, tenant: str, digest: str) -> None:
        """Delete an answer with its record, or a record whose process died. A repetition of its request runs then."""
        key = self._key_of(tenant, digest)
        item = await self._leases.read(key)
        if item is not None and "answered" in item:
            # The record last: it names the object, so a repetition finds what is left.
            await self._documents.delete_blob(item)
            await self._table.delete(key)
        elif item is not None and not self._leases.is_held(item):
            await self._table.delete(key, condition="lock_id = :seen", values={":seen": item["lock_id"]})

    async def delete(self, record: RequestRecord) -> None:
        """Forget a request that stored nothing; do nothing if the lease is lost."""
        held = {":held": record.lease.lease_id}
        await self._table.delete(record.lease.key, condition="lock_id = :held", values=held)
