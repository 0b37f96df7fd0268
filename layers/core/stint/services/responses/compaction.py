"""Compaction of conversations, and token counts."""

import asyncio
import time

from stint.dataclasses import dataclass
from stint.domain.content import text_of
from stint.domain.errors import InvalidRequest, ModelError, QuotaExceeded
from stint.domain.ids import new_name
from stint.domain.inference import FinishReason, InferenceRequest, SystemText, Usage, UserInput
from stint.domain.openai.items import CompactionItem, name_item
from stint.domain.openai.opaque import CompactedContext
from stint.domain.openai.response_requests import CompactRequest, InputTokensRequest
from stint.domain.openai.response_resource import CompactedResponse, InputTokens, ResponseUsage
from stint.domain.openai.response_tools import without_credentials
from stint.domain.openai.stored_responses import ResponseSettings
from stint.loop.answer import Answer
from stint.loop.model_call import Inference
from stint.metering import admit_run
from stint.models.routing import Router
from stint.services.registry.registry import Registry
from stint.services.responses.input_items import require_input
from stint.services.responses.model_input import InputReader
from stint.services.responses.planner import ResponsePlanner
from stint.spending.meters import Meters, metered
from stint.tools.port import NO_PROVIDER_DATA, ProviderData

TASK = (
    "Write a summary that replaces the conversation so far. The next reader sees nothing else of it. "
    "Keep names, numbers, decisions, the user's goals, the results of tools, and open questions. "
    "Write only the summary."
)


@dataclass(frozen=True, slots=True)
class Compaction:
    """Replaces a conversation by a model's summary."""

    router: Router
    registry: Registry
    inputs: InputReader
    meters: Meters

    @metered
    async def compact(self, request: CompactRequest, deadline: float) -> CompactedResponse:
        """Return the item that replaces a conversation, with its system messages and a summary of the rest.

        Raises:
            InvalidRequest: the conversation is empty, or the model or the previous response is unknown.
            ModelError: the model failed, or returned no text.
            RateLimitExceeded, QuotaExceeded: a budget is used up.
        """
        await admit_run(find_model=lambda: self.registry.route(request.model))
        transcript = await self.inputs.read(request.input, request.previous_response_id)
        if not transcript.messages:
            raise InvalidRequest("There is nothing to compact: send input or previous_response_id.", param="input")
        model, model_id = self.router.resolve(await self.registry.route(request.model))
        system = (SystemText(request.instructions),) if request.instructions else ()
        asked = InferenceRequest(model=model_id, messages=(*system, *transcript.messages, UserInput(TASK)))
        model.check(asked)
        answer = await answer_to(Inference(model, asked), deadline)
        if answer.finish is FinishReason.budget:
            raise QuotaExceeded("The money of the caller's budget did not suffice for the whole summary.")
        summary = without_markers(text_of(answer.to_step().model_response.content))
        if not summary:
            raise ModelError("The model wrote no summary. Try again, or use another model.")
        instructions = [message.text for message in transcript.messages if isinstance(message, SystemText)]
        context = CompactedContext(summary=summary, instructions=instructions)
        opaque = self.inputs.contexts.opaque
        await opaque.warm()
        await self.meters.end()
        return CompactedResponse(
            id=new_name("resp"),
            created_at=int(time.time()),
            output=[name_item(CompactionItem(encrypted_content=opaque.encode(context)))],
            usage=ResponseUsage.of(answer.usage or Usage()),
        )


def without_markers(text: str) -> str:
    """Return a text without the markers of files, because a response after a compaction does not know their names."""
    if "<|" not in text:
        return text
    from stint.services.responses.citations import cite  # noqa: PLC0415 - few conversations search files

    return cite(text, {}).text


async def answer_to(inference: Inference, deadline: float) -> Answer:
    """Read a whole answer."""
    answer = Answer("")
    try:
        async for chunk in inference.read(deadline):
            for _ in answer.add_chunk(chunk):
                pass
    finally:
        await asyncio.shield(inference.close())
    return answer


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Counts the input tokens of a response. `default_model` is used for requests without a model."""

    planner: ResponsePlanner
    inputs: InputReader
    default_model: str
    meters: Meters

    async def count(self, request: InputTokensRequest, provider_data: ProviderData = NO_PROVIDER_DATA) -> InputTokens:
        """Return the provider's count.

        Raises:
            InvalidRequest: the request refers to something unknown.
            NotSupported: the provider cannot count.
            Stopped: the caller's key or the tenant was stopped.
        """
        require_input(request)
        async with self.meters.watch():
            return await self._count(request, provider_data)

    async def _count(self, request: InputTokensRequest, provider_data: ProviderData) -> InputTokens:
        transcript = await self.inputs.read(
            request.input,
            request.previous_response_id,
            request.conversation_id,
            shortens=request.truncation == "auto",
        )
        model = request.model or self.default_model
        planned = await self.planner.plan(model, settings_of(request), request.tools, provider_data)
        plan = planned.plan
        return InputTokens(input_tokens=await plan.model.count_tokens(plan.request(transcript.messages)))


def settings_of(request: InputTokensRequest) -> ResponseSettings:
    return ResponseSettings(
        instructions=request.instructions,
        tools=without_credentials(request.tools),
        tool_choice=request.tool_choice,
        text=request.text,
        reasoning=request.reasoning.to_settings() if request.reasoning else None,
        parallel_tool_calls=request.parallel_tool_calls,
        truncation=request.truncation,
    )
