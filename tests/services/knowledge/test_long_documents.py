"""Documents that one invocation of the worker cannot finish, and that are continued in the next."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import deadline
from tests.services.knowledge.killable import Death, Killed
from tests.services.knowledge.knowledge_fixture import LEASE_SECONDS, KnowledgeFixture
from tests.services.knowledge.list_index import WordsEmbedder
from tests.store.conftest import Cloud

from stint.documents import files
from stint.domain.errors import DeadlineExceeded, StintError, StoreUnavailable
from stint.domain.openai.vector_stores import UpdateVectorStoreFile
from stint.domain.vector_stores import WindowChunking
from stint.retrieval.port import Embeddings
from stint.services.knowledge import chunk_writer, ingestion
from stint.services.knowledge.chunk_writer import ChunkWriter
from stint.services.knowledge.insertions import NewText

BATCH, BATCH_SECONDS, INVOCATION_SECONDS = 4, 5, 12
CHUNKS = 18
SMALL = {"type": "static", "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 0}}
TEXT = "\n\n".join(f"Llama {number} lives in Peru. " * 12 for number in range(CHUNKS))


@pytest.fixture(autouse=True)
def slow_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each batch of chunks take five seconds, so that an invocation has time for two."""
    embed = WordsEmbedder.embed

    async def embed_slowly(self: WordsEmbedder, model: str, texts: Sequence[str], **options: Any) -> Embeddings:
        if len(texts) > 1:
            CLOCK.move(BATCH_SECONDS)
        return await embed(self, model, texts, **options)

    monkeypatch.setattr(chunk_writer, "BATCH", BATCH)
    monkeypatch.setattr(WordsEmbedder, "embed", embed_slowly)


@pytest.fixture
def extractions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the files whose text is extracted."""
    names, extract = list[str](), files.extract_text

    async def noted(content: bytes, filename: str, *rest: Any) -> str:
        names.append(filename)
        return await extract(content, filename, *rest)

    monkeypatch.setattr(files, "extract_text", noted)
    return names


async def begin(knowledge: KnowledgeFixture) -> tuple[str, str]:
    """Return a store and its file after the first invocation of the worker."""
    store_id = await knowledge.create(chunking_strategy=SMALL)
    file_id = await knowledge.add(store_id, TEXT)
    await knowledge.work(INVOCATION_SECONDS)
    assert (await knowledge.documents.get(store_id, file_id)).status == "in_progress"
    return store_id, file_id


async def work_to_the_end(knowledge: KnowledgeFixture) -> int:
    """Deliver the tasks until there are none, and return the number of invocations."""
    invocations = 0
    while knowledge.queue.ingestions:
        await knowledge.work(INVOCATION_SECONDS)
        invocations += 1
    return invocations


async def test_a_long_document_is_continued_where_the_last_invocation_ended(
    knowledge: KnowledgeFixture, extractions: list[str]
) -> None:
    store_id, file_id = await begin(knowledge)
    assert await knowledge.find(store_id, "llama") == []
    assert len(knowledge.index.keys) == 2 * BATCH

    assert await work_to_the_end(knowledge) == 2

    assert (await knowledge.documents.get(store_id, file_id)).status == "completed"
    assert len(knowledge.index.keys) == CHUNKS
    assert len(await knowledge.find(store_id, "llama", max_num_results=50)) == CHUNKS
    embedded = [text for text in knowledge.embedder.texts if text != "llama"]
    assert len(embedded) == len(set(embedded)) == CHUNKS
    assert extractions == ["a.txt"]
    assert len(knowledge.cloud.blobs(knowledge.tenant)) == 1


async def test_a_continued_document_counts_all_of_its_bytes(knowledge: KnowledgeFixture) -> None:
    store_id, file_id = await begin(knowledge)
    await work_to_the_end(knowledge)
    whole = await knowledge.create(chunking_strategy=SMALL)
    again = await knowledge.add(whole, TEXT)
    await knowledge.work(1_000)

    usages = [(await knowledge.documents.get(*ids)).usage_bytes for ids in ((store_id, file_id), (whole, again))]

    assert usages[0] == usages[1] > 0


async def test_a_long_document_of_a_caller_is_continued_too(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create()
    await knowledge.insertions.insert_texts(store_id, [NewText("animals", TEXT, {})], WindowChunking(size=100))

    await work_to_the_end(knowledge)

    assert await knowledge.statuses(store_id) == ["completed"]
    assert len(knowledge.index.keys) >= CHUNKS


async def test_a_repeated_task_of_an_earlier_part_changes_nothing(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create(chunking_strategy=SMALL)
    await knowledge.add(store_id, TEXT)
    [first] = knowledge.queue.ingestions
    await knowledge.work(INVOCATION_SECONDS)
    knowledge.queue.ingestions.append(first)

    await work_to_the_end(knowledge)

    assert await knowledge.statuses(store_id) == ["completed"]
    assert len(knowledge.index.keys) == CHUNKS


REMOVALS: list[Callable[[KnowledgeFixture, str, str], Any]] = [
    lambda knowledge, store_id, file_id: knowledge.documents.delete(store_id, file_id),
    lambda knowledge, store_id, _: knowledge.stores.delete(store_id),
    lambda knowledge, _, file_id: knowledge.files.delete(file_id),
]


@pytest.mark.parametrize("remove", REMOVALS, ids=["document", "store", "file"])
async def test_what_is_deleted_between_two_parts_leaves_nothing(
    knowledge: KnowledgeFixture, remove: Callable[[KnowledgeFixture, str, str], Any]
) -> None:
    store_id, file_id = await begin(knowledge)

    await remove(knowledge, store_id, file_id)
    await work_to_the_end(knowledge)

    assert [one for one in knowledge.rest() if "document" in one or file_id in one] == []


async def test_a_cancelled_document_keeps_no_chunks(cloud: Cloud, knowledge: KnowledgeFixture) -> None:
    store_id, file_id = await begin(knowledge)

    await cloud.store.vector_store_documents.cancel(knowledge.tenant, store_id, file_id)
    await work_to_the_end(knowledge)

    assert knowledge.index.keys == knowledge.cloud.blobs(knowledge.tenant) == []


async def test_new_attributes_between_two_parts_start_the_ingestion_again(knowledge: KnowledgeFixture) -> None:
    store_id, file_id = await begin(knowledge)

    await knowledge.documents.update(store_id, file_id, UpdateVectorStoreFile(attributes={"year": 2026}))
    await work_to_the_end(knowledge)

    new = {"type": "eq", "key": "year", "value": 2026}
    assert len(await knowledge.find(store_id, "llama", max_num_results=50, filters=new)) == CHUNKS
    assert len(knowledge.index.keys) == CHUNKS
    assert len(knowledge.cloud.blobs(knowledge.tenant)) == 1


async def test_a_part_whose_text_was_lost_is_read_again(knowledge: KnowledgeFixture, extractions: list[str]) -> None:
    store_id, _ = await begin(knowledge)
    for key in knowledge.cloud.blobs(knowledge.tenant):
        knowledge.cloud.s3.delete_object(Bucket=knowledge.cloud.bucket, Key=key)

    await work_to_the_end(knowledge)

    assert await knowledge.statuses(store_id) == ["completed"]
    assert len(knowledge.index.keys) == CHUNKS
    assert extractions == ["a.txt"] * 2


async def test_a_part_that_fails_keeps_what_was_written(
    knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_id, _ = await begin(knowledge)
    tasks, upsert = list(knowledge.queue.ingestions), ChunkWriter.upsert

    async def refuse(*_: object) -> None:
        raise StoreUnavailable("The index is overloaded.")

    monkeypatch.setattr(ChunkWriter, "upsert", refuse)
    with pytest.raises(StoreUnavailable):
        await knowledge.work(INVOCATION_SECONDS)
    monkeypatch.setattr(ChunkWriter, "upsert", upsert)
    assert len(knowledge.index.keys) == 2 * BATCH
    knowledge.queue.ingestions[:] = tasks
    knowledge.embedder.texts.clear()

    await work_to_the_end(knowledge)

    assert await knowledge.statuses(store_id) == ["completed"]
    assert len(knowledge.embedder.texts) == CHUNKS - 2 * BATCH


async def test_a_document_that_fails_in_a_later_part_keeps_no_chunks(
    knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_id, _ = await begin(knowledge)

    async def refuse(*_: object) -> None:
        raise StoreUnavailable("The index is overloaded.")

    monkeypatch.setattr(ChunkWriter, "upsert", refuse)
    with pytest.raises(StoreUnavailable):
        await knowledge.work(INVOCATION_SECONDS, last=True)

    assert await knowledge.statuses(store_id) == ["failed"]
    assert knowledge.index.keys == knowledge.cloud.blobs(knowledge.tenant) == []


async def test_a_document_without_any_progress_fails_with_the_reason(
    knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_writer, "BATCH", 1_000)
    monkeypatch.setattr(WordsEmbedder, "embed", never)
    store_id = await knowledge.create(chunking_strategy=SMALL)
    file_id = await knowledge.add(store_id, TEXT)

    with pytest.raises(DeadlineExceeded):
        await knowledge.work(INVOCATION_SECONDS, last=True)

    failed = await knowledge.documents.get(store_id, file_id)
    assert failed.status == "failed"
    assert failed.last_error is not None
    assert "The time limit of the worker" in failed.last_error.message
    assert knowledge.queue.ingestions == []


async def never(*_: object, **__: object) -> Embeddings:
    """Answer after the end of the invocation."""
    CLOCK.move(INVOCATION_SECONDS)
    await asyncio.Event().wait()
    raise AssertionError


async def test_documents_that_an_invocation_has_no_time_for_are_sent_again(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create(chunking_strategy=SMALL)
    file_ids = [await knowledge.upload(f"{TEXT}\n\n{number}") for number in range(2)]
    documents = await knowledge.documents.prepare(
        file_ids, (await knowledge.documents.open(store_id)).settings.chunking
    )
    await knowledge.insertions.insert(store_id, documents)

    await knowledge.work(INVOCATION_SECONDS, last=True)

    assert sorted(one.documents for one in knowledge.queue.ingestions) == sorted([one] for one in file_ids)
    assert await work_to_the_end(knowledge) == 3
    assert await knowledge.statuses(store_id) == ["completed"] * 2


async def test_a_large_file_is_leased_while_its_text_is_extracted(
    cloud: Cloud, knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_id = await knowledge.create(chunking_strategy=SMALL)
    file_id = await knowledge.add(store_id, TEXT)
    held, extract = list[bool](), files.extract_text

    async def look(content: bytes, filename: str, *rest: Any) -> str:
        found = await cloud.store.vector_store_documents.get(knowledge.tenant, store_id, file_id)
        held.append(found.held)
        return await extract(content, filename, *rest)

    monkeypatch.setattr(files, "extract_text", look)
    monkeypatch.setattr(ingestion, "LARGE_BYTES", len(TEXT) // 2)

    await work_to_the_end(knowledge)

    assert held == [True]
    assert len(knowledge.index.keys) == CHUNKS


async def test_a_large_file_without_text_fails_and_is_released(
    cloud: Cloud, knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingestion, "LARGE_BYTES", 1)
    store_id = await knowledge.create()
    file_id = await knowledge.add(store_id, " \n" * 10)
    await knowledge.work()

    found = await cloud.store.vector_store_documents.get(knowledge.tenant, store_id, file_id)

    assert (found.status, found.held) == ("failed", False)


MOMENTS = range(2, 32, 3)


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_part_that_is_killed_is_finished_by_the_next_delivery(cloud: Cloud, tenant: str, moment: int) -> None:
    alive = KnowledgeFixture(cloud, tenant)
    store_id = await alive.create(chunking_strategy=SMALL)
    file_id = await alive.add(store_id, TEXT)
    tasks = list(alive.queue.ingestions)
    with suppress(Killed):
        await KnowledgeFixture(cloud, tenant, alive, Death(moment)).work(INVOCATION_SECONDS)
    alive.queue.ingestions[:0] = tasks

    CLOCK.move(LEASE_SECONDS + 3)
    await deliver(alive)

    assert (await alive.documents.get(store_id, file_id)).status == "completed"
    assert len(await alive.find(store_id, "llama", max_num_results=50)) == CHUNKS
    assert len(alive.index.keys) == CHUNKS
    assert len(alive.cloud.blobs(tenant)) == 1


async def deliver(knowledge: KnowledgeFixture) -> None:
    """Deliver tasks as the queue does: again if they fail."""
    for _ in range(20):
        tasks, knowledge.queue.ingestions[:] = list(knowledge.queue.ingestions), []
        for task in tasks:
            try:
                await knowledge.ingestion.handle_task(task, deadline(INVOCATION_SECONDS))
            except StintError:
                knowledge.queue.ingestions.append(task)
