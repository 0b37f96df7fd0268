"""Compaction of conversations, and token counts, of the Responses API.

Both read the same input as a response would, and call its model, but store nothing. The history of a running response
or turn is compacted by `stint.loop.compaction`, with the same summaries.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest
from stint.domain.ids import new_name
from stint.domain.inference import SystemText, Usage
from stint.domain.limits import MAX_MESSAGES
from stint.domain.openai.items import CompactionItem, Message, name_items
from stint.domain.openai.opaque import CompactedContext
from stint.domain.openai.prompt_cache import choose_cache
from stint.domain.openai.response_requests import CompactRequest, InputTokensRequest
from stint.domain.openai.response_resource import CompactedResponse, InputTokens, ResponseUsage
from stint.domain.openai.response_tools import without_credentials
from stint.domain.openai.stored_responses import ResponseHeader, ResponseSettings, tier_of
from stint.metering import admit_run
from stint.models.routing import Router
from stint.services.registry.registry import Registry
from stint.services.responses.input_items import require_input
from stint.services.responses.model_input import InputReader
from stint.services.responses.planner import ResponsePlanner
from stint.services.responses.search_items import without_markers
from stint.spending.meters import Meters, metered
from stint.tools.port import NO_PROVIDER_DATA, ProviderData

if TYPE_CHECKING:  # few models take cache keys
    from stint.services.runs.cache_keys import FindCacheKeys

REST = "the latest messages of the user before it"


@dataclass(frozen=True, slots=True)
class Compaction:
    """Replaces a conversation by the user's messages and a model's summary.

    The newest messages are kept, up to `kept_bytes` of JSON, so that the next request has room for them.
    """

    router: Router
    registry: Registry
    inputs: InputReader
    meters: Meters
    kept_bytes: int
    find_cache_keys: "FindCacheKeys"

    @metered
    async def compact(self, request: CompactRequest, deadline: float) -> CompactedResponse:
        """Return the user's messages, and the item with the system's messages and a summary of the conversation.

        Raises:
            InvalidRequest: the conversation is empty, or the model or the previous response is unknown.
            ModelError: the model failed, or returned no text.
            RateLimitExceeded, QuotaExceeded: a budget is used up.
        """
        await admit_run(find_model=lambda: self.registry.route(request.model))
        context = await self.inputs.open(request.input, request.previous_response_id, cached=False)
        transcript = context.reader.transcript
        if not transcript.messages:
            raise InvalidRequest("There is nothing to compact: send input or previous_response_id.", param="input")
        model, model_id = self.router.resolve(await self.registry.route(request.model))
        from stint.loop.summaries import Summarizer  # noqa: PLC0415 - few requests compact

        tier, keys = tier_of(request.service_tier), await self.find_cache_keys(model)
        key = context.cache_key(header_of(request), keys) if keys is not None else ""
        cache = choose_cache(
            request.prompt_cache_options,
            request.prompt_cache_retention,
            self.router.cache if request.previous_response_id else None,
        )
        summarizer = Summarizer(
            model,
            model_id,
            request.instructions or "",
            REST,
            deadline=deadline,
            service_tier=tier,
            cache=cache,
            cache_key=key,
        )
        summary = without_markers(await summarizer.summarize(transcript.messages))
        instructions = [message.text for message in transcript.messages if isinstance(message, SystemText)]
        compacted = CompactedContext(summary=summary, instructions=instructions)
        opaque = self.inputs.contexts.opaque
        await opaque.warm()
        await self.meters.end()
        return CompactedResponse(
            id=new_name("resp"),
            created_at=int(time.time()),
            output=name_items(
                [
                    *newest(context.user_messages, self.kept_bytes),
                    CompactionItem(encrypted_content=opaque.encode(compacted)),
                ]
            ),
            usage=ResponseUsage.of(summarizer.usage or Usage()),
        )


def header_of(request: CompactRequest) -> ResponseHeader:
    """Return the header of a response that is not stored, in place of which the request stands."""
    settings = ResponseSettings(prompt_cache_key=request.prompt_cache_key, store=False)
    return ResponseHeader(response_id="", created_at=0, model=request.model, settings=settings)


def newest(messages: Sequence[Message], most_bytes: int) -> list[Message]:
    """Return the last messages whose JSON has at most some bytes."""
    left = most_bytes
    kept = list[Message]()
    for message in reversed(messages):
        left -= len(message.to_json())
        if left < 0 or len(kept) == MAX_MESSAGES // 2:
            break
        kept.append(message)
    return kept[::-1]


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
            RateLimitExceeded, QuotaExceeded: a budget is used up. It counts as a request, and some providers count by
                an answer.
            Stopped: the caller's key or the tenant was stopped.
        """
        require_input(request)
        async with self.meters.request():
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
