"""Sending of traces, after the last event of their runs.

A trace is lost rather than late. The answer of its run has been sent, and a slow receiver would keep the process from
its next request, so each receiver has a short time and one attempt. Whatever fails is one log line and the metric
TracesLost, and nothing is raised.

What leaves the stack is redacted as log lines are: each text before it is cut, and the whole document at last.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from stint.dataclasses import dataclass
from stint.domain.traces import TraceDocument
from stint.request_totals import count_lost_trace
from stint.services.traces.trace_form import TraceForm

logger = logging.getLogger(__name__)

SPARE_SECONDS = 1.0
"""Seconds after the deadline of a run that its trace may take. A function ends 2 s after it."""


class TraceReceiver(Protocol):
    """A server that receives traces. `name` identifies it in log lines."""

    name: str

    async def receive(self, body: bytes) -> None:
        """Send a document in OTLP/JSON. Raises any exception if it was not accepted."""
        ...


@dataclass(frozen=True, slots=True)
class TraceSender:
    """Sends the traces of runs to all receivers at once, within `seconds`."""

    receivers: Sequence[TraceReceiver]
    form: TraceForm
    seconds: float

    async def send(self, make: Callable[[TraceForm], TraceDocument], deadline: float) -> None:
        """Send the trace that `make` returns. Nothing is raised.

        `deadline` is that of the run, a time of the event loop's clock.
        """
        until = min(asyncio.get_running_loop().time() + self.seconds, deadline + SPARE_SECONDS)
        try:
            # In a thread, because the trace of a long run takes a while, and other requests may run.
            body = await asyncio.to_thread(self.write, make)
        except Exception:
            logger.exception("A trace could not be made")
            count_lost_trace()
            return
        await asyncio.gather(*(deliver(receiver, body, until) for receiver in self.receivers))

    def write(self, make: Callable[[TraceForm], TraceDocument]) -> bytes:
        """Return the document of a trace, without the credentials of the current request."""
        return self.form.clean(make(self.form).to_json().decode()).encode()


async def deliver(receiver: TraceReceiver, body: bytes, until: float) -> None:
    """Send a trace to one receiver. Nothing is raised."""
    try:
        async with asyncio.timeout_at(until):
            await receiver.receive(body)
    except Exception as error:  # noqa: BLE001 - a trace must not fail what it tells of
        told = str(error) or type(error).__name__
        logger.warning("A trace was lost", extra={"receiver": receiver.name, "error": told})
        count_lost_trace()
