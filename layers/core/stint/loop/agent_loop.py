"""The agent loop: alternating model calls and tool calls, as one stream of events.

It knows neither sessions nor HTTP. It stores steps through a `Log`, each before its event, so that a process which
continues the run reads all that a client has seen. One pass of the loop:

    begin_run      once, if any: checks of results and input; retrieval              input blocked: the end
    RunTools       checks of arguments, then the calls of the last answer            `then` is set: the end
    prepare_call   messages that arrived meanwhile, with their check; compaction     input blocked: the end
    infer          one answer, of which the output shields release parts
    conclude       stores the answer, with an ending unless calls of it are run here

A resumed run enters at RunTools, with the calls that its client approved or that an interrupted run left.

The ending is a part of the last record. With a record of its own, a process that dies between the two would leave a run
that has its answer and looks interrupted. Errors leave the loop as exceptions: the caller stores the ending then.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from stint.dataclasses import replace
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
from stint.domain.steps import Step
from stint.loop.answer import Answer
from stint.loop.model_call import with_deadline
from stint.loop.next_step import AwaitClient, Finish, NextStep, RunTools, decide, ending_of, status_after
from stint.loop.output_guard import OutputGuard
from stint.loop.run import Run
from stint.loop.screening import Screening, screen, shield_start
from stint.loop.structured_output import validate_output
from stint.loop.tool_round import answer_calls
from stint.metering import set_deadline

if TYPE_CHECKING:
    from stint.loop.argument_checks import ArgumentChecks


async def run_loop(run: Run, first: RunTools | None = None) -> AsyncGenerator[LoopEvent, None]:
    """Run until the run is complete or waits for the client. The last event is `RunEnded`.

    It starts with the calls that the client approved, or with the `first` ones.

    Raises:
        StintError: the model, a shield or the store failed, or time ran out. Stored steps are kept.
    """
    try:
        set_deadline(run.deadline)
        if run.begins_with_steps:
            async with aclosing(begin_run(run, retrieves=first is None)) as beginning:
                async for event in beginning:
                    yield event
                    if isinstance(event, RunEnded):
                        return
        next_step: NextStep = first or RunTools(run.approved)
        while True:
            if isinstance(next_step, RunTools):
                checks = make_checks(run, next_step)
                if checks is not None:
                    async with aclosing(checks.events()) as checking:
                        async for event in checking:
                            yield event
                    next_step = checks.next_step
                if next_step.calls:
                    async with aclosing(answer_calls(run, next_step)) as events:
                        async for event in events:
                            yield event
                # Without `then` it stays a round of tools, so that the model is called with the results.
                next_step = AwaitClient() if run.asked else next_step.then or next_step
            if not isinstance(next_step, RunTools):
                yield RunEnded(status_after(next_step))
                return
            if run.iterations or run.plan.compaction is not None:
                async with aclosing(prepare_call(run)) as preparing:
                    async for event in preparing:
                        yield event
                        if isinstance(event, RunEnded):
                            return
            answer = Answer(run.run_id, max_calls=run.plan.calls_at_once, aliases=run.plan.toolbox.aliases)
            guard = OutputGuard(run.output_check(), run.plan.shield_window)
            async with aclosing(infer(run, answer, guard)) as chunks:
                async for progress in chunks:
                    yield progress
            next_step = Finish() if guard.blocked else decide(run, answer)
            async for event in conclude(run, answer, guard, next_step):
                yield event
    finally:
        await run.close_inference()


async def begin_run(run: Run, *, retrieves: bool) -> AsyncGenerator[LoopEvent, None]:
    """Announce the checks of the client's results, check the input, and retrieve context.

    If the input is blocked, the last event is `RunEnded`.
    """
    for check in run.checks:
        yield shield_start(check.step_id, check.metadata or {})
        yield await run.store_step(check, None)
    async for event in check_input(run):
        yield event
        if isinstance(event, RunEnded):
            return
    if run.plan.retriever is not None and run.needs_context and retrieves:
        from stint.loop.context_retrieval import retrieve_context  # noqa: PLC0415 - few agents retrieve before

        async with aclosing(retrieve_context(run, run.plan.retriever)) as retrieving:
            async for retrieval in retrieving:
                yield retrieval


async def prepare_call(run: Run) -> AsyncGenerator[StepEvent | RunEnded, None]:
    """Take input that waits, and compact a history that is too long. If the input is blocked, end with `RunEnded`."""
    # An open call has its messages already, and before the first answer the run has just begun.
    if run.inference is None and run.iterations and await run.log.take_input(run.transcript):
        async for event in check_input(run):
            yield event
            if isinstance(event, RunEnded):
                return
    if run.plan.compaction is not None:
        from stint.loop.compaction import compact_if_due  # noqa: PLC0415 - few runs compact their history

        async with aclosing(compact_if_due(run, run.plan.compaction)) as compacting:
            async for step_event in compacting:
                yield step_event


async def check_input(run: Run) -> AsyncGenerator[StepEvent | RunEnded, None]:
    """Check the last messages with the input shields, if there are any. If they are blocked, end with `RunEnded`."""
    if not run.plan.input_shields:
        return
    step_id = new_id()
    yield shield_start(step_id, {"touchpoint": "user-input"})
    screening = await screen_input(run, step_id)
    ending = run.make_outcome(RunStatus.completed) if screening.violation else None
    yield await run.store_step(screening.to_step(run.run_id), ending)
    if ending is not None:
        yield RunEnded(ending.status)


def make_checks(run: Run, next_step: RunTools) -> "ArgumentChecks | None":
    """Return the checks of the arguments of calls; None if no tool has shields."""
    if not run.plan.toolbox.shields:
        return None
    from stint.loop.argument_checks import ArgumentChecks  # noqa: PLC0415 - few agents have shields of tools

    return ArgumentChecks(run, next_step)


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
            # Parts of an answer that has begun may have left, and a second call would repeat them.
            cut = run.transcript.shorten() if run.plan.shortens and not answer.begun else None
            if cut is None:
                raise
            answer.cuts.append(cut)
            await run.close_inference()
    if run.inference is not None:
        answer.first_token_ms = run.inference.times.first_token_ms
    await run.close_inference()
    run.count(answer.usage)
    answer.refused = run.find_refused(answer.calls)
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
    details = details_of(run, answer, next_step)
    problem = None if guard.blocked else mismatch_of(run, answer, next_step)
    if guard.screening is not None:
        yield await run.store_step(guard.redact(answer.to_step()) if guard.blocked else step, None, details)
        yield shield_start(guard.screening.step_id, {"touchpoint": "assistant-output"})
        # The step of the shields is the last one, so it gets the ending, and the answer before it must have none.
        step, details = guard.screening.to_step(run.run_id), None
    # An answer in the wrong format is stored without an ending: it was streamed. Then the run fails.
    yield await run.store_step(step, None if problem else ending_of(run, next_step), details)
    if problem:
        raise problem


def details_of(run: Run, answer: Answer, next_step: NextStep) -> AnswerDetails | None:
    """Return the details of an answer, with the calls that the server does not run if it runs others."""
    details = answer.details()
    if not isinstance(next_step, RunTools):
        return details
    sent = {call.call_id for call in next_step.calls if not run.plan.toolbox.is_run_by_client(call)} - answer.refused
    if len(sent) == len(answer.calls):
        return details
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
