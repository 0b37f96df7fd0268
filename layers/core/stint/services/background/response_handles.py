"""Handles of responses that this process runs, and of those that another request or the worker runs."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing

from stint.domain.errors import StintError
from stint.domain.openai.response_events import ResponseEvent
from stint.domain.openai.response_resource import Response
from stint.domain.openai.stored_responses import ResponseStatus, StoredResponse
from stint.log_keys import add_log_keys
from stint.services.responses.response_run import ResponseRun
from stint.services.responses.responses import Responses
from stint.services.runs.run_handle import RunHandle, RunObserver, close_on, open_events

ResponseHandle = RunHandle[ResponseEvent | str, Response]
"""An event that was read from the table is JSON text, with its number."""


class StartedResponse:
    """The handle of a response that this process has started."""

    def __init__(self, responses: Responses, run: ResponseRun, observer: RunObserver | None) -> None:
        self._responses, self._run, self._observer = responses, run, observer
        add_log_keys(response_id=run.response_id)

    @property
    def error(self) -> StintError | None:
        return self._run.error

    async def open(self, seconds: float) -> AsyncGenerator[ResponseEvent, None]:
        return await open_events(self.events(), seconds, self)

    def events(self) -> AsyncGenerator[ResponseEvent, None]:
        events = self._responses.run(self._run)
        return events if self._observer is None else self._observer.follow_response(events)

    async def wait_for_start(self, _until: float) -> None:
        return None

    async def outcome(self) -> Response:
        return await read_outcome(self.events())

    async def finish(self) -> None:
        await self._responses.meters.stops.settle()

    async def send_trace(self) -> None:
        await self._responses.send_trace(self._run.log.response, self._run.run.deadline)


class FollowedResponse:
    """The handle of a stored response that another process runs or ran. Its stream begins at once.

    `read_stored` returns the response whose document is the answer.
    """

    def __init__(
        self,
        read_events: Callable[[], Awaitable[AsyncGenerator[str, None]]],
        read_stored: Callable[[], Awaitable[StoredResponse]],
        to_resource: Callable[[StoredResponse], Response],
    ) -> None:
        self._read_events, self._read_stored, self._to_resource = read_events, read_stored, to_resource
        self.error: StintError | None = None

    async def open(self, _seconds: float) -> AsyncGenerator[str, None]:
        return close_on(StintError, await self._read_events())

    async def events(self) -> AsyncGenerator[str, None]:
        async with aclosing(await self._read_events()) as events:
            async for text in events:
                yield text

    async def wait_for_start(self, _until: float) -> None:
        return None

    async def outcome(self) -> Response:
        stored = await self._read_stored()
        if stored.status is ResponseStatus.failed and stored.ending is not None and stored.ending.error is not None:
            self.error = stored.ending.error.to_error()
            self.error.response_id = stored.header.response_id
        return self._to_resource(stored)

    async def finish(self) -> None:
        """Do nothing: the process that runs the response does it."""

    async def send_trace(self) -> None:
        """Do nothing, likewise."""


async def read_outcome(events: AsyncIterator[ResponseEvent]) -> Response:
    """Return the response of a run's last event."""
    last: Response | None = None
    async for event in events:
        last = getattr(event, "response", last)
    assert last is not None  # noqa: S101 - a run ends with its terminal event
    return last
