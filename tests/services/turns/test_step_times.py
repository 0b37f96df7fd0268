"""Times of the steps of a turn: when its tokens began, and in which step it failed."""

from collections.abc import AsyncGenerator, Sequence

import pytest
from tests.clock import CLOCK
from tests.script_model import STOP, Part, Script, called, said
from tests.services.conftest import MakeTurnFixture
from tests.services.turns.test_shielded_turns import shielded
from tests.store.conftest import Cloud

from stint.domain.errors import ModelError
from stint.domain.inference import (
    Accepted,
    Finished,
    FinishReason,
    InferenceRequest,
    ModelChunk,
    ReasoningChunk,
    RefusalChunk,
    TextChunk,
    ToolCallChunk,
)
from stint.domain.llama_stack.turns import Turn
from stint.domain.steps import InferenceStep

CALL = ToolCallChunk(0, "c0", "add", "{}")


class Slow(Script):
    """A model whose every chunk comes a second after the one before it."""

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        async for chunk in super().stream(request):
            CLOCK.move(1)
            yield chunk


def first_tokens(turn: Turn) -> list[int | None]:
    return [step.first_token_ms for step in turn.steps if isinstance(step, InferenceStep)]


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        ([TextChunk("Hi"), TextChunk(" there"), STOP], 1),
        ([Accepted(), TextChunk("Hi"), STOP], 2),
        ([Accepted(), TextChunk(""), TextChunk(""), TextChunk("Hi"), STOP], 4),
        ([ReasoningChunk("Let me see."), TextChunk("Hi"), STOP], 1),
        ([ReasoningChunk(signature="s"), TextChunk("Hi"), STOP], 2),
        ([Accepted(), RefusalChunk("No."), STOP], 2),
        ([Accepted(), CALL, Finished(FinishReason.tool_calls)], 2),
    ],
)
async def test_the_first_token_is_the_first_piece_of_text_reasoning_or_a_call(
    make_turn_fixture: MakeTurnFixture, answer: Sequence[Part], place: int
) -> None:
    turn_fixture = await make_turn_fixture(Slow([[*answer]])).open("add")

    with CLOCK.stop():
        turn = await turn_fixture.turn()

    assert first_tokens(turn) == [1000 * place]
    assert first_tokens(await turn_fixture.get(turn.turn_id)) == [1000 * place]


async def test_an_answer_without_a_token_has_no_time(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(Script([[Accepted(), STOP]])).open()

    turn = await turn_fixture.turn()

    assert first_tokens(turn) == [None]
    assert b"first_token_ms" not in turn.to_json()


async def test_each_model_call_has_its_own_time_after_a_resume_too(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(Script([called("add"), called("nosuch"), said()])).open("add")
    turn = await turn_fixture.turn()

    resumed = await turn_fixture.resumed(turn.turn_id, ("c0", "3"))

    assert len(first_tokens(resumed)) == 3
    assert None not in first_tokens(resumed)


async def test_a_blocked_answer_has_a_time(cloud: Cloud, tenant: str) -> None:
    turn_fixture = await shielded(cloud, tenant, Script([said("dynamite")]), output_shields=["words"])

    turn = await turn_fixture.turn()

    assert None not in first_tokens(turn)


def test_a_step_of_an_older_version_has_none() -> None:
    stored = {"turn_id": "t", "step_id": "s", "started_at": "2026-01-01T00:00:00Z", "model_response": {"content": "Hi"}}

    step = InferenceStep.model_validate(stored)

    assert step.first_token_ms is None
    assert b"first_token_ms" not in step.to_json()


async def test_a_turn_that_failed_shows_the_step_in_which_it_did(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(Script([called("nosuch"), [TextChunk("Hi"), ModelError("Broken.")]])).open()

    turn = await turn_fixture.turn()

    shown = (await turn_fixture.get(turn.turn_id)).unfinished_step
    assert shown is not None
    assert (shown.step_type, turn.error and turn.error.message) == ("inference", "Broken.")
    assert shown.step_id not in {step.step_id for step in turn.steps}
    assert turn.steps[-1].completed_at is not None
    assert turn.completed_at is not None
    assert turn.steps[-1].completed_at.timestamp() - 0.001 <= shown.started_at.timestamp()
    assert shown.started_at <= turn.completed_at


async def test_a_turn_that_ended_well_has_no_unfinished_step(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(Script([said()])).open()

    assert b"unfinished_step" not in (await turn_fixture.turn()).to_json()
