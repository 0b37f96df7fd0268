"""Inputs of the model calls of responses, rebuilt as a worker rebuilds a run that broke off.

what has changed since                          the answer
a response before it, or its conversation,      has the response's own messages, and says that others are missing
was deleted
items of its conversation were added or         has those that are there; it always says so
deleted by hand
the model or a toolgroup is gone                has no tools, and says why
vector stores, containers, MCP servers          does not depend on them
"""

import asyncio

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, NotFound, StintError
from stint.domain.model_inputs import ModelInput
from stint.domain.openai.stored_responses import ResponseHeader, ResponseRecord, StoredResponse
from stint.loop.transcript import Transcript
from stint.services.background.resume import restore_counts
from stint.services.responses.items_to_messages import MessageBuilder
from stint.services.responses.links import Context
from stint.services.responses.masking import with_credentials
from stint.services.responses.planner import ResponsePlan
from stint.services.responses.read import ResponseReader
from stint.services.responses.recorded_planner import RecordedPlanner, bare_plan
from stint.services.responses.response_run import PreparedResponse
from stint.services.responses.responses import Responses
from stint.services.runs.shown_inputs import RebuiltCall, show_call
from stint.tools.port import ProviderData
from stint.tools.redaction import secrets_of_caller

HAND_MADE = "Whether items of the conversation were added or deleted by hand since; those before the response are shown"


@dataclass(frozen=True, slots=True)
class ResponseInputs:
    """The inputs of the model calls of a tenant's responses."""

    responses: Responses
    reader: ResponseReader

    async def read(self, response_id: str, step_id: str, start_index: int, provider_data: ProviderData) -> ModelInput:
        """Return the input of a model call, with a page of its messages from `start_index` on. Raises as `rebuild`."""
        call = await self.rebuild(response_id, step_id, provider_data)
        return await asyncio.to_thread(show_call, call, start_index)

    async def rebuild(self, response_id: str, step_id: str, provider_data: ProviderData) -> RebuiltCall:
        """Return a model call as it was made.

        Raises:
            NotFound: there is no such response or step.
            InvalidRequest: the step is none of the model.
        """
        stored = await self.reader.read(response_id)
        header, count = stored.header, place_of(stored, step_id)
        before = StoredResponse(header, stored.records[:count])
        await self.responses.contexts.opaque.warm_if(header.settings.signs_items)
        context, unknown = await self.open_context(header)
        plan, unsure = await self.make_plan(header, provider_data)
        context.reader.read(header.input, header.texts)
        prepared = PreparedResponse(header, context, plan or bare_plan(header))
        response = self.responses.make_run(prepared, 0.0, stored=False, records=before.records)
        restore_counts(response, before)
        run = response.run
        cuts = cuts_of(stored.records[: count + 1])
        for cut in cuts:
            run.transcript.drop_before(cut)
        return RebuiltCall(
            step_id=step_id,
            model=header.model,
            request=run.next_request(),
            toolbox=run.plan.toolbox,
            secrets=secrets_of_caller(with_credentials(header.settings.tools, provider_data)),
            is_history_cut=context.is_cut or bool(cuts),
            has_tools=plan is not None,
            unknown=[*unknown, *unsure],
        )

    async def open_context(self, header: ResponseHeader) -> tuple[Context, list[str]]:
        """Return what a response continued, and what is not sure about it."""
        try:
            context = await self.responses.contexts.before_response(header)
        except StintError as error:
            missing = Context(MessageBuilder(Transcript(), lenient=True))
            return missing, [f"The messages before the input, which are left out: {error.message}"]
        return context, [HAND_MADE] if header.conversation_id is not None else []

    async def make_plan(
        self, header: ResponseHeader, provider_data: ProviderData
    ) -> tuple[ResponsePlan | None, list[str]]:
        """Return the plan of a response, and what is not sure about it; None if it cannot be made any more."""
        planner = RecordedPlanner.of(self.responses.planner, header)
        settings = header.settings
        try:
            plan = await planner.plan(header.model, settings, settings.tools, provider_data, header.response_id)
        except StintError as error:
            return None, [f"The tools of the model: {error.message}"]
        return plan, []


def place_of(stored: StoredResponse, step_id: str) -> int:
    """Return the number of records before a model call.

    Raises:
        NotFound: there is no such step.
        InvalidRequest: it is another step.
    """
    for place, record in enumerate(stored.records):
        for step in (record.step, record.unfinished):
            if step is not None and step.step_id == step_id:
                if step.step_type == "inference":
                    return place
                refuse(step_id)
        if record.compaction_id == step_id:
            refuse(step_id)
    raise NotFound("Step", step_id)


def refuse(step_id: str) -> None:
    """Raise InvalidRequest for a step that is no call of the model."""
    told = f"Step {step_id} is no model_call. Only a model_call has an input of the model."
    raise InvalidRequest(told, code="step_without_input", param="step_id")


def cuts_of(records: list[ResponseRecord]) -> list[int]:
    """Return the cuts of a history that the model refused as too long, since the last compaction."""
    cuts: list[int] = []
    for record in records:
        if record.compaction is not None:
            cuts.clear()
        cuts += (record.details.cuts if record.details else None) or ()
    return cuts
