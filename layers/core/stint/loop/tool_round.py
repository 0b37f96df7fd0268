"""A round of tools: the calls of one answer, of which some run concurrently.

Clients see the steps in the order of the model's calls, but results arrive in any order and their effects cannot be
undone. So a result that arrives before its turn is stored at once, in a record of early results, and becomes a step
when its turn comes. The states of a call:

    known       its step exists: it was blocked, forbidden or sent by an earlier process. It does not run
    unsent      it waits for a slot. If the run ends here, its ending says that the call had no effect
    sent        it runs. Unless its tool is repeatable, it is never sent again
    early       its result is stored, and its step is not
    stored      its step is stored and was announced
    asks        it is not finished: its step is stored without a result, and the run waits for the client
    left over   it had finished when time ran out: its step is stored, but no event shows it

First the lease is checked, then calls are marked as sent, if the log does not show it by their answer, then they start.
A mark without a call only tells the model too little; a call without a mark could be made twice.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from stint.dataclasses import dataclass, field
from stint.domain.errors import Cancelled, DeadlineExceeded, Stopped
from stint.domain.ids import new_id
from stint.domain.inference import AnswerDetails
from stint.domain.run_events import StepEvent, StepProgress, StepStart, ToolCallDelta, image_events
from stint.domain.schema import now
from stint.domain.steps import ShieldCallStep, ToolExecutionStep
from stint.domain.tools import ToolCall, ToolResponse
from stint.loop.model_call import with_deadline
from stint.loop.next_step import AwaitClient, Finish, RunTools, ending_of
from stint.loop.run import Run
from stint.loop.screening import BoundShield, shield_start
from stint.loop.toolbox import InputAsked
from stint.metering import count_tool_calls
from stint.net.large_answers import serialize_large_answers
from stint.run_stop import raise_if_stopped

if TYPE_CHECKING:
    from stint.loop.tool_shields import ResultCheck

CALLS_AT_ONCE = 4
"""Maximum calls of one answer that run concurrently."""


async def answer_calls(run: Run, next_step: RunTools) -> AsyncGenerator[StepEvent, None]:
    """Run calls, some concurrently, with a step each in the model's order. The last step has the ending of the run.

    Results are stored as they arrive. When time runs out or the run is stopped, the finished calls are stored, too:
    their effects cannot be undone.
    """
    calls, known = next_step.calls, next_step.known
    fresh = [call for call in calls if call.call_id not in known]
    run.unsent = {call.call_id for call in fresh}
    if not calls:
        return
    await prepare(run, fresh)
    run.tool_calls += len(calls)
    run.called.update(call.tool_name for call in calls)
    count_tool_calls(len(fresh))
    running = ToolRound.start(run, calls, known, can_wait=not isinstance(next_step.then, Finish))
    left = [*calls]
    try:
        while left:
            call = left[0]
            step_id = running.step_ids[call.call_id]
            yield StepStart(step_type="tool_execution", step_id=step_id)
            delta = ToolCallDelta(tool_call=call, parse_status="in_progress")
            yield StepProgress(step_type="tool_execution", step_id=step_id, delta=delta)
            answered = await running.wait_for(call)
            left.pop(0)
            ending = None if left else ending_of(run, AwaitClient() if run.asked else next_step.then)
            details = AnswerDetails(asked=run.asked) if run.asked and ending is not None else None
            check = answered.check
            # The ending belongs to the last record, which is the check's if there is one.
            stored = await run.store_step(answered.step, *((None,) if check else (ending, details)))
            for event in image_events(answered.step):
                yield event
            yield stored
            if check is not None:
                yield shield_start(check.step_id, check.metadata or {})
                yield await run.store_step(check, ending, details)
    except (DeadlineExceeded, Stopped, Cancelled):
        # `close` in the `finally` cancels the others, whose effects are unknown: the transcript says so.
        for step in running.finished(left):
            await run.store_step(step, None, AnswerDetails(unannounced=True))
        raise
    finally:
        await running.close()


async def prepare(run: Run, calls: Sequence[ToolCall]) -> None:
    """Check that calls may be sent, and note those that must not be sent again.

    Raises:
        Interrupted: another process may have ended the run.
        Stopped: an admin stopped the run.
    """
    if not calls:
        return
    run.log.check()
    raise_if_stopped()
    # At most one write for all calls, and none if each of them may be repeated.
    once = [call.call_id for call in calls if not run.plan.toolbox.is_repeatable(call)]
    if once:
        await run.log.mark_sent(once, approved=run.iterations == 0)


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """The step of a call, and that of the check of its result."""

    step: ToolExecutionStep
    check: ShieldCallStep | None = None

    @property
    def steps(self) -> list[ToolExecutionStep | ShieldCallStep]:
        return [self.step, self.check] if self.check else [self.step]


@dataclass(slots=True)
class ToolRound:
    """The running calls of an answer. `stored` has the ids of calls whose results are stored before their turn."""

    run: Run
    tasks: Mapping[str, "asyncio.Task[AnsweredCall]"]
    step_ids: Mapping[str, str]
    stored: set[str] = field(default_factory=set)

    @classmethod
    def start(
        cls, run: Run, calls: Sequence[ToolCall], known: Mapping[str, ToolExecutionStep], *, can_wait: bool
    ) -> "ToolRound":
        """Start calls. Those with a `known` step are not run. `can_wait`: the run may wait for what they ask."""
        started_at, slots, large = now(), asyncio.Semaphore(CALLS_AT_ONCE), asyncio.Lock()
        by_id = {call.call_id: call for call in calls}
        ids: dict[str, str] = {}
        checks: dict[str, ResultCheck] = {}
        for call_id, call in by_id.items():  # ids are in the order of the steps
            ids[call_id] = known[call_id].step_id if call_id in known else new_id()
            if shields := run.plan.toolbox.shields_of(call).output:
                checks[call_id] = make_check(shields, call)

        async def answer(call: ToolCall) -> AnsweredCall:
            if call.call_id in known:
                return AnsweredCall(known[call.call_id])
            check = checks.get(call.call_id)
            async with slots:
                # Within the slot: a call that still waits for one when the run ends has surely not been sent.
                run.unsent.discard(call.call_id)
                with serialize_large_answers(large):
                    key, store_result = run.key_of(call), run.log.store_result
                    toolbox, budget = run.plan.toolbox, run.results
                    inspect = check.inspect if check else None
                    try:
                        responses = [await toolbox.respond(call, key, store_result, budget, inspect)]
                    except InputAsked as question:
                        responses = [] if can_wait else [cannot_wait(call)]
                        if can_wait:
                            run.asked[call.call_id] = question.asked
            step = tool_step(run.run_id, ids[call.call_id], started_at, call, responses=responses)
            return AnsweredCall(step, check.to_step(run.run_id) if check else None)

        tasks = {call_id: asyncio.create_task(answer(call)) for call_id, call in by_id.items()}
        return cls(run, tasks, ids, stored=set(known))

    async def wait_for(self, call: ToolCall) -> AnsweredCall:
        """Wait for the result of a call, and store those of other calls that arrive before.

        Raises:
            DeadlineExceeded: time ran out.
            Stopped: an admin stopped the run.
        """
        task = self.tasks[call.call_id]
        while not task.done():
            running = [each for each in self.tasks.values() if not each.done()]
            waiting = asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            await with_deadline(self.run.deadline, waiting)
            # If the awaited call is among them, its step is stored first, and the others at the next wait.
            early = {} if task.done() else self.arrived()
            if early:
                await self.run.log.append_early([step for answered in early.values() for step in answered.steps])
                self.stored |= early.keys()
        self.stored.add(call.call_id)
        return task.result()

    def arrived(self) -> dict[str, AnsweredCall]:
        """Return the results that are not stored."""
        done = {call_id: task for call_id, task in self.tasks.items() if is_finished(task)}
        left = done.keys() - self.stored - self.run.asked.keys()
        return {call_id: task.result() for call_id, task in done.items() if call_id in left}

    def finished(self, calls: Sequence[ToolCall]) -> list[ToolExecutionStep | ShieldCallStep]:
        """Return the steps of those calls that have finished."""
        tasks = [self.tasks[call.call_id] for call in calls]
        return [step for task in tasks if is_finished(task) for step in task.result().steps]

    async def close(self) -> None:
        """Cancel the calls that still run."""
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)


def cannot_wait(call: ToolCall) -> ToolResponse:
    """Return the result of a call that asks the client of a run which ends."""
    said = "The server of the tool asked the user, but the run ends here, so the call did not finish."
    return ToolResponse(call_id=call.call_id, tool_name=call.tool_name, content=said, metadata={"error": True})


def make_check(shields: Sequence[BoundShield], call: ToolCall) -> "ResultCheck":
    from stint.loop.tool_shields import ResultCheck  # noqa: PLC0415 - few agents have shields of tools

    return ResultCheck(shields, call)


def is_finished(task: "asyncio.Task[AnsweredCall]") -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


def tool_step(
    run_id: str, step_id: str, started_at: datetime, call: ToolCall, responses: list[ToolResponse]
) -> ToolExecutionStep:
    """Return the step of a call. One that asks the client has no response yet, and gets another step later."""
    return ToolExecutionStep(
        turn_id=run_id,
        step_id=step_id,
        started_at=started_at,
        completed_at=now(),
        tool_calls=[call],
        tool_responses=responses,
    )
