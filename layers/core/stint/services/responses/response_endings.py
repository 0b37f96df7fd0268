"""The endings of responses that did not run to their end."""

import logging

from stint.domain.errors import Cancelled, StintError, rename_param
from stint.domain.openai.stored_responses import FIELDS, ResponseOutcome
from stint.domain.run_outcome import ErrorInfo, RunStatus
from stint.services.responses.closing_record import closing_record
from stint.services.responses.response_log import ending_of
from stint.services.responses.response_run import ResponseRun

logger = logging.getLogger(__name__)


async def end_early(response: ResponseRun, error: StintError) -> None:
    """Store that a response failed or was cancelled, with its streamed items.

    If this fails, a later reader seals the response. Nothing is raised.
    """
    if isinstance(error, Cancelled):
        await store_ending(response, ending_of(response.run.make_outcome(RunStatus.cancelled)))
        return
    extra = {"response_id": response.response_id, "error_code": error.code, "error": error.message}
    logger.warning("The response failed", extra=extra)
    if response.has_effects:
        error.response_id = response.response_id
    error.param = rename_param(error.param, FIELDS)
    response.error = error
    await store_ending(response, ending_of(response.run.make_outcome(RunStatus.failed, ErrorInfo.of(error))))


async def store_ending(response: ResponseRun, ending: ResponseOutcome) -> None:
    """Store the ending of a response. Nothing is raised."""
    streamed, unfinished = response.stream.items.streamed, response.running.whole()
    record = closing_record(response.log.response, streamed, ending, unfinished)
    try:
        await response.log.write(record)
    except Exception:  # nothing may be raised here, whatever is wrong with the store
        logger.warning("The outcome of a response was not stored", exc_info=True)
        response.log.response.records.append(record)
        await response.log.lapse()
