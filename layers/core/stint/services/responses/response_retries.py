"""Retries of responses: a client's retry finds the response that its first attempt created.

A retry without an idempotency key is known by the fingerprint of its request, which the list entries of new responses
have. One with a key knows the id of the response. A response that is not stored cannot be found.

| the response of the earlier attempt                     | the retry                                           |
|---------------------------------------------------------|-----------------------------------------------------|
| runs without a record                                   | waits for one, a renewal of the lease, or its end   |
| runs with a record, or its process renewed the lease    | follows it from its first event on                  |
| is in the background                                    | follows it; with a key, queues it again if it waits |
| ended, also as failed after a step                      | replays it                                          |
| failed before its first step, and may be repeated       | starts one; other retries find that one             |
| is not stored, and called a tool that is not repeatable | is refused with Conflict `outcome_unknown`          |

Two retries could run a failed response twice. One claims the repetition with a conditional write, and the others wait
HEADER_SECONDS for its response.
"""

import asyncio
import sys
from contextlib import suppress

from stint.caller import EarlierRunUnavailable, RequestAttempt
from stint.dataclasses import dataclass, replace
from stint.domain.errors import RETRYABLE_CODES, Conflict, DeadlineExceeded, NotFound
from stint.domain.ids import name_of
from stint.domain.openai.stored_responses import RUNNING, ResponseStatus, StoredResponse
from stint.services.responses.read import ResponseReader
from stint.services.runs.polling_pauses import PollingPauses
from stint.store.store import Store

MOST_CLAIMS = 5
"""Maximum responses that a retry tries to claim. Each attempt costs a write unit."""

REPETITION = 0
"""The count of a claim to run a failed response again. Retries have higher counts."""

HEADER_SECONDS = 5.0
"""Seconds to wait for the header of a response that another retry creates."""

OUTCOME_UNKNOWN = (
    "An earlier request with this Idempotency-Key ended without an answer. It had called a tool that is not "
    "repeatable, and its response is not stored, so it was not run again. Check the tool's effect, and send a new key "
    "to run it again."
)


@dataclass(frozen=True, slots=True)
class ResponseRetries:
    """Finds and follows the responses of earlier attempts of a tenant's callers."""

    tenant: str
    store: Store
    reader: ResponseReader

    async def find_earlier(self, attempt: RequestAttempt, deadline: float, *, stored: bool) -> str | RequestAttempt:
        """Return the id of the response of an earlier attempt; if there is none, the attempt that starts a response.

        A response that failed before its first step is repeated. One that is not `stored` cannot be found.

        Raises:
            EarlierRunUnavailable: the attempt only follows the response, which is not stored or has failed.
            Conflict: an earlier attempt, whose response is not stored, has called a tool that is not repeatable.
        """
        if not stored:
            found = None
        elif attempt.repeated:
            found = await self.find_keyed(attempt, deadline)
        else:
            found = await self.find(attempt, deadline)
        if found is None and attempt.follows:
            raise EarlierRunUnavailable
        if attempt.sent:
            raise Conflict(OUTCOME_UNKNOWN, code="outcome_unknown")
        if found is None and stored and attempt.repeated:
            return await attempt.renewed()
        return attempt if found is None else found

    async def find(self, attempt: RequestAttempt, deadline: float) -> str | None:
        """Return the id of the response that an earlier attempt created, unless it is to be run again.

        It is the newest one of the last 10 minutes. Each response answers one retry per count. Of the retries that find
        one to be run again, one does so, and the others find its response.
        """
        stored = await self.claim_newest(attempt)
        while stored is not None:
            found = await self.wait_for_progress(stored, deadline)
            if not failed_before_a_step(found):
                return found.header.response_id
            stored = await self.find_repetition(attempt, found.header.response_id)
        return None

    async def find_repetition(self, attempt: RequestAttempt, failed: str) -> StoredResponse | None:
        """Return the response that another retry creates in place of a failed one; None if this one is to do so."""
        if await self.store.retry_claims.put(self.tenant, failed, REPETITION):
            return None
        pauses = PollingPauses(asyncio.get_running_loop().time() + HEADER_SECONDS)
        with suppress(DeadlineExceeded):
            while (found := await self.claim_newest(attempt, after=failed)) is None:
                await pauses.wait()
            return found
        return None

    async def claim_newest(self, attempt: RequestAttempt, after: str = "") -> StoredResponse | None:
        """Return the newest response of an earlier attempt, and claim it.

        With `after`, return one that any attempt has created after the response with this id.
        """
        sought = replace(attempt, retry_count=sys.maxsize) if after else attempt
        for response_id in (await self.store.response_attempts.find(self.tenant, sought))[:MOST_CLAIMS]:
            if response_id <= after:
                break
            try:
                stored = await self.reader.read(response_id)
            except NotFound:  # it was deleted
                continue
            if await self.store.retry_claims.put(self.tenant, response_id, attempt.retry_count):
                return stored
        return None

    async def find_keyed(self, attempt: RequestAttempt, deadline: float) -> str | None:
        """Return the id of the response that an earlier attempt with the same idempotency key created, likewise.

        One in the background that no worker has started is queued again.
        """
        try:
            stored = await self.reader.read(name_of("resp", attempt.object_id))
            stored = await self.wait_for_progress(stored, deadline)
        except NotFound:
            return None
        if failed_before_a_step(stored):
            return None
        await self.reader.recovery.queue_for_retry(stored)
        return stored.header.response_id

    async def wait_for_progress(self, stored: StoredResponse, deadline: float) -> StoredResponse:
        """Return a response when it has a record, its process has renewed its lease or is dead, or at the deadline.

        Nothing is sent of it before, so that a response whose process died before the first step can be run again. One
        in the background is returned at once, because the worker runs it again.

        Raises:
            NotFound: it was deleted.
        """
        pauses, seen = PollingPauses(deadline), stored.lease_until
        while not (stored.records or stored.header.background) and stored.lease_until == seen:
            try:
                await pauses.wait()
            except DeadlineExceeded:
                return stored
            stored = await self.reader.read(stored.header.response_id)
        return stored

    async def wait_for_end(self, response_id: str, deadline: float, *, background: bool = False) -> StoredResponse:
        """Return a response when it has ended. One in the background is returned at once, unless `background` is set.

        Raises:
            NotFound: it was deleted.
            DeadlineExceeded: it has not ended.
        """
        pauses = PollingPauses(deadline)
        while True:
            stored = await self.reader.read(response_id)
            if stored.status not in RUNNING or (stored.header.background and not background):
                return stored
            await pauses.wait()


def failed_before_a_step(stored: StoredResponse) -> bool:
    """Return whether a response failed before its first step, for a reason that another attempt may not meet."""
    error = stored.ending.error if stored.ending else None
    failed = stored.status is ResponseStatus.failed and error is not None and error.code in RETRYABLE_CODES
    return failed and not stored.steps
