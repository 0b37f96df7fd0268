"""Sending of traces: to all receivers, in a short time, and without an exception."""

import asyncio
import logging
from dataclasses import dataclass, field

import pytest
from tests.clock import CLOCK
from tests.script_model import deadline

from stint.domain.known_secrets import begin_request, remember
from stint.domain.traces import TraceDocument
from stint.request_totals import begin_totals
from stint.services.traces.trace_form import TraceForm, make_sent_form
from stint.services.traces.trace_sender import SPARE_SECONDS, TraceSender

FORM = make_sent_form("shop", content=False)


def make(form: TraceForm) -> TraceDocument:
    return TraceDocument.of(form.service, [])


def fail(_: TraceForm) -> TraceDocument:
    raise KeyError("broken")


@dataclass
class Receiver:
    """A receiver, which may fail or wait."""

    name: str = "test"
    error: Exception | None = None
    gate: asyncio.Event | None = None
    bodies: list[bytes] = field(default_factory=list)

    async def receive(self, body: bytes) -> None:
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        self.bodies.append(body)


async def test_a_failing_receiver_keeps_nothing_from_the_others(caplog: pytest.LogCaptureFixture) -> None:
    totals, other = begin_totals(), Receiver()
    sender = TraceSender([Receiver("first", OSError("no route")), other], FORM, 2)

    with caplog.at_level(logging.WARNING):
        await sender.send(make, deadline(30))

    assert other.bodies == [make(FORM).to_json()]
    assert totals.lost_traces == 1
    [line] = caplog.records
    assert (line.message, line.__dict__["receiver"], line.__dict__["error"]) == (
        "A trace was lost",
        "first",
        "no route",
    )


async def test_a_silent_receiver_loses_the_trace() -> None:
    totals = begin_totals()
    sending = asyncio.create_task(TraceSender([Receiver(gate=asyncio.Event())], FORM, 2).send(make, deadline(30)))
    await asyncio.sleep(0)

    CLOCK.move(3)
    await asyncio.wait_for(sending, 30)

    assert totals.lost_traces == 1


async def test_a_run_at_its_deadline_has_a_second_for_its_trace() -> None:
    totals, receiver = begin_totals(), Receiver()

    await TraceSender([Receiver(gate=asyncio.Event())], FORM, 2).send(make, deadline(-SPARE_SECONDS))
    await TraceSender([receiver], FORM, 2).send(make, deadline(0))

    assert (totals.lost_traces, len(receiver.bodies)) == (1, 1)


async def test_a_trace_that_cannot_be_made_is_lost() -> None:
    totals, receiver = begin_totals(), Receiver()

    await TraceSender([receiver], FORM, 2).send(fail, deadline(30))

    assert (totals.lost_traces, receiver.bodies) == (1, [])


async def test_names_are_redacted_too() -> None:
    begin_request()
    remember({"secret-of-a-caller"})
    receiver = Receiver()

    await TraceSender([receiver], make_sent_form("secret-of-a-caller", content=False), 2).send(make, deadline(30))

    [body] = receiver.bodies
    assert b'"***"' in body
    assert b"secret-of-a-caller" not in body
