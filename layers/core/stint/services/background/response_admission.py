"""Admission of responses to conversations in use."""

import time
from collections.abc import Awaitable, Callable
from functools import cached_property

from stint.caller import NO_ATTEMPT, RequestAttempt, end_users_of, find_end_user, find_principal, record_owners
from stint.dataclasses import replace
from stint.domain.end_users import OwnedObject
from stint.domain.errors import InvalidRequest, NotFound
from stint.domain.ids import name_of
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.response_tools import McpTool
from stint.domain.schema import now
from stint.domain.stops import stop_name
from stint.domain.tasks import WaitingTask
from stint.domain.waiting_messages import MessageState, WaitingMessage, WaitingPlace
from stint.run_stop import refuse_stopped
from stint.services.background.cancellation import ResponseCancellation
from stint.services.conversations.item_files import check_images
from stint.services.responses.merging import is_mergeable, message_of
from stint.services.responses.response_run import ResponseRun
from stint.services.responses.responses import Responses
from stint.services.runs.admission import Admission, StartedRun
from stint.services.runs.run_handle import RequestContext
from stint.services.runs.senders import name_sender
from stint.store.attempts import new_response_id
from stint.store.waiting_line import WaitingLine


class ResponseAdmission:
    """Admits responses to one conversation. The worker starts messages whose request died.

    A message has the digits of its response's id.
    """

    def __init__(self, responses: Responses, cancellation: ResponseCancellation, conversation_id: str) -> None:
        self.responses = responses
        self.cancellation = cancellation
        self.tenant = responses.tenant
        self.store = responses.store
        self.conversation_id = conversation_id

    @cached_property
    def line(self) -> WaitingLine:
        return self.store.conversation_line(self.tenant, self.conversation_id)

    @cached_property
    def admission(self) -> Admission:
        return Admission(
            self.line, self.find_running, self.find_holder, self.cancellation.cancel, self.is_lost, self.send_task
        )

    async def accept(self, request: CreateResponse, attempt: RequestAttempt = NO_ATTEMPT) -> str:
        """Store a request that must wait, and return the id of its message.

        Raises:
            Conflict: too many messages wait already.
            NotFound: there is no such conversation.
            Forbidden: the caller may not use the model.
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
        record_owners(await self.store.conversation_leases.find_owners(self.tenant, self.conversation_id))
        for user in end_users_of(request.safety_identifier, request.user):
            own = OwnedObject(kind="conversation", id=self.conversation_id)
            await self.store.end_users.add(self.tenant, user, own)
        caller, message_id = find_principal(), message_of(new_response_id(attempt))
        sender = name_sender() if request.when_busy == "merge" and is_mergeable(request) else ""
        message = WaitingMessage(
            body=to_json(request),
            accepted_at=now(),
            creator=caller.to_context() if caller is not None else None,
            end_user=find_end_user(),
            expires_at=self.responses.find_end(time.time(), request),
            lenient=request.lenient or None,
        )
        await self.admission.accept(
            WaitingPlace(message_id, sender=sender, fingerprint=attempt.fingerprint, retry_count=attempt.retry_count),
            message,
        )
        return message_id

    async def start(
        self, message_id: str, request: CreateResponse, context: RequestContext, *, wait_until: float | None = None
    ) -> ResponseRun | StartedRun:
        """Start the response of an accepted message when it is its turn, at the latest at `wait_until`.

        Raises:
            DeadlineExceeded: it still waits.
            StintError: as `Responses.start`.
        """

        async def start(run_id: str, claim: Callable[[str], Awaitable[None]]) -> ResponseRun:
            async def claim_message(response_id: str) -> None:
                await claim(message_of(response_id))

            state = await self.line.get(message_id)
            end = state.message.expires_at if state is not None else None
            attempt = replace(context.attempt, object_id=run_id, expires_at=end or 0, claim=claim_message)
            return await self.responses.start(request, context.deadline, context.provider_data, attempt)

        until = context.deadline if wait_until is None else min(context.deadline, wait_until)
        return await self.admission.start_waiting(message_id, start, until)

    async def find_running(self) -> str | None:
        return await self.store.conversation_leases.find_holder(self.tenant, self.conversation_id)

    async def find_holder(self) -> str | None:
        """Return the response that has the conversation, or the holder of a lapsed lease, which may be queued."""
        running = await self.find_running()
        if running is not None:
            return running
        lapsed = await self.store.conversation_leases.find_lapsed(self.tenant, self.conversation_id)
        return lapsed.holder if lapsed is not None else None

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
