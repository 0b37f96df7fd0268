"""The endings of responses that did not run to their end."""

import asyncio
import logging

from stint.domain.errors import Cancelled, StintError, Unexpected, rename_param
from stint.domain.openai.stored_responses import FIELDS, ResponseOutcome, ResponseRecord, ResponseStatus
from stint.domain.run_outcome import ErrorInfo, RunStatus
from stint.services.responses.closing_record import closing_record
from stint.services.responses.output_items import output_of
from stint.services.responses.response_log import ending_of
from stint.services.responses.response_run import ResponseRun

READ_SECONDS = 2.0
"""Maximum seconds of the read that shows how a response has ended whose last write failed."""

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
    if response.log.response.status in (ResponseStatus.completed, ResponseStatus.incomplete):
        response.error = None


async def store_ending(response: ResponseRun, ending: ResponseOutcome) -> None:
    """Store the ending of a response. Nothing is raised.

    A cancellation that is not stored is a failure, since the next reader finds that the response broke off.
    """
    record = make_record(response, ending)
    try:
        await response.log.write(record)
    except Exception as problem:  # nothing may be raised here, whatever is wrong with the store
        if await has_ended(response):
            return
        logger.warning("The outcome of a response was not stored", exc_info=True)
        if ending.status is ResponseStatus.cancelled:
            response.error = problem if isinstance(problem, StintError) else Unexpected()
            failed = response.run.make_outcome(RunStatus.failed, ErrorInfo.of(response.error))
            record = make_record(response, ending_of(failed))
        response.log.response.records.append(record)
        await response.log.lapse()


def make_record(response: ResponseRun, ending: ResponseOutcome) -> ResponseRecord:
    """Return the record that ends a response with its streamed items."""
    streamed, unfinished = response.stream.items.streamed, response.running.whole()
    record = closing_record(response.log.response, streamed, ending, unfinished)
    record.details = response.run.ending_details
    return record


async def has_ended(response: ResponseRun) -> bool:
    """Return whether an ending is stored: by a write that had no answer, or by a reader. It is then that of the run.

    One that broke off keeps the streamed items, because a reader that stored it does not know them. The leases lapse,
    so that the next holder of the conversation adds the items.
    """
    log = response.log
    if log.store is None:
        return False
    try:
        async with asyncio.timeout(READ_SECONDS):
            stored = await log.store.get(log.tenant, log.response_id)
    except (StintError, TimeoutError):
        return False
    if (ending := stored.ending) is None:
        return False
    if ending.broke_off:
        stored.records.pop()
        stored.records.append(closing_record(stored, response.stream.items.streamed, ending))
    log.response.records[:] = stored.records
    response.stream.output = output_of(stored, response.stream.output.encode)
    await log.lapse()
    await log.announce()
    return True
