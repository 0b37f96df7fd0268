"""Turns that wait for a session in use: their checks, their start, and who has the session.

A message is accepted only if its turn could start now, except that the session is in use: what can be refused is
refused while a client can still get a status. Credentials are not stored, so a message that needs them is refused if
its request dies, and the worker starts it. The session is made the end user's before the message is stored. In the
other order, a message of one user could wait in a session that another one claims meanwhile.
"""

import asyncio

from stint.caller import RequestAttempt, record_owners
from stint.dataclasses import replace
from stint.documents.document_reader import images_of
from stint.domain.ids import new_id
from stint.domain.llama_stack.turns import TurnCreateRequest
from stint.domain.run_outcome import RunStatus
from stint.domain.run_signals import TurnRef
from stint.domain.stops import stop_name
from stint.domain.tasks import UNATTENDED_DELAY, WAITING_DELAY, SendTask, WaitingTask
from stint.domain.waiting_messages import MessageState, WaitingMessage, WaitingPlace
from stint.run_stop import refuse_stopped
from stint.services.agents.masking import masked_toolgroups, refuse_masked_args, refuse_unstored_args
from stint.services.runs.admission import Claim, new_message, place_of
from stint.services.runs.run_handle import RequestContext
from stint.services.runs.senders import find_owner
from stint.services.turns.cancellation import TurnCancellation
from stint.services.turns.merging import is_mergeable
from stint.services.turns.turn_run import TurnRun


class TurnLine:
    """The turns that wait for one session."""

    def __init__(
        self, cancellation: TurnCancellation, send: SendTask, agent_id: str, session_id: str, *, attended: bool = True
    ) -> None:
        self.cancellation = cancellation
        self.turns = cancellation.turns
        self.send = send
        self.agent_id = agent_id
        self.session_id = session_id
        self.attended = attended

    async def prepare(self, request: TurnCreateRequest, attempt: RequestAttempt) -> tuple[WaitingPlace, WaitingMessage]:
        """Check a request that must wait, and return what is stored of it, without credentials.

        Raises:
            InvalidRequest: an image cannot be used.
            NotFound: there is no such agent or session.
            Forbidden: the session belongs to another end user, or the caller may not use the agent's model.
            QuotaExceeded: the session's budget is spent.
            Stopped: the session, the caller's key or the tenant was stopped.
        """
        async with self.turns.meters.watch():
            await refuse_stopped(stop_name("session", self.session_id))
        refuse_masked_args(request.toolgroups, "toolgroups")
        await self.turns.require_model(self.agent_id, self.session_id)
        await self.turns.reader.check_images(images_of("messages", [each.content for each in request.messages]))
        await self.claim_session()
        masked = await asyncio.to_thread(masked_toolgroups, request.toolgroups) if request.toolgroups else []
        stored = request.model_copy(update={"toolgroups": masked})
        mergeable = request.when_busy == "merge" and is_mergeable(request)
        place = place_of(attempt.object_id or new_id(), attempt, mergeable=mergeable, alive=self.attended)
        return place, new_message(stored.model_dump_json(exclude_none=True))

    async def claim_session(self) -> None:
        """Make the session the end user's, and note to whom it belongs, before a message is stored.

        Raises QuotaExceeded if the session's budget is spent.
        """
        leases = self.turns.store.session_leases
        session = await leases.claim(self.turns.tenant, self.agent_id, self.session_id, find_owner())
        record_owners(session.owner.split())
        if session.ledger is not None:
            session.ledger.require()

    async def start(
        self, request: TurnCreateRequest, context: RequestContext, _message_id: str, run_id: str, claim: Claim
    ) -> TurnRun:
        """Start the turn of a message. Raises as `Turns.start`."""
        refuse_unstored_args(request)
        attempt = replace(context.attempt, object_id=run_id, claim=claim)
        return await self.turns.start(self.agent_id, self.session_id, request, replace(context, attempt=attempt))

    async def find_running(self) -> str | None:
        """Return the turn that has the session. A message without a request waits for the client of the last turn, too.

        Raises NotFound if the session was deleted.
        """
        holder = await self.find_holder()
        return await self.find_paused() if holder is None and not self.attended else holder

    async def find_holder(self) -> str | None:
        return await self.turns.store.session_leases.find_holder(self.turns.tenant, self.agent_id, self.session_id)

    async def find_paused(self) -> str | None:
        """Return the last turn if it waits for its client. The record of its calls may be stale: the log decides."""
        ids, store = (self.turns.tenant, self.agent_id, self.session_id), self.turns.store
        last = (await store.sessions.get(*ids)).last
        if last is None or await store.turns.get_pending(*ids, last.turn_id) is None:
            return None
        paused = (await store.turns.get(*ids, last.turn_id)).status is RunStatus.awaiting_input
        return last.turn_id if paused else None

    async def interrupt(self, turn_id: str) -> None:
        await self.cancellation.cancel(self.agent_id, self.session_id, turn_id)

    async def is_lost(self, message_id: str, state: MessageState) -> bool:
        """Return whether the turn that has claimed a message does not have it, and does not run."""
        return await self.cancellation.is_lost(TurnRef(self.agent_id, self.session_id, message_id), state)

    async def send_task(self, message_id: str) -> None:
        # While the turn waits for its client, the message is in no hurry: it starts after the turn, which may take it.
        hurries = not self.attended and await self.find_paused() is None
        task = WaitingTask(
            tenant=self.turns.tenant,
            agent_id=self.agent_id,
            session_id=self.session_id,
            message_id=message_id,
            unattended=not self.attended,
            delay_seconds=UNATTENDED_DELAY if hurries else WAITING_DELAY,
        )
        await self.send(task)
