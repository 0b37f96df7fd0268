import asyncio
import random
import secrets
from collections.abc import Awaitable, Callable
from threading import Thread

import pytest
from tests.store.conftest import Cloud
from tests.store.response_samples import Responder, ids_of, response_ending, response_header, response_record

from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.domain.ids import new_name
from stint.domain.openai.stored_responses import ResponseRecord, ResponseStatus, StoredResponse
from stint.store.documents import to_json
from stint.store.keys import LAST_INDEX


@pytest.fixture
def responder(cloud: Cloud, tenant: str) -> Responder:
    return Responder(cloud.store, tenant)


@pytest.fixture(params=["cloud", "mocked"])
def any_responder(request: pytest.FixtureRequest, tenant: str) -> Responder:
    """Two implementations of DynamoDB that know nothing of each other."""
    return Responder(request.getfixturevalue(request.param).store, tenant)


async def test_a_response_reads_back_as_it_was_written(any_responder: Responder) -> None:
    header = response_header()
    first = response_record(header.response_id, "one", None)
    last = response_record(header.response_id, "two")

    await any_responder.responses.put(any_responder.tenant, header)
    for index, record in enumerate((first, last)):
        await any_responder.responses.append(any_responder.tenant, header.response_id, index, record)

    stored = await any_responder.get(header.response_id)
    assert stored.header == header
    assert stored.records == [first, last]
    assert stored.status is ResponseStatus.completed
    assert stored.size == sum(len(to_json(document)) for document in (header, first, last))


async def test_a_plain_stored_response_costs_three_write_units_and_reads_nothing(
    cloud: Cloud, responder: Responder
) -> None:
    cloud.forget()

    await responder.respond("What is the capital of France?", "Paris. " * 20)

    assert cloud.calls == {"BatchWriteItem": 1, "PutItem": 1}
    assert cloud.units == {"BatchWriteItem": 2, "PutItem": 1}


async def test_a_response_is_read_in_one_call_without_its_stream(cloud: Cloud, responder: Responder) -> None:
    header = await responder.respond()
    for first in range(0, 30, 10):
        await responder.store.background.put_events(responder.tenant, header.response_id, first, ["x" * 90_000] * 10)
    cloud.forget()

    await responder.get(header.response_id)

    assert cloud.calls == {"Query": 1}
    assert cloud.units["Query"] <= 1


@pytest.mark.parametrize("size", [10, 400_000, 3_000_000])
async def test_a_response_of_any_size_reads_back(cloud: Cloud, responder: Responder, size: int) -> None:
    question, answer = secrets.token_urlsafe(size), secrets.token_urlsafe(size)

    header = await responder.respond(question, answer)

    stored = await responder.get(header.response_id)
    assert stored.header == header
    assert stored.records[0].step == stored.steps[0]
    assert len(to_json(stored.records[0])) > size
    assert len(cloud.blobs(responder.tenant)) == (2 if size > 300_000 else 0)


@pytest.mark.parametrize("response_id", ["resp_01990000000070008000000000000000", "resp_1", "nonsense", ""])
async def test_a_response_that_is_not_there_is_not_found(responder: Responder, response_id: str) -> None:
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: responder.get(response_id),
        lambda: responder.responses.chain(responder.tenant, response_id),
        lambda: responder.responses.mark_deleted(responder.tenant, response_id),
        lambda: responder.responses.list(responder.tenant, after=response_id),
        lambda: responder.seal(response_id),
    ]

    for call in calls:
        with pytest.raises(NotFound) as raised:
            await call()
        assert raised.value.code == "response_not_found"


async def test_a_response_of_another_tenant_is_not_found(responder: Responder) -> None:
    header = await responder.respond()

    with pytest.raises(NotFound):
        await responder.responses.get(f"{responder.tenant}x", header.response_id)


async def test_a_place_in_the_log_of_a_response_is_given_once(any_responder: Responder) -> None:
    response_id = await any_responder.begin()
    await any_responder.append(response_id, 0, "mine")

    with pytest.raises(Interrupted, match=response_id):
        await any_responder.append(response_id, 0, "late")

    assert b"mine" in to_json((await any_responder.get(response_id)).records[0])


@pytest.mark.parametrize("size", [10, 600_000])
async def test_a_record_of_a_response_whose_answer_was_lost_is_stored_once(
    own_cloud: Cloud, tenant: str, size: int
) -> None:
    responder = Responder(own_cloud.store, tenant)
    response_id = await responder.begin()
    kept = response_record(response_id, secrets.token_urlsafe(size))
    sent = own_cloud.proxy.lose_first_answer("PutItem")

    await responder.responses.append(tenant, response_id, 0, kept)

    assert sent == [200, 400]
    assert (await responder.get(response_id)).records == [kept]


async def test_the_dead_writer_of_a_response_meets_the_seal(any_responder: Responder) -> None:
    response_id = await any_responder.begin()
    await any_responder.append(response_id, 0, "one")

    sealed = await any_responder.seal(response_id)

    with pytest.raises(Interrupted):
        await any_responder.append(response_id, 1, "late", ResponseStatus.completed)
    assert sealed.status is ResponseStatus.failed
    assert len(sealed.steps) == 1
    assert await any_responder.get(response_id) == sealed


@pytest.mark.parametrize("status", [ResponseStatus.completed, ResponseStatus.failed, ResponseStatus.cancelled])
async def test_a_response_found_ended_is_left_as_it_is(responder: Responder, status: ResponseStatus) -> None:
    response_id = await responder.begin()
    await responder.append(response_id, 0, status=status)
    before = await responder.get(response_id)

    sealed = await responder.seal(response_id, ResponseStatus.cancelled)

    assert sealed == before == await responder.get(response_id)


async def test_the_writer_and_the_sealers_of_a_response_leave_one_log_without_gaps(responder: Responder) -> None:
    for _ in range(4):
        response_id = await responder.begin()
        writers = [asyncio.create_task(write_until_interrupted(responder, response_id)) for _ in range(2)]
        sealers = [asyncio.create_task(responder.seal(response_id)) for _ in range(16)]
        await asyncio.gather(*writers, *sealers)

        stored = await responder.get(response_id)
        assert [record for record in stored.records if record.ending] == [stored.records[-1]]
        assert all(sealer.result() == stored for sealer in sealers)
        assert sum(writer.result() for writer in writers) == len(stored.records) - 1


async def test_the_last_record_is_made_from_the_log_that_it_ends(responder: Responder) -> None:
    response_id, seen = await responder.begin(), list[int]()

    def record_of(stored: StoredResponse) -> ResponseRecord:
        seen.append(len(stored.records))
        if len(stored.records) < 2:
            writing = responder.append(response_id, len(stored.records), "meanwhile")
            writer = Thread(target=asyncio.run, args=(writing,))
            writer.start()
            writer.join()
        return response_record(response_id, status=ResponseStatus.failed)

    sealed = await responder.responses.seal(responder.tenant, response_id, record_of)

    assert seen == [0, 1, 2]
    assert len(sealed.records) == 3
    assert sealed == await responder.get(response_id)


async def write_until_interrupted(responder: Responder, response_id: str) -> int:
    """Append at every place until somebody else's record stands at one; count what was stored."""
    for index in range(LAST_INDEX):
        await asyncio.sleep(random.uniform(0, 0.02))  # the others get a chance
        try:
            await responder.append(response_id, index)
        except Interrupted:
            return index
    return LAST_INDEX


async def test_the_last_place_of_a_responses_log_is_for_the_ending(responder: Responder) -> None:
    response_id = await responder.begin()

    with pytest.raises(Conflict, match="Create another response"):
        await responder.append(response_id, LAST_INDEX)
    await responder.append(response_id, LAST_INDEX, status=ResponseStatus.completed)

    assert (await responder.get(response_id)).status is ResponseStatus.completed


async def test_a_background_response_is_queued_until_its_log_begins(responder: Responder) -> None:
    response_id = await responder.begin(background=True)
    before = (await responder.get(response_id)).status

    await responder.append(response_id, 0)

    assert (before, (await responder.get(response_id)).status) == (ResponseStatus.queued, ResponseStatus.in_progress)


async def test_a_body_is_kept_among_the_blobs_of_its_response(cloud: Cloud, responder: Responder) -> None:
    response_id = await responder.begin()

    key = await responder.responses.put_body(responder.tenant, response_id, b"picture")

    assert key.startswith(f"kept/{responder.tenant}/responses/{response_id}/")
    assert cloud.blobs(responder.tenant) == [key]


async def test_responses_are_listed_newest_or_oldest_first(any_responder: Responder) -> None:
    made = [(await any_responder.respond(f"question {number}")).response_id for number in range(12)]

    newest = await any_responder.responses.list(any_responder.tenant)
    oldest = await any_responder.responses.list(any_responder.tenant, order="asc")

    assert ids_of(newest.data) == made[::-1]
    assert ids_of(oldest.data) == made
    assert not newest.has_more
    assert newest.data[0] == await any_responder.get(made[-1])


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_pages_of_responses_join_without_gaps(any_responder: Responder, order: str) -> None:
    made = [(await any_responder.respond()).response_id for _ in range(11)]
    shown: list[str] = []
    after, more = None, True

    while more:
        page = await any_responder.responses.list(any_responder.tenant, after=after, limit=3, order=order)  # type: ignore[arg-type]  # a parameter's string
        shown += ids_of(page.data)
        after, more = shown[-1], page.has_more
        await any_responder.respond() if order == "desc" else None  # what comes meanwhile lies before the page

    assert shown == (made if order == "asc" else made[::-1])


async def test_responses_are_listed_by_model(responder: Responder) -> None:
    for number in range(6):
        await responder.respond(model="scripted/demo" if number % 3 else "other/model")

    page = await responder.responses.list(responder.tenant, model="other/model", limit=1)
    rest = await responder.responses.list(
        responder.tenant, model="other/model", after=ids_of(page.data)[0], limit=5, order="desc"
    )

    assert (len(page.data), page.has_more) == (1, True)
    assert (len(rest.data), rest.has_more) == (1, False)
    assert {stored.header.model for stored in page.data + rest.data} == {"other/model"}


async def test_a_page_of_responses_takes_a_query_for_each_shard_and_each_response(
    cloud: Cloud, responder: Responder
) -> None:
    for _ in range(10):
        await responder.respond()
    cloud.forget()

    page = await responder.responses.list(responder.tenant, limit=5)

    assert len(page.data) == 5
    assert cloud.calls == {"Query": 8 + 5}


async def test_a_list_of_large_responses_ends_where_the_answer_is_full(responder: Responder) -> None:
    made = [(await responder.respond(secrets.token_urlsafe(1_000_000))).response_id for _ in range(4)]

    first = await responder.responses.list(responder.tenant, order="asc")
    rest = await responder.responses.list(responder.tenant, order="asc", after=ids_of(first.data)[-1])

    assert (len(first.data), first.has_more) == (2, True)
    assert ids_of(first.data + rest.data) == made
    assert not rest.has_more


async def test_a_list_passes_over_entries_whose_response_is_gone(cloud: Cloud, responder: Responder) -> None:
    kept = (await responder.respond()).response_id
    entries = [new_name("resp") for _ in range(3)]
    cloud.write(
        {"pk": f"{responder.tenant}#response.{int(one[-1], 16) % 8}", "sk": one, "model": "m"} for one in entries
    )

    page = await responder.responses.list(responder.tenant, limit=2)

    assert ids_of(page.data) == [kept]
    assert not page.has_more


async def test_a_record_with_nothing_but_the_ending_of_a_response_reads_back(responder: Responder) -> None:
    response_id = await responder.begin()
    only = ResponseRecord(ending=response_ending(ResponseStatus.failed))

    await responder.responses.append(responder.tenant, response_id, 0, only)

    assert (await responder.get(response_id)).records == [only]
