"""Admission of turns to sessions in use."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cached_property

from stint.caller import NO_ATTEMPT, RequestAttempt, find_end_user, find_principal, record_owners
from stint.dataclasses import replace
from stint.documents.document_reader import images_of
from stint.domain.ids import new_id
from stint.domain.llama_stack.turns import TurnCreateRequest
from stint.domain.run_signals import TurnRef
from stint.domain.schema import now
from stint.domain.stops import stop_name
from stint.domain.tasks import SendTask, WaitingTask
from stint.domain.waiting_messages import MessageState, WaitingMessage, WaitingPlace
from stint.run_stop import refuse_stopped
from stint.services.agents.masking import masked_toolgroups, refuse_masked_args, refuse_unstored_args
from stint.services.runs.admission import Admission, StartedRun
from stint.services.runs.run_handle import RequestContext
from stint.services.runs.senders import name_sender
from stint.services.turns.cancellation import TurnCancellation
from stint.services.turns.merging import is_mergeable
from stint.services.turns.turn_run import TurnRun
from stint.store.owners import hash_user
from stint.store.waiting_line import WaitingLine


class TurnAdmission:
    """Admits turns to one session. The worker starts messages whose request died."""

    def __init__(self, cancellation: TurnCancellation, send: SendTask, agent_id: str, session_id: str) -> None:
        self.cancellation = cancellation
        self.turns = cancellation.turns
        self.send = send
        self.agent_id = agent_id
        self.session_id = session_id

    @cached_property
    def line(self) -> WaitingLine:
        return self.turns.store.session_line(self.turns.tenant, self.agent_id, self.session_id)

    @cached_property
    def admission(self) -> Admission:
        return Admission(self.line, self.find_running, self.find_running, self.interrupt, self.is_lost, self.send_task)

    async def accept(self, request: TurnCreateRequest, attempt: RequestAttempt = NO_ATTEMPT) -> str:
        """Store a request that must wait, without credentials, and return the id of its message.

        Raises:
            Conflict: too many messages wait already.
            InvalidRequest: an image cannot be used.
            Forbidden: the session belongs to another end user, or the caller may not use the agent's model.
            Stopped: the session, the caller's key or the tenant was stopped.
        """
        async with self.turns.meters.watch():
            await refuse_stopped(stop_name("session", self.session_id))
        refuse_masked_args(request.toolgroups, "toolgroups")
        await self.turns.agents.require_model_of(self.agent_id)
        await self.turns.reader.check_images(images_of("messages", [each.content for each in request.messages]))
        await self.claim_session()
        masked = await asyncio.to_thread(masked_toolgroups, request.toolgroups) if request.toolgroups else []
        stored = request.model_copy(update={"toolgroups": masked})
        caller = find_principal()
        sender = name_sender() if request.when_busy == "merge" and is_mergeable(request) else ""
        place = WaitingPlace(
            attempt.object_id or new_id(),
            sender=sender,
            fingerprint=attempt.fingerprint,
            retry_count=attempt.retry_count,
        )
        message = WaitingMessage(
            body=stored.model_dump_json(exclude_none=True),
            accepted_at=now(),
            creator=caller.to_context() if caller is not None else None,
            end_user=find_end_user(),
        )
        await self.admission.accept(place, message)
        return place.message_id

    async def claim_session(self) -> None:
        """Make the session the end user's, and note to whom it belongs, before a message is stored."""
        user, leases = find_end_user(), self.turns.store.session_leases
        owner = hash_user(user) if user else ""
        record_owners((await leases.claim(self.turns.tenant, self.agent_id, self.session_id, owner)).split())

    async def start(
        self, message_id: str, request: TurnCreateRequest, context: RequestContext, *, wait_until: float | None = None
    ) -> TurnRun | StartedRun:
        """Start the turn of an accepted message when it is its turn, at the latest at `wait_until`.

        Raises:
            DeadlineExceeded: it still waits.
            StintError: as `Turns.start`.
        """

        async def start(turn_id: str, claim: Callable[[str], Awaitable[None]]) -> TurnRun:
            refuse_unstored_args(request)
            return await self.turns.start(
                self.agent_id,
                self.session_id,
                request,
                context.deadline,
                provider_data=context.provider_data,
                attempt=replace(context.attempt, object_id=turn_id, claim=claim),
            )

        until = context.deadline if wait_until is None else min(context.deadline, wait_until)
        return await self.admission.start_waiting(message_id, start, until)

    async def find_retried(self, fingerprint: str, retry_count: int) -> str | None:
        """Return the waiting message of an earlier attempt of the same request."""
        for place in await self.line.read():
            if place.fingerprint == fingerprint and await self.line.note_retry(place.message_id, retry_count):
                return place.message_id
        return None

    async def find_accepted(self, message_id: str) -> str | None:
        """Return the id if there is such a message that was accepted."""
        state = await self.line.get(message_id)
        if state is None:
            return None
        known = state.is_over or message_id in {place.message_id for place in await self.line.read()}
        return message_id if known else None

    async def find_running(self) -> str | None:
        return await self.turns.store.session_leases.find_holder(self.turns.tenant, self.agent_id, self.session_id)

    async def interrupt(self, turn_id: str) -> None:
        await self.cancellation.cancel(self.agent_id, self.session_id, turn_id)

    async def is_lost(self, message_id: str, state: MessageState) -> bool:
        """Return whether the turn that has claimed a message does not have it, and does not run."""
        return await self.cancellation.is_lost(TurnRef(self.agent_id, self.session_id, message_id), state)

    async def send_task(self, message_id: str) -> None:
        task = WaitingTask(
            tenant=self.turns.tenant, agent_id=self.agent_id, session_id=self.session_id, message_id=message_id
        )
        await self.send(task)
