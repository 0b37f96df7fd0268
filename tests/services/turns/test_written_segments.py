"""Segments that the turns of a process write, and what a process that remembers nothing reads then."""

import pytest
from tests.script_model import Script, said, script
from tests.services.turn_fixture import TurnFixture
from tests.store.conftest import Cloud

from stint.domain.inference import ModelMessage
from stint.services.turns.session_recorder import SEGMENT_TURNS


async def after_turns(cloud: Cloud, tenant: str, turns: int) -> TurnFixture:
    """Return a process that has served a session of this many turns."""
    answers = [said(f"answer {number}") for number in range(turns)]
    process = await TurnFixture(cloud.store, tenant, script(*answers)).open()
    for number in range(turns):
        await process.turn(f"question {number}")
    return process


def other_process(process: TurnFixture, model: Script, history: int = 4_000_000) -> TurnFixture:
    """Return a process of the same session that remembers nothing."""
    other = TurnFixture(process.store, process.tenant, model, history=history, transcript_cache_bytes=0)
    other.agent_id, other.session_id = process.agent_id, process.session_id
    return other


async def messages_of_next_turn(process: TurnFixture) -> list[ModelMessage]:
    model = process.model
    assert isinstance(model, Script)
    model.answers.append(said())
    await process.turn("next")
    return list(model.requests[-1].messages)


async def test_a_cold_process_sees_the_messages_of_segments_and_turns_as_a_warm_one(
    own_cloud: Cloud, tenant: str
) -> None:
    warm = await after_turns(own_cloud, tenant, SEGMENT_TURNS + 3)
    cold = other_process(warm, script())
    own_cloud.forget()

    seen = await messages_of_next_turn(cold)

    texts = [getattr(message, "text", None) or getattr(message, "content", None) for message in seen]
    told = [text for number in range(SEGMENT_TURNS + 3) for text in (f"question {number}", f"answer {number}")]
    assert texts == [*told, "next"]
    assert own_cloud.units["Query"] < 10


async def test_a_segment_is_written_once_by_the_process_that_ends_its_turns(own_cloud: Cloud, tenant: str) -> None:
    warm = await after_turns(own_cloud, tenant, SEGMENT_TURNS + 1)
    segments = [item for item in own_cloud.items(tenant) if "turn_bytes" in item]
    own_cloud.forget()

    await messages_of_next_turn(warm)

    assert len(segments) == 1
    assert own_cloud.calls == {"UpdateItem": 2, "PutItem": 2, "GetItem": 2}


async def test_a_cold_process_continues_the_segments_of_another(own_cloud: Cloud, tenant: str) -> None:
    warm = await after_turns(own_cloud, tenant, 2 * SEGMENT_TURNS)
    cold = other_process(warm, script())
    for _ in range(3):
        await messages_of_next_turn(cold)

    segments = [item for item in own_cloud.items(tenant) if "turn_bytes" in item]
    assert len(segments) == 2
    seen = await messages_of_next_turn(other_process(warm, script()))
    assert len(seen) == 2 * (2 * SEGMENT_TURNS + 3) + 1


async def test_a_shorter_history_has_the_newest_turns_of_a_segment(own_cloud: Cloud, tenant: str) -> None:
    warm = await after_turns(own_cloud, tenant, SEGMENT_TURNS + 1)
    limit = 20 * (await warm.store.turns.history(*warm.ids)).turns[-1].size

    seen = await messages_of_next_turn(other_process(warm, script(), history=limit))

    assert 2 < len(seen) < 2 * SEGMENT_TURNS
    assert len(seen) % 2 == 1


@pytest.mark.parametrize("turns", [SEGMENT_TURNS + 1])
async def test_segments_are_deleted_with_their_session(own_cloud: Cloud, tenant: str, turns: int) -> None:
    warm = await after_turns(own_cloud, tenant, turns)

    await warm.sessions.delete(warm.agent_id, warm.session_id)

    assert not [item for item in own_cloud.items(tenant) if warm.session_id in item["pk"]["S"]]
