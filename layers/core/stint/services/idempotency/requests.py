"""Requests with an idempotency key: each runs once, and its repetitions get its answer.

The record of a key has a lease, under which one process runs the request. `acquire` has four results, by the record:

  record                               acquire
  none, or expired                     writes it: an OpenRequest, with a new object id
  free: its holder failed or died      takes it over: an OpenRequest, with the object id of the first request
  answered                             the StoredAnswer
  held by another process              waits: None if `follow` answers from the run itself; RequestRunning at the
                                       deadline; what the record says when the holder has ended
  any, with another body               IdempotencyKeyReused

The holder of the lease ends it in one of four ways, by what is known about the request:

  the request                                   the record           a repetition
  was answered                                  `finish`             gets the answer
  stored nothing                                `forget`: none       runs it anew
  failed, and may have created its object       `release`: free      looks for the object first
  has an unknown effect                         `stop_renewal`       waits until the lease has lapsed, then looks

The object id is in the record before the object exists. So whoever takes over finds what the first process has created,
or creates it under the same id.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from stint.dataclasses import dataclass
from stint.domain.errors import RequestRunning, StintError
from stint.domain.idempotency import StoredAnswer
from stint.domain.ids import new_id
from stint.loop.lease_keeper import LeaseKeeper, lease_span
from stint.store.idempotent_requests import RequestRecord, RequestRecords
from stint.store.owners import hash_user

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 1.0
"""Pauses between two looks at a request that another process runs. Each is twice as long as the one before."""


Follow = Callable[[str], Awaitable[bool]]
"""A function that answers with the run that has an id, if it has begun, and returns whether it has answered."""


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request that this process runs, under a lease that is renewed until `finish` or `forget`."""

    tenant: str
    digest: str
    records: RequestRecords
    keeper: LeaseKeeper[RequestRecord]

    async def finish(
        self, answer: StoredAnswer, users: Iterable[str], owners: Iterable[str], ends: Iterable[int]
    ) -> None:
        """Store the answer until the first of `ends`. It belongs to the end users `users`, and to the hashes `owners`.

        A failure is only logged: once the lease has lapsed, a repetition runs the request."""
        # First: the answer replaces the lease, which a renewal would find lost.
        await self.keeper.wait_until_stopped()
        try:
            hashes = sorted({*map(hash_user, users), *owners})
            await self.records.put_answer(
                self.tenant,
                self.digest,
                self.keeper.lease,
                answer,
                owners=" ".join(hashes),
                end=min(ends, default=None),
            )
        except StintError as error:
            logger.warning("The answer of an idempotency key was not stored", extra={"error": error.message})

    async def forget(self) -> None:
        """Remove the record of a request that stored nothing, so that a repetition runs it. Failures are logged."""
        await self.keeper.wait_until_stopped()
        try:
            await self.records.delete(self.keeper.lease)
        except StintError as error:
            logger.warning("The record of an idempotency key was not removed", extra={"error": error.message})

    async def release(self) -> None:
        """Release the record of a request that failed, and may have created its object. A repetition looks for it."""
        await self.keeper.release()

    def stop_renewal(self) -> None:
        """Stop the renewal, so that the lease lapses: what the request did is not known."""
        self.keeper.stop()


@dataclass(frozen=True, slots=True)
class IdempotentRequests:
    """The requests of a tenant with an idempotency key."""

    tenant: str
    records: RequestRecords
    lease_seconds: float

    async def acquire(
        self, digest: str, body_hash: str, deadline: float, follow: Follow | None = None
    ) -> OpenRequest | StoredAnswer | None:
        """Return the answer of a request that was answered before; otherwise a request to run.

        While another process runs it, wait for its end, or let `follow` answer, and return None. `digest` is the
        SHA-256 of the key and its scope. `deadline` is a time of the event loop's clock.

        Raises:
            IdempotencyKeyReused: the key was sent with another body.
            RequestRunning: the request still runs at the deadline.
        """
        clock, object_id = asyncio.get_running_loop().time, new_id()
        while True:
            # Before the write, so that this process counts its lease from no later than the record does.
            asked, span = clock(), lease_span(self.lease_seconds, deadline)
            record = await self.records.acquire(self.tenant, digest, body_hash, object_id, span)
            if record.is_own:
                keeper = LeaseKeeper(record, self.lease_seconds, deadline, asked + span)
                return OpenRequest(self.tenant, digest, self.records, keeper)
            if record.answered:
                return await self.records.read_answer(record)
            if await self.wait(digest, record.object_id, deadline, follow):
                return None

    async def wait(self, digest: str, object_id: str, deadline: float, follow: Follow | None) -> bool:
        """Wait until no process runs a request, or until `follow` has answered. Return whether it has.

        Raises:
            RequestRunning: the request still runs at the deadline.
        """
        clock, pause = asyncio.get_running_loop().time, FIRST_PAUSE_SECONDS
        running: str | None = object_id
        while running is not None:
            # Asked at each look: the run may begin later than its request.
            if follow is not None and await follow(running):
                return True
            if clock() + pause >= deadline:
                raise RequestRunning(
                    "A request with this Idempotency-Key still runs. Send the same request again later."
                )
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            running = await self.records.find_running(self.tenant, digest)
        return False
