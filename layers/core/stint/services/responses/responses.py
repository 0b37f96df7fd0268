"""Responses: start and run.

`start` does everything that can fail with a status. `run` runs what it returns, and never raises.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from stint.caller import record_end
from stint.dataclasses import replace
from stint.documents.document_reader import DocumentReader
from stint.domain.errors import InvalidRequest, StintError, Unexpected, error_param
from stint.domain.expiry import find_end
from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.items import FunctionCall, FunctionCallOutput
from stint.domain.openai.response_events import ResponseEvent
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.stored_responses import ResponseHeader, ResponseRecord, StoredResponse
from stint.domain.run_signals import ResponseRef
from stint.loop.run import Run
from stint.metering import admit_run
from stint.models.labels import find_labels, name_end_user
from stint.run_stop import RunDescription, describe_run, receive_signals, refuse_stopped, set_on_disconnect
from stint.services.responses.code_runs import new_originals, open_container
from stint.services.responses.context import Contexts
from stint.services.responses.event_stream import ResponseStream
from stint.services.responses.hosted_tools import is_plain
from stint.services.responses.input_items import InputResolver, refuse_nothing, refuse_too_many_approvals, require_input
from stint.services.responses.links import Context, add_records, released_on_error
from stint.services.responses.masking import masked_settings
from stint.services.responses.output_items import OutputItems
from stint.services.responses.planner import ResponsePlanner
from stint.services.responses.response_endings import end_early
from stint.services.responses.response_log import ResponseLog
from stint.services.responses.response_run import PreparedResponse, ResponseRun, make_partial_storage, response_events
from stint.services.responses.search_items import files_in
from stint.services.runs.run_handle import RequestContext
from stint.spending.meters import Meters, metered
from stint.store.attempts import new_response_id
from stint.store.parallel import value_of
from stint.store.response_leases import ForegroundLease
from stint.store.store import Store

if TYPE_CHECKING:
    from stint.services.traces.trace_sender import TraceSender

logger = logging.getLogger(__name__)


class Responses:
    """The responses of a tenant. `default_model` is used for requests without a model."""

    def __init__(
        self,
        tenant: str,
        store: Store,
        contexts: Contexts,
        planner: ResponsePlanner,
        reader: DocumentReader,
        default_model: str,
        meters: Meters,
        retention_days: float = 0,
        traces: "TraceSender | None" = None,
    ) -> None:
        self.tenant = tenant
        self.store = store
        self.contexts = contexts
        self.planner = planner
        self.reader = reader
        self.default_model = default_model
        self.meters = meters
        self.retention_days = retention_days
        self.traces = traces

    @metered
    async def start(self, request: CreateResponse, context: RequestContext) -> ResponseRun:
        """Start a response. When this returns, its header is stored and the model call has started.

        The response has the id of the attempt, if that has one.

        Raises:
            NotFound: there is no such conversation.
            Conflict: another response runs in the conversation, or the previous response still runs.
            InvalidRequest: the request refers to something unknown, or needs a feature that its model's provider lacks.
            ContextLengthExceeded: what it continues is too long, and may not be shortened.
            ToolUnavailable: an MCP server cannot list its tools.
            Forbidden: the caller may not use the model.
            RateLimitExceeded, QuotaExceeded: a budget is used up.
            Stopped: the conversation, the caller's key or the tenant was stopped.
        """
        deadline, attempt = context.deadline, context.attempt
        preparing = self.prepare(request, context, new_response_id(attempt))
        admitting = admit_run(find_model=lambda: self.planner.registry.route(request.model or self.default_model))
        made, admitted = await asyncio.gather(preparing, admitting, return_exceptions=True)
        prepared = value_of(made)
        async with released_on_error(prepared.context):
            value_of(admitted)
            if attempt.claim is not None:
                await attempt.claim(prepared.header.response_id)
            response = self.make_run(prepared, deadline, stored=request.store)
            async with response.run.opened():
                await refuse_stopped(*prepared.header.stop_names)
                lease = ForegroundLease(self.store.response_leases, self.tenant, response.response_id)
                await response.log.put_header(lease, self.contexts.lease_seconds, deadline)
        set_on_disconnect(request.on_disconnect)
        if request.store:
            receive_signals(ResponseRef(response.response_id))
            self.contexts.note_previous(prepared.header)
        return response

    async def prepare(
        self, request: CreateResponse, request_context: RequestContext, response_id: str
    ) -> PreparedResponse:
        """Check a request, and read its context, concurrently where possible. Raises as `start` does."""
        attempt = request_context.attempt
        self.refuse_unstored(request)
        require_input(request)
        header = self.new_header(request, response_id, attempt.expires_at)
        resolver = InputResolver(request.input, header.response_id, renew=request.conversation is not None)
        opened, read, planned, _ = await asyncio.gather(
            self.open_context(header, request_context.deadline),
            resolver.read(self.reader, self.contexts.opaque, new_originals(header.settings)),
            self.planner.plan(header.model, header.settings, request.tools, request_context.provider_data, response_id),
            self.contexts.opaque.warm_if(header.settings.signs_items),
            return_exceptions=True,
        )
        context = value_of(opened)
        async with released_on_error(context):
            value_of(read)
            plan = value_of(planned)
            resolved = await resolver.resolve(context.known, self.contexts.find)
            unanswered = [] if request.lenient else unanswered_calls(context, resolved.values())
            if not (context.known or resolved):
                refuse_nothing()
            context.reader.append_items(resolved)
            refuse_too_many_approvals(context.reader.approved)
            refuse_unanswered(unanswered)
            header.set_input(resolved.values())
            opened_plan = await open_container(plan.plan, header, context.containers, resolver.originals)
        context.place(header)
        header.listed = plan.listed
        return PreparedResponse(header, context, replace(plan, plan=opened_plan), attempt)

    def new_header(self, request: CreateResponse, response_id: str, own_end: int = 0) -> ResponseHeader:
        """Return the header of a request. Only the worker needs the servers' full URLs again.

        `own_end` is when the response of a request expires that has waited, in seconds since 1970.
        """
        now, settings = time.time(), request.to_settings()
        expires_at = own_end or self.find_end(now, request)
        record_end(expires_at)
        return ResponseHeader(
            response_id=response_id,
            created_at=int(now),
            model=request.model or self.default_model,
            settings=settings if request.background else masked_settings(settings),
            previous_response_id=request.previous_response_id,
            conversation_id=request.conversation_id,
            background=request.background,
            expires_at=expires_at,
            streamed=request.background and request.stream,
        )

    def find_end(self, now: float, request: CreateResponse) -> int | None:
        """Return when the response of a request expires; None if it does not, or is not stored."""
        return find_end(now, request.expires_after, self.retention_days) if request.store else None

    def refuse_unstored(self, request: CreateResponse) -> None:
        if request.conversation is not None and not request.store:
            raise InvalidRequest("A conversation needs stored responses. Remove conversation or store.", param="store")

    async def open_context(self, header: ResponseHeader, deadline: float, *, again: bool = False) -> Context:
        """Read what a response continues from; a conversation is held for it, `again` by a worker."""
        settings = header.settings
        name_end_user(settings.safety_identifier, settings.user, known_hash=header.user_hash)
        if header.previous_response_id is not None:
            with error_param("previous_response_id"):
                return await self.contexts.from_response(header.previous_response_id, shortens=settings.shortens)
        if header.conversation_id is not None:
            with error_param("conversation"):
                context = await self.contexts.from_conversation(
                    header.conversation_id, header.response_id, deadline, shortens=settings.shortens, again=again
                )
            if context.ledger is not None:
                from stint.spending.session_spending import require_price  # noqa: PLC0415 - few have a budget

                async with released_on_error(context):
                    await require_price(partial(self.planner.registry.route, header.model))
            return context
        return self.contexts.new()

    def make_run(
        self, prepared: PreparedResponse, deadline: float, *, stored: bool, records: Sequence[ResponseRecord] = ()
    ) -> ResponseRun:
        """Make a run, which the caller opens.

        `records` has those of an interrupted run, which are not repeated.
        """
        header, context, conversation, make_line = prepared.header, prepared.context, None, None
        ref, labels = ResponseRef(header.response_id), find_labels()
        describe_run(RunDescription(ref, header.model, labels, header.conversation_id, background=header.background))
        if header.conversation_id is not None:
            make_line = partial(self.store.conversation_line, self.tenant, header.conversation_id)
            lease = context.keeper.lease if context.keeper is not None else None
            end = lease.item.get("expires_at") if lease is not None else None
            conversation = self.contexts.conversations.make_writer(header.conversation_id, end, lease)
        log = ResponseLog(
            self.tenant,
            self.store.responses if stored else None,
            StoredResponse(header, list(records)),
            conversation,
            keepers=[context.keeper] if context.keeper else [],
            sources=context.sources | files_in(header.input) if is_plain(header.settings) else {},
            make_line=make_line,
            attempt=prepared.attempt,
            ledger=context.ledger,
            webhooks=self.contexts.recovery.webhooks,
        )
        if context.ledger is not None:
            for record in records:  # a worker that died may not have renewed the lease since
                context.ledger.note(record.spent)
        reader, plan = context.reader, prepared.plan.plan
        if prepared.plan.cache_keys is not None:
            plan = replace(plan, cache_key=context.cache_key(header, prepared.plan.cache_keys))
        output = OutputItems(header.response_id, header.settings, self.contexts.opaque.encode, header.listed)
        if log.sources:
            output.add_sources(log.sources)
        add_records(reader, output, records)
        run = Run(header.response_id, plan, reader.transcript, log, deadline, reader.approved, reader.later)
        run.history_is_full = self.contexts.is_full(context)
        log.used = lambda: run.usage
        return ResponseRun(run, log, ResponseStream(header, output), storage=make_partial_storage(self.store, log))

    async def run(self, response: ResponseRun) -> AsyncGenerator[ResponseEvent, None]:
        """Run a started response. The last event is the terminal one, and nothing is raised.

        After the first event, `response.error` has the provider's refusal, if there is one.
        """
        await self.note_refusal(response)
        for event in response.stream.emit_created():
            yield event
        async with aclosing(self.run_started(response)) as events:
            async for event in events:
                yield event

    async def run_started(self, response: ResponseRun) -> AsyncGenerator[ResponseEvent, None]:
        """Run a response whose first events have been emitted."""
        stream, log = response.stream, response.log
        try:
            if log.response.ending is None:
                async with aclosing(response_events(response)) as events:
                    async for event in events:
                        yield event
        except StintError as error:
            await end_early(response, error)
        except Exception:
            logger.exception("Unexpected error in a response")
            await end_early(response, Unexpected())
        finally:
            log.stop()
            await self.meters.end()
        for event in stream.emit_ending(log.response):
            yield event

    async def send_trace(self, response: StoredResponse, deadline: float) -> None:
        """Send the trace of a response that has ended, if traces are sent. Nothing is raised.

        `deadline` is that of its run, a time of the event loop's clock.
        """
        if self.traces is None or response.ending is None:
            return
        from stint.services.traces.response_spans import make_trace  # noqa: PLC0415 - few stacks send traces

        await self.traces.send(partial(make_trace, response), deadline)

    async def note_refusal(self, response: ResponseRun) -> None:
        """End a response that the model's provider refuses as failed, and one that is cancelled before as cancelled."""
        try:
            await response.run.wait_until_accepted()
        except StintError as error:
            await end_early(response, error)
        except Exception:
            logger.exception("Unexpected error in a response")
            await end_early(response, Unexpected())


def unanswered_calls(context: Context, resolved: Iterable[StoredItem]) -> list[str]:
    """Return the calls without an output at the end of a context and in the input (`resolved`).

    An output may come before its call. Calls that an earlier request skipped, calls of server tools, and calls of a
    failed response, which its client may not have seen, are not among them.
    """
    functions = context.function_calls - context.excused
    waiting = dict.fromkeys(call_id for call_id in context.reader.transcript.open if call_id in functions)
    early: Counter[str] = Counter()
    for stored in resolved:
        match stored.item:
            case FunctionCall(call_id=call_id) if early[call_id]:
                early[call_id] -= 1
            case FunctionCall(call_id=call_id):
                waiting[call_id] = None
            case FunctionCallOutput(call_id=call_id) if call_id in waiting:
                del waiting[call_id]
            case FunctionCallOutput(call_id=call_id):
                early[call_id] += 1
    return list(waiting)


def refuse_unanswered(call_ids: Iterable[str]) -> None:
    """Raise InvalidRequest with OpenAI's message for the first of these calls."""
    for call_id in call_ids:
        raise InvalidRequest(
            f"No tool output found for function call {call_id}.", code="missing_tool_output", param="input"
        )
