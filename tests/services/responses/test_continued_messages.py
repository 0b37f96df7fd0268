"""Responses that continue from the id of a message that another response has taken, or that waits."""

import asyncio
from datetime import timedelta

import pytest
from tests.clock import CLOCK
from tests.script_model import said, until
from tests.services.responses.responder import Responder
from tests.services.responses.test_merged_responses import Merging
from tests.store.conftest import Cloud

from stint.caller import NO_ATTEMPT, RequestAttempt
from stint.domain.errors import Conflict, InvalidRequest
from stint.domain.ids import name_of, new_id
from stint.domain.openai.response_requests import CompactRequest, InputTokensRequest
from stint.tools.port import NO_PROVIDER_DATA

DAY = timedelta(days=1).total_seconds()


async def test_a_response_continues_from_the_id_of_a_merged_message(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()
    run = await merging.respond()
    own = name_of("resp", merging.ids[0])
    merging.model.answers[2:] = [said() for _ in range(9)]
    CLOCK.move(DAY - 600)

    other = Responder(merging.fixture.other_process(merging.model))
    for process in (other, other, merging.responder):  # the second time from the cache of links
        continued = (await process.respond("three", previous_response_id=own)).response
        assert continued.previous_response_id == run.id
        assert merging.sent(-1) == ["one", "", "bought", "and two", "Done", "three"]

    last = (await other.respond("four", previous_response_id=continued.id)).response
    assert merging.sent(-1)[-3:] == ["three", "Hi", "four"]
    background = await merging.fixture.create("five", previous_response_id=own)
    await merging.fixture.run(background)
    assert merging.sent(-1)[-2:] == ["Done", "five"]
    items = await merging.fixture.services.stored_responses.input_items(last.id, None, None, 20, "asc")
    assert len(items.data) == 8


async def test_compaction_and_token_counts_read_the_response_of_a_merged_message(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()
    run = await merging.respond()
    services, own = merging.fixture.services, name_of("resp", merging.ids[0])

    counted = [
        await services.token_counts.count(
            InputTokensRequest.model_validate({"model": "test/m", "previous_response_id": each}), NO_PROVIDER_DATA
        )
        for each in (own, run.id)
    ]
    merging.model.answers[2:] = [said("Summary")]
    asked = CompactRequest.model_validate({"model": "test/m", "previous_response_id": own})
    await services.compaction.compact(asked, asyncio.get_running_loop().time() + 60)

    assert counted[0] == counted[1]
    assert "and two" in "".join(merging.sent(-1))


async def test_a_message_that_waits_or_whose_response_runs_cannot_be_continued_yet(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()
    silence = asyncio.Event()
    merging.model.answers[1] = [silence, *said("Done")]
    running = asyncio.create_task(merging.respond())
    await until(lambda: len(merging.model.requests) == 2)
    waiting = await merging.accept(input="and three", temperature=0.1)

    for message_id in (merging.ids[0], waiting):
        with pytest.raises(Conflict, match="wait until it ends") as refused:
            await merging.responder.start("no", previous_response_id=name_of("resp", message_id))
        assert refused.value.code == "response_in_progress"
    silence.set()
    await running


async def test_a_message_that_was_not_started_cannot_be_continued(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()
    waiting = name_of("resp", await merging.accept(input="and two"))
    await merging.fixture.services.response_requests.cancel(waiting)

    for unknown in (waiting, name_of("resp", new_id())):
        with pytest.raises(InvalidRequest, match=unknown) as refused:
            await merging.responder.start("no", previous_response_id=unknown)
        assert (refused.value.code, refused.value.param) == ("previous_response_not_found", "previous_response_id")


async def test_a_message_whose_response_died_before_it_stored_it_waits_again(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()
    ended = await merging.responder.respond("one")
    waiting = await merging.accept(input="and two")
    assert await merging.admission.line.claim_merge(waiting, ended.response.id[5:])

    with pytest.raises(Conflict, match="wait until it ends"):
        await merging.responder.start("no", previous_response_id=name_of("resp", waiting))


async def test_a_response_continues_from_a_message_that_was_started_with_another_id(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()
    merging.model.answers[2:] = [said() for _ in range(3)]
    waiting = await merging.accept(input="and two")
    assert await merging.admission.line.claim_run(waiting, new_id())  # by a process that dies
    CLOCK.move(60)
    run = await merging.finish(waiting)

    continued = await merging.responder.respond("three", previous_response_id=name_of("resp", waiting))

    assert run.id != name_of("resp", waiting)
    assert continued.response.previous_response_id == run.id


async def test_the_response_of_another_tenants_message_is_not_continued(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()
    await merging.respond()
    other = await Merging(cloud, f"{tenant}x").open()

    with pytest.raises(InvalidRequest, match="not found"):
        await other.responder.start("no", previous_response_id=name_of("resp", merging.ids[0]))


async def test_a_retry_finds_the_response_of_its_message_after_others(cloud: Cloud, tenant: str) -> None:
    merging = await Merging(cloud, tenant).open()
    merging.responder.attempt = RequestAttempt("f" * 32)
    await merging.respond()
    merging.responder.attempt = NO_ATTEMPT
    merging.model.answers[2:] = [said(), said()]
    await merging.responder.respond("three", conversation=merging.conversation)
    waiting = merging.fixture.services.response_requests.waiting

    async def find(fingerprint: str, count: int) -> str | None:
        return await waiting.find_merged(RequestAttempt(fingerprint, count), merging.conversation)

    assert await find("e" * 32, 1) is None
    assert [await find("f" * 32, 1), await find("f" * 32, 1)] == [merging.ids[0], None]
    CLOCK.move(601)
    assert await find("f" * 32, 2) is None
