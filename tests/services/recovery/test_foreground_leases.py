"""The lease of a foreground response, by which readers know whether its process lives."""

import asyncio
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import called, said, script, until
from tests.services.conftest import MakeWorkerFixture
from tests.services.deaths import counting, die_at
from tests.services.polling import poll_until
from tests.services.responses.responder import Responder
from tests.services.worker_fixture import MCP_TOOL
from tests.store.conftest import Cloud

from stint.domain.errors import NotFound
from stint.domain.openai.response_resource import Response
from stint.domain.openai.stored_responses import ResponseStatus

LEASE = 30.0


def leases(cloud: Cloud, tenant: str) -> list[dict[str, Any]]:
    return [item for item in cloud.items(tenant) if item["sk"]["S"] == "lease"]


async def newest(responder: Responder) -> Response:
    """Return the newest response as a list shows it."""
    listed = await responder.worker_fixture.services.stored_responses.list(None, 1, None, "desc")
    return listed.data[0]


async def test_a_response_whose_process_died_at_any_call_has_failed_after_the_lease_time(
    make_worker_fixture: MakeWorkerFixture, cloud: Cloud
) -> None:
    def make_responder() -> Responder:
        return Responder(make_worker_fixture(script(called("buy"), called("sell"), said()), lease=LEASE))

    with counting(cloud) as seen:
        await make_responder().respond(tools=[MCP_TOOL], seconds=900)
    assert seen.count("PutItem") == 5

    for call in range(seen.count("PutItem")):
        responder = make_responder()
        await die_at(cloud, "PutItem", call, lambda own=responder: own.respond(tools=[MCP_TOOL], seconds=900))  # type: ignore[misc]
        alive = await newest(responder)
        CLOCK.move(LEASE + 1)
        died = await newest(responder)

        assert alive.status is ResponseStatus.in_progress
        assert (died.id, died.status) == (alive.id, ResponseStatus.failed)


async def test_a_response_that_lives_is_in_progress_for_as_long_as_it_runs(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script(called("buy"), said()), lease=LEASE)
    worker_fixture.fake_mcp.gates["buy"] = asyncio.Event()
    responder = Responder(worker_fixture)
    run = await responder.start(tools=[MCP_TOOL], seconds=900)
    playing = asyncio.create_task(responder.play(run))
    await until(lambda: worker_fixture.fake_mcp.calls == ["buy"])

    for _ in range(6):
        ends = (await responder.stored(run.response_id)).lease_until
        CLOCK.move(LEASE / 3)

        async def is_renewed(ends: int | None = ends) -> bool:
            return (await responder.stored(run.response_id)).lease_until != ends

        await poll_until(is_renewed)
        assert (await responder.get(run.response_id)).status is ResponseStatus.in_progress
    worker_fixture.fake_mcp.gates["buy"].set()

    assert (await playing).response.status is ResponseStatus.completed
    assert (await responder.get(run.response_id)).status is ResponseStatus.completed


async def test_a_response_that_was_renewed_has_failed_a_lease_time_after_the_last_renewal(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script(called("buy")), lease=LEASE)
    worker_fixture.fake_mcp.gates["buy"] = asyncio.Event()
    responder = Responder(worker_fixture)
    run = await responder.start(tools=[MCP_TOOL], seconds=900)
    playing = asyncio.create_task(responder.play(run))
    await until(lambda: worker_fixture.fake_mcp.calls == ["buy"])
    CLOCK.move(LEASE / 3)

    async def is_renewed() -> bool:
        return (await responder.stored(run.response_id)).lease_until is not None

    await poll_until(is_renewed)
    worker_fixture.stop_database()
    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)
    worker_fixture.restart_database()

    with CLOCK.stop():
        CLOCK.move_to(round(run.log.response.header.until * 1000))
        assert (await responder.get(run.response_id)).status is ResponseStatus.in_progress
        CLOCK.move_to((await responder.stored(run.response_id)).lease_until)
    died = await responder.get(run.response_id)
    assert (died.status, died.error and died.error.code) == (ResponseStatus.failed, "interrupted")


async def test_a_short_response_writes_no_lease_and_its_read_is_one_query(
    make_worker_fixture: MakeWorkerFixture, cloud: Cloud, tenant: str
) -> None:
    responder = Responder(make_worker_fixture(script(said())))
    response_id = (await responder.respond(seconds=900)).response.id
    cloud.forget()

    await responder.get(response_id)

    assert cloud.calls == {"Query": 1}
    assert leases(cloud, tenant) == []


async def test_a_response_that_is_deleted_while_it_runs_loses_its_lease_and_leaves_only_seals(
    make_worker_fixture: MakeWorkerFixture, cloud: Cloud, tenant: str
) -> None:
    worker_fixture = make_worker_fixture(script(called("buy"), said()), lease=LEASE)
    worker_fixture.fake_mcp.gates["buy"] = asyncio.Event()
    responder = Responder(worker_fixture)
    run = await responder.start(tools=[MCP_TOOL], seconds=900)
    playing = asyncio.create_task(responder.play(run))
    await until(lambda: worker_fixture.fake_mcp.calls == ["buy"])

    await worker_fixture.services.stored_responses.delete(run.response_id)
    CLOCK.move(LEASE / 3)
    keeper = run.log.renewal
    assert keeper is not None
    await until(lambda: keeper.renewal and keeper.renewal.done())
    worker_fixture.fake_mcp.gates["buy"].set()

    assert (await playing).response.status is ResponseStatus.failed
    with pytest.raises(NotFound):
        await responder.get(run.response_id)
    assert all("sealed_at" in item for item in cloud.items(tenant) if "response" in item["pk"]["S"])
