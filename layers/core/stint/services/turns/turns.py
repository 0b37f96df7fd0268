"""Turns: start, resume, run, read.

`start` and `resume` do everything that can fail with a status. `run` runs what they return, and never raises.

The order in `start`, which costs one round trip before the model call:

1. The lease, the agent, the history and the registrations are read at the same time.
2. The plan is made, and the request checked. Whatever is refused from here on releases the lease.
3. The model call is opened, and meanwhile the header is written. The first event leaves after both.

In `resume`, the step with the client's results takes the place of the header.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING

from stint.caller import raise_call_depth
from stint.dataclasses import replace
from stint.documents.document_reader import DocumentReader, images_of
from stint.domain.errors import Cancelled, Conflict, NotFound, StintError, Unexpected
from stint.domain.ids import new_id
from stint.domain.llama_stack.events import Event, TurnStart
from stint.domain.llama_stack.stored_turns import PendingCalls, StoredTurn
from stint.domain.llama_stack.turns import Turn, TurnCreateRequest, TurnOverrides, TurnResumeRequest
from stint.domain.run_events import ReasoningEnded, ReasoningProgress, RunEnded, StepComplete
from stint.domain.run_outcome import RunStatus
from stint.domain.steps import Step, ToolExecutionStep
from stint.loop.agent_loop import run_loop
from stint.loop.plan import Plan
from stint.loop.run import Run
from stint.loop.transcript import Transcript
from stint.metering import resume_meter
from stint.run_stop import refuse_stopped, set_on_disconnect
from stint.services.agents.agents import Agents
from stint.services.agents.interrupted import mark_interrupted
from stint.services.agents.masking import kept_overrides, refuse_masked_args, storable
from stint.services.runs.partial_writer import PartialWriter
from stint.services.runs.run_handle import RequestContext
from stint.services.turns.history import add_input
from stint.services.turns.input_notes import InputNotes
from stint.services.turns.planner import Planner
from stint.services.turns.resume import (
    answer_turn,
    cancel_waiting,
    forget_calls,
    is_resumable,
    not_waiting,
    refuse_taken,
    refuse_waiting,
    resumed_run,
    stored_answer,
    withdraw_approvals,
)
from stint.services.turns.session_documents import SessionDocuments
from stint.services.turns.session_opener import OpenSession, SessionOpener
from stint.services.turns.tool_responses import ClientAnswer, ResultChecks, refuse_results
from stint.services.turns.turn_log import TurnLog, make_partial_storage
from stint.services.turns.turn_run import TurnRun, fail_turn, make_header, terminal_event
from stint.spending.meters import Meters, metered
from stint.store.parallel import value_of
from stint.store.store import Store

if TYPE_CHECKING:
    from stint.services.traces.trace_sender import TraceSender

logger = logging.getLogger(__name__)


class Turns:
    """The turns of a tenant."""

    def __init__(
        self,
        tenant: str,
        store: Store,
        agents: Agents,
        opener: SessionOpener,
        planner: Planner,
        reader: DocumentReader,
        documents: SessionDocuments,
        meters: Meters,
        traces: "TraceSender | None" = None,
    ) -> None:
        self.tenant = tenant
        self.store = store
        self.agents = agents
        self.opener = opener
        self.planner = planner
        self.reader = reader
        self.documents = documents
        self.meters = meters
        self.traces = traces

    @metered
    async def start(
        self, agent_id: str, session_id: str, request: TurnCreateRequest, context: RequestContext
    ) -> TurnRun:
        """Start a turn. When this returns, its header is stored and the model call has started.

        The turn has the id of the attempt if it is newer than the session's last turn, else one that is recorded.

        Raises:
            NotFound: there is no such agent or session.
            Conflict: another turn runs in the session.
            InvalidRequest: the agent's configuration or the request refers to something unknown.
            DeadlineExceeded: a long document is still being indexed.
            Interrupted: the session was deleted, or taken over by another request.
            Forbidden: the session belongs to another end user, or the caller may not use the model.
            RateLimitExceeded, QuotaExceeded: a budget is used up.
            Stopped: the session, the turn, the caller's key or the tenant was stopped.
        """
        deadline, attempt = context.deadline, context.attempt
        set_on_disconnect(request.on_disconnect)
        refuse_masked_args(request.toolgroups, "toolgroups")
        await self.reader.check_images(images_of("messages", [each.content for each in request.messages]))
        turn_id = attempt.object_id or new_id()
        opening = self.opener.open_session(agent_id, session_id, turn_id, deadline, without=attempt.retry_of)
        if self.planner.is_prepared:
            session = await opening
        else:
            opened, _ = await asyncio.gather(opening, self.planner.prepare(), return_exceptions=True)
            session = value_of(opened)
        async with session.keeper.released_on_error():
            if context.spares_waiting_turn:
                refuse_waiting(session.last)
            if context.message_ids:
                refuse_taken(session.last, context)
            overrides = TurnOverrides(**{name: getattr(request, name) for name in TurnOverrides.model_fields})
            plan = await self.planner.plan(session.config, overrides, context.provider_data, session.caller)
            plan, documents = await self.documents.read(session, plan, request.documents, deadline)
            asked = session.last.asked_last if session.last is not None else []
            if asked or plan.toolbox.approvals:
                refuse_results(request.messages, session.transcript, asked, plan.toolbox.approvals)
            checks = ResultChecks(plan.toolbox, session.keeper.lease.turn_id, deadline)
            messages = await checks.check_messages(request.messages, session.transcript)
            asks = bool(plan.toolbox.approvals)
            stored = await storable(overrides, session.config, asks=asks)
            header = make_header(session, messages, documents, stored, context=context, toolbox=plan.toolbox)
            await attempt.record_run(header.turn_id)
            log = self.make_log(session, StoredTurn(header), plan)
            add_input(session.transcript, header)
            run = Run(header.turn_id, plan, session.transcript, log, deadline, checks=checks.steps)
            run.history_is_full = self.opener.is_full(session.past)
            async with run.opened():
                # The turn that waits first: once another turn is the last one, nobody could end it any more.
                await cancel_waiting(self.store, session.keeper.lease, session.last, self.opener.webhooks)
                await log.put_header()
                if not log.webhooks.knows_none():
                    await log.announce_start()
        return TurnRun(run, log, TurnStart(turn_id=run.run_id), session.config)

    def make_log(self, session: OpenSession, turn: StoredTurn, plan: Plan) -> TurnLog:
        """Return the log of a turn, whose end the process remembers."""
        make_line, webhooks = self.store.session_line, self.opener.webhooks
        recorder = self.opener.make_recorder(session)
        log = TurnLog(self.store.turns, session.keeper, turn, make_line, recorder=recorder, webhooks=webhooks)
        log.toolbox = plan.toolbox
        return log

    @metered
    async def resume(
        self, agent_id: str, session_id: str, turn_id: str, request: TurnResumeRequest, context: RequestContext
    ) -> TurnRun:
        """Store tool responses and approvals. When this returns, they are stored and the model call has started.

        A waiting turn accepts the answers to its calls, of which the approved ones run before the model call. A
        completed one accepts responses to calls that the client parsed from its output message, with new ids. A turn
        that stopped right after it had stored the same answers, none of which approves a call, continues from there.

        Raises:
            NotFound: there is no such agent, session or turn.
            Conflict: the turn accepts no answers, a call's id is in use, or another turn runs in the session.
            InvalidRequest: the answers do not match the calls. Nothing is changed.
            Forbidden: the session belongs to another end user, or the caller may not use the model.
            RateLimitExceeded, QuotaExceeded: a budget is used up.
            Stopped: the session, the turn, the caller's key or the tenant was stopped.
        """
        set_on_disconnect(request.on_disconnect)
        await self.reader.check_images(images_of("tool_responses", [each.content for each in request.tool_responses]))
        deadline = context.deadline
        turn_id = (await self.store.turns.find_imported(self.tenant, agent_id, session_id, {turn_id}))[turn_id]
        session, turn, noted = await self.open_last(agent_id, session_id, turn_id, request, deadline=deadline)
        async with session.keeper.released_on_error():
            raise_call_depth(turn.header.call_depth)
            stored = stored_answer(turn, request)
            resume_meter(turn.consumption)
            completed = turn.status is RunStatus.completed
            calls = await self.opener.read_calls(session) if completed else frozenset[str]()
            answer = stored or answer_turn(turn, calls, noted, request)
            overrides = kept_overrides(turn)
            plan = await self.planner.plan(session.config, overrides, context.provider_data, session.caller)
            if answer.approved:
                answer = withdraw_approvals(answer, turn, noted, plan.toolbox)
            log = self.make_log(session, turn, plan)
            checks = ResultChecks(plan.toolbox, turn_id, deadline)
            if stored is None and (given := answer.step) is not None:
                checked = await checks.check_step(given)
                answer = replace(answer, step=checked)
                session.transcript.add_step(checked)
            transcript = session.transcript
            if answer.approved:
                plan, transcript = approve(plan, transcript, answer)
            run = resumed_run(turn, answer, plan, transcript, log=log, deadline=deadline, checks=checks.steps)
            async with run.opened():
                if stored is None:
                    await log.append_answer(answer)
                if not log.webhooks.knows_none():
                    await log.announce_start()
        if not completed:  # after the results are stored: until then, a repeated request needs the calls
            await forget_calls(self.store, log.keeper.lease, turn_id)
        return TurnRun(run, log, announce(answer.step), session.config, used=run.usage)

    async def open_last(
        self, agent_id: str, session_id: str, turn_id: str, request: TurnResumeRequest, deadline: float
    ) -> tuple[OpenSession, StoredTurn, PendingCalls | None]:
        """Open a session for its last, resumable turn, and return it with the turn's waiting calls."""
        opened, noted, _ = await asyncio.gather(
            self.opener.open_session(agent_id, session_id, turn_id, deadline, request),
            self.store.turns.get_pending(self.tenant, agent_id, session_id, turn_id),
            self.planner.prepare(),
            return_exceptions=True,
        )
        if isinstance(opened, Conflict) and opened.code == "not_last_turn":
            raise not_waiting(await self.get(agent_id, session_id, turn_id))
        session = value_of(opened)
        async with session.keeper.released_on_error():
            last = session.last
            if last is None or last.header.turn_id != turn_id or not is_resumable(last, request):
                raise not_waiting(await self.get(agent_id, session_id, turn_id))
            return session, StoredTurn(last.header, [*last.records], last.size, last.skipped), value_of(noted)

    async def run(self, turn: TurnRun, *, shows_reasoning: bool = False) -> AsyncGenerator[Event, None]:
        """Run a started turn. The last event is the terminal one, and nothing is raised.

        The first event is the start event, unless the model's provider refuses the turn before.
        """
        writer = PartialWriter(turn.log.running, make_partial_storage(self.store, turn.log))
        notes = InputNotes(turn.log.turn)
        try:
            with suppress(Cancelled):
                await turn.run.wait_until_accepted()
            if turn.announcement is not None:
                yield turn.announcement
            async with aclosing(run_loop(turn.run)) as events:
                async for event in events:
                    writer.add_event(event)
                    if shows_reasoning or not isinstance(event, ReasoningProgress | ReasoningEnded):
                        yield terminal_event(turn, event) if isinstance(event, RunEnded) else notes.note(event)
        except StintError as error:
            yield await fail_turn(turn, error)
        except Exception:
            logger.exception("Unexpected error in a turn")
            yield await fail_turn(turn, Unexpected())
        finally:
            turn.log.keeper.stop()
            await self.meters.end()
            await writer.close()

    async def write_segments(self, turn: TurnRun) -> None:
        """Write what makes the session cheaper to read, after the turn's response was sent. Nothing is raised."""
        if turn.log.recorder is not None:
            await turn.log.recorder.write_segments()

    async def check_input(self, request: TurnCreateRequest) -> None:
        """Check the input of a session that does not exist yet. Raises InvalidRequest, Stopped and StoreUnavailable."""
        async with self.meters.watch():
            await refuse_stopped()
        await self.reader.check_images(images_of("messages", [each.content for each in request.messages]))

    async def require_model(self, agent_id: str, session_id: str) -> None:
        """Raise Forbidden if the caller may not use a session's model, or NotFound. Nothing is read without limits."""
        agents, sessions = self.agents, self.store.sessions
        if not agents.registry.access.is_limited:
            return
        record, own = await sessions.get(self.tenant, agent_id, session_id), None
        if record.settings is not None:
            own = (await sessions.get_settings(self.tenant, agent_id, session_id)).agent
        await agents.require_model((own or agents.find_cached(agent_id) or await agents.config(agent_id)).model)

    async def send_trace(self, turn: TurnRun) -> None:
        """Send the trace of a turn that has ended, if traces are sent. Nothing is raised."""
        stored, lease = turn.log.turn, turn.log.keeper.lease
        if self.traces is None:
            return
        from stint.services.traces.turn_spans import has_ended, make_trace  # noqa: PLC0415 - few stacks send traces

        if has_ended(stored):
            await self.traces.send(partial(make_trace, stored, lease.agent_id, turn.config), turn.run.deadline)

    async def get(self, agent_id: str, session_id: str, turn_id: str) -> Turn:
        """Return a turn.

        Raises:
            NotFound: there is no such agent, session or turn.
        """
        agent, session, turn = await asyncio.gather(
            self.agents.require(agent_id),
            self.store.sessions.get(self.tenant, agent_id, session_id),
            self.store.turns.get(self.tenant, agent_id, session_id, turn_id),
            return_exceptions=True,
        )
        _, record = value_of(agent), value_of(session)
        if isinstance(turn, NotFound):
            from stint.services.turns.waiting_turns import read_waiting  # noqa: PLC0415 - few messages wait

            return await read_waiting(self, agent_id, session_id, turn_id)
        return (await mark_interrupted(self.store, self.tenant, agent_id, record, turn=value_of(turn))).to_turn()

    async def step(self, agent_id: str, session_id: str, turn_id: str, step_id: str) -> Step:
        """Return a step of a turn.

        Raises:
            NotFound: there is no such agent, session, turn or step.
        """
        steps = (await self.get(agent_id, session_id, turn_id)).steps
        found = next((step for step in steps if step.step_id == step_id), None)
        if found is None:
            raise NotFound("Step", step_id)
        return found


def approve(plan: Plan, transcript: Transcript, answer: ClientAnswer) -> tuple[Plan, Transcript]:
    """Return the plan and the messages of a run that begins with approved calls."""
    from stint.services.turns.approvals import HeldTranscript, approve_calls  # noqa: PLC0415 - few turns ask

    calls = answer.approved
    return approve_calls(plan, calls, answer.inputs), HeldTranscript(transcript, {call.call_id for call in calls})


def announce(step: ToolExecutionStep | None) -> StepComplete | None:
    """Return the event of the step with a client's results, if there is one."""
    if step is None:
        return None
    return StepComplete(step_type=step.step_type, step_id=step.step_id, step_details=step)
