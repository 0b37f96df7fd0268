"""Traces of responses, as callers read them. Nothing is stored for them."""

import asyncio

from stint.dataclasses import dataclass
from stint.domain.errors import Conflict
from stint.domain.traces import TraceDocument
from stint.services.responses.read import ResponseReader
from stint.services.traces.response_spans import make_trace
from stint.services.traces.trace_form import make_shown_form


@dataclass(frozen=True, slots=True)
class ResponseTraces:
    """The traces of a tenant's responses. `service` is the name of the service in them."""

    reader: ResponseReader
    service: str

    async def read(self, response_id: str) -> TraceDocument:
        """Return the trace of a response.

        Raises:
            NotFound: there is no such response.
            Conflict: the response has not ended.
        """
        stored = await self.reader.read(response_id)
        if stored.ending is None:
            told = f"Response {response_id} is {stored.status.value}. It has a trace when it has ended."
            raise Conflict(told, code="run_not_ended")
        return await asyncio.to_thread(make_trace, stored, make_shown_form(self.service))
