"""Approvals of tools that are not MCP servers', in whole turns over the real store."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.script_model import Script, called, said, script, words_of
from tests.services.turn_fixture import TurnFixture
from tests.services.turns.test_approved_calls import answer, results, resume, resumed
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict, InvalidRequest
from stint.domain.inference import ToolSignature
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.registrations import ToolGroupRegisterRequest
from stint.domain.llama_stack.sessions import SessionSettings
from stint.domain.llama_stack.turns import TurnStatus
from stint.domain.redaction import MASK
from stint.domain.schema import now
from stint.domain.tools import DENIED, ToolResponseMessage
from stint.services.turns.approvals import CHANGED
from stint.tools.port import Invocation, Toolgroup, ToolOutcome, ToolProvider

ALWAYS = {"name": "bank", "require_approval": "always"}


@dataclass
class FakeFunctions:
    """A provider of the tools that a registration defines. It knows calls by function and amount."""

    invocations: list[tuple[str, Any]] = field(default_factory=list)

    async def check(self, _: Toolgroup, /) -> None:
        pass

    def known_tools(self, toolgroup: Toolgroup, _: dict[str, Any], /) -> list[ToolSignature]:
        schema = {"type": "object", "properties": {"amount": {"type": "integer"}}}
        return [ToolSignature(each["name"], "", schema) for each in toolgroup.config["tools"]]

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        return self.known_tools(toolgroup, provider_data)

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        function = next(e["function"] for e in toolgroup.config["tools"] if e["name"] == invocation.tool_name)
        self.invocations.append((function, invocation.arguments.get("amount")))
        return ToolOutcome(f"{invocation.tool_name} ran")


@dataclass
class Bank:
    """Sessions of agents with the toolgroup `bank` of functions."""

    cloud: Cloud
    tenant: str
    functions: FakeFunctions = field(default_factory=FakeFunctions)

    @property
    def calls(self) -> list[tuple[str, Any]]:
        return self.functions.invocations

    async def process(self, model: Script) -> TurnFixture:
        providers: dict[str, ToolProvider] = {"lambda-function": self.functions}
        return TurnFixture(self.cloud.store, self.tenant, model, providers=providers)

    async def register(self, made: TurnFixture, name: str = "bank", **tools: str) -> None:
        defined = [{"name": tool, "function": function} for tool, function in tools.items()]
        await made.services.toolgroups.register(
            ToolGroupRegisterRequest(toolgroup_id=name, provider_id="lambda-function", args={"tools": defined})
        )

    async def open(self, model: Script, **config: Any) -> TurnFixture:
        made = await self.process(model)
        await self.register(made, pay="pay-1", look="look-1")
        return await made.open(**({"toolgroups": [ALWAYS]} | config))

    async def reopen(self, made: TurnFixture, model: Script) -> TurnFixture:
        other = await self.process(model)
        other.agent_id, other.session_id = made.agent_id, made.session_id
        return other


@pytest.fixture
def bank(cloud: Cloud, tenant: str) -> Bank:
    return Bank(cloud, tenant)


PAY = called("pay", arguments=json.dumps({"amount": 7}))


def pay() -> Script:
    return script(PAY, said("Done."))


def seen(model: Script) -> list[str]:
    return [words_of(message) for message in model.requests[-1].messages]


async def approve(made: TurnFixture, turn_id: str, *decisions: bool) -> list[tuple[str, Any, Any]]:
    approvals = [(f"c{place}", decision) for place, decision in enumerate(decisions)]
    return results(await resumed(made, turn_id, answer(approvals=approvals)))


async def test_a_call_of_a_function_waits_and_runs_after_its_approval(bank: Bank) -> None:
    made = await bank.open(model := pay())
    paused = await made.turn()
    ran = [*bank.calls]

    done = await approve(await bank.reopen(made, model), paused.turn_id, True)

    assert (paused.status, paused.pending_approvals, ran) == (TurnStatus.awaiting_input, ["c0"], [])
    assert (done, bank.calls) == ([("c0", "pay ran", None)], [("pay-1", 7)])


async def test_a_denial_is_told_to_the_model(bank: Bank) -> None:
    made = await bank.open(model := pay())
    paused = await made.turn()

    done = await approve(made, paused.turn_id, False)

    assert (done, bank.calls) == ([("c0", DENIED, {"error": True})], [])
    assert seen(model)[-1] == DENIED


@pytest.mark.parametrize(
    "named",
    [
        ["bank"],
        ["bank/pay"],
        [{"name": "bank", "require_approval": "never"}],
        [{"name": "bank/pay", "require_approval": "never", "args": {"amount": 1}}],
        [{"name": "bank", "require_approval": {"never": {"tool_names": ["pay"]}}}],
    ],
)
async def test_a_turn_removes_no_approval(bank: Bank, named: Sequence[Any]) -> None:
    made = await bank.open(pay())

    paused = await made.turn(toolgroups=named, require_approval="never")

    assert (paused.pending_approvals, bank.calls) == (["c0"], [])


async def test_whoever_approves_sees_the_args_that_replace_arguments(bank: Bank) -> None:
    made = await bank.open(pay())

    paused = await made.turn(
        toolgroups=[{"name": "bank/pay", "args": {"amount": 9_999, "token": "secret-of-the-turn"}}]
    )
    done = await approve(made, paused.turn_id, True)

    assert paused.pending_arguments == {"c0": {"amount": 9_999, "token": MASK}}
    assert (await made.get(paused.turn_id)).pending_arguments is None
    assert (done[0][1], bank.calls) == ("pay ran", [("pay-1", 9_999)])


async def test_the_same_function_of_another_toolgroup_waits_too(bank: Bank) -> None:
    made = await bank.open(script(called("settle")))
    await bank.register(made, "other", settle="pay-1:live")

    paused = await made.turn(toolgroups=["other"])

    assert (paused.pending_approvals, bank.calls) == (["c0"], [])


@pytest.mark.parametrize(
    "added",
    [
        {"require_approval": "always"},
        {"require_approval": {"always": {"tool_names": ["pay"]}}},
        {"toolgroups": [{"name": "bank/pay", "require_approval": "always"}]},
    ],
)
async def test_a_turn_adds_an_approval(bank: Bank, added: dict[str, Any]) -> None:
    made = await bank.open(script(PAY, PAY, said("Done.")), toolgroups=["bank"])

    paused = await made.turn(**added)
    again = await made.turn()

    assert (paused.pending_approvals, again.status) == (["c0"], TurnStatus.completed)
    assert bank.calls == [("pay-1", 7)]


async def test_a_resume_keeps_what_the_turn_added(bank: Bank) -> None:
    made = await bank.open(model := script(PAY, called("look"), said("Done.")), toolgroups=["bank"])
    paused = await made.turn(require_approval="always")

    again = await resumed(await bank.reopen(made, model), paused.turn_id, answer(approvals=[("c0", True)]))

    assert (again.status, again.pending_approvals) == (TurnStatus.awaiting_input, ["c0"])
    assert [function for function, _ in bank.calls] == ["pay-1"]


async def test_an_agent_may_say_so_of_all_its_tools(bank: Bank) -> None:
    made = await bank.open(script(called("look")), toolgroups=["bank"], require_approval="always")

    paused = await made.turn(toolgroups=[{"name": "bank", "require_approval": "never"}])

    assert (paused.pending_approvals, bank.calls) == (["c0"], [])


async def update(made: TurnFixture, **config: Any) -> None:
    """Change the agent of the session, as a client of the Agents API does."""
    settings = SessionSettings(agent=AgentConfig(model="test/m", instructions="", **config), updated_at=now())
    record = await made.store.sessions.get(*made.ids)
    assert await made.store.sessions.set_settings(made.tenant, made.agent_id, record, settings)


@pytest.mark.parametrize("change", ["function", "args", "toolgroup", "removed", "client"])
async def test_a_call_of_a_tool_that_was_changed_does_not_run(bank: Bank, change: str) -> None:
    made = await bank.open(model := pay())
    paused = await made.turn()
    config: dict[str, Any] = {"toolgroups": [ALWAYS]}
    match change:
        case "function":
            await made.services.toolgroups.unregister("bank")
            await bank.register(made, pay="drain-1")
        case "args":
            config = {"toolgroups": [ALWAYS | {"args": {"amount": 9_999}}]}
        case "toolgroup":
            await bank.register(made, "other", pay="drain-1")
            config = {"toolgroups": ["other"]}
        case "removed":
            config = {"toolgroups": ["bank/look"]}
        case _:
            config = {"client_tools": [{"name": "pay"}]}
    await update(made, **config)

    done = await approve(await bank.reopen(made, model), paused.turn_id, True)

    assert (done, bank.calls) == ([("c0", CHANGED, {"error": True})], [])
    assert seen(model)[-1] == CHANGED


async def test_a_changed_approval_or_another_tool_does_not_matter(bank: Bank) -> None:
    made = await bank.open(model := pay())
    paused = await made.turn()
    await made.services.toolgroups.unregister("bank")
    await bank.register(made, pay="pay-1", look="look-2")
    await update(made, toolgroups=["bank"])

    done = await approve(await bank.reopen(made, model), paused.turn_id, True)

    assert (done, bank.calls) == ([("c0", "pay ran", None)], [("pay-1", 7)])


async def test_of_several_approved_calls_only_the_changed_ones_do_not_run(bank: Bank) -> None:
    made = await bank.open(model := script(called("pay", "look", "pay"), said("Done.")))
    paused = await made.turn()
    await made.services.toolgroups.unregister("bank")
    await bank.register(made, pay="pay-2", look="look-1")

    done = await approve(await bank.reopen(made, model), paused.turn_id, True, True, False)

    assert [(call_id, said) for call_id, said, _ in done] == [("c0", CHANGED), ("c2", DENIED), ("c1", "look ran")]
    assert [function for function, _ in bank.calls] == ["look-1"]
    assert sorted(seen(model)[-3:]) == sorted([CHANGED, DENIED, "look ran"])


async def test_a_turn_that_waits_keeps_no_lease(bank: Bank) -> None:
    made = await bank.open(pay())
    await made.turn()

    assert await bank.cloud.store.session_leases.find_holder(*made.ids) is None


async def test_a_search_before_the_model_call_cannot_wait(bank: Bank) -> None:
    search = {"name": "builtin::rag", "args": {"vector_db_ids": ["docs"], "retrieve": "before_inference"}}
    made = await bank.open(script(said("Hi.")), toolgroups=[search])

    for added in (
        {"require_approval": "always"},
        {"toolgroups": [{"name": "builtin::rag", "require_approval": "always"}]},
    ):
        with pytest.raises(InvalidRequest) as caught:
            await made.start(**added)
        assert caught.value.code == "approval_not_possible"


async def test_an_answer_of_another_turn_is_refused(bank: Bank) -> None:
    made = await bank.open(script(PAY, said("Done."), PAY))
    first = await made.turn()
    await resumed(made, first.turn_id, answer(approvals=[("c0", False)]))
    second = await made.turn()

    with pytest.raises(Conflict):
        await resume(made, first.turn_id, answer(approvals=[("c0", True)]))

    assert (await made.get(second.turn_id)).status is TurnStatus.awaiting_input
    assert bank.calls == []


async def test_a_query_generator_of_a_turn_does_not_reach_a_function_that_waits(bank: Bank) -> None:
    made = await bank.open(script(said("Hi."), said("Hi.")))
    await bank.register(made, "writer", settle="pay-1:live")
    await bank.register(made, "reader", write="write-1")

    def search(toolgroup: str) -> dict[str, Any]:
        generator = {"type": "custom", "toolgroup": toolgroup}
        return {"name": "builtin::rag", "args": {"memory_banks": [], "query_generator_config": generator}}

    for toolgroup in ("writer", "writer/settle", "bank/pay"):
        with pytest.raises(InvalidRequest) as caught:
            await made.start(toolgroups=[search(toolgroup)])
        assert caught.value.code == "approval_not_possible"
    for toolgroup in ("reader", "missing"):
        assert (await made.turn(toolgroups=[search(toolgroup)])).status is TurnStatus.completed


async def test_a_refused_message_does_not_open_a_call_for_a_made_up_result(bank: Bank) -> None:
    """The model never sees the refused message, so the call before it has no result."""
    made = await bank.open(script(PAY, [InvalidRequest("Not this.")], said("Done.")))
    await made.turn()
    refused = await made.turn()

    with pytest.raises(InvalidRequest) as caught:
        await made.start(messages=[ToolResponseMessage(call_id="c0", content="Paid.")])

    assert (refused.status, caught.value.code) == (TurnStatus.failed, "approvals_mismatch")
