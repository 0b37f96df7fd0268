"""Input of a session that no request waits for: it is accepted at once, and another process runs its turn.

A request stores the input with its caller, and sends the worker a task that arrives after UNATTENDED_DELAY. Whoever
takes the session's lease first runs the turn, for the caller who sent the input:

    input                    stored as                            taken by
    message                  a message of the waiting line,       `take`: a process with an open stream of the session
                             whose place is not alive             the worker, when the task arrives
                                                                  the running turn, before its next model call
    result of a client's     a record beside the waiting calls    `take`, or the worker, once each waiting call has one
    tool

The session's record says when there was input last (`input_at`), so that a stream finds input with one small read. What
must be refused is refused before anything is stored, because nobody waits for an error. If the caller may not send it
any more when it is taken, its turn has failed: that of the message, or the one that waits for the results. A request
that dies before it has sent its task is repeated by its client: each part may be repeated, and then changes nothing.

    process that dies               what is left                              what happens
    request, before its task        a task without a message, or results      nothing, until the client repeats it
    none: the request is slow       a task that finds no message yet          the task is sent once more, with a delay
    taker, before its claim         a message in line                         the worker starts it
    taker, after its claim          a message whose run does not exist        the worker claims it again
    taker, while the turn runs      a turn without an ending                  it is interrupted, as any turn
    taker, before it deletes        results of answered calls                 nothing asks for them
    results
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum, auto

from stint.caller import RequestAttempt, find_end_user, find_principal, record_owners
from stint.dataclasses import dataclass
from stint.domain.errors import (
    Conflict,
    DeadlineExceeded,
    Interrupted,
    InvalidRequest,
    NotFound,
    RateLimitExceeded,
    StintError,
    StoreUnavailable,
)
from stint.domain.llama_stack.stored_turns import unanswered_calls
from stint.domain.llama_stack.turns import ToolApproval, Turn, TurnCreateRequest, TurnResumeRequest, TurnStatus
from stint.domain.schema import now
from stint.domain.steps import ToolExecutionStep
from stint.domain.stops import stop_name
from stint.domain.tasks import ResumeTask
from stint.domain.tools import ToolResponse
from stint.run_stop import refuse_stopped
from stint.services.runs.run_handle import RequestContext, RunObserver
from stint.services.runs.senders import acting_for, find_owner
from stint.services.turns.detached_turn import DetachedTurn, start_detached
from stint.services.turns.turn_handles import StartedTurn
from stint.services.turns.turn_requests import NewTurn, TurnRequests
from stint.services.turns.turns import Turns
from stint.services.turns.waiting_turns import to_turn
from stint.store.call_results import CallResult, PausedTurn
from stint.store.sessions import SessionActivity
from stint.store.waiting_line import WaitingLine

logger = logging.getLogger(__name__)

NOT_NOW = (Conflict, DeadlineExceeded, Interrupted, RateLimitExceeded)
"""Errors after which a turn is not resumed here: another process resumes it, or its caller may do so later."""

UNKNOWN_CALL = "unknown_call"
"""The code of the error for a result whose call does not wait for one."""


def unknown_call(call_id: str) -> InvalidRequest:
    return InvalidRequest(f"Unknown pending tool call: {call_id}", code=UNKNOWN_CALL)


class Waits(Enum):
    """The answer for which a call waits."""

    result = auto()
    approval = auto()
    nothing = auto()
    """There is no such call."""


UNKNOWN = Waits.nothing

Answer = ToolResponse | ToolApproval
"""What a client answers to a call: a result, whose tool has the name in the call, or an approval."""


@dataclass(frozen=True, slots=True)
class ClientResult:
    """An answer to a call of a turn."""

    turn_id: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class SessionInput:
    """The input of one session."""

    requests: TurnRequests
    agent_id: str
    session_id: str

    @property
    def turns(self) -> Turns:
        return self.requests.turns

    @property
    def ids(self) -> tuple[str, str, str]:
        return self.turns.tenant, self.agent_id, self.session_id

    @property
    def line(self) -> WaitingLine:
        return self.turns.store.session_line(*self.ids)

    def place_of(self, turn_id: str, expires_at: int | None = None) -> PausedTurn:
        return PausedTurn(*self.ids, turn_id, expires_at)

    async def read_activity(self) -> SessionActivity:
        """Return what shows that something has happened in the session: half a read unit. Raises NotFound."""
        return await self.turns.store.sessions.read_activity(*self.ids)

    async def list_messages(self) -> set[str]:
        """Return the ids of the messages in line that no request waits for."""
        return {place.message_id for place in await self.line.read() if not place.alive}

    async def list_unstarted(self, after: str) -> set[str]:
        """Return the ids of the messages after an id that have left the line without a turn."""
        return set(await self.line.list_unstarted(after))

    async def find_unstarted(self, message_id: str) -> Turn | None:
        """Return a message that has left the line as a turn without steps; None if a turn has it."""
        state = await self.line.get(message_id)
        if state is None or not (state.cancelled or state.error is not None):
            return None
        return to_turn(message_id, self.session_id, state)

    async def check(self, answers: Sequence[ClientResult]) -> None:
        """Check that the caller may add input to the session, and that calls wait for their results.

        Raises:
            NotFound: there is no such session or turn.
            InvalidRequest: a call does not wait for a result, or has another one (the code is UNKNOWN_CALL), or its
                input does not fit the form of its tool's server.
            Forbidden: the session belongs to another end user, or the caller may not use its model.
            QuotaExceeded: the session's budget is spent.
            Stopped: the session, the caller's key or the tenant was stopped.
        """
        async with self.turns.meters.watch():
            await refuse_stopped(stop_name("session", self.session_id))
        claim = self.turns.store.session_leases.claim
        session = await claim(*self.ids, owner=find_owner())
        record_owners(session.owner.split())
        if session.ledger is not None:
            session.ledger.require()
        if answers:  # a message is checked as it is accepted
            await self.turns.require_model(self.agent_id, self.session_id)
        for turn_id in {each.turn_id for each in answers}:
            turn = await self.turns.get(self.agent_id, self.session_id, turn_id)
            known = await self.find_calls(turn)
            for answer in [each.answer for each in answers if each.turn_id == turn_id]:
                waits = known.get(answer.call_id, UNKNOWN)
                if not is_accepted(waits, answer):
                    raise unknown_call(answer.call_id)
                if waits is Waits.approval:
                    check_approval(turn, answer)
                known[answer.call_id] = answer  # another answer in the same request is refused

    async def find_calls(self, turn: Turn) -> dict[str, Answer | Waits]:
        """Return the answers to a turn's calls by the ids of these, or what they wait for."""
        steps = [step for step in turn.steps if isinstance(step, ToolExecutionStep)]
        found: dict[str, Answer | Waits] = {each.call_id: each for step in steps for each in step.tool_responses}
        if turn.status is TurnStatus.awaiting_input:
            approvals = turn.pending_approvals or ()
            calls = [call.call_id for call in unanswered_calls(turn.steps)]
            found |= {each: Waits.approval if each in approvals else Waits.result for each in calls}
            for stored in await self.turns.store.call_results.read(self.place_of(turn.turn_id)):
                answer = stored.response or stored.approval
                if answer is not None and answer.call_id in calls:
                    found[answer.call_id] = answer
        return found

    async def accept_results(self, answers: Sequence[ClientResult]) -> None:
        """Store results, which `check` has found to be in order.

        Raises NotFound, StoreUnavailable, and InvalidRequest if another request has answered a call meanwhile.
        """
        record, caller = await self.turns.store.sessions.get(*self.ids), find_principal()
        creator = caller.to_context() if caller is not None else None
        for answer in answers:
            place = self.place_of(answer.turn_id, record.expires_at)
            given = answer.answer
            result = CallResult(
                response=given if isinstance(given, ToolResponse) else None,
                approval=given if isinstance(given, ToolApproval) else None,
                accepted_at=now(),
                creator=creator,
                end_user=find_end_user(),
            )
            if not await self.turns.store.call_results.put(place, result):
                raise unknown_call(given.call_id)
        # After the results: a process that finds this finds them. Before the task: no request is answered without it.
        await self.turns.store.sessions.note_input(*self.ids)
        for turn_id in {each.turn_id for each in answers}:
            task = ResumeTask(
                tenant=self.turns.tenant, agent_id=self.agent_id, session_id=self.session_id, turn_id=turn_id
            )
            await self.requests.send(task)

    async def accept_message(self, request: TurnCreateRequest, context: RequestContext) -> None:
        """Store a message at the end of the line, unless an earlier attempt of its request did.

        Raises:
            Conflict: too many messages wait already.
            StintError: as `TurnLine.prepare`.
        """
        new = NewTurn(self.agent_id, self.session_id, request, context)
        admission = self.requests.make_admission(self.agent_id, self.session_id, attended=False)
        if context.attempt.repeated:
            if await self.has_message(context):
                return
        elif context.attempt.is_retry and await self.requests.find_earlier(new) is not None:
            return
        await admission.accept(request, new.context.attempt)
        await self.turns.store.sessions.note_input(*self.ids)

    async def has_message(self, context: RequestContext) -> bool:
        """Return whether an earlier attempt with the same idempotency key has stored its message.

        It may be a turn by now, which may have failed: the request was to accept it. Otherwise it can be stored with
        the same id, because each of its writes can be repeated.
        """
        admission = self.requests.make_admission(self.agent_id, self.session_id, attended=False)
        if await admission.find_accepted(context.attempt) is not None:
            return True
        try:
            await self.requests.retries.wait_for_header(*self.ids[1:], context.attempt.object_id, context.deadline)
        except NotFound:
            return False
        return True

    async def take(self, deadline: float, observer: RunObserver | None = None) -> DetachedTurn | None:
        """Start what is first of the input; None if there is none that can start now.

        `deadline` is a time of the event loop's clock. Raises NotFound if the session was deleted, StoreUnavailable.
        """
        last = (await self.turns.store.sessions.get(*self.ids)).last
        taken = await self.take_results(last.turn_id, deadline, observer) if last is not None else None
        return taken or await self.take_message(deadline, observer)

    async def take_message(self, deadline: float, observer: RunObserver | None) -> DetachedTurn | None:
        """Start the turn of the first message in line, unless its request waits for it."""
        places = await self.line.read()
        if not places or places[0].alive:
            return None
        place = places[0]
        if await self.requests.make_admission(*self.ids[1:], attended=False).kind.find_running() is not None:
            return None
        state = await self.line.get(place.message_id)
        if state is None:  # the worker's task removes the place
            return None
        attempt = RequestAttempt(place.fingerprint, place.retry_count)
        context = RequestContext(deadline, attempt, observer=observer, spares_waiting_turn=True)
        request = TurnCreateRequest.model_validate_json(state.message.body)
        new = NewTurn(self.agent_id, self.session_id, request, context)

        async def start() -> StartedTurn | None:
            started = await self.requests.start_message(new, place.message_id, until=0.0)
            return started if isinstance(started, StartedTurn) else None

        try:
            return await start_detached(start, state.message.creator, state.message.end_user)
        except DeadlineExceeded:  # it is not its turn
            return None
        except NotFound:
            raise
        except StintError as error:  # the message has the error, and has left the line
            logger.warning("A message was not started", extra={"error_code": error.code, "error": error.message})
            return None

    async def take_results(
        self, turn_id: str, deadline: float, observer: RunObserver | None = None
    ) -> DetachedTurn | None:
        """Resume a turn that waits for its client, once each of its calls has a result.

        A turn that its caller may not resume has failed then, as a message whose turn is refused.
        """
        results, answers = await self.find_answers(turn_id)
        if not answers:
            return None
        newest = max(answers, key=lambda each: each.accepted_at)
        approvals = [each.approval for each in answers if each.approval is not None]
        responses = [each.response for each in answers if each.response is not None]
        request = TurnResumeRequest(tool_responses=responses, approvals=approvals or None)
        context = RequestContext(deadline, observer=observer)

        async def start() -> StartedTurn:
            run = await self.turns.resume(self.agent_id, self.session_id, turn_id, request, context)
            await self.turns.store.call_results.delete(self.place_of(turn_id), results)
            return StartedTurn(self.turns, run, observer)

        try:
            return await start_detached(start, newest.creator, newest.end_user)
        except NOT_NOW as error:
            logger.info("A turn was not resumed", extra={"error_code": error.code})
            return None
        except (NotFound, StoreUnavailable):
            raise
        except StintError as error:
            logger.warning("A turn was not resumed", extra={"error_code": error.code, "error": error.message})
            with acting_for(newest.creator, newest.end_user), suppress(Conflict):
                await self.requests.cancellation.fail_waiting(self.agent_id, self.session_id, turn_id, error)
            return None

    async def find_answers(self, turn_id: str) -> tuple[list[CallResult], list[CallResult]]:
        """Return the stored results of a turn, and those with which it can go on: none until all calls have one.

        Raises NotFound.
        """
        results = await self.turns.store.call_results.read(self.place_of(turn_id))
        if not results:
            return [], []
        turn = await self.turns.get(self.agent_id, self.session_id, turn_id)
        waiting = {call.call_id for call in unanswered_calls(turn.steps)}
        answers = [each for each in results if each.call_id in waiting]
        is_answered = turn.status is TurnStatus.awaiting_input and len(answers) == len(waiting)
        return results, answers if is_answered else []

    async def handle(self, task: ResumeTask, deadline: float) -> None:
        """Resume a turn for the worker, and run it to its end. While it cannot go on yet, the task is sent again.

        Raises StoreUnavailable.
        """
        with suppress(NotFound):
            taken = await self.take_results(task.turn_id, deadline)
            if taken is not None:
                await taken.wait()
            elif await self.has_results(task.turn_id):
                await self.requests.send(task)

    async def has_results(self, turn_id: str) -> bool:
        """Return whether each call that a turn waits for has a result. Raises NotFound."""
        turn = await self.turns.get(self.agent_id, self.session_id, turn_id)
        waiting = {call.call_id for call in unanswered_calls(turn.steps)}
        active = turn.status in (TurnStatus.in_progress, TurnStatus.awaiting_input)
        results = await self.turns.store.call_results.read(self.place_of(turn_id))
        return active and bool(waiting) and waiting <= {each.call_id for each in results}


def check_approval(turn: Turn, answer: Answer) -> None:
    """Check the input of an approval, if a turn waits for one. Raises InvalidRequest."""
    forms = (turn.pending_inputs or {}).get(answer.call_id)
    if isinstance(answer, ToolApproval) and (forms is not None or answer.input is not None):
        from stint.services.turns.approvals import check_input  # noqa: PLC0415 - few calls ask

        check_input(forms, answer)


def is_accepted(known: Answer | Waits, given: Answer) -> bool:
    """Return whether a call waits for an answer, or has this one. Stored results have the names of their tools."""
    if isinstance(known, Waits):
        return known is (Waits.approval if isinstance(given, ToolApproval) else Waits.result)
    if isinstance(given, ToolApproval):  # an approved call has the result of its tool by now
        return isinstance(known, ToolResponse) or known == given
    return isinstance(known, ToolResponse) and known.model_copy(update={"tool_name": given.tool_name}) == given
