"""Calls that run after their client has approved them, in whole turns over the real store."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.script_model import Script, called, deadline, said, script, shape, words_of
from tests.services.turn_fixture import TurnFixture, die, ended
from tests.services.turns.test_rejoined_turns import as_sent, numbered, rejoin
from tests.services.turns.test_shielded_turns import SORRY
from tests.services.turns.test_step_inputs import rebuild_all
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict, InvalidRequest
from stint.domain.inference import ToolSignature
from stint.domain.llama_stack.agents import ToolShieldNames
from stint.domain.llama_stack.events import NumberedEvent
from stint.domain.llama_stack.registrations import ShieldRegisterRequest, ToolGroupRegisterRequest
from stint.domain.llama_stack.sessions import ForkFrom
from stint.domain.llama_stack.turns import ToolApproval, Turn, TurnResumeRequest, TurnStatus
from stint.domain.steps import ToolExecutionStep
from stint.domain.tools import DENIED, ToolResponse
from stint.loop.transcript import NO_RESULT, SENT
from stint.services.runs.run_handle import RequestContext
from stint.services.turns.tool_servers import find_server
from stint.services.turns.turn_run import TurnRun
from stint.tools.port import MCP, Invocation, Toolgroup, ToolOutcome, ToolProvider

TOOLS = ("add", "drop", "look")
Approvals = Sequence[tuple[str, bool] | tuple[str, bool, str]]


@dataclass
class FakeServers:
    """A provider of MCP servers, each of which has the tools that its address ends with, or all.

    It is that of `builtin::wolfram_alpha`, too.
    """

    invocations: list[str] = field(default_factory=list)
    waits: asyncio.Event | None = None
    started: asyncio.Event = field(default_factory=asyncio.Event)

    async def check(self, _: Toolgroup, /) -> None:
        pass

    def known_tools(self, toolgroup: Toolgroup, _: dict[str, Any], /) -> list[ToolSignature] | None:
        if toolgroup.mcp_endpoint is None:
            return [ToolSignature("wolfram_alpha", "", {"type": "object"})]
        name = toolgroup.mcp_endpoint.rpartition("/")[2]
        return [ToolSignature(each, "", {"type": "object"}) for each in TOOLS if name in (each, "all")]

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        return self.known_tools(toolgroup, provider_data) or []

    async def invoke(self, _: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        self.invocations.append(invocation.tool_name)
        self.started.set()
        if self.waits is not None:
            await self.waits.wait()
        return ToolOutcome(f"{invocation.tool_name} ran")


def server(label: str = "shop", tools: str = "all", **args: Any) -> dict[str, Any]:
    given = {"server_label": label, "server_url": f"https://{label}.example/{tools}", "require_approval": "always"}
    return {"name": "builtin::mcp", "args": given | args}


@pytest.fixture
def servers() -> FakeServers:
    return FakeServers()


@dataclass
class Shop:
    """Sessions whose agent has an MCP server, and the client tool `ask`."""

    cloud: Cloud
    tenant: str
    servers: FakeServers

    @property
    def providers(self) -> dict[str, ToolProvider]:
        return {MCP: self.servers, "wolfram-alpha": self.servers}

    async def open(self, model: Script, **config: Any) -> TurnFixture:
        made = TurnFixture(self.cloud.store, self.tenant, model, providers=self.providers)
        params = {"phrases": ["SECRET-7"], "user_message": SORRY}
        await made.services.shields.register(ShieldRegisterRequest(shield_id="words", params=params))
        return await made.open("ask", **({"toolgroups": [server()]} | config))

    def other_process(self, made: TurnFixture, model: Script) -> TurnFixture:
        other = TurnFixture(self.cloud.store, self.tenant, model, providers=self.providers)
        other.agent_id, other.session_id = made.agent_id, made.session_id
        return other


@pytest.fixture
def shop(cloud: Cloud, tenant: str, servers: FakeServers) -> Shop:
    return Shop(cloud, tenant, servers)


def answer(*results: tuple[str, str], approvals: Approvals = ()) -> TurnResumeRequest:
    given = [ToolResponse(call_id=call_id, tool_name="t", content=text) for call_id, text in results]
    decided = [dict(zip(("call_id", "approve", "reason"), each, strict=False)) for each in approvals]
    return TurnResumeRequest(tool_responses=given, approvals=[ToolApproval.model_validate(each) for each in decided])


async def resume(made: TurnFixture, turn_id: str, request: TurnResumeRequest) -> TurnRun:
    return await made.turns.resume(made.agent_id, made.session_id, turn_id, request, RequestContext(deadline(30)))


async def resumed(made: TurnFixture, turn_id: str, request: TurnResumeRequest) -> Turn:
    return ended(await made.play(await resume(made, turn_id, request)))


async def submit(made: TurnFixture, turn_id: str, request: TurnResumeRequest) -> list[NumberedEvent]:
    """Send a request as its route does, and return the events."""
    resume = made.services.turn_requests.resume
    handle = await resume(made.agent_id, made.session_id, turn_id, request, RequestContext(deadline(30)))
    return [event async for event in handle.events()]


def results(turn: Turn) -> list[tuple[str, Any, Any]]:
    steps = [step for step in turn.steps if isinstance(step, ToolExecutionStep)]
    return [(each.call_id, each.content, each.metadata) for step in steps for each in step.tool_responses]


def seen(model: Script) -> list[str]:
    return [words_of(message) for message in model.requests[-1].messages]


async def test_a_call_waits_and_runs_after_its_approval(shop: Shop, servers: FakeServers) -> None:
    made = await shop.open(model := script(called("drop", text="Sure?"), said("Done.")))
    turn = await made.start()
    first = await made.play(turn)
    paused = ended(first)
    ran_before = [*servers.invocations]

    second = await made.play(await resume(made, turn.turn_id, answer(approvals=[("c0", True)])))

    assert (paused.status, paused.pending_approvals, ran_before) == (TurnStatus.awaiting_input, ["c0"], [])
    assert [call.call_id for call in paused.output_message.tool_calls] == ["c0"]
    assert shape(second)[:3] == ["start tool_execution", "call in_progress", "complete tool_execution"]
    done = ended(second)
    assert (done.status, done.pending_approvals) == (TurnStatus.completed, None)
    assert (results(done), servers.invocations) == ([("c0", "drop ran", None)], ["drop"])
    assert seen(model)[-1] == "drop ran"
    assert await made.get(turn.turn_id) == done
    assert as_sent(await rejoin(made, turn.turn_id)) == numbered([*first, *second])


async def test_a_denied_call_is_answered_without_running(shop: Shop, servers: FakeServers) -> None:
    made = await shop.open(model := script(called("drop"), said("Sorry.")))
    turn = await made.start()
    first = await made.play(turn)

    second = await made.play(await resume(made, turn.turn_id, answer(approvals=[("c0", False, "Not today.")])))

    told = f"{DENIED} Not today."
    assert shape(second)[0] == "complete tool_execution"
    assert results(ended(second)) == [("c0", told, {"error": True})]
    assert (seen(model)[-1], servers.invocations) == (told, [])
    assert as_sent(await rejoin(made, turn.turn_id)) == numbered([*first, *second])


async def test_all_kinds_of_calls_in_one_answer(shop: Shop, servers: FakeServers) -> None:
    only = {"always": {"tool_names": ["drop", "add"]}}
    made = await shop.open(
        model := script(called("drop", "ask", "look", "add"), said("Done.")),
        toolgroups=[server(require_approval=only)],
    )
    turn = await made.start()
    first = await made.play(turn)
    paused = ended(first)
    ran_before = [*servers.invocations]

    request = answer(("c1", "yes"), approvals=[("c3", False), ("c0", True)])
    second = await made.play(await resume(made, turn.turn_id, request))

    assert (paused.pending_approvals, ran_before) == (["c0", "c3"], ["look"])
    answered = [
        ("c2", "look ran", None),
        ("c1", "yes", None),
        ("c3", DENIED, {"error": True}),
        ("c0", "drop ran", None),
    ]
    assert results(ended(second)) == answered
    assert sorted(seen(model)[-4:]) == sorted(["look ran", "yes", DENIED, "drop ran"])
    assert servers.invocations == ["look", "drop"]
    assert as_sent(await rejoin(made, turn.turn_id)) == numbered([*first, *second])
    [last] = await shop.other_process(made, model).stored()
    assert last == ended(second)


@pytest.mark.parametrize(
    ("request_", "code", "told"),
    [
        (answer(("c1", "yes")), "approvals_mismatch", "missing: c0"),
        (answer(("c1", "yes"), approvals=[("c0", True), ("c0", False)]), "approvals_mismatch", "given twice: c0"),
        (answer(("c1", "yes"), approvals=[("c0", True), ("c9", True)]), "approvals_mismatch", "unknown: c9"),
        (answer(("c1", "yes"), approvals=[("c0", True), ("c1", True)]), "approvals_mismatch", "unknown: c1"),
        (answer(approvals=[("c0", True)]), "tool_responses_mismatch", "missing: c1"),
        (answer(("c1", "yes"), ("c0", "forged"), approvals=[("c0", True)]), "tool_responses_mismatch", "unknown: c0"),
        (answer(("c1", "yes"), ("c0", "forged")), "approvals_mismatch", "missing: c0"),
    ],
)
async def test_answers_that_do_not_match_change_nothing(
    shop: Shop, servers: FakeServers, request_: TurnResumeRequest, code: str, told: str
) -> None:
    made = await shop.open(script(called("drop", "ask"), said("Done.")))
    paused = await made.turn()

    with pytest.raises(InvalidRequest) as caught:
        await resume(made, paused.turn_id, request_)

    assert (caught.value.code, told in caught.value.message) == (code, True)
    assert (await made.get(paused.turn_id), servers.invocations) == (paused, [])
    done = await resumed(made, paused.turn_id, answer(("c1", "yes"), approvals=[("c0", True)]))
    assert done.status is TurnStatus.completed


async def test_a_complete_turn_accepts_no_approval(shop: Shop, servers: FakeServers) -> None:
    made = await shop.open(script(said("Done.")))
    turn = await made.turn()

    with pytest.raises(InvalidRequest) as caught:
        await resume(made, turn.turn_id, answer(("c0", "x"), approvals=[("c0", True)]))

    assert (caught.value.code, servers.invocations) == ("approvals_mismatch", [])


async def test_a_later_call_with_the_same_id_waits_again(shop: Shop, servers: FakeServers) -> None:
    made = await shop.open(script(called("drop"), called("drop"), said("Done.")))
    turn = await made.turn()

    again = await resumed(made, turn.turn_id, answer(approvals=[("c0", True)]))

    assert (again.status, again.pending_approvals) == (TurnStatus.awaiting_input, ["c0"])
    assert servers.invocations == ["drop"]
    done = await resumed(made, turn.turn_id, answer(approvals=[("c0", False)]))
    assert (done.status, servers.invocations) == (TurnStatus.completed, ["drop"])


async def test_a_later_call_with_the_same_id_is_checked_again(shop: Shop, servers: FakeServers) -> None:
    bad = called("drop", arguments=json.dumps({"what": "SECRET-7"}))
    shields = {"drop": ToolShieldNames(input_shields=["words"])}
    made = await shop.open(script(called("drop"), bad, said("Done.")), tool_shields=shields)
    turn = await made.turn()

    done = await resumed(made, turn.turn_id, answer(approvals=[("c0", True)]))

    assert (done.status, servers.invocations) == (TurnStatus.completed, ["drop"])


async def test_a_repeated_request_follows_the_first_one(shop: Shop, servers: FakeServers) -> None:
    made = await shop.open(script(called("drop", "ask"), said("Done.")))
    turn = await made.turn()
    request = answer(("c1", "yes"), approvals=[("c0", True)])
    first = await submit(made, turn.turn_id, request)

    again = await submit(shop.other_process(made, script()), turn.turn_id, request)

    assert as_sent(again) == as_sent(first)
    assert servers.invocations == ["drop"]
    for other in (
        answer(("c1", "yes"), approvals=[("c0", False)]),
        answer(("c1", "no"), approvals=[("c0", True)]),
        answer(("c1", "yes"), approvals=[("c0", True, "why")]),
    ):
        with pytest.raises((Conflict, InvalidRequest)):
            await submit(made, turn.turn_id, other)
    assert servers.invocations == ["drop"]


@pytest.mark.parametrize("started", [True, False])
async def test_a_process_that_dies_after_the_approval_leaves_an_interrupted_turn(
    shop: Shop, servers: FakeServers, *, started: bool
) -> None:
    made = await shop.open(model := script(called("drop", "ask"), said("And now?")))
    turn = await made.turn()
    request = answer(("c1", "yes"), approvals=[("c0", True)])
    run = await resume(made, turn.turn_id, request)
    if started:
        servers.waits = asyncio.Event()
        playing = asyncio.create_task(made.play(run))
        await servers.started.wait()
        playing.cancel()
        with suppress(asyncio.CancelledError):
            await playing
    await die(run)
    ran = [*servers.invocations]

    other = shop.other_process(made, model)
    again = await submit(other, turn.turn_id, request)

    assert shape([each.event for each in again])[-1] == "failed interrupted"
    assert servers.invocations == ran == ["drop"] * started
    assert (await other.get(turn.turn_id)).status is TurnStatus.failed
    await other.turn("Well?")
    assert seen(model)[-3:] == [SENT, "yes", "Well?"]


async def test_a_process_that_dies_after_a_denial_is_replaced(shop: Shop, servers: FakeServers) -> None:
    made = await shop.open(script(called("drop"), said("lost"), said("Done.")))
    turn = await made.turn()
    request = answer(approvals=[("c0", False)])
    await die(await resume(made, turn.turn_id, request))
    await made.expire_lease()

    again = await resumed(made, turn.turn_id, request)

    assert (again.status, again.output_message.content) == (TurnStatus.completed, "Done.")
    assert servers.invocations == []


async def test_a_call_that_did_not_start_is_not_told_as_sent(shop: Shop, servers: FakeServers) -> None:
    """The shield has no verdict about the client's result, so the turn fails before the approved call."""
    model = script(said("safe"), called("drop", "ask"), said("maybe"), said("safe"), said("Hm."))
    made = await shop.open(model, input_shields=["guard"])
    guard = ShieldRegisterRequest(shield_id="guard", provider_id="llama-guard", provider_shield_id="test/m")
    await made.services.shields.register(guard)
    turn = await made.turn()

    failed = await resumed(made, turn.turn_id, answer(("c1", "yes"), approvals=[("c0", True)]))

    assert (failed.status, servers.invocations) == (TurnStatus.failed, [])
    await shop.other_process(made, model).turn("Well?")
    assert SENT not in seen(model)


async def test_a_turn_that_waits_can_be_cancelled(shop: Shop, servers: FakeServers) -> None:
    made = await shop.open(model := script(called("drop"), said("Yes?")))
    turn = await made.turn()

    cancel = made.services.turn_requests.cancellation.cancel
    cancelled = await cancel(made.agent_id, made.session_id, turn.turn_id)

    assert (cancelled.status, cancelled.pending_approvals) == (TurnStatus.cancelled, None)
    await made.turn("Hello?")
    assert seen(model)[-2:] == [NO_RESULT, "Hello?"]
    assert servers.invocations == []


async def test_a_new_turn_cancels_one_that_waits_for_approval(shop: Shop, servers: FakeServers) -> None:
    made = await shop.open(model := script(called("drop"), said("Yes?")))
    waiting = await made.turn()

    await made.turn("Hello?")

    assert (await made.get(waiting.turn_id)).status is TurnStatus.cancelled
    assert (seen(model)[-2:], servers.invocations) == ([NO_RESULT, "Hello?"], [])
    with pytest.raises(Conflict):
        await resume(made, waiting.turn_id, answer(approvals=[("c0", True)]))


async def test_shields_of_a_tool_check_a_call_once_and_before_it_waits(shop: Shop, servers: FakeServers) -> None:
    shields = {"drop": ToolShieldNames(input_shields=["words"], output_shields=["words"])}
    made = await shop.open(script(called("drop"), said("Done.")), tool_shields=shields)
    turn = await made.start()
    first = await made.play(turn)
    ran_before = [*servers.invocations]

    second = await made.play(await resume(made, turn.turn_id, answer(approvals=[("c0", True)])))

    assert shape(first)[-3:] == ["start shield_call", "complete shield_call", "turn_awaiting_input"]
    assert (ended(first).pending_approvals, ran_before, servers.invocations) == (["c0"], [], ["drop"])
    assert shape(second)[:5] == [
        "start tool_execution",
        "call in_progress",
        "complete tool_execution",
        "start shield_call",
        "complete shield_call",
    ]
    assert as_sent(await rejoin(made, turn.turn_id)) == numbered([*first, *second])


async def test_a_blocked_call_never_waits(shop: Shop, servers: FakeServers) -> None:
    shields = {"drop": ToolShieldNames(input_shields=["words"])}
    model = script(called("drop", arguments=json.dumps({"what": "SECRET-7"})), said("Done."))
    made = await shop.open(model, tool_shields=shields)

    turn = await made.turn()

    assert (turn.status, servers.invocations) == (TurnStatus.completed, [])


@pytest.mark.parametrize(
    ("request_", "last"),
    [
        (answer(("c1", "fine"), approvals=[("c0", True)]), "Done."),
        (answer(("c1", "SECRET-7"), approvals=[("c0", True)]), SORRY),
    ],
)
async def test_input_shields_see_what_the_client_sends_with_its_approvals(
    shop: Shop, servers: FakeServers, request_: TurnResumeRequest, last: str
) -> None:
    made = await shop.open(model := script(called("drop", "ask"), said("Done.")), input_shields=["words"])
    turn = await made.start()
    first = await made.play(turn)

    second = await made.play(await resume(made, turn.turn_id, request_))

    assert ended(second).output_message.content == last
    assert servers.invocations == ["drop"] * (last == "Done.")
    assert as_sent(await rejoin(made, turn.turn_id)) == numbered([*first, *second])
    if last == "Done.":
        assert seen(model)[-2:] == ["fine", "drop ran"]


async def test_an_approval_alone_is_no_message_for_shields(shop: Shop, servers: FakeServers) -> None:
    made = await shop.open(script(called("drop", text="SECRET-7"), said("Done.")), input_shields=["words"])
    turn = await made.turn()

    done = await resumed(made, turn.turn_id, answer(approvals=[("c0", True)]))

    assert (done.output_message.content, servers.invocations) == ("Done.", ["drop"])


async def test_the_inputs_of_the_model_are_rebuilt(shop: Shop) -> None:
    model = script(called("drop", "ask", "look"), called("add"), said("Done."), said("More."))
    made = await shop.open(model, input_shields=["words"])
    turn = await made.turn()
    request = answer(("c1", "yes"), approvals=[("c0", True), ("c2", False)])
    await resumed(made, turn.turn_id, request)
    await resumed(made, turn.turn_id, answer(approvals=[("c0", True)]))
    await shop.other_process(made, model).turn("Go on.")

    rebuilt = await rebuild_all(made)

    assert [each.request for each in rebuilt] == model.requests


async def test_a_fork_has_the_turn_with_its_approvals(shop: Shop) -> None:
    made = await shop.open(model := script(called("drop", "add"), said("Done."), said("More.")))
    turn = await made.turn()
    done = await resumed(made, turn.turn_id, answer(approvals=[("c0", True), ("c1", False)]))
    fork_from = ForkFrom(session_id=made.session_id, turn_id=turn.turn_id)
    fork = shop.other_process(made, model)
    fork.session_id = await made.sessions.create(made.agent_id, "fork", fork_from=fork_from)

    await fork.turn("And?")

    [copy, _] = await fork.stored()
    assert [step.step_id for step in copy.steps] == [step.step_id for step in done.steps]
    assert seen(model)[-4:] == [DENIED, "drop ran", "Done.", "And?"]


async def test_tools_of_a_registered_server_may_wait(shop: Shop, servers: FakeServers) -> None:
    made = await shop.open(script(called("drop", "look"), said("Done.")), toolgroups=["store"])
    uri = {"uri": "https://store.example/all"}
    args = {"require_approval": {"never": {"tool_names": ["look"]}}}
    request = ToolGroupRegisterRequest(toolgroup_id="store", provider_id=MCP, mcp_endpoint=uri, args=args)
    await made.services.toolgroups.register(request)

    turn = await made.turn()

    assert (turn.pending_approvals, servers.invocations) == (["c0"], ["look"])


async def test_credentials_of_a_turn_that_asks_are_kept_until_it_is_resumed(shop: Shop, servers: FakeServers) -> None:
    made = await shop.open(script(called("drop"), said("Done.")), toolgroups=[], client_tools=[])
    turn = await made.turn(toolgroups=[server(authorization="very-secret-token")])

    done = await resumed(
        shop.other_process(made, script(said("Done."))), turn.turn_id, answer(approvals=[("c0", True)])
    )

    assert (done.status, servers.invocations) == (TurnStatus.completed, ["drop"])


ONE, TWO = server("one", "add"), server("two", "drop")


@pytest.mark.parametrize(
    ("toolgroups", "labels"),
    [
        ([], {"ask": None, "web_search": None}),
        ([ONE], {"add": "one", "ask": None}),
        ([ONE, TWO], {"add": "one", "drop": "two", "ask": None}),
        (["store"], {"look": "store", "ask": None}),
        (["store/look"], {"look": "store"}),
        ([ONE, "store"], {"add": "one", "look": "store", "ask": None}),
        ([ONE, "builtin::wolfram_alpha"], {"add": "one", "wolfram_alpha": None}),
        (["store", "builtin::wolfram_alpha"], {"look": "store", "wolfram_alpha": None}),
    ],
)
async def test_the_server_of_a_tool_is_known_from_the_log(
    shop: Shop, toolgroups: list[Any], labels: dict[str, str | None]
) -> None:
    made = await shop.open(script(said("Hi")))
    uri = {"uri": "https://store.example/look"}
    request = ToolGroupRegisterRequest(toolgroup_id="store", provider_id=MCP, mcp_endpoint=uri)
    await made.services.toolgroups.register(request)
    made = await made.open("ask", toolgroups=toolgroups)
    turn = await made.turn()
    [stored] = (await made.store.turns.history(*made.ids)).turns

    config = await made.agents.config(made.agent_id)

    assert {name: find_server(stored.header, config, name) for name in labels} == labels
    assert (stored.header.servers is None) == (len(toolgroups) < 2 or "store" in toolgroups[:1])
    assert turn.turn_id == stored.header.turn_id
