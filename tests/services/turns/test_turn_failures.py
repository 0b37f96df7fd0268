import asyncio
import threading
from typing import Any

import pytest
from tests.script_model import Part, called, said, script, shape, words_of
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import TurnFixture, ended, tool
from tests.store.conftest import Cloud

from stint.domain.content import Document
from stint.domain.errors import ContextLengthExceeded, InvalidRequest, ModelOverloaded, NotFound, StoreUnavailable
from stint.domain.ids import new_id
from stint.domain.inference import TextChunk, UserInput
from stint.domain.llama_stack.events import TurnFailed
from stint.domain.llama_stack.turns import TurnStatus
from stint.domain.run_outcome import RunStatus
from stint.store.session_leases import SessionLease

HEADER, ENDING = "input_messages", "ended_as"


async def test_a_failing_model_fails_the_turn_and_keeps_its_steps(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(called("nosuch"), [TextChunk("I"), ModelOverloaded("busy")])).open()

    events = await turn_fixture.play(await turn_fixture.start())

    assert shape(events)[-3:] == ["start inference", "text I", "failed model_overloaded"]
    turn = ended(events)
    assert turn == await turn_fixture.get(turn.turn_id)
    assert (turn.status, len(turn.steps), turn.output_message.content) == (TurnStatus.failed, 2, "")
    assert turn.error is not None
    assert turn.error.code == "model_overloaded"
    assert isinstance(events[-1], TurnFailed)
    assert events[-1].error.turn_id == turn.turn_id


async def test_an_unexpected_exception_is_a_server_error_without_its_details(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    turn_fixture = await make_turn_fixture(script([RuntimeError("password 1234")])).open()

    turn = await turn_fixture.turn()

    assert turn.error is not None
    assert (turn.error.code, "1234" in turn.model_dump_json()) == ("server_error", False)
    assert turn == await turn_fixture.get(turn.turn_id)


async def test_the_deadline_fails_the_turn_and_keeps_its_steps_though_the_lease_ends_with_it(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    turn_fixture = await make_turn_fixture(script(called("nosuch"), [asyncio.Event()]), lease=1).open()

    turn = ended(await turn_fixture.play(await turn_fixture.start(seconds=1.5)))

    assert turn.error is not None
    assert (turn.error.code, len(turn.steps)) == ("deadline_exceeded", 2)
    assert turn == await turn_fixture.get(turn.turn_id)
    assert await turn_fixture.lease_turn() is None


async def test_a_step_that_cannot_be_stored_fails_the_turn(
    make_turn_fixture: MakeTurnFixture, own_cloud: Cloud, tenant: str
) -> None:
    turn_fixture = await TurnFixture(own_cloud.store, tenant, script(said())).open()
    turn = await turn_fixture.start()

    with own_cloud.proxy.failing("PutItem", ENDING, times=1):
        events = await turn_fixture.play(turn)

    assert shape(events)[-2:] == ["text Hi", "failed store_unavailable"]
    assert ended(events) == await turn_fixture.get(turn.turn_id)
    assert await turn_fixture.lease_turn() is None


async def test_an_end_that_cannot_be_stored_frees_the_session(own_cloud: Cloud, tenant: str) -> None:
    """The next turn seals the lost one."""
    turn_fixture = await TurnFixture(own_cloud.store, tenant, script(called("nosuch"), said(), said("next"))).open()
    turn = await turn_fixture.start()

    with own_cloud.proxy.failing("PutItem", ENDING):
        lost = ended(await turn_fixture.play(turn))
    assert (lost.status, await turn_fixture.lease_turn()) == (TurnStatus.failed, None)
    await turn_fixture.turn("go on")

    sealed, following = await turn_fixture.stored()
    assert sealed.error is not None
    assert (sealed.status, sealed.error.code, len(sealed.steps)) == (TurnStatus.failed, "interrupted", 2)
    assert following.status is TurnStatus.completed


@pytest.mark.parametrize(
    ("config", "request_", "code"),
    [
        ({"model": "openai/x"}, {}, "model_not_found"),
        ({"client_tools": [tool("a"), tool("a")]}, {}, "duplicate_tool"),
        ({"tool_config": {"tool_choice": "nosuch"}}, {}, "tool_not_found"),
        ({"input_shields": ["s"]}, {}, "shield_not_found"),
        ({}, {"toolgroups": ["builtin::x"]}, "toolgroup_not_found"),
        ({}, {"documents": [Document(content="x", mime_type="application/pdf")]}, "unsupported_document"),
    ],
)
async def test_what_is_wrong_with_a_request_leaves_no_trace(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud, config: dict[str, Any], request_: dict[str, Any], code: str
) -> None:
    turn_fixture = await make_turn_fixture(script()).open(**config)
    before = cloud.items(turn_fixture.tenant)

    with pytest.raises(InvalidRequest) as caught:
        await turn_fixture.start(**request_)

    assert caught.value.code == code
    assert cloud.items(turn_fixture.tenant) == before


async def test_unknown_agents_and_sessions_are_not_found(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script()).open()
    known = turn_fixture.agent_id, turn_fixture.session_id

    for kind, ids in (("agent", (new_id(), known[1])), ("session", (known[0], new_id())), ("agent", ("x", "y"))):
        turn_fixture.agent_id, turn_fixture.session_id = ids
        with pytest.raises(NotFound) as caught:
            await turn_fixture.start()
        assert caught.value.code == f"{kind}_not_found"
        with pytest.raises(NotFound) as caught:
            await turn_fixture.get(new_id())
        assert caught.value.code == f"{kind}_not_found"


async def test_a_turn_that_cannot_be_begun_drops_the_model_call_and_frees_the_session(
    own_cloud: Cloud, tenant: str
) -> None:
    model = script([asyncio.Event()])
    turn_fixture = await TurnFixture(own_cloud.store, tenant, model).open()
    opened = threading.Event()

    def wait_for_model(operation: str, body: str) -> None:
        assert operation != "PutItem" or opened.wait(10)

    with own_cloud.proxy.failing("PutItem", HEADER), own_cloud.proxy.watching(wait_for_model):
        starting = asyncio.create_task(turn_fixture.start())
        await asyncio.wait_for(model.opened.wait(), 30)
        opened.set()
        with pytest.raises(StoreUnavailable):
            await starting

    assert model.closed == 1
    assert await turn_fixture.lease_turn() is None
    assert await turn_fixture.stored() == []


async def test_a_turn_that_was_begun_unknowingly_never_runs_and_is_sealed(own_cloud: Cloud, tenant: str) -> None:
    model = script([asyncio.Event()], said())
    turn_fixture = await TurnFixture(own_cloud.store, tenant, model).open()

    with own_cloud.proxy.failing("PutItem", HEADER, lost=True, times=1), pytest.raises(StoreUnavailable):
        await turn_fixture.start("one")
    [lost] = await turn_fixture.stored()
    shown = await turn_fixture.get(lost.turn_id)
    await turn_fixture.turn("two")

    assert shown.status is TurnStatus.failed
    assert [turn.status for turn in await turn_fixture.stored()] == [TurnStatus.failed, TurnStatus.completed]
    assert model.requests[-1].messages == (UserInput("one"), UserInput("two"))


async def test_failures_of_reads_beside_the_lease_free_the_session(own_cloud: Cloud, tenant: str) -> None:
    turn_fixture = await TurnFixture(own_cloud.store, tenant, script()).open()

    for operation in ("GetItem", "Query"):
        with own_cloud.proxy.failing(operation), pytest.raises(StoreUnavailable):
            await turn_fixture.start()
        assert await turn_fixture.lease_turn() is None


async def test_a_turn_that_the_model_refused_does_not_fail_those_behind_it(make_turn_fixture: MakeTurnFixture) -> None:
    model = script([ContextLengthExceeded("too long")], said(), said())
    turn_fixture = await make_turn_fixture(model).open()

    refused = await turn_fixture.turn("far too long")
    await turn_fixture.turn("two")
    await turn_fixture.turn("three")

    assert refused.status is TurnStatus.failed
    assert model.requests[1].messages == (UserInput("two"),)
    assert [words_of(message) for message in model.requests[2].messages] == ["two", "Hi", "three"]
    assert [turn.status.value for turn in await turn_fixture.stored()] == ["failed", "completed", "completed"]


async def test_a_fault_after_the_end_was_stored_adds_nothing_to_the_log(
    make_turn_fixture: MakeTurnFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_fixture = await make_turn_fixture(script(said("kept"))).open()
    turn = await turn_fixture.start()

    with monkeypatch.context() as faults:

        async def fault(_: SessionLease) -> None:
            faults.undo()
            raise ZeroDivisionError

        faults.setattr(SessionLease, "release", fault)
        events = await turn_fixture.play(turn)

    assert shape(events)[-1] == "turn_complete"
    [stored] = (await turn_fixture.store.turns.history(*turn_fixture.ids)).turns
    assert (stored.status, len(stored.records)) == (RunStatus.completed, 1)


@pytest.mark.parametrize("failure", ["storage", "deadline", "overloaded"])
async def test_the_next_turn_has_the_input_of_one_that_failed_after_its_start_was_announced(
    failure: str, own_cloud: Cloud, tenant: str
) -> None:
    answers: dict[str, list[Part]] = {
        "storage": said(),
        "deadline": [asyncio.Event()],
        "overloaded": [ModelOverloaded("busy")],
    }
    model = script(answers[failure], said())
    turn_fixture = await TurnFixture(own_cloud.store, tenant, model).open()
    turn = await turn_fixture.start("my name is Marta", seconds=1 if failure == "deadline" else 30)

    with own_cloud.proxy.failing("PutItem", ENDING, times=1 if failure == "storage" else 0):
        assert ended(await turn_fixture.play(turn)).status is TurnStatus.failed
    await turn_fixture.turn("what is my name?")

    assert [words_of(message) for message in model.requests[1].messages] == ["my name is Marta", "what is my name?"]
