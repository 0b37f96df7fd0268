"""Responses of conversations in use: they start at once, later, or not at all."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

from stint.domain.openai.response_events import ResponseEvent
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.response_resource import Response
from stint.domain.when_busy import WhenBusy
from stint.observability import Observation
from stint.services.openai_api import OpenAIServices
from stint.services.responses.response_run import ResponseRun


@dataclass(frozen=True, slots=True)
class WaitingResponse:
    """A response that waits for its conversation."""

    services: OpenAIServices
    conversation_id: str
    when_busy: WhenBusy
    start: Callable[[], Awaitable[ResponseRun]]

    async def events(self, observation: Observation, deadline: float) -> AsyncGenerator[ResponseEvent, None]:
        """Yield the events of the response once it has started. Raises StintError if it cannot start."""
        admission = self.services.make_response_admission(self.conversation_id)
        response = await admission.start_later(self.start, self.when_busy, deadline)
        observation.name_response(response.response_id)
        async for event in observation.follow_response(self.services.responses.run(response)):
            yield event

    async def run_to_end(self, observation: Observation, deadline: float) -> Response:
        """Run the response, and return it. Raises StintError if it cannot start."""
        last: Response | None = None
        async for event in self.events(observation, deadline):
            last = getattr(event, "response", last)
        assert last is not None  # noqa: S101 - a run ends with its terminal event
        return last


async def start_response(
    services: OpenAIServices, body: CreateResponse, start: Callable[[], Awaitable[ResponseRun]]
) -> ResponseRun | WaitingResponse:
    """Start a response, or return it as one that waits for its conversation. Raises StintError."""
    when_busy, conversation_id = body.when_busy, body.conversation_id
    if when_busy in (None, "reject") or conversation_id is None:
        return await start()
    admission = services.make_response_admission(conversation_id)
    started = await admission.start_now(start, when_busy)
    return started or WaitingResponse(services, conversation_id, when_busy, start)
