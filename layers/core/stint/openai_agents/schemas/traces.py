"""Traces of OpenAI's Agents API."""

from typing import Literal

from stint.domain.schema import Schema
from stint.domain.traces import TraceDocument


class AgentTraceObject(Schema):
    """The trace of a turn that has ended, whose id it has. `otlp` is an ExportTraceServiceRequest in JSON."""

    id: str
    object: Literal["agent.session.trace"] = "agent.session.trace"
    session_id: str
    created_at: int
    otlp: TraceDocument
