"""The agent loop: model calls and tool calls in turn, as one stream of events.

It knows neither sessions nor HTTP. What it stores goes through a `Log`; a step is stored before it is announced.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime

from stint.domain.errors import DeadlineExceeded, ModelError
from stint.domain.events import RunEnded, StepComplete, StepEvent, StepProgress, StepStart, ToolCallDelta
from stint.domain.ids import new_id
from stint.domain.inference import FinishReason
from stint.domain.schema import now
from stint.domain.steps import Step, ToolExecutionStep
from stint.domain.tools import ToolCall, ToolResponse
from stint.domain.turns import TurnStatus
from stint.services.answers import Answer
from stint.services.holdback import Holdback
from stint.services.inference import before
from stint.services.outputs import validate_output
from stint.services.runs import Run
from stint.services.screening import screen
from stint.shields.port import Touchpoint


@dataclass(slots=True)
class Screened:
    """What the input shields said."""

    blocked: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """The turn is complete."""


@dataclass(frozen=True, slots=True)
class Pause:
    """The client has tool calls to answer."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The server runs calls; then the model goes on, or the turn waits for the client's calls."""

    calls: list[ToolCall]
    then_pause: bool


NextMove = Stop | Pause | Answers


def decide(run: Run, answer: Answer) -> NextMove:
    """Tell what follows an answer of the model."""
    exhausted = run.iterations >= run.plan.max_infer_iters
    if not answer.calls or answer.finish is FinishReason.length or exhausted:
        return Stop()
    server = [call for call in answer.calls if not run.plan.toolbox.is_for_client(call)]
    if server:
        return Answers(server, then_pause=len(server) < len(answer.calls))
    return Pause()


async def run_loop(run: Run) -> AsyncGenerator[StepEvent | RunEnded, None]:
    """Run until the turn is complete or waits for the client; the last event is `RunEnded`.

    Raises:
        StintError: the model, a shield, the store or the time failed; what was stored before is kept.
    """
    try:
        if run.plan.input_shields:
            screened = Screened()
            async for event in screen_input(run, screened):
                yield event
            if screened.blocked:
                yield RunEnded(TurnStatus.completed)
                return
        while True:
            answer = Answer(turn_id=run.turn_id)
            holdback = Holdback(run.output_check(), run.plan.shield_window)
            async with aclosing(infer(run, answer, holdback)) as events:
                async for event in events:
                    yield event
            move = Stop() if holdback.blocked else decide(run, answer)
            async for event in conclude(run, answer, holdback, move):
                yield event
            if isinstance(move, Answers):
                async with aclosing(answer_calls(run, move)) as events:
                    async for event in events:
                        yield event
            if isinstance(move, Answers) and not move.then_pause:
                continue
            yield RunEnded(TurnStatus.completed if isinstance(move, Stop) else TurnStatus.awaiting_input)
            return
    finally:
        await run.close_inference()


def status_after(move: NextMove) -> TurnStatus | None:
    """Tell how the record of the answer itself ends the run; None when more records follow."""
    match move:
        case Stop():
            return TurnStatus.completed
        case Pause():
            return TurnStatus.awaiting_input
        case Answers():
            return None


async def screen_input(run: Run, screened: Screened) -> AsyncGenerator[StepEvent, None]:
    """Ask the input shields about what came last; a violation completes the turn."""
    step_id = new_id()
    yield shield_start(step_id, "user-input")
    run.transcript.close()
    checking = screen(run.plan.input_shields, run.transcript.messages, "user-input")
    screening = replace(await before(run.deadline, checking), step_id=step_id)
    screened.blocked = screening.violation is not None
    yield await store(run, screening.to_step(run.turn_id), TurnStatus.completed if screened.blocked else None)


async def infer(run: Run, answer: Answer, holdback: Holdback) -> AsyncGenerator[StepEvent, None]:
    """Read one answer of the model; the output shields let pass what may leave."""
    yield StepStart(step_type="inference", step_id=answer.step_id)
    async with aclosing(run.open_inference().read(run.deadline)) as chunks:
        async for chunk in chunks:
            for delta in answer.take(chunk):
                for passed in await holdback.take(delta):
                    yield StepProgress(step_type="inference", step_id=answer.step_id, delta=passed)
            if holdback.blocked:
                break
    await run.close_inference()
    run.count(answer.usage)
    for passed in await holdback.finish(answer.calls):
        yield StepProgress(step_type="inference", step_id=answer.step_id, delta=passed)


async def conclude(run: Run, answer: Answer, holdback: Holdback, move: NextMove) -> AsyncGenerator[StepEvent, None]:
    """Store and announce an answer, and behind it what the output shields said of it."""
    step, status, screening = answer.to_step(), status_after(move), holdback.screening
    if screening is None:
        problem = mismatch_of(run, answer, move)
        yield await store(run, step, None if problem else status)
        if problem:
            raise problem
        return
    yield await store(run, holdback.redact(step) if holdback.blocked else step, None)
    yield shield_start(screening.step_id, "assistant-output")
    problem = None if holdback.blocked else mismatch_of(run, answer, move)
    yield await store(run, screening.to_step(run.turn_id), None if problem else status)
    if problem:
        raise problem


def mismatch_of(run: Run, answer: Answer, move: NextMove) -> ModelError | None:
    """Tell how a final answer departs from the form that was asked for; one that was cut short is not checked."""
    schema = run.plan.answer_schema
    if schema is None or not isinstance(move, Stop) or answer.calls or answer.finish is FinishReason.length:
        return None
    try:
        validate_output("".join(answer.text), schema)
    except ModelError as error:
        return error
    return None


def shield_start(step_id: str, touchpoint: Touchpoint) -> StepStart:
    return StepStart(step_type="shield_call", step_id=step_id, metadata={"touchpoint": touchpoint})


async def answer_calls(run: Run, move: Answers) -> AsyncGenerator[StepEvent, None]:
    """Run calls side by side, a step each in the model's order; the last step carries the pause.

    When time runs out, what the later tools have done already is stored as well: it cannot be undone.
    """
    run.log.check()
    started_at = now()
    answering = [asyncio.create_task(run.plan.toolbox.respond(call, run.log.keep)) for call in move.calls]
    left = list(zip(move.calls, answering, strict=True))
    try:
        while left:
            call, task = left[0]
            step_id = new_id()
            yield StepStart(step_type="tool_execution", step_id=step_id)
            delta = ToolCallDelta(tool_call=call, parse_status="in_progress")
            yield StepProgress(step_type="tool_execution", step_id=step_id, delta=delta)
            response = await before(run.deadline, task)
            left.pop(0)
            pause = move.then_pause and not left
            step = tool_step(run, step_id, started_at, call, response)
            yield await store(run, step, TurnStatus.awaiting_input if pause else None)
    except DeadlineExceeded:
        for call, task in left:
            if task.done() and not task.cancelled():
                await store(run, tool_step(run, new_id(), started_at, call, task.result()), None)
        raise
    finally:
        for task in answering:
            task.cancel()
        await asyncio.gather(*answering, return_exceptions=True)


def tool_step(
    run: Run, step_id: str, started_at: datetime, call: ToolCall, response: ToolResponse
) -> ToolExecutionStep:
    return ToolExecutionStep(
        turn_id=run.turn_id,
        step_id=step_id,
        started_at=started_at,
        completed_at=now(),
        tool_calls=[call],
        tool_responses=[response],
    )


async def store(run: Run, step: Step, status: TurnStatus | None) -> StepComplete:
    """Store a step, then announce it."""
    run.transcript.add_step(step)
    await run.log.append(step, run.end(status) if status else None)
    return StepComplete(step_type=step.step_type, step_id=step.step_id, step_details=step)
