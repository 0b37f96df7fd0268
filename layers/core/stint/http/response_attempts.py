"""Retries of responses over HTTP: their answer is that of the response that the first attempt created."""

import logging

from stint.apis.openai import OpenAIServices
from stint.caller import EarlierRunUnavailable, find_attempt, renew_object_id
from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, StintError
from stint.domain.openai.response_resource import Response
from stint.domain.openai.stored_responses import ResponseStatus

logger = logging.getLogger(__name__)

OUTCOME_UNKNOWN = (
    "An earlier request with this Idempotency-Key ended without an answer. It had called a tool that is not "
    "repeatable, and its response is not stored, so it was not run again. Check the tool's effect, and send a new key "
    "to run it again."
)


@dataclass(slots=True)
class FollowedResponse:
    """The response of an earlier attempt, or one that has `taken` the request. `error` is set once it has failed."""

    services: OpenAIServices
    response_id: str
    taken: bool = False
    error: StintError | None = None

    async def read(self, deadline: float) -> Response:
        """Return the response when it has ended. Raises NotFound, or DeadlineExceeded."""
        retries = self.services.make_response_retries()
        stored = await retries.wait_for_end(self.response_id, deadline, background=self.taken)
        if stored.status is ResponseStatus.failed and stored.ending is not None and stored.ending.error is not None:
            self.error = stored.ending.error.to_error()
            self.error.response_id = self.response_id
        return self.services.stored_responses.to_resource(stored)


async def find_earlier_response(services: OpenAIServices, deadline: float, *, stored: bool) -> FollowedResponse | None:
    """Return the response of an earlier attempt of the current request, if there is one.

    One that failed before its first step is repeated by the current attempt. One that runs is returned when it has a
    step, or its process has renewed its lease.

    Raises:
        EarlierRunUnavailable: the current attempt only follows the response, which is not stored or has failed.
        Conflict: an earlier attempt, whose response is not stored, has called a tool that is not repeatable.
    """
    attempt = find_attempt()
    if attempt.repeated:
        found = await services.make_response_retries().find_keyed(attempt, deadline) if stored else None
        if found is None and attempt.follows:
            raise EarlierRunUnavailable
        if attempt.sent:
            raise Conflict(OUTCOME_UNKNOWN, code="outcome_unknown")
        if found is None and stored:
            await renew_object_id(attempt)
    elif not stored:
        return None
    elif attempt.fingerprint and attempt.retry_count:
        found = await services.make_response_retries().find(attempt, deadline)
    else:
        return None
    return FollowedResponse(services, found) if found is not None else None


def omit_end_marker(error: Exception) -> tuple[()]:
    """Write nothing after an error. A client without the end marker reconnects after its last event."""
    if not isinstance(error, StintError):
        raise error
    logger.info("A stream was closed before its end", extra={"error_code": error.code})
    return ()
