"""Background responses: create.

A response is accepted when three things are stored, in this order:

1. A delayed task. If the process dies after it, a worker finds no response, and drops the task.
2. The response, and its first events. If the process dies after them, the delayed task starts the response.
3. A task without a delay, which only saves waiting. It may fail.

If the answer to the second write is lost, the client gets an error although the response may be stored, so it is marked
as deleted. Its conversation's lease lapses at once: from here on the record of the response holds the conversation.
"""

import asyncio
import logging
from contextlib import suppress
from functools import partial

from stint.caller import find_end_user, find_principal, hash_end_user
from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, StintError, StoreUnavailable
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.stored_responses import ResponseHeader, StoredResponse
from stint.domain.tasks import DeletionTask, ResponseTask
from stint.run_stop import refuse_stopped
from stint.services.deletions import Deletions
from stint.services.responses.links import released_on_error
from stint.services.responses.recovery import MESSAGE_SECONDS, Recovery, WorkQueue
from stint.services.responses.replay import replay
from stint.services.responses.response_log import end_users
from stint.services.responses.responses import Responses
from stint.services.runs.run_handle import RequestContext
from stint.store.attempts import new_response_id
from stint.store.parallel import value_of
from stint.store.store import Store

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Background:
    """The responses of a tenant that the worker runs."""

    tenant: str
    store: Store
    responses: Responses
    recovery: Recovery
    queue: WorkQueue
    deletions: Deletions

    async def create(self, request: CreateResponse, context: RequestContext) -> StoredResponse:
        """Store a response and queue it. The request is checked completely before.

        If the queue does not accept the task, the delayed one starts the response.

        Raises:
            InvalidRequest: the request has the caller's keys, which are not stored.
            StintError: as `Responses.start`; or the queue accepts nothing.
        """
        if context.provider_data:
            raise InvalidRequest(
                "X-LlamaStack-Provider-Data is not stored, so a background response cannot use it. Remove "
                "the header, or background.",
                param="X-LlamaStack-Provider-Data",
            )
        response_id = new_response_id(context.attempt)
        try:
            stored = await self.put(request, context, response_id)
        except StoreUnavailable:
            task = DeletionTask(kind="delete_response", tenant=self.tenant, response_id=response_id)
            mark = partial(self.store.responses.mark_deleted, self.tenant, response_id)
            with suppress(StintError):  # the header may be stored although no answer arrived
                await self.deletions.start_deletion(task, mark)
            raise
        try:
            await self.queue.send(ResponseTask(tenant=self.tenant, response_id=response_id))
        except StoreUnavailable as error:
            extra = {"response_id": response_id, "error": error.message}
            logger.warning("The response was not queued: it starts with its delayed task", extra=extra)
        return stored

    async def put(self, request: CreateResponse, context: RequestContext, response_id: str) -> StoredResponse:
        """Check and store a response, and concurrently the first events of a streamed one.

        Its conversation must be free. From here on the response keeps the conversation by its record until it has
        ended, although the lease is not renewed while no worker runs it.

        Raises:
            StintError: as `Responses.start`.
        """
        with self.responses.meters.stops.watched():
            return await self.check_and_store(request, context, response_id)

    async def check_and_store(
        self, request: CreateResponse, context: RequestContext, response_id: str
    ) -> StoredResponse:
        prepared = await self.responses.prepare(request, context, response_id)
        principal = find_principal()
        prepared.header.creator = principal.to_context() if principal is not None else None
        if (user := find_end_user()) is not None:
            prepared.header.user_hash = hash_end_user(user)
        if prepared.header.conversation_id is not None and user is not None:
            from stint.services.runs.senders import name_sender  # noqa: PLC0415 - few act for an end user

            prepared.header.sender = name_sender()  # the worker does not act for the end user
        async with released_on_error(prepared.context):
            await refuse_stopped(*prepared.header.stop_names)
            await self.queue.send(self.delayed_task(prepared.header.response_id))
            for outcome in await asyncio.gather(
                self.store.responses.put(self.tenant, prepared.header, end_users(prepared.header), context.attempt),
                self.store_first_events(prepared.header),
                return_exceptions=True,
            ):
                value_of(outcome)
        if prepared.context.keeper is not None:
            await prepared.context.keeper.lapse()
        return StoredResponse(prepared.header)

    def delayed_task(self, response_id: str) -> ResponseTask:
        """Return the task that starts a response if nothing else has, sent before the response is stored.

        A worker drops it if the response was not stored, or was started.
        """
        return ResponseTask(
            tenant=self.tenant, response_id=response_id, unstarted_only=True, delay_seconds=MESSAGE_SECONDS
        )

    async def store_first_events(self, header: ResponseHeader) -> None:
        if header.streamed:
            events = [event.model_dump_json() for event in replay(StoredResponse(header), self.recovery.opaque.encode)]
            await self.store.background.put_events(
                self.tenant, header.response_id, 0, events, expires_at=header.expires_at
            )
