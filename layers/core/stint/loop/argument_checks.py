"""Checks of the arguments of calls by their tools' shields, before the calls run or are handed to the client."""

import asyncio
from collections.abc import AsyncGenerator

from stint.dataclasses import dataclass, field, replace
from stint.domain.ids import new_id
from stint.domain.run_events import StepEvent
from stint.domain.steps import SafetyViolation, ToolExecutionStep
from stint.domain.tools import ToolCall
from stint.loop.model_call import with_deadline
from stint.loop.next_step import AwaitClient, Finish, RunTools, ending_of, failed_step, limit_reached
from stint.loop.run import Run
from stint.loop.screening import Screening, shield_start
from stint.loop.tool_shields import blocked_text, call_messages, describe, screen_tool

CHECKS_AT_ONCE = 4
"""Maximum calls whose arguments are checked concurrently."""


@dataclass(slots=True)
class ArgumentChecks:
    """The checks of a round of calls. `blocked` has the answers to blocked calls, by the calls' ids."""

    run: Run
    planned: RunTools
    blocked: dict[str, ToolExecutionStep] = field(default_factory=dict)

    @property
    def checked(self) -> list[ToolCall]:
        """Return the calls whose tools have shields for their arguments."""
        planned, toolbox = self.planned, self.run.plan.toolbox
        return [each for each in planned.calls if each.call_id not in planned.known and toolbox.shields_of(each).input]

    @property
    def next_step(self) -> RunTools:
        """Return the round without the calls that the client runs. Blocked calls have their answers."""
        toolbox = self.run.plan.toolbox
        known = {**self.planned.known, **self.blocked}
        calls = [call for call in self.planned.calls if call.call_id in known or not toolbox.is_run_by_client(call)]
        return replace(self.planned, calls=calls, then=self.then, known=known)

    @property
    def then(self) -> Finish | AwaitClient | None:
        """Return the step after the round. If all calls for the client are blocked, the model is called."""
        then = self.planned.then
        if not self.blocked or not isinstance(then, AwaitClient):
            return then
        is_for_client, known = self.run.plan.toolbox.is_for_client, {*self.planned.known, *self.blocked}
        if any(is_for_client(call) for call_id, call in self.run.transcript.open.items() if call_id not in known):
            return then
        limit = limit_reached(self.run, pauses=False)
        return Finish(limit) if limit else None

    async def events(self) -> AsyncGenerator[StepEvent, None]:
        """Check the calls, some concurrently, with a step each in the model's order."""
        calls = self.checked
        if not calls:
            return
        self.run.log.check()
        self.run.unsent = {call.call_id for call in self.planned.calls if call.call_id not in self.planned.known}
        slots = asyncio.Semaphore(CHECKS_AT_ONCE)
        tasks = [asyncio.create_task(self.check(call, slots)) for call in calls]
        try:
            for call, task in zip(calls, tasks, strict=True):
                step_id = new_id()
                yield shield_start(step_id, {"touchpoint": "tool-input", **describe(call)})
                screening = replace(await with_deadline(self.run.deadline, task), step_id=step_id)
                if screening.violation is not None:
                    self.blocked[call.call_id] = refusal(self.run.run_id, call, screening.violation)
                ends = call is calls[-1] and not self.next_step.calls
                ending = ending_of(self.run, self.then) if ends else None
                yield await self.run.store_step(screening.to_step(self.run.run_id), ending)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def check(self, call: ToolCall, slots: asyncio.Semaphore) -> Screening:
        async with slots:
            shields = self.run.plan.toolbox.shields_of(call).input
            return await screen_tool(shields, call_messages(call), "tool-input", describe(call))


def refusal(run_id: str, call: ToolCall, violation: SafetyViolation) -> ToolExecutionStep:
    """Return the step of a blocked call, which did not run."""
    return failed_step(run_id, call, blocked_text(violation, "tool-input"))
