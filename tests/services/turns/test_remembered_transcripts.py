"""The transcripts that a warm process remembers, against the same session served by other processes."""

from typing import Any
from zlib import crc32

import pytest
from tests.script_model import Part, called, said, script
from tests.services.turn_fixture import TurnFixture, die
from tests.store.conftest import Cloud

from stint.caller import NO_ATTEMPT, RequestAttempt
from stint.domain.errors import Conflict, NotFound, StoreUnavailable
from stint.domain.ids import new_id
from stint.domain.inference import AssistantAnswer, ModelMessage, ToolResult, UserInput
from stint.domain.llama_stack.stored_turns import TurnRecord
from stint.domain.messages import UserMessage
from stint.domain.run_outcome import RunStatus
from stint.domain.tools import ToolResponseMessage


@pytest.fixture
async def warm(own_cloud: Cloud, tenant: str) -> TurnFixture:
    """Return a process that has served one turn of a session, and remembers it."""
    process = await TurnFixture(own_cloud.store, tenant, script(said("one")), transcript_cache_bytes=1_000_000).open(
        "t"
    )
    await process.turn("first")
    own_cloud.forget()
    return process


def seen_by(process: TurnFixture) -> list[ModelMessage]:
    """Return the messages of the last request to the process's model."""
    model: Any = process.model
    return list(model.requests[-1].messages)


def answer(process: TurnFixture, *answers: list[Part]) -> None:
    """Let the process's model return these answers next."""
    model: Any = process.model
    model.answers += answers


async def test_a_warm_process_reads_no_history(warm: TurnFixture, own_cloud: Cloud) -> None:
    answer(warm, said("two"))

    await warm.turn("second")

    assert seen_by(warm) == [UserInput("first"), AssistantAnswer("one"), UserInput("second")]
    assert own_cloud.calls["Query"] == 0


async def test_the_messages_of_earlier_turns_are_the_same_objects_in_each_turn(warm: TurnFixture) -> None:
    answer(warm, said("two"), said("three"), said("four"))
    await warm.turn("second")
    await warm.turn("third")
    before = seen_by(warm)

    await warm.turn("fourth")

    assert [id(message) for message in seen_by(warm)[:2]] == [id(message) for message in before[:2]]


async def test_a_process_that_missed_turns_reads_only_those_from_its_last_one_on(
    warm: TurnFixture, own_cloud: Cloud
) -> None:
    other = warm.other_process(script(said("two"), said("three")))
    await other.turn("second")
    await other.turn("third")
    answer(warm, said("four"))
    own_cloud.forget()

    await warm.turn("fourth")

    texts = ["first", "one", "second", "two", "third", "three", "fourth"]
    assert [getattr(message, "text", None) or getattr(message, "content", None) for message in seen_by(warm)] == texts
    assert own_cloud.calls["Query"] == 1


async def test_steps_that_a_completed_turn_gained_elsewhere_are_seen(warm: TurnFixture) -> None:
    [turn] = await warm.stored()
    other = warm.other_process(script(said("It is 3.")))
    await other.resumed(turn.turn_id, ("call_1", "3"))
    answer(warm, said("two"))

    await warm.turn("second")

    assert any(isinstance(message, ToolResult) for message in seen_by(warm))
    assert AssistantAnswer("It is 3.") in seen_by(warm)


async def test_a_turn_that_died_elsewhere_is_sealed_and_its_steps_are_seen(warm: TurnFixture) -> None:
    other = warm.other_process(script(said("never")))
    dead = await other.start("second")
    await die(dead)
    answer(warm, said("three"))

    await warm.turn("third")

    assert [turn.status.value for turn in await warm.stored()] == ["completed", "failed", "completed"]
    assert seen_by(warm) == [UserInput("first"), AssistantAnswer("one"), UserInput("second"), UserInput("third")]


async def test_a_lease_that_was_taken_over_always_reads(warm: TurnFixture, own_cloud: Cloud) -> None:
    other = warm.other_process(script(said("never")))
    dead = await other.start("second")
    await die(dead)
    own_cloud.forget()
    answer(warm, said("three"))

    await warm.turn("third")

    assert own_cloud.calls["Query"] >= 1


async def test_a_turn_whose_end_was_not_stored_is_not_remembered(warm: TurnFixture, own_cloud: Cloud) -> None:
    answer(warm, said("two"), said("three"))
    with own_cloud.proxy.failing("PutItem", "ended_as"):
        await warm.turn("second")

    await warm.turn("third")

    statuses = [turn.status.value for turn in await warm.stored()]
    assert statuses == ["completed", "failed", "completed"]
    assert UserInput("second") in seen_by(warm)


async def test_a_paused_turn_is_remembered_and_resumed(warm: TurnFixture, own_cloud: Cloud) -> None:
    answer(warm, called("t"), said("done"), said("more"))
    paused = await warm.turn("second")
    own_cloud.forget()

    await warm.resumed(paused.turn_id, ("c0", "3"))
    await warm.turn("third")

    assert own_cloud.calls["Query"] == 0
    kinds = [type(message).__name__ for message in seen_by(warm)]
    told = ["UserInput", "AssistantAnswer"]
    assert kinds == [*told, "UserInput", "AssistantAnswer", "ToolResult", "AssistantAnswer", "UserInput"]


async def test_a_deleted_session_is_forgotten(warm: TurnFixture) -> None:
    await warm.other_process(script()).sessions.delete(warm.agent_id, warm.session_id)

    with pytest.raises(NotFound):
        await warm.start("second")

    cache = warm.turns.opener.transcripts
    assert cache.get((warm.tenant, warm.agent_id, warm.session_id)) is None
    assert cache.bytes == 0


async def test_the_log_of_a_resumed_turn_does_not_change_what_is_remembered(warm: TurnFixture) -> None:
    [turn] = await warm.stored()
    cache, key = warm.turns.opener.transcripts, (warm.tenant, warm.agent_id, warm.session_id)
    answer(warm, said("never"))
    run = await warm.resume(turn.turn_id, ("call_1", "3"))
    remembered = cache.get(key)
    assert remembered is not None
    assert remembered.last is not None

    assert [record.step is None for record in remembered.last.records] == [False]
    assert remembered.last.status is RunStatus.completed
    assert len(run.log.turn.records) == 2
    assert isinstance(run.log.turn.records[1], TurnRecord)
    await die(run)


async def test_a_turn_whose_seal_failed_is_seen_by_the_next_one(warm: TurnFixture, own_cloud: Cloud) -> None:
    dead = await warm.other_process(script(said("never"))).start("second")
    await die(dead)
    with own_cloud.proxy.failing("PutItem", "ended_as"), pytest.raises(StoreUnavailable):
        await warm.start("third")
    answer(warm, said("four"))

    await warm.turn("fourth")

    assert UserInput("second") in seen_by(warm)
    assert [turn.status.value for turn in await warm.stored()] == ["completed", "failed", "completed"]


@pytest.mark.parametrize("marker", ["input_messages", "step_type"])
async def test_a_record_whose_answer_was_lost_elsewhere_is_seen(
    warm: TurnFixture, own_cloud: Cloud, marker: str
) -> None:
    [turn] = await warm.stored()
    other = warm.other_process(script(said("two")))
    with (
        own_cloud.proxy.failing("PutItem", marker, lost=True),
        own_cloud.proxy.failing("GetItem", f"{turn.turn_id}:"),
        pytest.raises(StoreUnavailable),
    ):
        await (other.start("second") if marker == "input_messages" else other.resume(turn.turn_id, ("call_1", "3")))
    answer(warm, said("three"))

    await warm.turn("third")

    written = UserInput("second") if marker == "input_messages" else ToolResult("call_1", "t", "3")
    assert written in seen_by(warm)


async def test_a_paused_turn_that_a_failed_start_has_cancelled_is_not_resumed(
    warm: TurnFixture, own_cloud: Cloud
) -> None:
    answer(warm, called("t"))
    paused = await warm.turn("second")
    other = warm.other_process(script(said("never")))
    with own_cloud.proxy.failing("PutItem", "input_messages"), pytest.raises(StoreUnavailable):
        await other.start("third")

    with pytest.raises(Conflict) as refused:
        await warm.resume(paused.turn_id, ("c0", "3"))

    assert refused.value.code == "turn_not_awaiting_input"


def ranked_id(*, highest: bool) -> str:
    """Return the id of a turn before which a history is cut, or is not, if it may be cut before another one, too."""
    return next(each for each in iter(new_id, "") if (crc32(each.encode()) >= 1 << 31) == highest)


async def test_a_result_whose_call_is_in_an_omitted_turn_is_shown_as_a_cold_process_shows_it(
    own_cloud: Cloud, tenant: str
) -> None:
    store, model = own_cloud.store, script(called("t"), said("two"), said("three"), said("four"))
    process = await TurnFixture(store, tenant, model, history=5_000, transcript_cache_bytes=1_000_000).open("t")
    await process.turn("x" * 1_000)
    process.attempt = RequestAttempt(object_id=ranked_id(highest=True))  # the history is cut before this turn
    await process.turn(messages=[UserMessage(content="go on"), ToolResponseMessage(call_id="c0", content="3")])
    assert any(isinstance(message, ToolResult) for message in seen_by(process))
    process.attempt = RequestAttempt(object_id=ranked_id(highest=False))
    await process.turn("y" * 2_000)

    process.attempt = NO_ATTEMPT
    await process.turn("last")

    assert seen_by(process)[0] == UserInput("go on")
    assert not any(isinstance(message, ToolResult) for message in seen_by(process))


@pytest.mark.parametrize("arguments", ['{"city": null}', f'{{"city": "{"x" * 310_000}"}}'])
async def test_a_remembered_turn_has_the_size_of_the_stored_one(
    warm: TurnFixture, own_cloud: Cloud, arguments: str
) -> None:
    answer(warm, called("t", arguments=arguments))
    await warm.turn("second")
    remembered = warm.turns.opener.transcripts.get((warm.tenant, warm.agent_id, warm.session_id))
    assert remembered is not None

    history = await own_cloud.store.turns.history(*warm.ids)

    assert remembered.size == sum(turn.size for turn in history.turns)
