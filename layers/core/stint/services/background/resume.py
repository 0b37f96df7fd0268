"""A response put together again from what is stored of it, wherever its run broke off."""

from collections.abc import Sequence
from dataclasses import dataclass

from stint.domain.content import text_of
from stint.domain.openai.stored_responses import ResponseHeader, ResponseRecord, StoredResponse
from stint.domain.steps import InferenceStep, ToolExecutionStep
from stint.loop.lease_keeper import Hold
from stint.loop.next_step import Answers, what_is_left
from stint.loop.run import Run
from stint.loop.structured_output import validate_output
from stint.services.background.waiting import patiently
from stint.services.responses.context import Context
from stint.services.responses.response_run import Prepared, ResponseRun
from stint.services.responses.responses import Responses
from stint.tools.port import NO_PROVIDER_DATA


@dataclass(frozen=True, slots=True)
class Continuing:
    """Puts the responses of a tenant together again; `patience` is in seconds, for a conversation that is in use."""

    responses: Responses
    patience: float

    async def put_together(self, stored: StoredResponse, hold: Hold) -> ResponseRun:
        """Read all that a response needs, as when it was created, and take in what its log holds.

        It runs under `hold`, until its deadline; the conversation that it continues is held from here on.

        Raises:
            StintError: what it needs is not there any more, or the conversation was in use for too long.
        """
        header, settings, deadline = stored.header, stored.header.settings, hold.deadline
        context = await self.open_context(header, deadline)
        try:
            plan = await self.responses.planner.plan(header.model, settings, settings.tools, NO_PROVIDER_DATA)
            context.reader.read(header.input, header.texts)
            prepared = Prepared(header, context, plan)
            response = self.responses.begin(prepared, deadline, stored=True, records=stored.records)
            response.log.lease = hold
            count_on(response, stored)
            return response
        except BaseException:
            if context.hold is not None:
                await context.hold.let_lapse()
            raise

    async def open_context(self, header: ResponseHeader, deadline: float) -> Context:
        return await patiently(
            lambda: self.responses.open_context(header, deadline, again=True), self.patience, deadline
        )


def count_on(response: ResponseRun, stored: StoredResponse) -> None:
    """Let the counts of a run go on where its log ends."""
    run, steps = response.run, stored.steps
    run.approved = [call for call in run.approved if call.call_id in run.transcript.open]
    run.iterations = sum(isinstance(step, InferenceStep) for step in steps)
    run.tool_calls = sum(isinstance(step, ToolExecutionStep) for step in steps)
    run.usage = stored.usage


def first_move(run: Run, records: Sequence[ResponseRecord]) -> Answers | None:
    """Tell what is left of the last answer; None when the model is to be called, or has not been called yet.

    Raises:
        ModelError: the answer was complete, and departs from the form that was asked for.
    """
    answered: set[str] = set()
    for record in reversed(records):
        match record.step:
            case ToolExecutionStep(tool_calls=calls):
                answered |= {call.call_id for call in calls}
            case InferenceStep(model_response=answer):
                refused = record.details is not None and record.details.refusal
                if not answer.tool_calls and run.plan.answer_schema is not None and not refused:
                    validate_output(text_of(answer.content), run.plan.answer_schema)
                return what_is_left(run, answer.tool_calls, answered)
    return None
