"""The services of many tenants in one process."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from stint.bootstrap.agents import AgentsComposition
from stint.bootstrap.restore import MOST_TENANTS, per_tenant
from stint.settings import Settings


class Services:
    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self.gate = asyncio.Event()

    async def stream(self) -> AsyncIterator[str]:
        yield f"{self.tenant} begins"
        await self.gate.wait()
        yield f"{self.tenant} ends"


def test_the_services_of_a_tenant_are_made_once() -> None:
    make = per_tenant(Services)

    assert make("acme") is make("acme")
    assert make("acme") is not make("zoo")


async def test_a_stream_in_flight_outlives_the_services_that_a_process_keeps() -> None:
    make = per_tenant(Services)
    acme = make("acme")
    stream = acme.stream()
    begin = await anext(stream)

    for number in range(MOST_TENANTS):
        make(f"t{number}")
    acme.gate.set()

    assert (begin, await anext(stream)) == ("acme begins", "acme ends")
    assert make("acme") is not acme


def test_a_composition_keeps_the_tenants_last_used_and_what_they_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    composition = AgentsComposition(lambda: Settings(table="t", bucket="b", scripted_models=True))
    first = composition.make_services("t0")

    for number in range(1, MOST_TENANTS):
        composition.make_services(f"t{number}")
    assert composition.make_services("t0") is first
    composition.make_services("another")

    assert composition.make_services("t0") is first
    assert composition.make_services("t0").turns.store is composition.make_services("another").turns.store
    assert composition.make_services.cache_info().currsize == MOST_TENANTS  # type: ignore[attr-defined]
