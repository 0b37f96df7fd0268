"""Processes that die at each storage call of a conversation with a budget: each call that is stored counts once."""

import pytest
from tests.clock import CLOCK
from tests.script_model import Script, script
from tests.services.deaths import counting, die_at
from tests.services.session_budget_fixture import TOKENS, LimitedConversation, answered, calling
from tests.services.worker_fixture import WorkerFixture
from tests.store.conftest import Cloud

from stint.caller import RequestAttempt
from stint.domain.errors import NotFound
from stint.domain.ids import name_of, new_id
from stint.domain.openai.stored_responses import ResponseRecord, StoredResponse
from stint.domain.steps import InferenceStep

LEASE = 30.0
WRITES = ("UpdateItem", "PutItem", "BatchWriteItem")
MANY = 100_000


def model() -> Script:
    """Return a model whose responses call it twice."""
    return script(*[calling("look"), answered()] * 3)


async def begin(cloud: Cloud, tenant: str) -> LimitedConversation:
    talk = LimitedConversation(WorkerFixture(cloud, tenant, own := model(), LEASE), own)
    return await talk.begin(max_tokens=MANY)


def points_in(calls: list[str]) -> list[tuple[str, int]]:
    return [(name, number) for name in WRITES for number in range(calls.count(name))]


async def stored_calls(talk: LimitedConversation, response_id: str) -> int:
    """Return the model calls of a response that are stored."""
    try:
        return sum(isinstance(step, InferenceStep) for step in (await talk.stored(response_id)).steps)
    except NotFound:
        return 0


@pytest.mark.parametrize("reader", [False, True])
async def test_a_response_that_dies_at_any_write_counts_each_stored_call_once(
    own_cloud: Cloud, tenant: str, reader: bool
) -> None:
    talk = await begin(own_cloud, tenant)
    run = await talk.start("Hello", **talk.fields)
    with counting(own_cloud) as calls:
        await talk.play(run)
    totals = set()
    for operation, number in points_in(calls):
        talk = await begin(own_cloud, tenant)
        run = await talk.start("Hello", **talk.fields)
        await die_at(own_cloud, operation, number, lambda own=talk, started=run: own.play(started))  # type: ignore[misc]
        CLOCK.move(LEASE + 1)

        heir = talk.heir(model())
        if reader:  # who clears the lapsed lease
            await heir.worker_fixture.services.conversations.list_items(heir.conversation_id, None, 20, "asc")
        await heir.answer()

        before = await stored_calls(heir, run.response_id)
        assert await heir.spent() == TOKENS * (before + 2), (operation, number)
        totals.add(before)
    assert totals == {0, 1, 2}


async def test_a_successor_that_dies_at_any_write_too_loses_no_stored_call(own_cloud: Cloud, tenant: str) -> None:
    async def begin_dead() -> tuple[LimitedConversation, str]:
        talk = await begin(own_cloud, tenant)
        run = await talk.start("Hello", **talk.fields)
        await die_at(own_cloud, "PutItem", 2, lambda: talk.play(run))  # its first call and its tool are stored
        CLOCK.move(LEASE + 1)
        return talk, run.response_id

    talk, _ = await begin_dead()
    with counting(own_cloud) as calls:
        await talk.heir(model()).answer()
    for operation, number in points_in(calls):
        talk, first = await begin_dead()
        second = talk.heir(model())
        second.attempt = RequestAttempt(object_id=new_id())
        await die_at(own_cloud, operation, number, second.answer)
        CLOCK.move(LEASE + 1)

        last = talk.heir(model())
        await last.answer()

        calls_of = [await stored_calls(last, each) for each in (first, name_of("resp", second.attempt.object_id))]
        assert calls_of[0] == 1
        assert await last.spent() == TOKENS * (sum(calls_of) + 2), (operation, number)


async def test_a_worker_that_dies_at_any_write_counts_each_stored_call_once(own_cloud: Cloud, tenant: str) -> None:
    talk = await begin(own_cloud, tenant)
    response_id = await talk.queue()
    with counting(own_cloud) as calls:
        await talk.worker_fixture.run(response_id)
    for operation, number in points_in(calls):
        talk = await begin(own_cloud, tenant)
        response_id = await talk.queue()
        await die_at(
            own_cloud,
            operation,
            number,
            lambda own=talk, queued=response_id: own.worker_fixture.run(queued),  # type: ignore[misc]
        )
        CLOCK.move(LEASE + 1)

        heir = talk.heir(script(*([answered()] if await stored_calls(talk, response_id) else []), *model().answers))
        await heir.worker_fixture.run(response_id)
        await heir.worker_fixture.services.conversations.list_items(heir.conversation_id, None, 20, "asc")

        assert await heir.worker_fixture.status(response_id) == "completed", (operation, number)
        assert await heir.spent() == TOKENS * await stored_calls(heir, response_id), (operation, number)


async def test_a_holder_that_writes_until_its_lease_is_taken_over_is_counted(own_cloud: Cloud, tenant: str) -> None:
    talk = await begin(own_cloud, tenant)
    run = await talk.start("Hello", **talk.fields)
    await die_at(own_cloud, "PutItem", 2, lambda: talk.play(run))
    CLOCK.move(LEASE + 1)
    responses, late = talk.worker_fixture.store.responses, ResponseRecord(skipped=0, spent="0 999")
    read = responses.get

    async def read_and_write(tenant: str, response_id: str) -> StoredResponse:
        found = await read(tenant, response_id)
        if found.ending is None and found.spent != late.spent:
            await responses.append(tenant, response_id, len(found.records), late, None)
        return found

    responses.get = read_and_write  # type: ignore[method-assign]
    heir = talk.heir(model())
    await heir.answer()
    responses.get = read  # type: ignore[method-assign]

    assert await heir.spent() == 999 + 2 * TOKENS
