"""Tools that the server runs, in whole turns over the real store. The tables are those of Llama Stack 0.2.12."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import Script, called, deadline, said, script, shape, words_of
from tests.services.polling import poll_until
from tests.services.turn_fixture import TurnFixture, die, ended
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict, InvalidRequest, NotSupported, ToolUnavailable
from stint.domain.inference import ToolResult, ToolSignature
from stint.domain.llama_stack.events import NumberedEvent
from stint.domain.llama_stack.registrations import ModelRegisterRequest, ToolGroupRegisterRequest
from stint.domain.llama_stack.turns import Turn, TurnCreateRequest, TurnStatus
from stint.domain.messages import UserMessage
from stint.domain.steps import ToolExecutionStep
from stint.domain.tools import AgentToolGroupWithArgs
from stint.http.routes.turns import encode_event
from stint.loop.tool_round import CALLS_AT_ONCE
from stint.loop.transcript import NO_RESULT, SENT
from stint.models.tool_names import SanitizedToolNames
from stint.services.runs.run_handle import RequestContext
from stint.services.turns.turn_run import TurnRun
from stint.tools.port import Invocation, Toolgroup, ToolOutcome

KIND = "lambda-function"
SECRET = "sk-very-secret"
Act = Callable[[Invocation], Awaitable[ToolOutcome]]


async def echo(invocation: Invocation) -> ToolOutcome:
    return ToolOutcome(content=f"{invocation.tool_name}: {invocation.arguments}")


@dataclass
class FakeTools:
    """A provider whose toolgroups have the tools that their registration names."""

    act: Act = echo
    invocations: list[Invocation] = field(default_factory=list)

    async def check(self, _: Toolgroup, /) -> None:
        pass

    def known_tools(self, toolgroup: Toolgroup, _: dict[str, Any], /) -> list[ToolSignature] | None:
        return [ToolSignature(name, "", {"type": "object"}) for name in toolgroup.config.get("tools", [])]

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        return self.known_tools(toolgroup, provider_data) or []

    async def invoke(self, _: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        self.invocations.append(invocation)
        return await self.act(invocation)


@dataclass
class Making:
    cloud: Cloud
    tenant: str
    workshop: FakeTools

    async def turn_fixture(self, model: Script, *client_tools: str, **config: Any) -> TurnFixture:
        """Open a session of an agent with the toolgroup `math`, which has the tools add, sub and mul."""
        turn_fixture = TurnFixture(
            self.cloud.store, self.tenant, model, providers={KIND: self.workshop}, tool_result_bytes=1_000
        )
        await self.register(turn_fixture, "math", tools=["add", "sub", "mul"])
        return await turn_fixture.open(*client_tools, **({"toolgroups": ["math"]} | config))

    async def register(self, turn_fixture: TurnFixture, name: str, **args: Any) -> None:
        request = ToolGroupRegisterRequest(toolgroup_id=name, provider_id=KIND, args=args)
        await turn_fixture.services.toolgroups.register(request)


@pytest.fixture
def making(cloud: Cloud, tenant: str) -> Making:
    return Making(cloud, tenant, FakeTools())


def responses(turn: Turn) -> list[Any]:
    return [step.tool_responses[0] for step in turn.steps if isinstance(step, ToolExecutionStep)]


async def test_a_server_tool_is_run_between_two_inferences_as_recorded(making: Making) -> None:
    turn_fixture = await making.turn_fixture(script(called("add", arguments='{"a": 2}'), said("5")))

    events = await turn_fixture.play(await turn_fixture.start())

    assert shape(events) == [
        "turn_start",
        "start inference",
        "call succeeded",
        "complete inference",
        "start tool_execution",
        "call in_progress",
        "complete tool_execution",
        "start inference",
        "text 5",
        "complete inference",
        "turn_complete",
    ]


async def test_several_calls_are_a_step_each_in_the_models_order_though_they_run_at_once(making: Making) -> None:
    all_here = asyncio.Barrier(3)

    async def meet(invocation: Invocation) -> ToolOutcome:
        async with asyncio.timeout(30):
            await all_here.wait()
        return ToolOutcome(content=invocation.tool_name)

    making.workshop.act = meet
    turn_fixture = await making.turn_fixture(script(called("mul", "add", "sub"), said()))

    events = await turn_fixture.play(await turn_fixture.start())

    triple = ["start tool_execution", "call in_progress", "complete tool_execution"]
    assert shape(events)[6:15] == triple * 3
    [turn] = await turn_fixture.stored()
    assert [response.content for response in responses(turn)] == ["mul", "add", "sub"]
    assert [response.call_id for response in responses(turn)] == ["c0", "c1", "c2"]
    assert len({step.step_id for step in turn.steps}) == 5


async def test_server_tools_run_before_the_turn_waits_for_the_client(making: Making) -> None:
    model = script(called("ask", "add"), said("done"))
    turn_fixture = await making.turn_fixture(model, "ask")

    paused = await turn_fixture.turn()
    done = await turn_fixture.resumed(paused.turn_id, ("c0", "yes"))

    assert [step.step_type for step in paused.steps] == ["inference", "tool_execution"]
    assert [call.tool_name for call in paused.output_message.tool_calls] == ["ask"]
    assert paused.output_message.stop_reason == "end_of_message"
    assert [step.step_type for step in done.steps] == ["inference", *["tool_execution"] * 2, "inference"]
    results = [message for message in model.requests[1].messages if type(message).__name__ == "ToolResult"]
    assert sorted(result.call_id for result in results) == ["c0", "c1"]  # type: ignore[union-attr]  # told above


async def test_exhausted_iterations_end_the_turn_and_run_no_more_server_tools(making: Making) -> None:
    turn_fixture = await making.turn_fixture(script(called("add"), called("add")), max_infer_iters=2)

    turn = await turn_fixture.turn()

    assert (turn.status, turn.output_message.tool_calls) == ("completed", [])
    assert turn.output_message.stop_reason == "end_of_turn"
    assert len(making.workshop.invocations) == 1


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (ToolOutcome(content="division by zero", error=True), "division by zero"),
        (ToolUnavailable("The workshop is closed."), "The workshop is closed."),
        (RuntimeError(SECRET), "The tool failed unexpectedly."),
    ],
)
async def test_a_tool_that_fails_is_a_result_for_the_model_and_an_honest_step(
    making: Making, failure: ToolOutcome | Exception, told: str
) -> None:
    async def fail(_: Invocation) -> ToolOutcome:
        if isinstance(failure, Exception):
            raise failure
        return failure

    making.workshop.act = fail
    turn_fixture = await making.turn_fixture(script(called("add"), said("sorry")))

    turn = await turn_fixture.turn()

    assert turn.status == "completed"
    [response] = responses(turn)
    assert (response.content, response.metadata) == (told, {"error": True})


async def test_the_deadline_ends_the_turn_and_its_tools(making: Making) -> None:
    cancelled = asyncio.Event()

    async def sleep(_: Invocation) -> ToolOutcome:
        CLOCK.move(5)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        raise AssertionError

    making.workshop.act = sleep
    turn_fixture = await making.turn_fixture(script(called("add")))

    events = await turn_fixture.play(await turn_fixture.start(seconds=5))

    assert shape(events)[-1] == "failed deadline_exceeded"
    assert cancelled.is_set()
    [turn] = await turn_fixture.stored()
    assert (turn.status, [step.step_type for step in turn.steps]) == ("failed", ["inference"])


async def test_a_tool_that_ignores_its_end_does_not_hold_the_turn_beyond_the_deadline(
    making: Making, caplog: pytest.LogCaptureFixture
) -> None:
    released = asyncio.Event()

    async def persist(invocation: Invocation) -> ToolOutcome:
        CLOCK.move(2.5)
        while not released.is_set():
            with suppress(asyncio.CancelledError):
                await released.wait()
        return ToolOutcome(content=SECRET)

    making.workshop.act = persist
    turn_fixture = await making.turn_fixture(script(called("add", "sub")))

    try:
        async with asyncio.timeout(30):
            events = await turn_fixture.play(await turn_fixture.start(seconds=5))
    finally:
        released.set()

    assert shape(events)[-1] == "failed deadline_exceeded"
    assert await turn_fixture.lease_turn() is None
    left = [vars(record) for record in caplog.records if "did not end" in record.message]
    assert {entry["tool_name"] for entry in left} == {"add", "sub"}


async def test_a_tool_that_gives_itself_up_is_a_result_for_the_model(making: Making) -> None:
    async def give_up(_: Invocation) -> ToolOutcome:
        raise asyncio.CancelledError

    making.workshop.act = give_up
    turn_fixture = await making.turn_fixture(script(called("add"), said("sorry")))

    turn = await turn_fixture.turn()

    assert turn.status == "completed"
    assert responses(turn)[0].metadata == {"error": True}


async def test_tools_get_their_arguments_and_the_callers_keys_which_are_kept_nowhere(
    making: Making, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    turn_fixture = await making.turn_fixture(script(called("add", arguments='{"a": 1, "b": 2}'), said()))
    request = TurnCreateRequest(messages=[UserMessage(content="Hello")])

    run = await turn_fixture.turns.start(
        turn_fixture.agent_id,
        turn_fixture.session_id,
        request,
        RequestContext(deadline(30), provider_data={"key": SECRET}),
    )
    await turn_fixture.play(run)

    [invocation] = making.workshop.invocations
    assert (invocation.tool_name, invocation.arguments) == ("add", {"a": 1, "b": 2})
    assert invocation.provider_data == {"key": SECRET}
    assert SECRET not in repr(making.cloud.items(making.tenant))
    assert SECRET not in caplog.text


async def test_a_tool_that_repeats_its_callers_credentials_does_not_get_them_stored(making: Making) -> None:
    async def repeat(invocation: Invocation) -> ToolOutcome:
        text = f"You sent {invocation.provider_data}."
        return ToolOutcome(content=text, metadata={"structured_content": {"sent": text}})

    making.workshop.act = repeat
    turn_fixture = await making.turn_fixture(script(called("add"), said()))
    request = TurnCreateRequest(messages=[UserMessage(content="Hello")])
    keys = {"mcp_headers": {"https://tools.example/mcp": {"Authorization": f"Bearer {SECRET}"}}}

    context = RequestContext(deadline(30), provider_data=keys)
    events = await turn_fixture.play(
        await turn_fixture.turns.start(turn_fixture.agent_id, turn_fixture.session_id, request, context)
    )
    run = await turn_fixture.services.toolgroups.invoke("add", {}, keys)

    [turn] = await turn_fixture.stored()
    assert "tools.example/mcp': {'Authorization': 'Bearer ***'}" in str(responses(turn)[0].content) == str(run.content)
    assert SECRET not in repr(events) + repr(run) + repr(making.cloud.items(making.tenant))


async def test_steps_and_tools_keep_the_real_name_of_a_tool_that_the_model_knows_by_a_plain_one(
    making: Making,
) -> None:
    model = script(called("math_add"), said())
    turn_fixture = TurnFixture(
        making.cloud.store, making.tenant, SanitizedToolNames(model), providers={KIND: making.workshop}
    )
    await making.register(turn_fixture, "dotted", tools=["math.add"])
    await making.register(turn_fixture, "plain", tools=["math_add"])
    await turn_fixture.open(toolgroups=["dotted"])

    turn = await turn_fixture.turn()

    assert [tool.name for tool in model.requests[0].tools] == ["math_add"]
    assert (making.workshop.invocations[0].tool_name, responses(turn)[0].tool_name) == ("math.add", "math.add")
    with pytest.raises(InvalidRequest, match=r"'math\.add' and 'math_add'"):
        await turn_fixture.start(toolgroups=["plain"])


async def test_each_call_has_a_key_of_its_own_though_models_repeat_their_ids(making: Making) -> None:
    turn_fixture = await making.turn_fixture(
        script(called("add"), called("add", "ask"), called("add"), said(), called("add"), said()), "ask"
    )

    paused = await turn_fixture.turn()
    await turn_fixture.resumed(paused.turn_id, ("c1", "yes"))
    following = await turn_fixture.turn()

    first, second = paused.turn_id, following.turn_id
    keys = [invocation.key for invocation in making.workshop.invocations]
    assert keys == [f"{first}:1:c0", f"{first}:2:c0", f"{first}:3:c0", f"{second}:1:c0"]


async def test_args_win_over_the_models_arguments_and_those_of_the_turn_over_the_agents(making: Making) -> None:
    config = {"toolgroups": [{"name": "math", "args": {"base": 2, "unit": "m"}}]}
    turn_fixture = await making.turn_fixture(script(called("add", arguments='{"a": 1, "base": 10}'), said()), **config)

    await turn_fixture.turn(toolgroups=[{"name": "math/add", "args": {"base": 8}}])

    assert making.workshop.invocations[0].arguments == {"a": 1, "base": 8, "unit": "m"}


@pytest.mark.parametrize(("client_tools", "stays"), [([], False), (["ask"], True)])
async def test_credentials_of_a_turn_stay_only_if_it_may_wait_for_its_client(
    making: Making, client_tools: list[str], stays: bool
) -> None:
    model = script(*([called("ask")] if stays else []), called("add"), said(), said())
    turn_fixture = await making.turn_fixture(model, *client_tools)
    group = {"name": "math", "args": {"api_key": "zq8-unlikely", "base": 8}}

    turn = await turn_fixture.turn(toolgroups=[group, "math/add"])
    [stored] = (await turn_fixture.store.turns.history(*turn_fixture.ids)).turns
    if stays:
        await turn_fixture.resumed(turn.turn_id, ("c0", "yes"))
    else:
        with pytest.raises(InvalidRequest, match="had credentials in their args"):
            await turn_fixture.resume(turn.turn_id, ("c9", "3"))

    assert making.workshop.invocations[0].arguments == {"api_key": "zq8-unlikely", "base": 8}
    kept = AgentToolGroupWithArgs(name="math", args=group["args"] if stays else {"api_key": "********", "base": 8})
    assert stored.header.overrides.toolgroups == [kept, "math/add"]


async def test_a_turns_toolgroups_are_added_to_the_agents(making: Making) -> None:
    model = script(said(), said())
    turn_fixture = await making.turn_fixture(model, "ask", toolgroups=["math/add"])
    await making.register(turn_fixture, "words", tools=["spell"])

    await turn_fixture.turn(toolgroups=["words"])
    await turn_fixture.turn()

    shown = [[tool.name for tool in request.tools] for request in model.requests]
    assert shown == [["ask", "add", "spell"], ["ask", "add"]]


@pytest.mark.parametrize(
    ("toolgroups", "code", "named"),
    [
        (["nosuch"], "toolgroup_not_found", "nosuch"),
        (["math/nosuch"], "tool_not_found", "nosuch"),
        (["twin"], "duplicate_tool", "add"),
        (["mine"], "duplicate_tool", "ask"),
    ],
)
async def test_what_cannot_be_is_refused_by_name_before_the_turn_begins(
    making: Making, toolgroups: list[str], code: str, named: str
) -> None:
    turn_fixture = await making.turn_fixture(script(), "ask")
    await making.register(turn_fixture, "twin", tools=["add"])
    await making.register(turn_fixture, "mine", tools=["ask"])

    with pytest.raises(InvalidRequest, match=named) as refused:
        await turn_fixture.start(toolgroups=toolgroups)

    assert refused.value.code == code
    assert (await turn_fixture.stored(), await turn_fixture.lease_turn()) == ([], None)


async def test_a_toolgroup_that_cannot_list_its_tools_is_refused_before_the_turn_begins(making: Making) -> None:
    turn_fixture = await making.turn_fixture(script())
    await making.register(turn_fixture, "away", tools=["far"])
    making.workshop.list_tools = closed  # type: ignore[method-assign]  # from now on

    with pytest.raises(ToolUnavailable, match="closed"):
        await turn_fixture.start(toolgroups=["away"])

    assert (await turn_fixture.stored(), await turn_fixture.lease_turn()) == ([], None)


async def closed(_: Toolgroup, __: dict[str, Any], /) -> list[ToolSignature]:
    raise ToolUnavailable("The workshop is closed.")


async def test_a_long_result_is_cut_for_the_model_alone(
    making: Making,
) -> None:
    """It is kept until the session is deleted."""

    async def talk(_: Invocation) -> ToolOutcome:
        return ToolOutcome(content="word " * 1_000)

    making.workshop.act = talk
    turn_fixture = await making.turn_fixture(script(called("add"), said()))

    turn = await turn_fixture.turn()

    [response] = responses(turn)
    head, note = response.content
    assert len(head.text) == 1_000
    assert "5000 bytes" in note.text
    kept = making.cloud.s3.get_object(Bucket=making.cloud.bucket, Key=response.metadata["full_result"])
    assert kept["Body"].read() == b"word " * 1_000
    await turn_fixture.sessions.delete(turn_fixture.agent_id, turn_fixture.session_id)
    assert making.cloud.blobs(making.tenant) == []


async def test_attachments_of_a_tool_are_the_turns(making: Making) -> None:
    attachment = {"content": {"uri": "data:text/csv;base64,YQ=="}, "mime_type": "text/csv"}

    async def draw(_: Invocation) -> ToolOutcome:
        return ToolOutcome(content="drawn", metadata={"attachments": [attachment]})

    making.workshop.act = draw
    turn_fixture = await making.turn_fixture(script(called("add"), said()))

    turn = await turn_fixture.turn()

    assert [each.model_dump() for each in turn.output_attachments] == [attachment]


async def test_k_parallel_calls_cost_k_and_one_further_units(making: Making) -> None:
    turn_fixture = await making.turn_fixture(script(said(), called("add", "sub", "mul"), said()))
    await turn_fixture.turn()
    making.cloud.forget()

    await turn_fixture.turn()

    units = making.cloud.units
    assert units["PutItem"] + units["UpdateItem"] == 4 + 3 + 1
    assert making.cloud.calls["Query"] == 2, "what is registered, and the messages that wait before the second call"


async def test_a_cold_turn_reads_the_registry_beside_the_rest(making: Making) -> None:
    turn_fixture = await making.turn_fixture(script(said()))
    cold = TurnFixture(making.cloud.store, making.tenant, script(said()), providers={KIND: making.workshop})
    cold.agent_id, cold.session_id = turn_fixture.agent_id, turn_fixture.session_id
    making.cloud.forget()

    await cold.turn()

    assert making.cloud.calls["Query"] == 2


async def test_a_registration_of_another_process_is_found_at_once(making: Making) -> None:
    turn_fixture = await making.turn_fixture(script(said()))
    await turn_fixture.turn()
    other = TurnFixture(making.cloud.store, making.tenant, script(), providers={KIND: making.workshop})
    await making.register(other, "fresh", tools=["new"])
    model = script(said())
    turn_fixture.model.answers += model.answers  # type: ignore[attr-defined]  # the script goes on

    turn = await turn_fixture.turn(toolgroups=["fresh"])

    assert turn.status == "completed"


async def test_a_name_that_is_taken_is_a_conflict_and_what_is_configured_stays(making: Making) -> None:
    turn_fixture = await making.turn_fixture(script())

    with pytest.raises(Conflict):
        await making.register(turn_fixture, "math", tools=["other"])

    assert (await turn_fixture.services.toolgroups.get("math")).args == {"tools": ["add", "sub", "mul"]}


async def test_a_call_with_arguments_that_are_no_object_does_not_run(making: Making) -> None:
    turn_fixture = await making.turn_fixture(script(called("add", arguments="[1"), said()))

    turn = await turn_fixture.turn()

    assert making.workshop.invocations == []
    assert "not a JSON object" in str(responses(turn)[0].content)


async def test_a_turn_may_choose_a_server_tool(making: Making) -> None:
    model = script(said())
    turn_fixture = await making.turn_fixture(model)

    await turn_fixture.turn(tool_config={"tool_choice": "mul"})

    assert model.requests[0].tool_choice == "mul"


@pytest.mark.parametrize("name", ["web_search", "brave_search"])
async def test_a_search_is_chosen_by_either_of_its_names(making: Making, name: str) -> None:
    model, whole = script(said()), f"builtin::websearch/{name}"
    turn_fixture = await TurnFixture(making.cloud.store, making.tenant, model).open(toolgroups=[whole])

    await turn_fixture.turn()
    listed = (await turn_fixture.services.toolgroups.tools_of(whole, {})).data

    assert [tool.name for tool in model.requests[0].tools] == ["brave_search"]
    assert [tool.identifier for tool in listed] == ["web_search"]


@pytest.mark.parametrize("choice", ["required", "mul"])
async def test_a_choice_that_obliges_to_call_a_tool_is_satisfied_by_the_turns_first_call(
    making: Making, choice: str
) -> None:
    model = script(called("mul"), said("6"), called("mul"), said())
    turn_fixture = await making.turn_fixture(model, tool_config={"tool_choice": choice})

    await turn_fixture.turn()
    await turn_fixture.turn("and now?")

    assert [request.tool_choice for request in model.requests] == [choice, "auto", choice, "auto"]


async def test_results_of_client_tools_satisfy_the_choice_and_none_lets_no_tool_be_called(making: Making) -> None:
    model = script(called("ask"), said(), called("ask"), said())
    turn_fixture = await making.turn_fixture(model, "ask", tool_config={"tool_choice": "ask"})

    paused = await turn_fixture.turn()
    await turn_fixture.resumed(paused.turn_id, ("c0", "yes"))
    without = await turn_fixture.turn(tool_config={"tool_choice": "none"})

    assert [request.tool_choice for request in model.requests] == ["ask", "auto", "none", "none"]
    assert "There is no tool named 'ask'" in str(responses(without)[0].content)
    assert without.status is TurnStatus.completed


async def test_what_a_later_tool_has_done_is_stored_when_time_runs_out_for_an_earlier_one(making: Making) -> None:
    async def act(invocation: Invocation) -> ToolOutcome:
        if invocation.tool_name == "add":
            await asyncio.sleep(60)
        asyncio.get_running_loop().call_soon(CLOCK.move, 5)
        return ToolOutcome(content="done and paid")

    making.workshop.act = act
    turn_fixture = await making.turn_fixture(script(called("add", "sub")))

    events = await turn_fixture.play(await turn_fixture.start(seconds=5))

    assert shape(events)[-1] == "failed deadline_exceeded"
    [turn] = await turn_fixture.stored()
    assert [(response.tool_name, response.content) for response in responses(turn)] == [("sub", "done and paid")]


async def test_a_provider_that_there_is_not_is_named(cloud: Cloud, tenant: str) -> None:
    configured = '{"toolgroups": [{"toolgroup_id": "oops", "provider_id": "nosuch"}]}'
    turn_fixture = await TurnFixture(cloud.store, tenant, script(), registry=configured).open(toolgroups=["oops"])

    with pytest.raises(ToolUnavailable, match="'nosuch'"):
        await turn_fixture.start()

    assert "web_search" in [
        tool.identifier for tool in (await turn_fixture.services.toolgroups.tools_of(None, {})).data
    ]


async def until_early_results_are_stored(turn_fixture: TurnFixture, turn_id: str, count: int) -> None:
    async def are_stored() -> bool:
        turn = await turn_fixture.store.turns.get(*turn_fixture.ids, turn_id)
        return sum(len(record.early or ()) for record in turn.records) == count

    await poll_until(are_stored)


async def test_a_reader_sees_a_result_after_an_unfinished_one_as_the_first_stream_did(making: Making) -> None:
    async def hang_on_adding(invocation: Invocation) -> ToolOutcome:
        if invocation.tool_name == "add":
            await asyncio.Event().wait()
        return ToolOutcome(content="deleted")

    making.workshop.act = hang_on_adding
    turn_fixture = await making.turn_fixture(script(called("add", "sub", "mul")))
    run = await turn_fixture.start(seconds=20)
    ids = turn_fixture.agent_id, turn_fixture.session_id, run.turn_id
    tail = turn_fixture.services.turn_requests.tail
    live = await tail.follow(*ids, -1, deadline(600))

    async def follow() -> list[NumberedEvent]:
        return [event async for event in live]

    following, playing = asyncio.create_task(follow()), asyncio.create_task(turn_fixture.play(run))
    await until_early_results_are_stored(turn_fixture, run.turn_id, 2)
    CLOCK.move(20)
    first = await playing
    again = [event async for event in await tail.follow(*ids, -1, deadline(600))]

    assert shape(first)[-3:] == ["start tool_execution", "call in_progress", "failed deadline_exceeded"]
    assert [step.step_type for step in ended(first).steps] == ["inference", "tool_execution", "tool_execution"]
    expected = [(number, encode_event(event)) for number, event in enumerate(first)]
    assert [(each.number, encode_event(each.event)) for each in again] == expected
    assert [(each.number, encode_event(each.event)) for each in await following] == expected


async def test_a_toolgroup_that_hangs_hides_no_other(making: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stint.services.registry.toolgroups.LIST_SECONDS", 0.05)
    other = TurnFixture(making.cloud.store, making.tenant, script())
    turn_fixture = await making.turn_fixture(script())
    making.workshop.list_tools = hang  # type: ignore[method-assign]  # from now on
    providers = dict(other.services.toolgroups.tools.providers) | {KIND: making.workshop}
    toolgroups = replace(
        turn_fixture.services.toolgroups, tools=replace(turn_fixture.services.toolgroups.tools, providers=providers)
    )

    shown = (await toolgroups.tools_of(None, {})).data

    assert [tool.identifier for tool in shown] == ["web_search", "wolfram_alpha", "knowledge_search"]


async def hang(_: Toolgroup, __: dict[str, Any], /) -> list[ToolSignature]:
    await asyncio.sleep(60)
    return []


@pytest.mark.parametrize("name", ["builtin::code_interpreter", "builtin::code_interpreter/run"])
async def test_what_is_not_offered_is_refused_by_name(making: Making, name: str) -> None:
    turn_fixture = await making.turn_fixture(script())

    with pytest.raises(NotSupported, match="CodeInterpreter is not none"):
        await turn_fixture.start(toolgroups=[name])
    with pytest.raises(NotSupported, match="CodeInterpreter is not none"):
        await turn_fixture.services.toolgroups.tools_of(name, {})


async def test_a_tool_of_several_toolgroups_is_not_guessed(making: Making) -> None:
    turn_fixture = await making.turn_fixture(script())
    await making.register(turn_fixture, "twin", tools=["add"])

    with pytest.raises(InvalidRequest, match="'math/add' or 'twin/add'"):
        await turn_fixture.services.toolgroups.invoke("add", {}, {})


async def test_structured_content_that_is_too_long_goes_with_the_rest(making: Making) -> None:
    async def act(_: Invocation) -> ToolOutcome:
        return ToolOutcome(content="x" * 3_000, metadata={"structured_content": {"x": "y" * 3_000}, "status": 200})

    making.workshop.act = act
    turn_fixture = await making.turn_fixture(script(called("add"), said()))

    [response] = responses(await turn_fixture.turn())

    assert set(response.metadata) == {"full_result", "status"}


async def test_a_tool_that_only_bears_the_name_of_web_search_keeps_it(making: Making) -> None:
    model = script(called("web_search"), said())
    turn_fixture = await making.turn_fixture(model, toolgroups=[])
    await making.register(turn_fixture, "library", tools=["web_search"])

    turn = await turn_fixture.turn(toolgroups=["library"])

    assert [tool.name for tool in model.requests[0].tools] == ["web_search"]
    assert [invocation.tool_name for invocation in making.workshop.invocations] == ["web_search"]
    assert responses(turn)[0].content == "web_search: {}"


async def test_a_fault_of_a_tool_is_logged_without_its_words(making: Making, caplog: pytest.LogCaptureFixture) -> None:
    async def crash(_: Invocation) -> ToolOutcome:
        raise ValueError(f"illegal header {SECRET}")

    making.workshop.act = crash
    turn_fixture = await making.turn_fixture(script(called("add"), said()))

    turn = await turn_fixture.turn()

    logged = "".join(str(vars(record)) for record in caplog.records)
    assert "ValueError" in logged
    assert SECRET not in logged
    assert SECRET not in turn.model_dump_json()


@pytest.mark.parametrize("junk", [5, "x", [5], [{"mime_type": "text/plain"}], {"a": 1}])
async def test_metadata_that_is_no_attachment_spoils_no_turn(making: Making, junk: Any) -> None:
    async def attach(_: Invocation) -> ToolOutcome:
        return ToolOutcome(content="ok", metadata={"attachments": junk})

    making.workshop.act = attach
    turn_fixture = await making.turn_fixture(script(called("add"), said()))

    turn = await turn_fixture.turn()

    assert turn.status == "completed"
    assert (await turn_fixture.get(turn.turn_id)).output_attachments == []


async def test_an_alias_of_a_model_that_another_process_registered_is_found_at_once(making: Making) -> None:
    model = script(said(), said())
    turn_fixture = await making.turn_fixture(model)
    await turn_fixture.turn()
    other = TurnFixture(making.cloud.store, making.tenant, model)
    request = ModelRegisterRequest(model_id="quick", provider_model_id="test/m2", provider_id="scripted")
    await other.services.registry.register_model(request)

    assert await turn_fixture.services.registry.route("quick") == "scripted/test/m2"


async def test_a_model_that_nobody_knows_is_refused_by_name_and_so_is_one_that_was_unregistered(making: Making) -> None:
    turn_fixture = await making.turn_fixture(script(said()))
    registry = turn_fixture.services.registry
    await registry.register_model(ModelRegisterRequest(model_id="quick", provider_model_id="scripted/demo"))
    assert await registry.route("quick") == "scripted/demo"
    await registry.unregister("model", "quick")

    for unknown in ("quick", "no/such-model", "gpt-5"):
        with pytest.raises(InvalidRequest, match=f"{unknown}.*GET /v1/models") as refused:
            await registry.route(unknown)
        assert (refused.value.code, refused.value.param) == ("model_not_found", "model")


async def test_an_id_that_begins_with_a_provider_need_not_be_listed(making: Making) -> None:
    turn_fixture = await making.turn_fixture(script(said()))

    assert await turn_fixture.services.registry.route("scripted/anything") == "scripted/anything"


def wait_in(gates: dict[str, asyncio.Event]) -> Act:
    """Return what a tool does: it waits for its gate, if it has one."""

    async def act(invocation: Invocation) -> ToolOutcome:
        if invocation.tool_name in gates:
            await gates[invocation.tool_name].wait()
        return ToolOutcome(f"{invocation.tool_name} is done")

    return act


async def test_the_next_turn_knows_what_came_of_the_calls_of_a_process_that_died(making: Making) -> None:
    gates = {"add": asyncio.Event()}
    making.workshop.act = wait_in(gates)
    model = script(called("add", "sub"), said())
    turn_fixture = await making.turn_fixture(model)
    turn = await turn_fixture.start()
    running = asyncio.create_task(turn_fixture.play(turn))
    await poll_until(lambda: has_records(turn_fixture, turn, 2))
    await die(turn)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    await turn_fixture.turn("and now?")

    assert [words_of(each) for each in model.requests[1].messages] == ["Hello", "", SENT, "sub is done", "and now?"]
    sealed, _ = await turn_fixture.stored()
    assert [step.tool_calls[0].tool_name for step in sealed.steps if isinstance(step, ToolExecutionStep)] == ["sub"]


async def has_records(turn_fixture: TurnFixture, turn: TurnRun, count: int) -> bool:
    return len((await turn_fixture.store.turns.get(*turn_fixture.ids, turn.turn_id)).records) >= count


async def test_results_are_announced_in_the_models_order_and_shown_once(making: Making) -> None:
    gates = {"add": asyncio.Event()}
    making.workshop.act = wait_in(gates)
    turn_fixture = await making.turn_fixture(script(called("add", "sub", "mul"), said()))
    turn = await turn_fixture.start()
    running = asyncio.create_task(turn_fixture.play(turn))
    await poll_until(lambda: has_records(turn_fixture, turn, 2))
    shown = await turn_fixture.get(turn.turn_id)
    gates["add"].set()
    told = ended(await running)

    assert [step.step_type for step in shown.steps][:2] == ["inference", "tool_execution"]
    names = [step.tool_calls[0].tool_name for step in told.steps if isinstance(step, ToolExecutionStep)]
    assert names == ["add", "sub", "mul"]
    assert told == await turn_fixture.get(turn.turn_id)


@pytest.mark.parametrize(("tools", "units"), [(("add",), 6), (("add", "sub"), 7)])
async def test_results_in_the_models_order_cost_a_unit_each(making: Making, tools: tuple[str, ...], units: int) -> None:
    added = asyncio.Event()

    async def act(invocation: Invocation) -> ToolOutcome:
        if invocation.tool_name == "sub":
            await added.wait()
        added.set()
        return ToolOutcome("done")

    making.workshop.act = act
    turn_fixture = await making.turn_fixture(script(said(), called(*tools), said()))
    await turn_fixture.turn()
    making.cloud.forget()

    await turn_fixture.turn()

    assert sum(making.cloud.proxy.units[name] for name in ("PutItem", "UpdateItem")) == units


async def test_a_result_before_its_turn_costs_one_more_unit(making: Making) -> None:
    gates = {"add": asyncio.Event()}
    making.workshop.act = wait_in(gates)
    turn_fixture = await making.turn_fixture(script(said(), called("add", "sub"), said()))
    await turn_fixture.turn()
    making.cloud.forget()

    turn = await turn_fixture.start()
    running = asyncio.create_task(turn_fixture.play(turn))
    await poll_until(lambda: has_records(turn_fixture, turn, 2))
    gates["add"].set()
    await running

    assert sum(making.cloud.proxy.units[name] for name in ("PutItem", "UpdateItem")) == 8


async def test_calls_that_had_not_started_when_time_ran_out_have_no_result(making: Making) -> None:
    making.workshop.act = wait_in({"add": asyncio.Event()})
    model = script(called(*["add"] * (CALLS_AT_ONCE + 1)), said())
    turn_fixture = await making.turn_fixture(model)
    failed = ended(await turn_fixture.play(await turn_fixture.start(seconds=1)))

    await turn_fixture.turn("and now?")

    assert failed.status is TurnStatus.failed
    results = [words_of(each) for each in model.requests[1].messages if isinstance(each, ToolResult)]
    assert results == [*[SENT] * CALLS_AT_ONCE, NO_RESULT]
