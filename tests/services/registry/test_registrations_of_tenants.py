"""Registrations of one process, as another warm process sees them."""

from dataclasses import dataclass
from typing import Any

import pytest
from tests.script_model import Script, said, script
from tests.services.turn_fixture import TurnFixture
from tests.store.conftest import Cloud

from stint.apis.agents import AgentsServices
from stint.domain.errors import InvalidRequest, NotFound
from stint.domain.inference import ToolSignature
from stint.domain.llama_stack.registrations import ModelRegisterRequest, ShieldRegisterRequest, ToolGroupRegisterRequest
from stint.domain.messages import UserMessage
from stint.tools.port import Invocation, Toolgroup, ToolOutcome

KIND = "remote-execution"


class FakeTools:
    """A provider whose toolgroups have the tools that their registration names."""

    async def check(self, _: Toolgroup, /) -> None:
        pass

    def known_tools(self, toolgroup: Toolgroup, _: dict[str, Any], /) -> list[ToolSignature]:
        return [ToolSignature(name, "", {"type": "object"}) for name in toolgroup.config["tools"]]

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        return self.known_tools(toolgroup, provider_data)

    async def invoke(self, _: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        return ToolOutcome(content=invocation.tool_name)


@dataclass
class Processes:
    """Two processes of a tenant: `warm` has read the registry, `other` changes it."""

    warm: TurnFixture
    model: Script
    other: AgentsServices

    async def register(self, *tools: str) -> None:
        args = {"tools": [*tools]}
        request = ToolGroupRegisterRequest(toolgroup_id="math", provider_id=KIND, args=args)
        await self.other.toolgroups.register(request)

    async def shield(self, phrase: str) -> None:
        await self.other.shields.register(ShieldRegisterRequest(shield_id="words", params={"phrases": [phrase]}))


@pytest.fixture
def processes(cloud: Cloud, tenant: str) -> Processes:
    model = script(said(), said())
    warm = TurnFixture(cloud.store, tenant, model, providers={KIND: FakeTools()})
    return Processes(warm, model, TurnFixture(cloud.store, tenant, script(), providers={KIND: FakeTools()}).services)


async def test_a_toolgroup_that_was_registered_anew_has_its_new_tools_in_the_next_turn(processes: Processes) -> None:
    await processes.register("add")
    await processes.warm.open(toolgroups=["math"])
    await processes.warm.turn()

    await processes.other.toolgroups.unregister("math")
    await processes.register("sub")
    await processes.warm.turn()

    assert [[tool.name for tool in request.tools] for request in processes.model.requests] == [["add"], ["sub"]]


async def test_a_toolgroup_that_was_unregistered_refuses_the_next_turn(processes: Processes) -> None:
    await processes.register("add")
    await processes.warm.open(toolgroups=["math"])
    await processes.warm.turn()

    await processes.other.toolgroups.unregister("math")

    with pytest.raises(InvalidRequest, match="math"):
        await processes.warm.turn()


async def test_a_shield_that_was_registered_anew_has_its_new_words_in_the_next_turn(processes: Processes) -> None:
    await processes.shield("plum")
    await processes.warm.open(input_shields=["words"])
    await processes.warm.turn(text="a pear")

    await processes.other.registry.unregister("shield", "words")
    await processes.shield("pear")
    turn = await processes.warm.turn(text="a pear")

    assert [step.step_type for step in turn.steps] == ["shield_call"]


async def test_a_model_that_was_unregistered_refuses_the_next_turn(processes: Processes) -> None:
    await processes.other.registry.register_model(
        ModelRegisterRequest(model_id="mine", provider_model_id="scripted/demo")
    )
    await processes.warm.open(model="mine")
    await processes.warm.turn()

    await processes.other.registry.unregister("model", "mine")

    with pytest.raises(InvalidRequest, match="mine"):
        await processes.warm.turn()


async def test_what_was_unregistered_is_not_found(processes: Processes) -> None:
    await processes.register("add")
    await processes.shield("plum")
    seen = processes.warm.services
    await seen.toolgroups.get("math")

    await processes.other.toolgroups.unregister("math")
    await processes.other.registry.unregister("shield", "words")

    with pytest.raises(NotFound):
        await seen.toolgroups.get("math")
    with pytest.raises(NotFound):
        await seen.toolgroups.tools_of("math", {})
    with pytest.raises(NotFound):
        await seen.registry.get_shield("words")
    with pytest.raises(InvalidRequest):
        await seen.shields.run("words", [UserMessage(content="plum")])
