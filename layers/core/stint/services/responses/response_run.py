"""A running response."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from stint.caller import NO_ATTEMPT, RequestAttempt
from stint.dataclasses import dataclass, field
from stint.domain.errors import StintError
from stint.domain.openai.response_events import ResponseEvent
from stint.domain.openai.stored_responses import ResponseHeader
from stint.domain.run_events import RunEnded
from stint.loop.agent_loop import run_loop
from stint.loop.next_step import RunTools
from stint.loop.run import Run
from stint.loop.running_step import RunningStep
from stint.services.responses.event_stream import ResponseStream
from stint.services.responses.links import Context
from stint.services.responses.planner import ResponsePlan
from stint.services.responses.response_log import ResponseLog
from stint.services.runs.partial_writer import PartialStorage, PartialWriter, make_storage
from stint.store.store import Store

if TYPE_CHECKING:
    from stint.store.keys import PartialPlace


@dataclass(slots=True)
class ResponseRun:
    """A started response. `error` is its error, and `running` the step that is streamed.

    Parts of a step that runs long go into `storage`, if it has one.
    """

    run: Run
    log: ResponseLog
    stream: ResponseStream
    error: StintError | None = None
    running: RunningStep = field(default_factory=RunningStep)
    storage: PartialStorage | None = None

    @property
    def response_id(self) -> str:
        return self.log.response_id

    @property
    def has_effects(self) -> bool:
        """Whether a retry would repeat effects: the response is stored, or has run tools."""
        return self.log.store is not None or bool(self.log.response.records) or self.run.tool_calls > 0


@dataclass(frozen=True, slots=True)
class PreparedResponse:
    """A checked response that can start, with the lease on its conversation."""

    header: ResponseHeader
    context: Context
    plan: ResponsePlan
    attempt: RequestAttempt = NO_ATTEMPT


async def response_events(response: ResponseRun, first: RunTools | None = None) -> AsyncGenerator[ResponseEvent, None]:
    """Run the loop, and yield its events but the last one; `first` is what is left of an answer that broke off.

    Raises:
        StintError: the run failed; what was stored before is kept.
    """
    writer = PartialWriter(response.running, response.storage)
    try:
        async with aclosing(run_loop(response.run, first)) as events:
            async for event in events:
                writer.add_event(event)
                if not isinstance(event, RunEnded):
                    for emitted in response.stream.emit_loop_event(event, response.log.details):
                        yield emitted
    finally:
        await writer.close()


def find_partials(log: ResponseLog) -> "PartialPlace":
    """Return where the parts of a response's unfinished steps are stored."""
    from stint.store.keys import response_partials  # noqa: PLC0415 - few steps run long

    return response_partials(log.tenant, log.response_id)


def make_partial_storage(store: Store, log: ResponseLog) -> PartialStorage | None:
    """Return where parts of a response's steps are stored while they run; None if it is not stored, or background."""
    header = log.response.header
    if log.store is None or header.background:
        return None
    return make_storage(store, partial(find_partials, log), log.check, header.expires_at)
