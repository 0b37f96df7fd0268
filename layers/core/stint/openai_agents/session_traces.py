"""The traces of a session in OpenAI's Agents API: one for each turn that has ended."""

import asyncio

from stint.openai_agents.lists import ListWindow, TurnLists
from stint.openai_agents.schemas.traces import AgentTraceObject
from stint.openai_agents.session_reader import SessionReader, SessionView
from stint.openai_agents.turns import seconds_of
from stint.services.traces.trace_form import make_shown_form
from stint.services.traces.turn_spans import has_ended, make_trace

MAX_BYTES = 16 * 1024 * 1024
"""Bytes of JSON of a page of traces, as OpenAI limits them. One trace is not larger."""


async def list_traces(
    reader: SessionReader, view: SessionView, window: ListWindow, service: str
) -> tuple[list[AgentTraceObject], bool]:
    """Return traces of a session, and whether others follow. `service` is the name of the service in them.

    Raises NotFound if `after` is not the id of a turn.
    """
    # One more, because the newest turn may not have ended: a page of that turn alone would be empty, and the last one.
    found, more = await TurnLists(reader).read_turns(view, window, window.limit + 1)
    ended = list(filter(has_ended, found))
    more = more or len(ended) > window.limit
    traces: list[AgentTraceObject] = []
    size = 0
    for turn in ended[: window.limit]:
        otlp = await asyncio.to_thread(make_trace, turn, view.agent_id, view.config, make_shown_form(service))
        header = turn.header
        trace = AgentTraceObject(
            id=header.turn_id, session_id=view.session_id, created_at=seconds_of(header.started_at), otlp=otlp
        )
        size += len(trace.to_json())
        if traces and size > MAX_BYTES:
            return traces, True
        traces.append(trace)
    return traces, more
