"""The agent loop: alternating model calls and tool calls, as one stream of events.

It knows neither sessions nor HTTP. It stores steps through a `Log`, each before its event.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from stint.domain.errors import ContextLengthExceeded, ModelError
from stint.domain.ids import new_id
from stint.domain.inference import AnswerDetails
from stint.domain.run_events import (
    LoopEvent,
    ReasoningEnded,
    ReasoningProgress,
    RunEnded,
    StepEvent,
    StepStart,
)
from stint.domain.run_outcome import RunStatus
from stint.domain.schema import now
from stint.domain.steps import MemoryRetrievalStep, Step
from stint.loop.answer import Answer
from stint.loop.model_call import with_deadline
from stint.loop.next_step import Finish, NextStep, RunTools, decide, ending_of, status_after
from stint.loop.output_guard import OutputGuard
from stint.loop.retrieval import Retriever
from stint.loop.run import Run
from stint.loop.screening import Screening, screen
from stint.loop.structured_output import validate_output
from stint.loop.tool_round import answer_calls
from stint.shields.port import Touchpoint


async def run_loop(run: Run, first: RunTools | None = None) -> AsyncGenerator[LoopEvent, None]:
    """Run until the run is complete or waits for the client. The last event is `RunEnded`.

    It starts with the calls that the client approved, or with the `first` ones.

    Raises:
        StintError: the model, a shield or the store failed, or time ran out. Stored steps are kept.
    """
    try:
        if run.plan.input_shields:
            step_id = new_id()
            yield shield_start(step_id, "user-input")
            screening = await screen_input(run, step_id)
            ending = run.make_outcome(RunStatus.completed) if screening.violation else None
            yield await run.store_step(screening.to_step(run.run_id), ending)
            if ending is not None:
                yield RunEnded(ending.status)
                return
        if run.plan.retriever is not None and run.needs_context and first is None:
            async for retrieval in retrieve_context(run, run.plan.retriever):
                yield retrieval
        next_step: NextStep = first or RunTools(run.approved)
        while True:
            if isinstance(next_step, RunTools):
                async with aclosing(answer_calls(run, next_step)) as events:
                    async for event in events:
                        yield event
                if next_step.then is not None:
                    next_step = next_step.then
            if not isinstance(next_step, RunTools):
                yield RunEnded(status_after(next_step))
                return
            answer = Answer(run.run_id, max_calls=run.plan.calls_at_once)
            guard = OutputGuard(run.output_check(), run.plan.shield_window)
            async with aclosing(infer(run, answer, guard)) as chunks:
                async for progress in chunks:
                    yield progress
            next_step = Finish() if guard.blocked else decide(run, answer)
            async for event in conclude(run, answer, guard, next_step):
                yield event
    finally:
        await run.close_inference()


async def retrieve_context(run: Run, retriever: Retriever) -> AsyncGenerator[StepEvent, None]:
    """Add context for the user's messages as a step."""
    run.log.check()
    step_id, started_at = new_id(), now()
    yield StepStart(step_type="memory_retrieval", step_id=step_id)
    retrieving = retriever.retrieve(run.transcript.messages, f"{run.run_id}:0:{step_id}")
    context = await with_deadline(run.deadline, retrieving)
    step = MemoryRetrievalStep(
        turn_id=run.run_id,
        step_id=step_id,
        started_at=started_at,
        completed_at=now(),
        vector_db_ids=",".join(context.vector_db_ids),
        inserted_context=context.content,
    )
    yield await run.store_step(step, None)


async def screen_input(run: Run, step_id: str) -> Screening:
    """Check the last messages with the input shields. A violation completes the turn."""
    run.transcript.close()
    checking = screen(run.plan.input_shields, run.transcript.messages, "user-input")
    return replace(await with_deadline(run.deadline, checking), step_id=step_id)


async def infer(run: Run, answer: Answer, guard: OutputGuard) -> AsyncGenerator[LoopEvent, None]:
    """Read one answer of the model through the output shields.

    If the conversation is too long for the model and the plan allows it, its older half is dropped.
    """
    yield StepStart(step_type="inference", step_id=answer.step_id)
    while True:
        try:
            async with aclosing(read_answer(run, answer, guard)) as events:
                async for event in events:
                    yield event
            break
        except ContextLengthExceeded:
            if answer.begun or not run.plan.shortens or not run.transcript.shorten():
                raise
            await run.close_inference()
    await run.close_inference()
    run.count(answer.usage)
    for passed in await guard.finish(answer.calls):
        yield answer.progress(passed)


async def read_answer(run: Run, answer: Answer, guard: OutputGuard) -> AsyncGenerator[LoopEvent, None]:
    """Read the chunks of an answer until it is complete or blocked."""
    async with aclosing(run.open_inference().read(run.deadline)) as chunks:
        async for chunk in chunks:
            for delta in answer.add_chunk(chunk):
                if isinstance(delta, ReasoningProgress | ReasoningEnded):
                    yield delta
                    continue
                for passed in await guard.add_delta(delta):
                    yield answer.progress(passed)
            if guard.blocked:
                return


async def conclude(
    run: Run, answer: Answer, guard: OutputGuard, next_step: NextStep
) -> AsyncGenerator[StepEvent, None]:
    """Store and announce an answer, followed by the step of the output shields."""
    step: Step = answer.to_step()
    details = details_of(answer, next_step)
    problem = None if guard.blocked else mismatch_of(run, answer, next_step)
    if guard.screening is not None:
        yield await run.store_step(guard.redact(answer.to_step()) if guard.blocked else step, None, details)
        yield shield_start(guard.screening.step_id, "assistant-output")
        step, details = guard.screening.to_step(run.run_id), None
    yield await run.store_step(step, None if problem else ending_of(run, next_step), details)
    if problem:
        raise problem


def details_of(answer: Answer, next_step: NextStep) -> AnswerDetails | None:
    """Return the details of an answer, with the calls that the server does not run if it runs others."""
    details = answer.details()
    if not isinstance(next_step, RunTools) or len(next_step.calls) == len(answer.calls):
        return details
    sent = {call.call_id for call in next_step.calls}
    unsent = [call.call_id for call in answer.calls if call.call_id not in sent]
    return (details or AnswerDetails()).model_copy(update={"unsent": unsent})


def mismatch_of(run: Run, answer: Answer, next_step: NextStep) -> ModelError | None:
    """Return the error of a final answer in the wrong format. An answer that was cut short is not checked."""
    schema = run.plan.answer_schema
    final = isinstance(next_step, Finish) and next_step.incomplete is None and not answer.calls and not answer.refusal
    if schema is None or not final:
        return None
    try:
        validate_output("".join(answer.text), schema)
    except ModelError as error:
        return error
    return None


def shield_start(step_id: str, touchpoint: Touchpoint) -> StepStart:
    return StepStart(step_type="shield_call", step_id=step_id, metadata={"touchpoint": touchpoint})
