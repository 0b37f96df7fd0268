"""Responses whose process died: how they end, and who sees to it."""

import asyncio
import time

from stint.domain.errors import Interrupted
from stint.domain.openai.stored_responses import (
    ResponseEnding,
    ResponseError,
    ResponseRecord,
    ResponseStatus,
    StoredResponse,
)
from stint.services.responses.closing_record import closing_record
from stint.services.responses.streamed_items import StreamedItems
from stint.store.response_store import ResponseStore

MESSAGE = "The process that ran this response ended before the response did. What was finished is stored."


def interruption(stored: StoredResponse) -> ResponseRecord:
    """Return the last record of a response whose process died: nobody knows what its stream has shown."""
    error = ResponseError.of(Interrupted(MESSAGE))
    ending = ResponseEnding(status=ResponseStatus.failed, error=error, usage=stored.usage)
    return closing_record(stored, StreamedItems(), ending)


def is_dead(stored: StoredResponse) -> bool:
    """Tell whether a response that runs in the foreground has outlived its time."""
    return not stored.header.background and stored.ending is None and time.time() > stored.header.until


async def settle(store: ResponseStore, tenant: str, stored: StoredResponse) -> StoredResponse:
    """Give a response as it is to be seen: one whose process died is ended for good.

    Raises:
        NotFound: it was deleted meanwhile.
    """
    if not is_dead(stored):
        return stored
    return await asyncio.to_thread(store.responses.seal, tenant, stored.header.response_id, interruption)
