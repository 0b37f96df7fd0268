import asyncio
from typing import Any

import pytest
from tests.store.conftest import Cloud

from stint.domain.errors import NotFound, NotMarkedDeleted
from stint.domain.ids import new_name
from stint.domain.openai.chat import ChatCompletionRequest
from stint.domain.openai.chat_output import ChatAnswer, ChatChoice, ChatCompletion
from stint.domain.openai.stored_chats import StoredChatCompletion
from stint.store.chat_completions import ChatCompletionStore

QUESTION = "What is the boiling point of water?"


def completed(text: str = "100 degrees.", *, question: Any = QUESTION, **fields: Any) -> StoredChatCompletion:
    request = ChatCompletionRequest.model_validate(
        {"model": "m", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]}
    )
    choice = ChatChoice(message=ChatAnswer(content=text), finish_reason="stop")
    given = {"id": new_name("chatcmpl"), "created": 1, "model": "m", "choices": [choice], "metadata": {}} | fields
    return StoredChatCompletion(messages=request.messages, completion=ChatCompletion(**given))


@pytest.fixture(params=["cloud", "mocked"])
def chats(request: pytest.FixtureRequest) -> ChatCompletionStore:
    """Two implementations of DynamoDB that know nothing of each other."""
    cloud: Cloud = request.getfixturevalue(request.param)
    return cloud.store.chat_completions


async def put(chats: ChatCompletionStore, tenant: str, *each: StoredChatCompletion) -> list[str]:
    for one in each:
        await chats.put(tenant, one)
    return [one.id for one in each]


async def test_a_completion_reads_back(chats: ChatCompletionStore, tenant: str) -> None:
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "https://a.b/c"}}]
    stored = completed(question=parts, metadata={"topic": "water", "mood": "höflich"})

    await chats.put(tenant, stored)

    assert await chats.get(tenant, stored.id) == stored


async def test_a_short_completion_costs_one_write_unit_and_no_object(cloud: Cloud, tenant: str) -> None:
    stored = completed(metadata={"topic": "water"})
    cloud.forget()

    await cloud.store.chat_completions.put(tenant, stored)

    assert cloud.calls == {"PutItem": 1}
    assert cloud.units == {"PutItem": 1}


async def test_deleting_a_short_completion_costs_one_write_unit(cloud: Cloud, tenant: str) -> None:
    [each] = await put(cloud.store.chat_completions, tenant, completed())
    cloud.forget()

    left = await cloud.store.chat_completions.mark_deleted(tenant, each)

    assert not left
    assert cloud.calls == {"GetItem": 1, "DeleteItem": 1}
    assert cloud.units["DeleteItem"] == 1
    assert cloud.items(tenant) == []


async def test_a_large_completion_is_in_the_bucket_until_it_is_deleted(cloud: Cloud, tenant: str) -> None:
    chats = cloud.store.chat_completions
    stored = completed("".join(chr(200 + number * number % 30_000) for number in range(400_000)))
    await chats.put(tenant, stored)

    assert await chats.get(tenant, stored.id) == stored
    assert len(cloud.blobs(tenant)) == 1
    with pytest.raises(NotMarkedDeleted):
        await chats.delete(tenant, stored.id)
    assert await chats.mark_deleted(tenant, stored.id)
    with pytest.raises(NotFound):
        await chats.get(tenant, stored.id)
    assert (await chats.list(tenant)).data == []
    assert await chats.delete(tenant, stored.id)
    assert await chats.delete(tenant, stored.id)

    assert (cloud.items(tenant), cloud.blobs(tenant)) == ([], [])


async def test_a_deletion_that_was_stopped_after_the_body_is_finished(cloud: Cloud, tenant: str) -> None:
    chats = cloud.store.chat_completions
    stored = completed("".join(chr(200 + number * number % 30_000) for number in range(400_000)))
    await chats.put(tenant, stored)
    await chats.mark_deleted(tenant, stored.id)

    for key in cloud.blobs(tenant):
        cloud.s3.delete_object(Bucket=cloud.bucket, Key=key)
    assert await chats.delete(tenant, stored.id)

    assert (cloud.items(tenant), cloud.blobs(tenant)) == ([], [])


async def test_metadata_is_replaced(chats: ChatCompletionStore, tenant: str) -> None:
    [each] = await put(chats, tenant, completed(metadata={"topic": "water"}))

    updated = await chats.update(tenant, each, {"mood": "calm"})

    assert updated.completion.metadata == {"mood": "calm"}
    assert await chats.get(tenant, each) == updated


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_completions_are_listed_by_creation_in_pages(chats: ChatCompletionStore, tenant: str, order: Any) -> None:
    ids = await put(chats, tenant, *(completed() for _ in range(5)))
    wanted = ids if order == "asc" else ids[::-1]

    first = await chats.list(tenant, limit=3, order=order)
    second = await chats.list(tenant, after=first.data[-1].id, limit=3, order=order)

    assert [each.id for each in [*first.data, *second.data]] == wanted
    assert (first.has_more, second.has_more) == (True, False)


async def test_a_list_is_filtered_by_model_and_metadata(chats: ChatCompletionStore, tenant: str) -> None:
    ids = await put(
        chats,
        tenant,
        completed(metadata={"a": "1", "b": "2"}),
        completed(metadata={"a": "1"}, model="other"),
        completed(metadata={"a": "2", "b": "2"}),
    )

    async def find(**filters: Any) -> list[int]:
        return [ids.index(each.id) for each in (await chats.list(tenant, **filters)).data]

    assert await find(metadata={"a": "1"}) == [0, 1]
    assert await find(metadata={"a": "1", "b": "2"}) == [0]
    assert await find(metadata={"a": "1"}, model="other") == [1]
    assert await find(model="none") == []
    assert await find(metadata={"c": ""}) == []
    page = await chats.list(tenant, metadata={"b": "2"}, limit=1)
    assert page.has_more
    assert [each.id for each in page.data] == ids[:1]


async def test_what_does_not_exist_is_not_found(chats: ChatCompletionStore, tenant: str) -> None:
    [each] = await put(chats, tenant, completed())

    for unknown in (new_name("chatcmpl"), "chatcmpl_x", "#", f"{each}\n"):
        for call in (
            chats.get(tenant, unknown),
            chats.update(tenant, unknown, {}),
            chats.list(tenant, after=unknown),
            chats.mark_deleted(tenant, unknown),
            chats.get(f"{tenant}-other", each),
        ):
            with pytest.raises(NotFound, match="Chat completion"):
                await call


async def test_completions_that_end_together_are_all_stored(cloud: Cloud, tenant: str) -> None:
    stored = [completed() for _ in range(20)]

    await asyncio.gather(*(cloud.store.chat_completions.put(tenant, each) for each in stored))

    assert len(cloud.items(tenant)) == 20
