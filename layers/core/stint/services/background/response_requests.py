"""Requests of responses: the one door through which the Responses API and the worker get a response.

What becomes of a request is decided here, once, in this order:

| the request      | what it finds                                       | `submit` returns                         |
|------------------|-----------------------------------------------------|------------------------------------------|
| is a retry       | a message in line, or one that a response has taken | that message                             |
| is a retry       | a response with a step, or that runs or has ended   | that response, from its first event on   |
| is a retry       | a response that failed without a step, or nothing   | as a new request                         |
| is in background | -                                                   | a queued response, which the worker runs |
| is new           | no conversation, or one that nothing uses or        | a new response                           |
|                  | waits for                                           |                                          |
| is new           | a conversation in use, `when_busy` reject           | nothing: it raises Conflict              |
| is new           | the same, enqueue or merge                          | a message at the end of the line         |
| is new           | the same, interrupt                                 | a new response, once the other has ended |

A message has the digits of its response's id, and it is deleted once its response is stored. So each operation on a
response looks for a stored response first, then for a message, and then for a stored response again.

docs/decisions.md, entry 46, has the reasons.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar

from stint.caller import RequestAttempt
from stint.dataclasses import dataclass, replace
from stint.domain.errors import DeadlineExceeded, NotFound, StintError, StoreUnavailable
from stint.domain.ids import name_of
from stint.domain.openai.response_options import Include
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.response_resource import DeletedResponse, Response
from stint.domain.openai.stored_responses import StoredResponse
from stint.domain.run_signals import HeartbeatReceived
from stint.lazy import Lazy, lazy
from stint.log_keys import add_log_keys
from stint.services.background.background import Background
from stint.services.background.response_handles import FollowedResponse, ResponseHandle, StartedResponse
from stint.services.background.tail import StreamTail
from stint.services.responses.read import ResponseReader
from stint.services.responses.response_run import ResponseRun
from stint.services.responses.responses import Responses
from stint.services.runs.run_handle import RequestContext, WaitingRun

if TYPE_CHECKING:  # few requests wait, repeat or cancel one
    from stint.services.background.cancellation import ResponseCancellation
    from stint.services.background.waiting_responses import WaitingResponses
    from stint.services.responses.response_retries import ResponseRetries
    from stint.services.runs.admission import Admission, StartedRun

T = TypeVar("T")
Part: TypeAlias = Lazy["ResponseRequests", T]


@dataclass(slots=True)
class NewResponse:
    """A response that a request asks for. Its attempt is renewed if it repeats one that failed."""

    request: CreateResponse
    context: RequestContext


@dataclass(frozen=True)
class ResponseRequests:
    """The requests of a tenant's responses."""

    responses: Responses
    background: Background
    """Stores responses for the worker."""

    tail: StreamTail
    """Reads the events of stored responses."""

    reader: ResponseReader

    cancellation: "ClassVar[Part[ResponseCancellation]]" = lazy(
        "stint.services.background.cancellation:ResponseCancellation",
        lambda self, cls: cls(self.background.tenant, self.background.store, self.background.recovery),
    )
    waiting: "ClassVar[Part[WaitingResponses]]" = lazy(
        "stint.services.background.waiting_responses:WaitingResponses",
        lambda self, cls: cls(self.responses, self.reader),
    )
    retries: "ClassVar[Part[ResponseRetries]]" = lazy(
        "stint.services.responses.response_retries:ResponseRetries",
        lambda self, cls: cls(self.background.tenant, self.background.store, self.reader),
    )

    def make_admission(self, conversation_id: str) -> "Admission[CreateResponse, ResponseRun]":
        """Make the admission of responses to a conversation."""
        from stint.services.background.response_admission import ResponseLine  # noqa: PLC0415 - few wait
        from stint.services.runs.admission import Admission  # noqa: PLC0415 - few wait

        store, tenant = self.background.store, self.background.tenant
        line = ResponseLine(self.responses, self.cancellation, conversation_id)
        return Admission(store.conversation_line(tenant, conversation_id), line)

    async def submit(self, request: CreateResponse, context: RequestContext) -> ResponseHandle:
        """Return the response of a request: a new one, one that waits or is queued, or that of an earlier attempt.

        Raises:
            EarlierRunUnavailable: the attempt only follows a response, which is not stored or has failed.
            StintError: as `Responses.start`, `Background.create`, or `Admission.accept` for one that waits.
        """
        new = NewResponse(request, context)
        if context.attempt.is_retry:
            found = await self.find_earlier(new)
            if found is not None:
                return found
        if request.background:
            return await self.queue(new)
        return await self.start_or_wait(new)

    async def start_or_wait(self, new: NewResponse) -> ResponseHandle:
        """Start a response, or let it wait for its conversation. Raises StintError as `submit`."""
        when_busy, conversation_id = new.request.when_busy, new.request.conversation_id
        if when_busy in (None, "reject") or conversation_id is None:
            return await self.start(new)
        admission = self.make_admission(conversation_id)
        started = await admission.start_now(partial(self.start, new), when_busy)
        if started is not None:
            return started
        if when_busy == "interrupt":
            return WaitingRun(partial(self.interrupt, new), None, new.context.deadline)
        return self.wait(new, await admission.accept(new.request, new.context.attempt))

    async def start(self, new: NewResponse) -> StartedResponse:
        """Start a response. Raises as `Responses.start`."""
        run = await self.responses.start(new.request, new.context)
        return StartedResponse(self.responses, run, new.context.observer)

    async def queue(self, new: NewResponse) -> ResponseHandle:
        """Store a response for the worker. Its document is the queued response. Raises as `Background.create`."""
        stored = await self.background.create(new.request, new.context)
        response_id = stored.header.response_id

        async def read_stored() -> StoredResponse:
            return stored

        add_log_keys(response_id=response_id)
        return self.follow_stored(partial(self.read_events, response_id, -1, new.context.deadline), read_stored)

    def wait(self, new: NewResponse, message_id: str) -> ResponseHandle:
        """Return a response that waits as a message."""

        async def read_message() -> Response:
            return await self.waiting.get(name_of("resp", message_id))

        return WaitingRun(partial(self.follow_or_start, new, message_id), read_message, new.context.deadline)

    async def interrupt(self, new: NewResponse, until: float) -> ResponseHandle:
        """Cancel the running response, and start a new one. Raises StintError, and DeadlineExceeded at `until`."""
        interrupt = self.admission_of(new).start_after_interrupting
        return await interrupt(partial(self.start, new), until, partial(self.find_earlier_response, new))

    def admission_of(self, new: NewResponse) -> "Admission[CreateResponse, ResponseRun]":
        """Return the admission to the conversation of a request, which has one."""
        return self.make_admission(new.request.conversation_id or "")

    async def follow_or_start(self, new: NewResponse, message_id: str, until: float) -> ResponseHandle:
        """Start the response of a message when it is its turn, or follow the one that has taken the message.

        Raises:
            DeadlineExceeded: it still waits at `until`, a time of the event loop's clock.
            StintError: it cannot start, or was cancelled.
        """
        try:
            started = await self.start_message(new, message_id, until)
        except DeadlineExceeded as error:
            error.response_id = name_of("resp", message_id)
            raise
        if isinstance(started, StartedResponse):
            return started
        response_id = name_of("resp", started.run_id)
        add_log_keys(response_id=response_id)
        return self.follow_response(response_id, new.context, taken=True)

    async def start_message(self, new: NewResponse, message_id: str, until: float) -> "StartedResponse | StartedRun":
        """Start the response of a message when it is its turn, or return the one that another process has started.

        Raises as `follow_or_start`.
        """
        run = await self.admission_of(new).start(message_id, new.request, new.context, until)
        return StartedResponse(self.responses, run, new.context.observer) if isinstance(run, ResponseRun) else run

    async def find_earlier(self, new: NewResponse) -> ResponseHandle | None:
        """Return the message or the response of an earlier attempt. Raises as `find_earlier_response`."""
        return await self.find_waiting(new) or await self.find_earlier_response(new)

    async def find_waiting(self, new: NewResponse) -> ResponseHandle | None:
        """Return the message of an earlier attempt of a request that waits for the conversation, if there is one."""
        request, attempt, conversation_id = new.request, new.context.attempt, new.request.conversation_id
        if conversation_id is None or request.when_busy in (None, "reject"):
            return None
        message_id = await self.make_admission(conversation_id).find_accepted(attempt)
        if message_id is None and request.when_busy == "merge" and not attempt.repeated:
            message_id = await self.waiting.find_merged(attempt, conversation_id)
        return None if message_id is None else self.wait(new, message_id)

    async def find_earlier_response(self, new: NewResponse) -> ResponseHandle | None:
        """Return the response of an earlier attempt, unless it failed before its first step.

        One that runs is returned when it has a step, or its process has renewed its lease. If there is none, `new` gets
        the attempt that starts a response.

        Raises:
            EarlierRunUnavailable: the attempt only follows the response, which is not stored or has failed.
            Conflict: an earlier attempt, whose response is not stored, has called a tool that is not repeatable.
        """
        context = new.context
        if not context.attempt.is_retry:
            return None
        found = await self.retries.find_earlier(context.attempt, context.deadline, stored=new.request.store)
        if isinstance(found, RequestAttempt):
            new.context = replace(context, attempt=found)
            return None
        return self.follow_response(found, context)

    def follow_response(self, response_id: str, context: RequestContext, *, taken: bool = False) -> ResponseHandle:
        """Return the response of an earlier attempt, or one that has `taken` the request's message."""
        deadline = context.deadline
        return self.follow_stored(
            partial(self.read_events, response_id, -1, deadline),
            partial(self.retries.wait_for_end, response_id, deadline, background=taken),
        )

    def follow(self, response_id: str, after: int, deadline: float) -> ResponseHandle:
        """Return the events after a number of a response, or of the one that has the message with its id.

        `RunHandle.open` raises:
            NotFound: there is no such response or message.
            InvalidRequest: the response has no event with that number.
        """
        read_events = partial(self.read_events, response_id, after, deadline)
        return self.follow_stored(read_events, partial(self.reader.read, response_id))

    def follow_stored(
        self,
        read_events: Callable[[], Awaitable[AsyncGenerator[str, None]]],
        read_stored: Callable[[], Awaitable[StoredResponse]],
    ) -> ResponseHandle:
        return FollowedResponse(read_events, read_stored, self.reader.to_resource)

    async def read_events(self, response_id: str, after: int, deadline: float) -> AsyncGenerator[str, None]:
        """Return the events after a number of a response, or of the one that has the message with its id, as JSON.

        Those of a message that waits begin once it has started. Raises as `follow`.
        """
        read = self.tail.read_events

        async def read_of_message() -> AsyncGenerator[str, None]:
            found = (await self.waiting.get(response_id)).id
            if found == response_id:
                return self.follow_message(response_id, after, deadline)
            return await read(found, after, deadline)

        return await stored_or_waiting(partial(read, response_id, after, deadline), read_of_message)

    async def follow_message(self, response_id: str, after: int, deadline: float) -> AsyncGenerator[str, None]:
        """Yield the events after a number of the response that has a message, once it has started.

        If it is not started, `response.failed` is the last event. Raises NotFound, DeadlineExceeded, StoreUnavailable.
        """
        waiting = self.waiting
        try:
            run_id = await waiting.wait_for_start(response_id, self.make_admission, deadline)
        except (DeadlineExceeded, StoreUnavailable):
            raise
        except StintError:
            for event in await waiting.end_events(response_id, after):
                yield event.model_dump_json()
            return
        events = await self.tail.read_events(run_id, after, deadline)
        async with aclosing(events):
            async for text in events:
                yield text

    async def get(self, response_id: str, include: Sequence[Include]) -> Response:
        """Return a response, which may be a message that waits for its conversation. Raises NotFound."""
        return await stored_or_waiting(
            lambda: self.reader.get(response_id, include), lambda: self.waiting.get(response_id, include)
        )

    async def use_found(self, response_id: str, use: Callable[[str], Awaitable[T]]) -> T:
        """Return what `use` returns for a response, or for the one that has a message with its id. Raises NotFound."""

        async def use_run() -> T:
            return await use(await self.waiting.find_run(response_id))

        return await stored_or_waiting(partial(use, response_id), use_run)

    async def cancel(self, response_id: str) -> Response:
        """Cancel a response, which may be a message that waits, and return it when it has ended. Raises NotFound.

        If a response has taken the message, that one is cancelled.
        """
        cancellation = self.cancellation

        async def cancel_message() -> Response:
            found = await self.waiting.cancel(response_id)
            return found if found.id == response_id else await cancellation.cancel(found.id)

        return await stored_or_waiting(partial(cancellation.cancel, response_id), cancel_message)

    async def receive_heartbeat(self, response_id: str) -> HeartbeatReceived:
        """Note that the client of a response is there. Raises NotFound."""
        return await self.use_found(response_id, self.cancellation.receive_heartbeat)

    async def delete(self, response_id: str) -> DeletedResponse:
        """Delete a response, and stop it if it runs. One that waits is not started. Raises NotFound."""
        try:
            return await self.reader.delete(response_id)
        except NotFound:
            return await self.waiting.delete(response_id)


async def stored_or_waiting(stored: Callable[[], Awaitable[T]], waiting: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `stored`, or of `waiting` if no response is stored.

    A message is deleted once its response is stored. So if there is neither, the response may be stored by now. Raises
    NotFound.
    """
    for use in (stored, waiting):
        with suppress(NotFound):
            return await use()
    return await stored()
