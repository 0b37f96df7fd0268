import pytest
from tests.script_model import called, said, script
from tests.services.conftest import MakeWorkerFixture
from tests.services.responses.responder import Responder
from tests.services.worker_fixture import MCP_TOOL
from tests.store.conftest import Cloud

WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem")


def write_units(cloud: Cloud) -> float:
    return sum(cloud.units[name] for name in WRITES)


@pytest.fixture
async def warm(make_worker_fixture: MakeWorkerFixture) -> Responder:
    """A process that has answered before."""
    responder = Responder(make_worker_fixture(script(*(said() for _ in range(60)))))
    await responder.respond(store=False)
    return responder


async def test_a_plain_response_costs_three_write_units_in_two_calls_and_reads_nothing(warm: Responder) -> None:
    warm.cloud.forget()

    await warm.respond()

    assert warm.cloud.calls == {"BatchWriteItem": 1, "PutItem": 1}
    assert write_units(warm.cloud) == 3


async def test_a_streamed_response_costs_the_same(warm: Responder) -> None:
    warm.cloud.forget()

    await warm.respond(stream=True)

    assert warm.cloud.calls == {"BatchWriteItem": 1, "PutItem": 1}


async def test_a_response_that_is_not_stored_costs_nothing(warm: Responder) -> None:
    warm.cloud.forget()

    await warm.respond(store=False)

    assert warm.cloud.calls == {}


async def test_a_step_more_costs_a_unit_more(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(said(), called("buy"), said())))
    await responder.respond(store=False)
    responder.cloud.forget()

    await responder.respond(tools=[MCP_TOOL])

    assert responder.cloud.calls == {"BatchWriteItem": 1, "PutItem": 3}
    assert write_units(responder.cloud) == 5


async def test_a_link_costs_one_round_of_reads_more(warm: Responder) -> None:
    first = (await warm.respond()).response.id
    warm.cloud.forget()

    await warm.respond(previous_response_id=first)

    assert warm.cloud.calls == {"Query": 1, "BatchWriteItem": 1, "PutItem": 1}
    assert write_units(warm.cloud) == 3


async def test_references_cost_a_query_for_each_response_that_they_lead_to(warm: Responder) -> None:
    items = [(await warm.respond()).response.output[0].id for _ in range(2)]
    told = [{"type": "item_reference", "id": item} for item in (*items, items[0])]
    warm.cloud.forget()

    with warm.cloud.proxy.held_in_rounds(["Query"] * 2, ["BatchWriteItem"]):
        run = await warm.start([*told, {"role": "user", "content": "go"}])

    assert warm.cloud.calls == {"Query": 2, "BatchWriteItem": 1}
    await warm.play(run)


async def test_a_response_in_a_conversation_costs_its_items_and_its_lock(warm: Responder) -> None:
    conversation = await warm.conversation()
    warm.cloud.forget()

    await warm.respond(conversation=conversation)

    assert warm.cloud.calls == {"UpdateItem": 2, "Query": 1, "BatchWriteItem": 2, "PutItem": 1, "GetItem": 1}
    assert write_units(warm.cloud) == 7  # 3 as ever, 2 for the lock, 2 for the items


async def test_a_chain_is_read_in_a_round_after_its_last_link_and_stores_each_item_once(
    warm: Responder, tenant: str
) -> None:
    last, words = "", "plums and pears " * 20
    for number in range(20):
        said = f"{number} {words}"
        last = (await warm.respond(said, **({"previous_response_id": last} if last else {}))).response.id
    warm.cloud.forget()

    rounds = [["Query"] * links for links in (1, 19)]
    with warm.cloud.proxy.held_in_rounds(*rounds, ["BatchWriteItem"]) as seen:
        run = await warm.start("end", previous_response_id=last)

    assert seen["Query"] == 20
    chain = await warm.cloud.store.responses.chain(tenant, last)
    sizes = [link.size for link in chain.links]
    assert max(sizes) < 2 * min(sizes)
    assert sum(sizes) < 20 * 2 * (len(words) + 800)
    await warm.play(run)


async def test_a_long_input_does_not_make_the_list_entry_long(warm: Responder, tenant: str) -> None:
    await warm.respond("x" * 50_000)

    entries = [item for item in warm.cloud.items(tenant) if item["sk"]["S"].startswith("resp_")]

    assert max(len(str(item)) for item in entries) < 300
