"""Rebuilding of a response's run from its log, and resuming it at the interruption.

A worker may die, and its task is delivered again. The next worker reads the settings, the tools and the context as they
are now, and what has happened from the log: the messages, the counts of calls, the usage. Then it decides what follows
from the last records:

    the last answer of the model             what follows
    there is none                            the model is called, after the calls that the input approved
    it has calls without results             these calls run. One that may have taken effect is not sent again,
                                             unless its tool is repeatable: the model reads that its outcome is unknown
    all of its calls have results            the model is called
    it is complete, but has no ending        the ending is stored. An answer that must match a schema is checked again

A reader of the stream may know events of the step that was lost. So the stream continues with the number after its last
stored event, and an item that was partly streamed keeps its index (`continue_stream`).
"""

from collections.abc import Iterator, Sequence
from contextlib import aclosing
from functools import partial

from stint.dataclasses import dataclass
from stint.domain.content import text_of
from stint.domain.errors import StintError
from stint.domain.inference import AnswerDetails, Usage
from stint.domain.openai.response_events import ResponseEvent
from stint.domain.openai.stored_responses import ResponseHeader, ResponseOutcome, ResponseRecord, StoredResponse
from stint.domain.steps import InferenceStep, ToolExecutionStep
from stint.loop.next_step import RunTools, called_tools, ending_of, known_steps, remaining_calls
from stint.loop.run import Run
from stint.loop.structured_output import validate_output
from stint.metering import ENDING_UNITS, admit_run, read_meter, resume_meter
from stint.run_stop import refuse_stopped
from stint.services.background.event_writer import StreamWriter
from stint.services.background.response_lease import ResponseKeeper
from stint.services.background.waiting import retry_while_locked
from stint.services.responses.links import Context
from stint.services.responses.recovery import failed
from stint.services.responses.replay import ReplayPosition, emit_missing
from stint.services.responses.response_run import PreparedResponse, ResponseRun, response_events
from stint.services.responses.responses import Responses
from stint.spending.waiting import retry_next_minute
from stint.tools.port import NO_PROVIDER_DATA


@dataclass(frozen=True, slots=True)
class Resumer:
    """Rebuilds the runs of a tenant's responses. It waits `lock_wait_seconds` for a conversation in use."""

    responses: Responses
    lock_wait_seconds: float

    async def rebuild(self, stored: StoredResponse, keeper: ResponseKeeper) -> ResponseRun:
        """Read everything that a response needs, as at its creation, and restore the state in its log.

        The run uses the lease of `keeper` until its deadline. The conversation's lease is renewed from here on.

        Raises:
            StintError: something that it needs no longer exists, the conversation was in use for too long, or an admin
                stopped the response, its conversation, the caller's key or the tenant.
        """
        header, settings, deadline = stored.header, stored.header.settings, keeper.deadline
        await refuse_stopped(*header.stop_names)
        find_model = partial(self.responses.planner.registry.route, header.model)
        await retry_next_minute(partial(admit_run, find_model=find_model), deadline)
        context = await self.open_context(header, deadline)
        try:
            plan = await self.responses.planner.plan(
                header.model, settings, settings.tools, NO_PROVIDER_DATA, header.response_id
            )
            context.reader.read(header.input, header.texts)
            prepared = PreparedResponse(header, context, plan)
            response = self.responses.make_run(prepared, deadline, stored=True, records=stored.records)
            response.log.lease = keeper
            restore_counts(response, stored)
            return response
        except BaseException:
            if context.keeper is not None:
                await context.keeper.lapse()
            raise

    async def open_context(self, header: ResponseHeader, deadline: float) -> Context:
        return await retry_while_locked(
            lambda: self.responses.open_context(header, deadline, again=True), self.lock_wait_seconds, deadline
        )


def metered_failure(error: StintError, usage: Usage | None) -> ResponseOutcome:
    """Return the ending of a response that this worker ran, and that failed."""
    return failed(error, usage).model_copy(update={"consumption": read_meter(ENDING_UNITS)})


def restore_counts(response: ResponseRun, stored: StoredResponse) -> None:
    """Restore the counts of a run from its log."""
    run, steps = response.run, stored.steps
    run.approved = [call for call in run.approved if call.call_id in run.transcript.open]
    run.iterations = sum(isinstance(step, InferenceStep) for step in steps)
    run.tool_calls = sum(isinstance(step, ToolExecutionStep) for step in steps)
    run.called = called_tools(step for step in steps if isinstance(step, ToolExecutionStep))
    run.usage = stored.usage
    run.summary_tokens = sum(record.compaction.output_tokens for record in stored.records if record.compaction)
    resume_meter(stored.consumption)


def continue_stream(response: ResponseRun, stored: StoredResponse, position: ReplayPosition) -> Iterator[ResponseEvent]:
    """Yield the log's events that the stream lacks. The run continues after them; a partial item keeps its index."""
    stream, output = response.stream, response.stream.output
    stream.items.streamed = position.items
    yield from emit_missing(stream, stored, position)
    response.log.skipped = position.items.index - output.place
    output.skipped += response.log.skipped


async def resume(response: ResponseRun, writer: StreamWriter) -> None:
    """Run the rest of a response, and write its events.

    Raises:
        StintError: the run failed. Stored steps are kept.
    """
    log = response.log
    pending = pending_tools(response.run, log.response.records)
    if pending is not None and pending.then is not None and not pending.calls:
        await log.append(None, ending_of(response.run, pending.then))
    else:
        async with aclosing(response_events(response, pending)) as events:
            async for event in events:
                writer.add_events([event])
    writer.add_events(response.stream.emit_ending(log.response))


def pending_tools(run: Run, records: Sequence[ResponseRecord]) -> RunTools | None:
    """Return the remaining tool calls of the last answer, or of the approved ones; None if the model comes next.

    Calls that may have taken effect are not sent again, unless they are repeatable.

    Raises:
        ModelError: the answer was complete, and does not match the requested format.
    """
    answered: set[str] = set()
    early: dict[str, ToolExecutionStep] = {}
    sent: set[str] = set()
    for record in reversed(records):
        early |= {step.tool_calls[0].call_id: step for step in record.early or ()}
        sent |= {*(record.sent or ())}
        match record.step:
            case ToolExecutionStep(tool_calls=calls):
                answered |= {call.call_id for call in calls}
            case InferenceStep(model_response=answer):
                details = record.details or AnswerDetails()
                if not answer.tool_calls and run.plan.answer_schema is not None and not details.refusal:
                    validate_output(text_of(answer.content), run.plan.answer_schema)
                return remaining_calls(run, answer.tool_calls, answered, early, refused=details.refused or ())
    left = run.approved
    return RunTools(left, known=known_steps(run, left, early, sent)) if left else None
