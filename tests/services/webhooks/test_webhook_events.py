"""Announcements of turns, sessions and responses, and their costs."""

import asyncio

import pytest
from tests.clock import CLOCK
from tests.script_model import called, deadline, said, script, until
from tests.services.conftest import MakeTurnFixture, MakeWorkerFixture
from tests.services.turn_fixture import die
from tests.services.turns.test_approved_calls import FakeServers, Shop
from tests.services.webhooks.webhook_fixture import WebhookFixture, types_of
from tests.services.worker_fixture import WorkerFixture
from tests.store.conftest import Cloud

from stint.dataclasses import replace
from stint.domain.errors import ModelError, StoreUnavailable
from stint.domain.inference import Finished, FinishReason, TextChunk
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.stored_responses import ResponseStatus
from stint.domain.webhooks import UpdateWebhookEndpoint
from stint.services.runs.run_handle import RequestContext

URL = "http://127.0.0.1:9/hook"
IDLE, RUNNING = "agent.session.idle", "agent.session.in_progress"


@pytest.fixture
async def endpoint_id(webhooks: WebhookFixture) -> str:
    """Return the id of an endpoint for all events, which is there before the processes start."""
    return (await webhooks.create(URL)).id


@pytest.mark.usefixtures("endpoint_id")
async def test_a_turn_announces_its_start_and_its_end(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(said())).open()
    turn = await fixture.turn()
    sent = fixture.inbox.webhooks

    assert types_of(sent) == ["agent.session.created", RUNNING, "agent.session.turn.completed", IDLE]
    of_session = {"id": fixture.session_id, "environment_type": "none"}
    assert [task.data for task in sent] == [
        of_session,
        of_session,
        {
            "id": turn.turn_id,
            "session_id": fixture.session_id,
            "agent_id": fixture.agent_id,
            "status": "completed",
        },
        of_session,
    ]
    assert {task.tenant for task in sent} == {fixture.tenant}
    assert len({task.event_id for task in sent}) == 4


@pytest.mark.usefixtures("endpoint_id")
async def test_a_turn_that_waits_for_its_client_announces_the_action(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(called("add"), called("add"), said())).open("add")
    turn = await fixture.turn()
    await fixture.resumed(turn.turn_id, ("c0", "1"))
    sent = fixture.inbox.webhooks[1:]

    asked = "agent.session.action_required"
    assert types_of(sent) == [RUNNING, asked, RUNNING, asked]
    assert sent[1].data == {"id": fixture.session_id, "required_action": {"type": "function_call"}}
    assert len({task.event_id for task in sent}) == 4


@pytest.mark.usefixtures("endpoint_id")
@pytest.mark.parametrize(
    ("calls", "action"), [(("drop", "ask"), "mcp_approval_request"), (("ask", "drop"), "function_call")]
)
async def test_the_first_waiting_call_names_the_required_action(
    cloud: Cloud, tenant: str, calls: tuple[str, ...], action: str
) -> None:
    shop = Shop(cloud, tenant, FakeServers())
    fixture = await shop.open(script(called(*calls)))
    await fixture.turn()

    assert fixture.inbox.webhooks[-1].data == {"id": fixture.session_id, "required_action": {"type": action}}


@pytest.mark.usefixtures("endpoint_id")
async def test_a_failed_turn_is_announced(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script([TextChunk("I"), ModelError("no")])).open()
    await fixture.play(await fixture.start())

    assert types_of(fixture.inbox.webhooks)[2:] == ["agent.session.turn.failed", IDLE]


@pytest.mark.usefixtures("endpoint_id")
async def test_the_next_turn_announces_one_whose_process_died(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script([TextChunk("I"), asyncio.Event()], said())).open()
    dead = await fixture.start()
    await die(dead)
    fixture.inbox.webhooks.clear()
    turn = await fixture.turn()
    failed, idle, running, completed, _ = fixture.inbox.webhooks

    assert (failed.type, failed.data["id"]) == ("agent.session.turn.failed", dead.turn_id)
    assert (completed.type, completed.data["id"]) == ("agent.session.turn.completed", turn.turn_id)
    assert (idle.type, running.type) == (IDLE, RUNNING)


@pytest.mark.usefixtures("endpoint_id")
async def test_a_cancelled_turn_is_announced(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(called("add"))).open("add")
    turn = await fixture.turn()
    fixture.inbox.webhooks.clear()
    await fixture.services.turn_requests.cancellation.cancel(fixture.agent_id, fixture.session_id, turn.turn_id)

    assert types_of(fixture.inbox.webhooks) == ["agent.session.turn.cancelled", IDLE]


@pytest.mark.usefixtures("endpoint_id")
async def test_a_waiting_turn_that_another_one_replaces_is_announced(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(called("add"), said())).open("add")
    first = await fixture.turn()
    fixture.inbox.webhooks.clear()
    await fixture.turn()
    cancelled = fixture.inbox.webhooks[0]

    assert (cancelled.type, cancelled.data["id"]) == ("agent.session.turn.cancelled", first.turn_id)


async def test_an_endpoint_gets_the_types_that_it_names(
    webhooks: WebhookFixture, make_turn_fixture: MakeTurnFixture
) -> None:
    wanted = await webhooks.create(URL, IDLE)
    await webhooks.create(URL, "response.completed")
    disabled = await webhooks.create(URL, IDLE)
    await webhooks.endpoints.update(disabled.id, UpdateWebhookEndpoint(status="disabled"))
    fixture = await make_turn_fixture(script(said())).open()
    await fixture.turn()

    assert [(task.type, task.endpoint_id) for task in fixture.inbox.webhooks] == [(IDLE, wanted.id)]


async def test_a_warm_process_learns_of_an_endpoint_within_a_minute(
    webhooks: WebhookFixture, make_turn_fixture: MakeTurnFixture
) -> None:
    fixture = await make_turn_fixture(script(said(), said())).open()
    await fixture.turn()
    await webhooks.create(URL, IDLE)
    CLOCK.move(61)
    await fixture.turn()

    assert types_of(fixture.inbox.webhooks) == [IDLE]


async def test_a_tenant_without_endpoints_pays_nothing(make_turn_fixture: MakeTurnFixture, cloud: Cloud) -> None:
    fixture = await make_turn_fixture(script(said(), said())).open()
    await fixture.turn()
    cloud.forget()
    await fixture.turn()

    assert cloud.calls == {"UpdateItem": 2, "PutItem": 2, "GetItem": 2}
    assert fixture.inbox.webhooks == []


@pytest.mark.usefixtures("endpoint_id")
async def test_a_tenant_with_endpoints_pays_one_query_per_turn(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud
) -> None:
    fixture = await make_turn_fixture(script(said(), said())).open()
    await fixture.turn()
    cloud.forget()
    await fixture.turn()

    assert cloud.calls == {"UpdateItem": 2, "PutItem": 2, "GetItem": 2, "Query": 1}
    assert cloud.units["PutItem"] + cloud.units["UpdateItem"] == 4


@pytest.mark.usefixtures("endpoint_id")
async def test_a_queue_that_fails_fails_no_turn(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    fixture = await make_turn_fixture(script(said())).open()
    webhooks = replace(fixture.turns.opener.webhooks, send=refuse_all)
    fixture.turns.opener = replace(fixture.turns.opener, webhooks=webhooks)

    assert (await fixture.turn()).status == "completed"


class Died(BaseException):
    """The process ends."""


@pytest.mark.usefixtures("endpoint_id")
async def test_a_death_before_the_message_loses_the_webhook_alone(make_turn_fixture: MakeTurnFixture) -> None:
    async def die_now(_: object) -> None:
        raise Died

    fixture = await make_turn_fixture(script(said(), said())).open()
    turn = await fixture.start()
    turn.log.webhooks = replace(turn.log.webhooks, send=die_now)
    with pytest.raises(Died):
        await fixture.play(turn)
    fixture.inbox.webhooks.clear()
    await fixture.turn()

    assert [each.status for each in await fixture.stored()] == ["completed", "completed"]
    assert types_of(fixture.inbox.webhooks) == [RUNNING, "agent.session.turn.completed", IDLE]


@pytest.mark.usefixtures("endpoint_id")
async def test_the_worker_announces_a_background_response_again_if_it_repeats(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    fixture = make_worker_fixture(script(said()))
    response_id = await fixture.create()
    await fixture.run(response_id)
    await fixture.run(response_id)
    first, second = fixture.queue.webhooks

    assert (first.type, first.data) == ("response.completed", {"id": response_id})
    assert second.event_id == first.event_id


@pytest.mark.usefixtures("endpoint_id")
async def test_a_cancelled_background_response_is_announced(make_worker_fixture: MakeWorkerFixture) -> None:
    fixture = make_worker_fixture(script())
    response_id = await fixture.create()
    await fixture.services.response_requests.cancellation.cancel(response_id)
    await fixture.run(response_id)

    assert types_of(fixture.queue.webhooks) == ["response.cancelled"]


@pytest.mark.usefixtures("endpoint_id")
async def test_a_background_task_fails_if_its_webhook_is_refused(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    fixture = make_worker_fixture(script(said()))
    response_id, recovery = await fixture.create(), fixture.worker.recovery
    refusing = replace(recovery, webhooks=replace(recovery.webhooks, send=refuse_all))
    with pytest.raises(StoreUnavailable):
        await replace(fixture.worker, recovery=refusing).handle(response_id, deadline(30))
    await fixture.run(response_id)

    assert types_of(fixture.queue.webhooks) == ["response.completed"]


async def refuse_all(*_: object) -> None:
    raise StoreUnavailable("The queue is closed.")


async def respond(fixture: WorkerFixture, **fields: object) -> str:
    """Run a response in the foreground, and return its id."""
    request = CreateResponse.model_validate({"model": "test/m", "input": "Hello"} | fields)
    response = await fixture.services.responses.start(request, RequestContext(deadline(30)))
    async for _ in fixture.services.responses.run(response):
        pass
    return response.response_id


@pytest.mark.usefixtures("endpoint_id")
async def test_a_foreground_response_is_announced_if_it_is_stored(make_worker_fixture: MakeWorkerFixture) -> None:
    fixture = make_worker_fixture(script(said(), said(), [ModelError("no")]))
    stored = await respond(fixture)
    await respond(fixture, store=False)
    failed = await respond(fixture)

    assert [(task.type, task.data["id"]) for task in fixture.queue.webhooks] == [
        ("response.completed", stored),
        ("response.failed", failed),
    ]


@pytest.mark.usefixtures("endpoint_id")
async def test_an_incomplete_response_is_announced(make_worker_fixture: MakeWorkerFixture) -> None:
    fixture = make_worker_fixture(script([TextChunk("I"), Finished(FinishReason.length)]))
    await respond(fixture)

    assert types_of(fixture.queue.webhooks) == ["response.incomplete"]


@pytest.mark.usefixtures("endpoint_id")
async def test_the_reader_of_a_response_whose_process_died_announces_it(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    model = script([TextChunk("I"), asyncio.Event()])
    fixture = make_worker_fixture(model)
    request = CreateResponse.model_validate({"model": "test/m", "input": "Hello"})
    response = await fixture.services.responses.start(request, RequestContext(deadline(30)))
    await until(lambda: len(model.requests) == 1)
    response.log.stop()
    await response.run.close_inference()
    CLOCK.move(60)
    for _ in range(2):
        assert (await fixture.get(response.response_id)).status is ResponseStatus.failed

    assert types_of(fixture.queue.webhooks) == ["response.failed"]
