import asyncio

from tests.script_model import Part, called, said, script
from tests.services.conftest import MakeWorkerFixture
from tests.services.responses.responder import Responder
from tests.services.worker_fixture import MCP_TOOL
from tests.store.conftest import Cloud

from stint.domain.errors import ModelError
from stint.domain.inference import Finished, FinishReason, TextChunk, Usage
from stint.domain.openai.response_resource import Response
from stint.domain.receipts import Receipt

USED = Usage(input_tokens=5, output_tokens=3, total_tokens=8)
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem")


def receipt_of(response: Response) -> Receipt:
    assert response.receipt is not None
    return response.receipt


def write_units(cloud: Cloud) -> float:
    return sum(cloud.units[name] for name in WRITES)


async def test_the_receipt_is_in_the_last_event_and_in_the_stored_response(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    responder = Responder(make_worker_fixture(script([TextChunk("Hi"), Finished(FinishReason.stop, USED)])))

    answered = await responder.respond()

    receipt = receipt_of(answered.response)
    assert (receipt.model_calls, receipt.input_tokens, receipt.output_tokens, receipt.write_units) == (1, 5, 3, 3)
    assert (await responder.get(answered.response.id)).receipt == receipt
    assert "receipt" not in answered.events[0].model_dump()["response"]


async def test_the_units_of_a_response_in_a_conversation_are_those_that_it_costs(
    make_worker_fixture: MakeWorkerFixture, cloud: Cloud
) -> None:
    responder = Responder(make_worker_fixture(script(called("buy"), said())))
    conversation = await responder.conversation()
    cloud.forget()

    answered = await responder.respond(conversation=conversation, tools=[MCP_TOOL])

    receipt = receipt_of(answered.response)
    assert receipt.write_units == write_units(cloud)
    assert (receipt.model_calls, receipt.tool_calls) == (2, 1)


async def test_a_response_that_is_not_stored_has_a_receipt(make_worker_fixture: MakeWorkerFixture) -> None:
    responder = Responder(make_worker_fixture(script(said())))

    answered = await responder.respond(store=False)

    assert receipt_of(answered.response).write_units == 0


async def test_a_response_in_the_background_counts_the_attempts_before(make_worker_fixture: MakeWorkerFixture) -> None:
    first: list[Part] = [*called("buy")[:-1], Finished(FinishReason.tool_calls, USED)]
    worker_fixture = make_worker_fixture(script(first, [TextChunk("half "), asyncio.Event()]))
    response_id = await worker_fixture.create(stream=True, tools=[MCP_TOOL])
    async with worker_fixture.dying(response_id):
        await worker_fixture.wait_for_stored_events(response_id, "half ")
    successor = worker_fixture.other_process(script([TextChunk("whole"), Finished(FinishReason.stop, USED)]))

    await successor.run(response_id)

    receipt = receipt_of(await successor.get(response_id))
    assert (receipt.model_calls, receipt.tool_calls, receipt.input_tokens) == (2, 1, 10)


async def test_a_response_that_fails_in_the_background_has_a_receipt(make_worker_fixture: MakeWorkerFixture) -> None:
    broken: list[Part] = [TextChunk("Hi"), ModelError("The model failed.")]
    response = await make_worker_fixture(script(broken)).finished()

    assert response.status == "failed"
    assert receipt_of(response).model_calls == 1
