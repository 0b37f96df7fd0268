"""Responses of conversations in use: they start at once, later, or not at all."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from stint.apis.openai import OpenAIServices
from stint.caller import find_attempt
from stint.dataclasses import dataclass
from stint.domain.errors import DeadlineExceeded, NotFound, StintError, StoreUnavailable
from stint.domain.ids import name_of
from stint.domain.openai.response_events import ResponseEvent
from stint.domain.openai.response_options import Include
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.response_resource import Response
from stint.http.response_attempts import FollowedResponse, find_earlier_response
from stint.observability import Observation
from stint.services.responses.response_run import ResponseRun
from stint.tools.port import ProviderData

T = TypeVar("T")

WAITS: dict[int | str, dict[str, Any]] = {
    202: {"model": Response, "description": "The response is queued, and started later."}
}
"""The answer of a response that waits too long, for the OpenAPI document."""


@dataclass(frozen=True, slots=True)
class NewResponse:
    """A response to be created."""

    services: OpenAIServices
    body: CreateResponse
    deadline: float
    keys: ProviderData

    async def start(self) -> ResponseRun:
        return await self.services.responses.start(self.body, self.deadline, self.keys)

    async def find_earlier(self) -> FollowedResponse | None:
        return await find_earlier_response(self.services, self.deadline, stored=self.body.store)

    async def find_waiting(self) -> "WaitingResponse | None":
        """Return the message of an earlier attempt of the current request that waits for the conversation."""
        attempt, conversation_id = find_attempt(), self.body.conversation_id
        again = attempt.repeated or (attempt.fingerprint and attempt.retry_count)
        if not again or conversation_id is None or self.body.when_busy in (None, "reject"):
            return None
        line = self.services.make_response_admission(conversation_id).line
        waiting = self.services.make_waiting_responses()
        message_id = await waiting.find_accepted(attempt, line)
        if message_id is None and self.body.when_busy == "merge" and not attempt.repeated:
            message_id = await waiting.find_merged(attempt, conversation_id)
        return WaitingResponse(self, conversation_id, message_id) if message_id is not None else None

    async def start_now(self) -> "ResponseRun | WaitingResponse":
        """Start the response, or return it as one that waits for its conversation. Raises StintError."""
        when_busy, conversation_id = self.body.when_busy, self.body.conversation_id
        if when_busy in (None, "reject") or conversation_id is None:
            return await self.start()
        admission = self.services.make_response_admission(conversation_id)
        started = await admission.admission.start_now(self.start, when_busy)
        if started is not None:
            return started
        message_id = None if when_busy == "interrupt" else await admission.accept(self.body)
        return WaitingResponse(self, conversation_id, message_id)


@dataclass(frozen=True, slots=True)
class WaitingResponse:
    """A response that waits for its conversation as a message, or that interrupts the running response."""

    new: NewResponse
    conversation_id: str
    message_id: str | None

    @property
    def services(self) -> OpenAIServices:
        return self.new.services

    async def start(self, wait_until: float) -> ResponseRun | FollowedResponse:
        """Start the response when it is its turn, or follow the one that was started for its message.

        Raises:
            DeadlineExceeded: it still waits at `wait_until`, a time of the event loop's clock.
            StintError: it cannot start, or was cancelled.
        """
        new, admission = self.new, self.services.make_response_admission(self.conversation_id)
        if self.message_id is None:
            return await admission.admission.start_after_interrupting(new.start, wait_until, new.find_earlier)
        started = await admission.start(self.message_id, new.body, new.deadline, new.keys, wait_until=wait_until)
        if isinstance(started, ResponseRun):
            return started
        return FollowedResponse(self.services, name_of("resp", started.run_id), taken=True)

    async def events(self, observation: Observation) -> AsyncGenerator[ResponseEvent | str, None]:
        """Yield the events of the response once it has started, or their JSON. Raises StintError if it cannot start."""
        try:
            response = await self.start(self.new.deadline)
        except DeadlineExceeded as error:
            error.response_id = None if self.message_id is None else name_of("resp", self.message_id)
            raise
        observation.name_response(response.response_id)
        if isinstance(response, FollowedResponse):
            async for text in await self.services.tail.read_events(response.response_id, -1, self.new.deadline):
                yield text
            return
        async for event in observation.follow_response(self.services.responses.run(response)):
            yield event


async def read_response(services: OpenAIServices, response_id: str, include: Sequence[Include]) -> Response:
    """Return a response, which may be a message that waits for its conversation. Raises NotFound."""
    return await stored_or_waiting(
        lambda: services.stored_responses.get(response_id, include),
        lambda: services.make_waiting_responses().get(response_id, include),
    )


async def use_run(services: OpenAIServices, response_id: str, use: Callable[[str], Awaitable[T]]) -> T:
    """Return the result of `use` for a response, or for the one that has the message with its id. Raises NotFound."""

    async def use_found() -> T:
        return await use(await services.make_waiting_responses().find_run(response_id))

    return await stored_or_waiting(lambda: use(response_id), use_found)


async def follow_run(
    services: OpenAIServices, response_id: str, after: int, deadline: float
) -> AsyncGenerator[str, None]:
    """Return the events after a number of a response, or of the one that has the message with its id, as JSON.

    Those of a message that waits begin once it has started.

    Raises:
        NotFound: there is no such response or message.
        InvalidRequest: the response has no event with that number.
    """
    read = services.tail.read_events

    async def follow_waiting() -> AsyncGenerator[str, None]:
        found = (await services.make_waiting_responses().get(response_id)).id
        if found == response_id:
            return follow_message(services, response_id, after, deadline)
        return await read(found, after, deadline)

    return await stored_or_waiting(lambda: read(response_id, after, deadline), follow_waiting)


async def follow_message(
    services: OpenAIServices, response_id: str, after: int, deadline: float
) -> AsyncGenerator[str, None]:
    """Yield the events after a number of the response that has a message, once it has started.

    If it is not started, `response.failed` is the last event. Raises NotFound, DeadlineExceeded or StoreUnavailable.
    """
    waiting = services.make_waiting_responses()
    try:
        run_id = await waiting.wait_for_start(response_id, services.make_response_admission, deadline)
    except (DeadlineExceeded, StoreUnavailable):
        raise
    except StintError:
        for event in await waiting.end_events(response_id, after):
            yield event.model_dump_json()
        return
    events = await services.tail.read_events(run_id, after, deadline)
    async with aclosing(events):
        async for text in events:
            yield text


async def cancel_run(services: OpenAIServices, response_id: str) -> Response:
    """Cancel a response, which may be a message that waits for its conversation, and return it. Raises NotFound.

    If a response has taken the message, that one is cancelled.
    """

    async def cancel_message() -> Response:
        found = await services.make_waiting_responses().cancel(response_id)
        return found if found.id == response_id else await services.make_response_cancellation().cancel(found.id)

    return await stored_or_waiting(lambda: services.make_response_cancellation().cancel(response_id), cancel_message)


async def stored_or_waiting(stored: Callable[[], Awaitable[T]], waiting: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `stored`, or of `waiting` if no response is stored.

    A message is deleted once its response is stored. So if there is neither, the response may be stored by now. Raises
    NotFound.
    """
    for use in (stored, waiting):
        with suppress(NotFound):
            return await use()
    return await stored()
