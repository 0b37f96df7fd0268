"""Runs of AG-UI: a new turn of the thread's session, the rest of a waiting one, or what there is of the last.

The history by which a run decides what is new is also its snapshot. Both are of the last MOST_TURNS turns: a client
that has all of these, in a longer thread, gets no snapshot, because it would drop its older messages.

Another request may take the same message at the same time. The door then refuses the second turn (`refuse_taken`), and
what is new is decided again.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing

from stint.ag_ui.contents import show_result
from stint.ag_ui.events import RunEvents, RunNames
from stint.ag_ui.inputs import Answers, NewMessages, NothingNew, RunInputReader, TakenInput
from stint.ag_ui.schemas.events import (
    AgUiEvent,
    MessagesSnapshotEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StateSnapshotEvent,
    SuccessOutcome,
)
from stint.ag_ui.schemas.inputs import RunInput
from stint.ag_ui.schemas.messages import ShownMessage, ShownToolMessage
from stint.ag_ui.snapshots import ResultIds, show_input, show_turns
from stint.ag_ui.threads import FoundThread, Threads
from stint.apis.agents import AgentsServices
from stint.caller import EarlierRunUnavailable
from stint.dataclasses import dataclass, replace
from stint.domain.errors import Conflict, StintError, rename_param
from stint.domain.llama_stack.events import NumberedEvent
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.run_outcome import RunStatus
from stint.log_keys import add_log_keys
from stint.services.agents.interrupted import mark_interrupted
from stint.services.runs.run_handle import RequestContext, StreamClosed
from stint.services.turns.resume import MESSAGE_TAKEN
from stint.services.turns.turn_handles import TurnHandle

MOST_TURNS = 50
"""Maximum turns of a snapshot, and of those whose messages are known."""

CLOSED = "The stream was interrupted, and the run goes on. Send the same messages again to follow it."

FIELDS = {"approvals": "resume", "client_tools": "tools", "tool_responses": "messages", "toolgroups": "tools"}
"""AG-UI's names of the fields of a turn's request, for errors."""


@dataclass(frozen=True, slots=True)
class ThreadHistory:
    """The last turns of a thread in their order, and their messages. `more`: it has older ones."""

    turns: Sequence[StoredTurn]
    messages: Sequence[ShownMessage]
    more: bool

    def is_known_to(self, given: RunInput) -> bool:
        """Return whether the client has all messages of the turns."""
        return {each.id for each in self.messages} <= {each.id for each in given.messages}


EMPTY = ThreadHistory((), (), more=False)


@dataclass(slots=True)
class AgUiRun:
    """A run for one request. `session_id` is empty if the thread has no session yet."""

    given: RunInput
    session_id: str
    first: Sequence[AgUiEvent]
    """The events before those of the turn."""
    events: RunEvents
    handle: TurnHandle | None = None
    """The turn that runs; None if nothing does."""
    last: Sequence[AgUiEvent] = ()
    """The events of a run in which nothing happens, after the first ones."""

    async def open(self, seconds: float) -> AsyncGenerator[AgUiEvent, None]:
        """Return the events, after the first one of the turn or after `seconds`. Raises StintError before that."""
        return self.emit(None if self.handle is None else await self.handle.open(seconds))

    async def emit(self, opened: AsyncGenerator[NumberedEvent, None] | None) -> AsyncGenerator[AgUiEvent, None]:
        for event in self.first:
            yield event
        if opened is not None:
            async with aclosing(self.convert(opened)) as converted:
                async for event in converted:
                    yield event
        for event in self.last:
            yield event

    async def convert(self, opened: AsyncGenerator[NumberedEvent, None]) -> AsyncGenerator[AgUiEvent, None]:
        """Yield the events of a turn. A stream that ends before the turn ends as one that failed."""
        try:
            async with aclosing(opened):
                async for numbered in opened:
                    for event in self.events.convert(numbered.event):
                        yield event
        except StreamClosed:
            yield RunErrorEvent(message=CLOSED, code="stream_interrupted")

    async def finish(self) -> None:
        """Do what may be done after the answer was sent. Nothing is raised."""
        if self.handle is not None:
            await self.handle.finish()
            await self.handle.send_trace()


@dataclass(frozen=True, slots=True)
class AgUiRuns:
    """The runs of a tenant's callers."""

    services: AgentsServices

    @property
    def threads(self) -> Threads:
        return Threads(self.services.tenant, self.services.store, self.services.sessions)

    async def start(self, agent_id: str, given: RunInput, context: RequestContext) -> AgUiRun:
        """Start what a request asks for. Raises StintError if it is refused."""
        try:
            try:
                return await self.try_to_start(agent_id, given, context)
            except Conflict as error:
                if error.code != MESSAGE_TAKEN:
                    raise
            return await self.try_to_start(agent_id, given, context)
        except StintError as error:
            error.param = rename_param(error.param, FIELDS)
            raise

    async def try_to_start(self, agent_id: str, given: RunInput, context: RequestContext) -> AgUiRun:
        """Start what a request asks for. Raises as `start`, and Conflict if another request takes its message."""
        thread, _ = await asyncio.gather(
            self.threads.find(agent_id, given.thread_id), self.services.agents.require(agent_id)
        )
        history = EMPTY if thread.record is None else await self.read_history(agent_id, thread, given)
        known = {message.id for message in history.messages}
        taken = RunInputReader(given, history.turns, known).read()
        if isinstance(taken, NothingNew) and taken.last is not None and not context.attempt.follows:
            taken = self.repeat_failed(given, history, taken.last)
        if isinstance(taken, NewMessages | Answers):
            await self.services.turns.reader.check_images(taken.images)
        session_id = await self.open_session(agent_id, given, thread, taken, context)
        first = self.begin(given, session_id, history, taken)
        names = RunNames(given.thread_id, given.run_id, session_id)
        if isinstance(taken, NothingNew):
            return await self.show(agent_id, AgUiRun(given, session_id, first, RunEvents(names)), taken.last, context)
        used = None
        if isinstance(taken, Answers) and history.turns:
            used = history.turns[-1].usage
        run = AgUiRun(given, session_id, first, RunEvents(names, taken.answered, used))
        run.handle = await self.run_turn(agent_id, session_id, taken, replace(context, shows_reasoning=True))
        return run

    async def read_history(self, agent_id: str, thread: FoundThread, given: RunInput) -> ThreadHistory:
        """Read the last turns of a thread. Raises NotFound if its session was deleted."""
        record, store, tenant = thread.record, self.services.store, self.services.tenant
        if record is None:
            return EMPTY
        turns, more = await store.turns.page(tenant, agent_id, record.session_id, limit=MOST_TURNS)
        if turns:
            turns[0] = await mark_interrupted(store, tenant, agent_id, record, turn=turns[0])
        repeated = {turn.header.retry_of for turn in turns}
        shown = [turn for turn in reversed(turns) if turn.header.turn_id not in repeated]
        return ThreadHistory(shown, show_turns(shown, given.messages), more)

    def repeat_failed(self, given: RunInput, history: ThreadHistory, last: StoredTurn) -> TakenInput:
        """Return the input of a turn that has failed before its first step, if another attempt may succeed."""
        if last.status is RunStatus.failed and is_repeatable(last):
            return RunInputReader(given, history.turns, set()).repeat(last)
        return NothingNew(last)

    async def open_session(
        self, agent_id: str, given: RunInput, thread: FoundThread, taken: TakenInput, context: RequestContext
    ) -> str:
        """Return the session of a thread, which is created if there is something new. Raises as `Threads.create`."""
        if thread.record is not None:
            return thread.record.session_id
        if not isinstance(taken, NewMessages):
            return ""
        if context.attempt.follows:
            raise EarlierRunUnavailable
        agents = self.services.agents
        await self.services.turns.check_input(taken.request)
        if agents.registry.access.is_limited:
            await agents.require_model((await agents.config_of_new_session(agent_id))[0].model)
        budget = given.forwarded_props.budget if given.forwarded_props is not None else None
        return await self.threads.create(agent_id, given.thread_id, thread, budget)

    async def run_turn(
        self, agent_id: str, session_id: str, taken: NewMessages | Answers, context: RequestContext
    ) -> TurnHandle:
        """Start or resume a turn by the door of all APIs. Raises StintError as this does."""
        add_log_keys(agent_id=agent_id, session_id=session_id)
        requests = self.services.turn_requests
        if isinstance(taken, Answers):
            return await requests.resume(agent_id, session_id, taken.turn_id, taken.request, context)
        if taken.retry_of:
            context = replace(context, attempt=replace(context.attempt, retry_of=taken.retry_of))
        context = replace(context, message_ids=taken.ids)
        return await requests.submit(agent_id, session_id, taken.request, context)

    async def show(self, agent_id: str, run: AgUiRun, last: StoredTurn | None, context: RequestContext) -> AgUiRun:
        """Return a run that shows the last turn of a thread, and follows it while it runs."""
        if last is None:
            ids = {"thread_id": run.given.thread_id, "run_id": run.given.run_id}
            run.last = [RunFinishedEvent(outcome=SuccessOutcome(), **ids)]
            return run
        turn = last.to_turn()
        run.events.used = turn.usage
        if last.status is RunStatus.in_progress:
            from stint.services.turns.turn_replay import count_events  # noqa: PLC0415 - few requests follow a turn

            after = count_events(last) - 1
            follow = self.services.turn_requests.follow
            run.handle = await follow(agent_id, run.session_id, last.header.turn_id, after, context.deadline)
        elif last.ending is not None and last.status is RunStatus.failed and last.ending.error is not None:
            run.last = [run.events.fail(last.ending.error.to_error(), turn)]
        else:
            run.last = [run.events.finish(turn)]
        return run

    def begin(self, given: RunInput, session_id: str, history: ThreadHistory, taken: TakenInput) -> list[AgUiEvent]:
        """Return the events before those of the turn: the start, the state as it came, and the messages."""
        metadata = RunNames(given.thread_id, given.run_id, session_id).metadata_of(None) if session_id else None
        first: list[AgUiEvent] = [RunStartedEvent(thread_id=given.thread_id, run_id=given.run_id, metadata=metadata)]
        if given.state is not None:
            first.append(StateSnapshotEvent(snapshot=given.state))
        if not history.more or not history.is_known_to(given):
            first.append(MessagesSnapshotEvent(messages=[*history.messages, *show_taken(taken)]))
        return first


def show_taken(taken: TakenInput) -> Iterator[ShownMessage]:
    """Yield the messages that a run adds, as the client has them. Those of a repeated turn are shown already."""
    if isinstance(taken, Answers):
        for response in taken.request.tool_responses:
            name, content = taken.answered[response.call_id], show_result(response.content)
            yield ShownToolMessage(id=name, tool_call_id=response.call_id, content=content)
    elif isinstance(taken, NewMessages) and not taken.retry_of:
        yield from show_input(taken.request.messages, "", ResultIds(()), taken.ids)


def is_repeatable(turn: StoredTurn) -> bool:
    """Return whether a turn has failed for a reason that another attempt may not meet."""
    from stint.services.turns.turn_retries import failed_before_a_step  # noqa: PLC0415 - few turns fail

    return failed_before_a_step(turn)
