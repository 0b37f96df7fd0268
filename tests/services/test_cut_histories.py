"""Histories that are too long lose large parts at once, so that most model calls begin with the one before."""

import itertools
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest
from tests.script_model import Script, said
from tests.services.prefixes import blocks_of_bedrock
from tests.services.responses.responder import Responder
from tests.services.turn_fixture import TurnFixture
from tests.services.worker_fixture import WorkerFixture
from tests.store.conftest import Cloud

from stint.domain.errors import ContextLengthExceeded
from stint.domain.inference import InferenceRequest, ModelChunk

CALLS = 60
LIMIT = 24_000
"""Bytes of about 23 turns: with a random rank each, more than CALLS / 4 breaks happen less than once in 10,000 runs."""
CHAIN_LIMIT = 55_000
"""Bytes of about twenty responses, each with the ids of those before it."""


def count_breaks(requests: Sequence[InferenceRequest]) -> int:
    """Return how many requests do not begin with the one before."""
    bodies = [blocks_of_bedrock(request) for request in requests]
    return sum(after[: len(before)] != before for before, after in itertools.pairwise(bodies))


def is_cut(request: InferenceRequest) -> bool:
    return not any("Question 0 " in str(message) for message in request.messages)


class SmallModel(Script):
    """A model that refuses more than 40 messages."""

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        if len(request.messages) > 40:
            raise ContextLengthExceeded("Too long.")
        self.answers.append(said("Fine"))
        async for chunk in super().stream(request):
            yield chunk


def question(number: int) -> str:
    return f"Question {number} " + "x" * 200


@pytest.mark.parametrize("cache_bytes", [0, 1_000_000])
async def test_a_session_beyond_the_limit_keeps_its_beginning_for_many_turns(
    cloud: Cloud, tenant: str, cache_bytes: int
) -> None:
    model = Script([said("Fine") for _ in range(CALLS)])
    fixture = TurnFixture(cloud.store, tenant, model, history=LIMIT, transcript_cache_bytes=cache_bytes)
    process = await fixture.open()
    for number in range(CALLS):
        await process.turn(question(number))

    assert is_cut(model.requests[-1])
    assert count_breaks(model.requests) <= CALLS / 4


@pytest.mark.parametrize("in_conversation", [False, True])
async def test_responses_beyond_the_limit_keep_their_beginning_and_their_cache_key(
    cloud: Cloud, tenant: str, in_conversation: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WorkerFixture, "with_cache_keys", frozenset({"test"}))
    model = Script([said("Fine") for _ in range(CALLS)])
    process = WorkerFixture(cloud, tenant, model, history=LIMIT if in_conversation else CHAIN_LIMIT)
    before: dict[str, Any] = {"conversation": await process.conversation()} if in_conversation else {}
    for number in range(CALLS):
        response = (await Responder(process).respond(question(number), truncation="auto", **before)).response
        before = before if in_conversation else {"previous_response_id": response.id}

    assert is_cut(model.requests[-1])
    assert count_breaks(model.requests) <= CALLS / 4
    assert len({request.cache_key for request in model.requests}) <= 1 + CALLS / 4


async def test_a_history_that_the_model_refuses_is_cut_at_one_place_for_many_responses(
    cloud: Cloud, tenant: str
) -> None:
    model = SmallModel([])
    process, last = WorkerFixture(cloud, tenant, model), None
    for number in range(CALLS):
        fields: dict[str, Any] = {"truncation": "auto", "previous_response_id": last}
        last = (await Responder(process).respond(question(number), **fields)).response.id

    assert is_cut(model.requests[-1])
    assert count_breaks(model.requests) <= CALLS / 6
