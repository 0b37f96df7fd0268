"""Reasoning of a model server in the turns of a session. The server refuses it if it was changed or moved."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.openresponses.schema import Json
from tests.servers.model_responses import ModelResponsesServer, call, message, stream, thought
from tests.services.turn_fixture import TurnFixture
from tests.services.turns.test_turn_tools import KIND, FakeTools, Making
from tests.store.conftest import Cloud

from stint.domain.llama_stack.turns import TurnStatus
from stint.models.openai_compatible import OpenAICompatible


@pytest.fixture
def server() -> Iterator[ModelResponsesServer]:
    with ModelResponsesServer() as server:
        yield server


@pytest.fixture
async def model(server: ModelResponsesServer) -> AsyncIterator[OpenAICompatible]:
    model = OpenAICompatible(server.base_url, api="responses", repeats=0)
    yield model
    await model.aclose()


@pytest.fixture
def making(cloud: Cloud, tenant: str) -> Making:
    return Making(cloud, tenant, FakeTools())


def answer(number: int, *items: Json) -> Any:
    """Return an answer that begins with reasoning."""
    return stream(thought(f"Thought {number}", item_id=f"rs_{number}", encrypted=f"e{number}"), *items)


def thoughts_in(items: list[Json]) -> list[str]:
    return [item["encrypted_content"] for item in items if item["type"] == "reasoning"]


async def open_session(making: Making, model: Any, *client_tools: str) -> TurnFixture:
    return await making.turn_fixture(model, *client_tools, sampling_params={"strategy": {"type": "greedy"}})


async def test_reasoning_survives_tool_rounds_and_turns(
    making: Making, server: ModelResponsesServer, model: OpenAICompatible
) -> None:
    process = await open_session(making, model)
    server.script(
        answer(1, message("Let me see."), call("c1", "add"), call("c2", "sub")),
        answer(2, call("c3", "mul")),
        answer(3, message("Done")),
        answer(4, message("Again")),
    )

    await process.turn("Compute.")
    await process.turn("And?")

    assert [thoughts_in(items) for items in server.inputs] == [[], ["e1"], ["e1", "e2"], ["e1", "e2", "e3"]]


async def test_reasoning_survives_a_resume_in_another_process(
    making: Making, server: ModelResponsesServer, model: OpenAICompatible
) -> None:
    process = await open_session(making, model, "get_weather")
    server.script(answer(1, call("c1", "get_weather")), answer(2, message("Sunny")))
    turn = await process.turn("Weather?")
    assert turn.status is TurnStatus.awaiting_input

    another = OpenAICompatible(server.base_url, api="responses", repeats=0)
    other = TurnFixture(process.store, process.tenant, another, providers={KIND: making.workshop})
    other.agent_id, other.session_id = process.agent_id, process.session_id
    await other.resumed(turn.turn_id, ("c1", "sunny"))
    await another.aclose()

    assert thoughts_in(server.inputs[-1]) == ["e1"]


async def test_each_request_begins_with_the_one_before(
    making: Making, server: ModelResponsesServer, model: OpenAICompatible
) -> None:
    process = await open_session(making, model)
    server.script(
        answer(1, call("c1", "add")),
        answer(2, message("So"), thought("Late", item_id="rs_3", encrypted="e3"), message("Done")),
    )

    await process.turn("Compute.")
    await process.turn("And?")

    for earlier, later in zip(server.inputs, server.inputs[1:], strict=False):
        assert later[: len(earlier)] == earlier
    assert thoughts_in(server.inputs[-1]) == ["e1", "e2", "e3"]


async def test_large_reasoning_is_stored(making: Making, server: ModelResponsesServer, model: OpenAICompatible) -> None:
    process = await open_session(making, model, "get_weather")
    large = "x" * 250_000
    server.script(
        stream(thought("Well", encrypted=large), call("c1", "add")),
        stream(thought("Hm", item_id="rs_2", encrypted=f"y{large}"), message("Done")),
    )

    await process.turn("Compute.")
    await process.turn("And?")

    assert [len(each) for each in thoughts_in(server.inputs[-1])] == [250_000, 250_001]


async def test_reasoning_without_a_signature_is_not_stored(
    making: Making, server: ModelResponsesServer, model: OpenAICompatible
) -> None:
    """No provider needs it in a later turn, and a turn does not show it."""
    process = await open_session(making, model)
    server.script(stream(thought("Well", encrypted=None), message("Done")))

    await process.turn("Compute.")

    history = await process.store.turns.history(*process.ids)
    assert "Well" not in str([record for turn in history.turns for record in turn.records])
