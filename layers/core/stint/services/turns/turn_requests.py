"""Requests of turns: the one door through which each API, the worker and the event bus get a turn.

What becomes of a request is decided here, once:

| the request  | what it finds                                         | `submit` returns                            |
|--------------|-------------------------------------------------------|---------------------------------------------|
| is new       | a session that nothing uses, and for which none waits | a new turn                                  |
| is new       | a session in use, `when_busy` reject                  | nothing: it raises Conflict                 |
| is new       | the same, enqueue or merge                            | a message at the end of the line            |
| is new       | the same, interrupt                                   | a new turn, once the other one is cancelled |
| is a retry   | a message that its first attempt left in line         | that message, which it keeps from then on   |
| is a retry   | a turn that has a step, has ended, or is being run    | that turn, from its first event on          |
| is a retry   | a turn that failed before its first step              | a new turn, which repeats the failed one    |
| is a retry   | nothing                                               | as a new request                            |
| only follows | nothing, or such a failed turn                        | nothing: it raises EarlierRunUnavailable    |

The message is looked for before the turn: one that starts in between is found as a turn, and in the other order it
could be missed in both places. The modules of retries and waiting lines are loaded by the first request that needs
them, because most need neither.

docs/decisions.md, entry 46, has the reasons.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar

from stint.caller import EarlierRunUnavailable, RequestAttempt
from stint.dataclasses import dataclass, replace
from stint.domain.errors import Conflict, DeadlineExceeded, InvalidRequest, NotFound
from stint.domain.llama_stack.events import NumberedEvent
from stint.domain.llama_stack.turns import TurnCreateRequest, TurnResumeRequest
from stint.domain.tasks import SendTask
from stint.domain.when_busy import WhenBusy
from stint.lazy import Lazy, lazy
from stint.services.runs.run_handle import RequestContext, WaitingRun
from stint.services.turns.turn_handles import FollowedTurn, StartedTurn, TurnHandle
from stint.services.turns.turn_run import TurnRun
from stint.services.turns.turns import Turns

if TYPE_CHECKING:  # few requests wait, or repeat one
    from stint.services.runs.admission import Admission, StartedRun
    from stint.services.turns.cancellation import TurnCancellation
    from stint.services.turns.turn_retries import TurnRetries
    from stint.services.turns.turn_tail import TurnTail

T = TypeVar("T")
Part: TypeAlias = Lazy["TurnRequests", T]


@dataclass(slots=True)
class NewTurn:
    """A turn that a request asks for. Its attempt is renewed if it repeats a turn that failed."""

    agent_id: str
    session_id: str
    request: TurnCreateRequest
    context: RequestContext


@dataclass(frozen=True)
class TurnRequests:
    """The requests of turns in a tenant's sessions. `send` sends tasks to the worker."""

    turns: Turns
    send: SendTask

    cancellation: "ClassVar[Part[TurnCancellation]]" = lazy(
        "stint.services.turns.cancellation:TurnCancellation", lambda self, cls: cls(self.turns)
    )
    tail: "ClassVar[Part[TurnTail]]" = lazy(
        "stint.services.turns.turn_tail:TurnTail",
        lambda self, cls: cls(self.turns.tenant, self.turns.store, self.turns.agents),
    )
    retries: "ClassVar[Part[TurnRetries]]" = lazy(
        "stint.services.turns.turn_retries:TurnRetries",
        lambda self, cls: cls(self.turns.tenant, self.turns.store, self.tail),
    )

    def make_admission(
        self, agent_id: str, session_id: str, *, attended: bool = True
    ) -> "Admission[TurnCreateRequest, TurnRun]":
        """Make the admission of turns to a session. `attended`: their requests wait for them."""
        from stint.services.runs.admission import Admission  # noqa: PLC0415 - few turns wait
        from stint.services.turns.turn_admission import TurnLine  # noqa: PLC0415 - few turns wait

        line = self.turns.store.session_line(self.turns.tenant, agent_id, session_id)
        return Admission(line, TurnLine(self.cancellation, self.send, agent_id, session_id, attended=attended))

    async def submit(
        self, agent_id: str, session_id: str, request: TurnCreateRequest, context: RequestContext
    ) -> TurnHandle:
        """Return the turn of a request: a new one, one that waits for the session, or that of an earlier attempt.

        Raises:
            EarlierRunUnavailable: the attempt only follows a turn, which has not begun or has failed.
            StintError: as `Turns.start`, or `Admission.accept` for a turn that waits.
        """
        new = NewTurn(agent_id, session_id, request, context)
        if context.attempt.is_retry:
            found = await self.find_earlier(new)
            if found is not None:
                return found
        return await self.start_or_wait(new)

    async def start_or_wait(self, new: NewTurn) -> TurnHandle:
        """Start a turn, or let it wait for its session. Raises StintError as `submit`."""
        when_busy = new.request.when_busy or (await self.read_default(new.agent_id))
        if when_busy in (None, "reject"):
            return await self.start(new)
        admission = self.make_admission(new.agent_id, new.session_id)
        started = await admission.start_now(partial(self.start, new), when_busy)
        if started is not None:
            return started
        if when_busy == "interrupt":
            return self.wait(new, None)
        new.request = new.request.model_copy(update={"when_busy": when_busy})
        return self.wait(new, await admission.accept(new.request, new.context.attempt))

    async def read_default(self, agent_id: str) -> WhenBusy | None:
        """Return the agent's `when_busy`. Only a process that has not read the agent lately reads it before it starts.

        Raises:
            NotFound: there is no such agent.
        """
        agents = self.turns.agents
        return (agents.find_cached(agent_id) or await agents.config(agent_id)).when_busy

    async def start(self, new: NewTurn) -> StartedTurn:
        """Start a turn. Raises as `Turns.start`."""
        run = await self.turns.start(new.agent_id, new.session_id, new.request, new.context)
        return self.make_handle(run, new.context)

    def make_handle(self, run: TurnRun, context: RequestContext) -> StartedTurn:
        """Return the handle of a turn that this process has started for a request."""
        return StartedTurn(self.turns, run, context.observer, shows_reasoning=context.shows_reasoning)

    def wait(self, new: NewTurn, message_id: str | None) -> TurnHandle:
        """Return a turn that waits as a message, or that interrupts the running one."""
        if message_id is None:
            return WaitingRun(partial(self.interrupt, new), None, new.context.deadline)
        read_message = partial(self.turns.get, new.agent_id, new.session_id, message_id)
        return WaitingRun(partial(self.follow_or_start, new, message_id), read_message, new.context.deadline)

    async def interrupt(self, new: NewTurn, until: float) -> TurnHandle:
        """Cancel the running turn, and start a new one. Raises StintError, and DeadlineExceeded at `until`."""
        interrupt = self.make_admission(new.agent_id, new.session_id).start_after_interrupting
        return await interrupt(partial(self.start, new), until, partial(self.find_earlier_turn, new))

    async def follow_or_start(self, new: NewTurn, message_id: str, until: float) -> TurnHandle:
        """Start the turn of a message when it is its turn, or follow the one that has taken the message.

        Raises:
            DeadlineExceeded: it still waits at `until`, a time of the event loop's clock.
            StintError: it cannot start, or was cancelled.
        """
        try:
            started = await self.start_message(new, message_id, until)
        except DeadlineExceeded as error:
            error.turn_id = message_id
            raise
        if isinstance(started, StartedTurn):
            return started
        follow = self.retries.follow_message
        return FollowedTurn(
            await follow(new.agent_id, new.session_id, message_id, started.run_id, deadline=new.context.deadline)
        )

    async def start_message(self, new: NewTurn, message_id: str, until: float) -> "StartedTurn | StartedRun":
        """Start the turn of a message when it is its turn, or return the one that another process has started.

        Raises as `follow_or_start`.
        """
        attended = not new.context.spares_waiting_turn
        admission = self.make_admission(new.agent_id, new.session_id, attended=attended)
        run = await admission.start(message_id, new.request, new.context, until)
        return self.make_handle(run, new.context) if isinstance(run, TurnRun) else run

    async def find_earlier(self, new: NewTurn) -> TurnHandle | None:
        """Return the message or the turn of an earlier attempt. Raises as `find_earlier_turn`."""
        return await self.find_waiting(new) or await self.find_earlier_turn(new)

    async def find_waiting(self, new: NewTurn) -> TurnHandle | None:
        """Return the message of an earlier attempt of a request that waited for the session, if there is one."""
        if new.request.when_busy == "reject":
            return None
        admission = self.make_admission(new.agent_id, new.session_id)
        message_id = await admission.find_accepted(new.context.attempt)
        return None if message_id is None else self.wait(new, message_id)

    async def find_earlier_turn(self, new: NewTurn) -> TurnHandle | None:
        """Return the turn of an earlier attempt, unless it failed before its first step.

        A turn that runs is returned when it has a step, or its process has renewed its lease. If there is none, the
        attempt of `new` is changed to one that starts a turn.

        Raises:
            EarlierRunUnavailable: the attempt only follows a turn, which has not begun or has failed.
        """
        if not new.context.attempt.is_retry:
            return None
        found = await self.retries.find_earlier(new.agent_id, new.session_id, new.context.attempt, new.context.deadline)
        if isinstance(found, RequestAttempt):
            new.context = replace(new.context, attempt=found)
            return None
        return FollowedTurn(found)

    async def resume(
        self, agent_id: str, session_id: str, turn_id: str, request: TurnResumeRequest, context: RequestContext
    ) -> TurnHandle:
        """Return a turn that goes on with tool responses. `turn_id` may be that of a message that a turn has taken.

        Responses that the turn has already return the rest of the turn.

        Raises:
            EarlierRunUnavailable: the attempt only follows the first one, which has stored nothing.
            StintError: as `Turns.resume`.
        """
        try:
            return await self.resume_turn(agent_id, session_id, turn_id, request, context)
        except (NotFound, Conflict) as error:
            if isinstance(error, Conflict) and error.code != "turn_not_awaiting_input":
                raise
            found = (await self.turns.get(agent_id, session_id, turn_id)).turn_id
            if found == turn_id:
                raise
        return await self.resume_turn(agent_id, session_id, found, request, context)

    async def resume_turn(
        self, agent_id: str, session_id: str, turn_id: str, request: TurnResumeRequest, context: RequestContext
    ) -> TurnHandle:
        """Resume a turn, or follow it from the resume of an earlier attempt on. Raises as `resume`."""
        ids, deadline = (agent_id, session_id, turn_id), context.deadline
        if context.attempt.follows:
            found = await self.find_resume(*ids, request, deadline)
            if found is None:
                raise EarlierRunUnavailable
            return found
        try:
            run = await self.turns.resume(*ids, request, context)
        except (Conflict, InvalidRequest):
            found = await self.find_resume(*ids, request, deadline)
            if found is None:
                raise
            return found
        return self.make_handle(run, context)

    async def find_resume(
        self, agent_id: str, session_id: str, turn_id: str, request: TurnResumeRequest, deadline: float
    ) -> TurnHandle | None:
        """Return a turn from the resume on that stored exactly the answers of a request, if there is one."""
        events = await self.retries.find_resume(agent_id, session_id, turn_id, request, deadline=deadline)
        return None if events is None else FollowedTurn(events)

    async def follow(self, agent_id: str, session_id: str, turn_id: str, after: int, deadline: float) -> TurnHandle:
        """Return the events after a number of a turn, or of the one that has the message with its id once it starts.

        Raises:
            NotFound: there is no such turn or message.
            InvalidRequest: the turn has ended, and has no event with that number.
        """
        ids, follow = (agent_id, session_id), self.tail.follow
        try:
            return FollowedTurn(await follow(*ids, turn_id, after, deadline))
        except NotFound:
            found = (await self.turns.get(*ids, turn_id)).turn_id
        if found == turn_id:
            return FollowedTurn(self.follow_message(*ids, turn_id, after, deadline))
        return FollowedTurn(await follow(*ids, found, after, deadline))

    async def follow_message(
        self, agent_id: str, session_id: str, message_id: str, after: int, deadline: float
    ) -> AsyncGenerator[NumberedEvent, None]:
        """Yield the events after a number of the turn that has a message, once it has started.

        Raises StintError if it is not started, or as `follow`.
        """
        started = await self.make_admission(agent_id, session_id).wait_for_start(message_id, deadline)
        events = await self.tail.follow(agent_id, session_id, started.run_id, after, deadline=deadline)
        async with aclosing(events):
            async for numbered in events:
                yield numbered
