"""Responses that wait for a conversation in use: their checks, their start, and who has the conversation.

A message is accepted only if its response could start now, except that the conversation is in use: what can be refused
is refused while a client can still get a status. It expires when its response would, so the time in line does not
count as an extension.

| who has the conversation                      | `find_running` | `find_holder` |
|-----------------------------------------------|----------------|---------------|
| a response whose process renews the lease     | its id         | its id        |
| a background response that no worker runs now | None           | its id        |
| a foreground response whose process died      | None           | its id        |
| none                                          | None           | None          |

Only an interruption asks for the holder, because it cancels the response, whoever runs it. A message that waits tries
to start: the lease itself decides whether the holder of a lapsed lease still counts.
"""

import time

from stint.caller import RequestAttempt, end_users_of, record_owners
from stint.dataclasses import replace
from stint.domain.end_users import OwnedObject
from stint.domain.errors import InvalidRequest, NotFound
from stint.domain.ids import name_of
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.response_tools import McpTool
from stint.domain.stops import stop_name
from stint.domain.tasks import WaitingTask
from stint.domain.waiting_messages import MessageState, WaitingMessage, WaitingPlace
from stint.run_stop import refuse_stopped
from stint.services.background.cancellation import ResponseCancellation
from stint.services.conversations.item_files import check_images
from stint.services.responses.merging import is_mergeable, message_of
from stint.services.responses.response_run import ResponseRun
from stint.services.responses.responses import Responses
from stint.services.runs.admission import Claim, new_message, place_of
from stint.services.runs.run_handle import RequestContext
from stint.store.attempts import new_response_id


class ResponseLine:
    """The responses that wait for one conversation. A message has the digits of its response's id."""

    def __init__(self, responses: Responses, cancellation: ResponseCancellation, conversation_id: str) -> None:
        self.responses = responses
        self.cancellation = cancellation
        self.tenant = responses.tenant
        self.store = responses.store
        self.conversation_id = conversation_id

    async def prepare(self, request: CreateResponse, attempt: RequestAttempt) -> tuple[WaitingPlace, WaitingMessage]:
        """Check a request that must wait, and return what is stored of it.

        Raises:
            NotFound: there is no such conversation.
            Forbidden: the caller may not use the model.
            QuotaExceeded: the conversation's budget is spent.
            InvalidRequest: the request has credentials, is not to be stored, has an image that cannot be used, or its
                model is unknown.
            Stopped: the conversation, the caller's key or the tenant was stopped.
        """
        self.responses.refuse_unstored(request)
        if any(isinstance(tool, McpTool) and tool.carries_credentials for tool in request.tools):
            raise InvalidRequest(
                "Credentials are not stored, so a response that waits cannot use them. Remove the headers and the "
                "authorization of its MCP tools, or when_busy.",
                param="tools",
            )
        await check_images(self.responses.reader, request.input)
        await self.responses.planner.registry.route(request.model or self.responses.default_model)
        async with self.responses.meters.watch():
            await refuse_stopped(stop_name("conversation", self.conversation_id))
        owned = await self.store.conversation_leases.find_owned(self.tenant, self.conversation_id)
        record_owners(owned.owners)
        if owned.ledger is not None:
            owned.ledger.require()
        for user in end_users_of(request.safety_identifier, request.user):
            own = OwnedObject(kind="conversation", id=self.conversation_id)
            await self.store.end_users.add(self.tenant, user, own)
        mergeable = request.when_busy == "merge" and is_mergeable(request)
        place = place_of(message_of(new_response_id(attempt)), attempt, mergeable=mergeable)
        expires_at = self.responses.find_end(time.time(), request)
        return place, new_message(to_json(request), expires_at, lenient=request.lenient or None)

    async def start(
        self, request: CreateResponse, context: RequestContext, message_id: str, run_id: str, claim: Claim
    ) -> ResponseRun:
        """Start the response of a message. It expires when its message does. Raises as `Responses.start`."""

        async def claim_message(response_id: str) -> None:
            await claim(message_of(response_id))

        line = self.store.conversation_line(self.tenant, self.conversation_id)
        state = await line.get(message_id)
        end = state.message.expires_at if state is not None else None
        attempt = replace(context.attempt, object_id=run_id, expires_at=end or 0, claim=claim_message)
        return await self.responses.start(request, replace(context, attempt=attempt))

    async def find_running(self) -> str | None:
        return await self.store.conversation_leases.find_holder(self.tenant, self.conversation_id)

    async def find_holder(self) -> str | None:
        """Return the response that has the conversation, or the holder of a lapsed lease, which may be queued."""
        running = await self.find_running()
        if running is not None:
            return running
        lapsed = await self.store.conversation_leases.find_lapsed(self.tenant, self.conversation_id)
        return lapsed.holder if lapsed is not None else None

    async def interrupt(self, response_id: str) -> None:
        await self.cancellation.cancel(response_id)

    async def is_lost(self, message_id: str, state: MessageState) -> bool:
        return await is_lost(self.responses, self.conversation_id, message_id, state)

    async def send_task(self, message_id: str) -> None:
        task = WaitingTask(tenant=self.tenant, conversation_id=self.conversation_id, message_id=message_id)
        await self.cancellation.recovery.queue.send(task)


def to_json(request: CreateResponse) -> str:
    """Return a request as JSON. The classes of its items, which are not those of its schema, are built if need be."""
    for kind in {type(item) for item in request.input}:
        kind.model_rebuild()
    return request.model_dump_json(exclude_none=True, warnings=False)


async def is_lost(responses: Responses, conversation_id: str, message_id: str, state: MessageState) -> bool:
    """Return whether the response that has claimed a message is not stored, and does not run.

    One that has taken it while it ran has it only if its log does, to which an ended response adds nothing.
    """
    store, tenant = responses.store, responses.tenant
    if state.claimed_by is None:
        return False
    claimed = name_of("resp", state.claimed_by)
    if await store.conversation_leases.find_holder(tenant, conversation_id) == claimed:
        return False
    try:
        stored = await responses.contexts.recovery.reconcile(await store.responses.get(tenant, claimed))
    except NotFound:
        return True
    if state.merged_into is None or stored.ending is None:
        return False
    return message_id not in {each.message_id for each in stored.merged}
