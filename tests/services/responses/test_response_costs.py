import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.script_model import called, said, script
from tests.services.conftest import MakeWorkerFixture
from tests.services.responses.responder import Responder
from tests.services.worker_fixture import MCP_TOOL
from tests.store.conftest import Cloud
from tests.store.response_samples import Responder as StoreResponder

WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem")

STOPS_READ = {"GetItem": 1}
"""The call with which each run begins: half a read unit."""


def write_units(cloud: Cloud) -> float:
    return sum(cloud.units[name] for name in WRITES)


@pytest.fixture
async def warm(make_worker_fixture: MakeWorkerFixture) -> Responder:
    """A process that has answered before."""
    responder = Responder(make_worker_fixture(script(*(said() for _ in range(60)))))
    await responder.respond(store=False)
    return responder


async def test_a_plain_response_costs_three_write_units_in_two_calls_and_reads_only_the_stops(warm: Responder) -> None:
    warm.cloud.forget()

    await warm.respond()

    assert warm.cloud.calls == STOPS_READ | {"BatchWriteItem": 1, "PutItem": 1}
    assert warm.cloud.units["GetItem"] == 0.5
    assert write_units(warm.cloud) == 3


async def test_a_streamed_response_costs_the_same(warm: Responder) -> None:
    warm.cloud.forget()

    await warm.respond(stream=True)

    assert warm.cloud.calls == STOPS_READ | {"BatchWriteItem": 1, "PutItem": 1}


async def test_a_response_that_is_not_stored_costs_only_the_read_of_the_stops(warm: Responder) -> None:
    warm.cloud.forget()

    await warm.respond(store=False)

    assert warm.cloud.calls == STOPS_READ


async def test_a_step_more_costs_a_unit_more(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(said(), called("buy"), said())))
    await responder.respond(store=False)
    responder.cloud.forget()

    await responder.respond(tools=[MCP_TOOL])

    assert responder.cloud.calls == STOPS_READ | {"BatchWriteItem": 1, "PutItem": 3}
    assert write_units(responder.cloud) == 5


async def test_a_link_costs_one_round_of_reads_more(warm: Responder) -> None:
    first = (await warm.respond()).response.id
    warm.cloud.forget()

    await warm.respond(previous_response_id=first)

    assert warm.cloud.calls == STOPS_READ | {"Query": 1, "BatchWriteItem": 1, "PutItem": 1}
    assert write_units(warm.cloud) == 3


async def test_references_cost_a_query_for_each_response_that_they_lead_to(warm: Responder) -> None:
    items = [(await warm.respond()).response.output[0].id for _ in range(2)]
    told = [{"type": "item_reference", "id": item} for item in (*items, items[0])]
    warm.cloud.forget()

    with warm.cloud.proxy.held_in_rounds(["GetItem", *["Query"] * 2], ["BatchWriteItem"]):
        run = await warm.start([*told, {"role": "user", "content": "go"}])

    assert warm.cloud.calls == STOPS_READ | {"Query": 2, "BatchWriteItem": 1}
    await warm.play(run)


async def test_a_response_in_a_conversation_costs_its_items_and_its_lock(warm: Responder) -> None:
    conversation = await warm.conversation()
    warm.cloud.forget()

    await warm.respond(conversation=conversation)

    assert warm.cloud.calls == {"UpdateItem": 2, "Query": 1, "BatchWriteItem": 2, "PutItem": 1, "GetItem": 2}
    assert write_units(warm.cloud) == 7  # 3 as ever, 2 for the lock, 2 for the items


async def test_another_process_reads_a_chain_in_a_round(warm: Responder, tenant: str) -> None:
    """The round follows that of the last link, and each item is stored once."""
    last, words = "", "plums and pears " * 20
    for number in range(20):
        last = (await warm.respond(f"{number} {words}", **({"previous_response_id": last} if last else {}))).response.id
    cold = Responder(warm.worker_fixture.other_process(script(said(), said())))
    await cold.respond(store=False)
    warm.cloud.forget()

    rounds = [["GetItem", "Query"], ["Query"] * 19]
    with warm.cloud.proxy.held_in_rounds(*rounds, ["BatchWriteItem"]) as seen:
        run = await cold.start("end", previous_response_id=last)

    assert seen["Query"] == 20
    chain = await warm.cloud.store.responses.chain(tenant, last)
    sizes = [link.size for link in chain.links]
    assert max(sizes) < 2 * min(sizes)
    assert sum(sizes) < 20 * 2 * (len(words) + 800)
    await cold.play(run)


async def test_a_warm_process_checks_known_links_with_the_last_read(
    warm: Responder,
) -> None:
    """Both take one round."""
    last = await chain(warm, 20)
    warm.cloud.forget()

    with warm.cloud.proxy.held_in_rounds(["GetItem", "Query", "BatchGetItem"], ["BatchWriteItem"]):
        run = await warm.start("end", previous_response_id=last)

    assert warm.cloud.units["Query"] == 1
    await warm.play(run)


async def test_a_response_that_is_continued_again_costs_one_call_for_its_whole_chain(warm: Responder) -> None:
    last = await chain(warm, 10)
    await warm.respond(previous_response_id=last)
    warm.cloud.forget()

    with read_keys(warm.cloud) as keys:
        await warm.respond(previous_response_id=last)

    assert warm.cloud.calls == STOPS_READ | {"BatchGetItem": 1, "BatchWriteItem": 1, "PutItem": 1}
    assert [len(names) for names in keys] == [10]
    assert {sk for names in keys for _, sk in names} == {"meta"}  # a header, which is one read unit up to 4 KB


async def test_a_check_of_more_than_100_links_is_a_call_for_100_of_them(warm: Responder, tenant: str) -> None:
    stored = StoreResponder(warm.cloud.store, tenant)
    links = await stored.chain(150)
    await warm.respond(previous_response_id=links[-1].response_id)
    warm.cloud.forget()

    with read_keys(warm.cloud) as keys:
        await warm.respond(previous_response_id=links[-1].response_id)

    assert warm.cloud.calls == STOPS_READ | {"BatchGetItem": 2, "BatchWriteItem": 1, "PutItem": 1}
    assert sorted(len(names) for names in keys) == [50, 100]


@contextmanager
def read_keys(cloud: Cloud) -> Iterator[list[list[tuple[str, str]]]]:
    """Yield a list that gets the keys of each BatchGetItem."""
    seen: list[list[tuple[str, str]]] = []

    def see(operation: str, body: str) -> None:
        if operation == "BatchGetItem":
            [table] = json.loads(body)["RequestItems"].values()
            seen.append([(key["pk"]["S"], key["sk"]["S"]) for key in table["Keys"]])

    with cloud.proxy.watching(see):
        yield seen


async def chain(responder: Responder, length: int) -> str:
    """Create responses, each of which continues from the previous one, and return the id of the last one."""
    last: dict[str, str] = {}
    for number in range(length):
        last = {"previous_response_id": (await responder.respond(f"{number}", **last)).response.id}
    return last["previous_response_id"]


async def test_a_long_input_does_not_make_the_list_entry_long(warm: Responder, tenant: str) -> None:
    await warm.respond("x" * 50_000)

    entries = [item for item in warm.cloud.items(tenant) if item["sk"]["S"].startswith("resp_")]

    assert max(len(str(item)) for item in entries) < 300
