"""A conversation keeps the input and the finished items of a response that was cancelled."""

import asyncio
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import Part, Script, called, said, script, until, words_of
from tests.services.deaths import die_at
from tests.services.responses.responder import Responder
from tests.services.responses.test_merged_responses import shown
from tests.services.worker_fixture import FUNCTION, MCP_TOOL, WorkerFixture
from tests.store.conftest import Cloud

from stint.domain.inference import TextChunk
from stint.domain.openai.response_requests import CreateResponse
from stint.loop.transcript import SENT
from stint.spending.stop_monitor import WATCH_SECONDS


def blocked() -> list[Part]:
    return [TextChunk("I am"), asyncio.Event()]


class Interrupting:
    """A conversation with a response that is interrupted by another one."""

    def __init__(self, cloud: Cloud, tenant: str, *answers: list[Part]) -> None:
        self.model: Script = script(*answers, said("Next"))
        self.fixture = WorkerFixture(cloud, tenant, self.model)
        self.responder = Responder(self.fixture)

    async def open(self) -> dict[str, Any]:
        self.conversation = await self.fixture.conversation()
        self.fields: dict[str, Any] = {"conversation": self.conversation, "tools": [MCP_TOOL, FUNCTION]}
        return self.fields

    async def interrupt(self) -> list[str]:
        """Interrupt the running response, and return the texts that the model gets then."""
        admission = self.fixture.services.response_requests.make_admission(self.conversation)
        clock = asyncio.get_running_loop().time()

        async def start() -> Any:
            return await self.responder.start("next", **self.fields)

        interrupting = asyncio.create_task(admission.start_after_interrupting(start, clock + 600))
        while not interrupting.done():
            CLOCK.move(WATCH_SECONDS)
            await asyncio.sleep(0.02)
        await self.responder.play(await interrupting)
        return [words_of(message) for message in self.model.requests[-1].messages]

    async def items(self) -> list[str]:
        page = await self.fixture.services.conversations.list_items(self.conversation, None, 20, "asc")
        return shown(page.data)


async def test_an_interrupted_response_keeps_what_was_done(cloud: Cloud, tenant: str) -> None:
    interrupting = Interrupting(cloud, tenant, called("buy"), blocked())
    fields = await interrupting.open()
    running = asyncio.create_task(interrupting.responder.respond("one", **fields))
    await until(lambda: len(interrupting.model.requests) == 2)

    sent = await interrupting.interrupt()

    assert (await running).response.status == "cancelled"
    assert sent == ["one", "", "buy is done", "next"]
    assert await interrupting.items() == [
        *["one", "mcp_list_tools", "mcp_call"],
        *["next", "mcp_list_tools", "Next"],
    ]


async def test_a_call_without_a_result_was_sent_and_one_of_the_client_is_left_out(cloud: Cloud, tenant: str) -> None:
    interrupting = Interrupting(cloud, tenant, called("ask_user", "buy", text="Let me see."))
    fields = await interrupting.open()
    interrupting.fixture.fake_mcp.gates["buy"] = asyncio.Event()
    running = asyncio.create_task(interrupting.responder.respond("one", **fields))
    await until(lambda: interrupting.fixture.fake_mcp.calls)

    sent = await interrupting.interrupt()

    assert (await running).response.status == "cancelled"
    assert sent == ["one", "Let me see.", SENT, "next"]
    assert (await interrupting.items())[:4] == ["one", "mcp_list_tools", "Let me see.", "mcp_call"]


async def test_a_merged_message_of_an_interrupted_response_is_kept(cloud: Cloud, tenant: str) -> None:
    interrupting = Interrupting(cloud, tenant, called("buy"), blocked())
    fields = await interrupting.open()
    gate = interrupting.fixture.fake_mcp.gates["buy"] = asyncio.Event()
    running = asyncio.create_task(interrupting.responder.respond("one", **fields))
    await until(lambda: interrupting.fixture.fake_mcp.calls)
    body = {"model": "test/m", "input": "and two", "when_busy": "merge", "conversation": interrupting.conversation}
    admission = interrupting.fixture.services.response_requests.make_admission(interrupting.conversation)
    await admission.accept(CreateResponse.model_validate(body))
    gate.set()
    await until(lambda: len(interrupting.model.requests) == 2)

    sent = await interrupting.interrupt()
    await running

    assert sent == ["one", "", "buy is done", "and two", "next"]


async def test_a_response_whose_process_died_is_cancelled_with_its_items(own_cloud: Cloud, tenant: str) -> None:
    interrupting = Interrupting(own_cloud, tenant, called("buy"), said())
    fields = await interrupting.open()
    run = await interrupting.responder.start("one", **fields)
    await die_at(own_cloud, "PutItem", 2, lambda: interrupting.responder.play(run))

    sent = await interrupting.interrupt()

    assert await interrupting.fixture.status(run.response_id) == "cancelled"
    assert sent == ["one", "", "buy is done", "next"]


@pytest.mark.parametrize("started", [False, True])
async def test_the_input_of_a_background_response_is_kept_once_it_has_started(
    cloud: Cloud, tenant: str, started: bool
) -> None:
    interrupting = Interrupting(cloud, tenant, blocked())
    fields = await interrupting.open()
    response_id = await interrupting.fixture.create("one", **fields)
    if started:
        working = asyncio.create_task(interrupting.fixture.run(response_id))
        await interrupting.model.opened.wait()
    else:
        interrupting.model.answers.pop(0)

    sent = await interrupting.interrupt()
    if started:
        await working

    assert sent == (["one", "next"] if started else ["next"])
