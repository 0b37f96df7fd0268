"""Turns as HTTP answers: a stream of events, or one JSON document that may take its time."""

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

from fastapi import Response
from fastapi.responses import StreamingResponse

from stint.domain.llama_stack.events import Event, TerminalEvent, TurnAwaitingInput, TurnComplete, TurnFailed
from stint.http.heartbeats import with_heartbeats
from stint.http.sse import COMMENT, encode_all
from stint.services.turns.turn_run import TurnRun

T = TypeVar("T")
SPACE = b" "


async def answer_streaming(turn: TurnRun, events: AsyncIterator[Event], heartbeat_seconds: float) -> Response:
    """Answer with server-sent events, and a comment whenever the turn is silent for long.

    Raises:
        StintError: the turn failed before its first event.
    """
    events = await begin(events, heartbeat_seconds)
    if turn.error is not None:
        await last_of(events)
        raise turn.error
    return StreamingResponse(
        with_heartbeats(encode_all(events), COMMENT, heartbeat_seconds),
        media_type="text/event-stream",
        headers={"x-accel-buffering": "no"},
    )


async def begin(events: AsyncIterator[T], seconds: float) -> AsyncIterator[T]:
    """Wait for the first of some events, `seconds` at most; return all of them."""

    async def read() -> T:
        return await anext(events)

    async def read_all() -> AsyncIterator[T]:
        yield await first
        async for event in events:
            yield event

    first = asyncio.create_task(read())
    await asyncio.wait({first}, timeout=seconds)
    return read_all()


async def answer_buffered(events: AsyncIterator[Event], heartbeat_seconds: float) -> Response:
    """Answer with the turn; one that takes long begins with spaces, which JSON ignores, to keep the connection open.

    Raises:
        StintError: the turn failed before the first space left.
    """
    last = asyncio.create_task(last_of(events))
    done, _ = await asyncio.wait({last}, timeout=heartbeat_seconds)
    if done:
        event = last.result()
        if isinstance(event, TurnFailed):
            raise event.error
        return Response(event.turn.to_json(), media_type="application/json")
    return StreamingResponse(
        with_heartbeats(encode_turn(last), SPACE, heartbeat_seconds), media_type="application/json"
    )


async def last_of(events: AsyncIterator[Event]) -> TerminalEvent:
    """Fold a run into its terminal event: it has exactly one, at its end."""
    terminal = [event async for event in events if isinstance(event, TurnComplete | TurnAwaitingInput | TurnFailed)]
    [event] = terminal
    return event


async def encode_turn(last: "asyncio.Task[TerminalEvent]") -> AsyncIterator[bytes]:
    yield SPACE
    event = await asyncio.shield(last)
    yield event.turn.to_json()
