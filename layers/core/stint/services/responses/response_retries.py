"""Retries of responses: a client's retry finds the response that its first attempt created."""

from dataclasses import dataclass

from stint.caller import RequestAttempt
from stint.domain.errors import RETRYABLE_CODES, NotFound
from stint.domain.ids import name_of
from stint.domain.openai.stored_responses import ResponseStatus, StoredResponse
from stint.services.responses.read import ResponseReader
from stint.services.runs.polling_pauses import PollingPauses
from stint.store.store import Store

MOST_CLAIMS = 5
"""Maximum responses that a retry tries to claim. Each attempt costs a write unit."""

RUNNING = (ResponseStatus.queued, ResponseStatus.in_progress)


@dataclass(frozen=True, slots=True)
class ResponseRetries:
    """Finds and follows the responses of earlier attempts of a tenant's callers."""

    tenant: str
    store: Store
    reader: ResponseReader

    async def find(self, attempt: RequestAttempt) -> str | None:
        """Return the id of the response that an earlier attempt created, unless it is to be run again.

        It is the newest one of the last 10 minutes. Each response answers one retry per count.
        """
        for response_id in (await self.store.response_attempts.find(self.tenant, attempt))[:MOST_CLAIMS]:
            try:
                stored = await self.reader.read(response_id)
            except NotFound:  # it was deleted
                continue
            if await self.store.retry_claims.put(self.tenant, response_id, attempt.retry_count):
                return None if failed_before_a_step(stored) else response_id
        return None

    async def find_keyed(self, attempt: RequestAttempt) -> str | None:
        """Return the id of the response that an earlier attempt with the same idempotency key created, likewise."""
        try:
            stored = await self.reader.read(name_of("resp", attempt.object_id))
        except NotFound:
            return None
        return None if failed_before_a_step(stored) else stored.header.response_id

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
