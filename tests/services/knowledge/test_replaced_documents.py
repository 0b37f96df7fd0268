"""Documents that are replaced while the worker ingests what they were before."""

from collections.abc import Awaitable, Callable, Sequence

import pytest
from tests.services.knowledge.knowledge_fixture import KnowledgeFixture
from tests.services.knowledge.list_index import WordsEmbedder

from stint.domain.errors import Conflict, StintError, StoreUnavailable
from stint.domain.vector_stores import WindowChunking
from stint.retrieval.port import Embeddings
from stint.services.knowledge.insertions import NewText
from stint.store.vector_store_contents import VectorStoreContents
from stint.store.vector_store_documents import VectorStoreDocuments

Step = Callable[[], Awaitable[object]]


async def insert(knowledge: KnowledgeFixture, store_id: str, text: str) -> None:
    await knowledge.insertions.insert_texts(store_id, [NewText("animals", text, {})], WindowChunking(size=512))


async def work_until_done(knowledge: KnowledgeFixture) -> None:
    """Deliver the tasks as the queue does: each until it succeeds, the newest one first."""
    tasks = knowledge.queue.ingestions[::-1]
    for task in [*tasks, *tasks]:
        knowledge.queue.ingestions[:] = [task]
        try:
            await knowledge.work()
        except StintError:
            continue


@pytest.mark.parametrize("moment", ["read", "embedded"])
async def test_the_text_that_was_inserted_last_is_found(
    knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    store_id = await knowledge.create()
    await insert(knowledge, store_id, "Llamas live in Peru.")
    first, steps = list(knowledge.queue.ingestions), list[Step]()
    steps.append(lambda: insert(knowledge, store_id, "Llamas live in Chile."))
    interrupt(monkeypatch, moment, steps)

    knowledge.queue.ingestions[:] = []
    for task in first:
        try:
            await knowledge.ingestion.handle_task(task, 1e12)
        except StintError:
            knowledge.queue.ingestions.append(task)
    assert steps == []
    await work_until_done(knowledge)

    assert await knowledge.find(store_id, "llamas") == ["Llamas live in Chile."]
    assert await knowledge.statuses(store_id) == ["completed"]
    assert len(knowledge.index.keys) == 1


def interrupt(monkeypatch: pytest.MonkeyPatch, moment: str, steps: list[Step]) -> None:
    """Run each of the steps once, before a content is read, or before texts are embedded."""
    get, embed = VectorStoreContents.get, WordsEmbedder.embed

    async def run() -> None:
        while steps:
            await steps.pop()()

    async def read_later(self: VectorStoreContents, content: object) -> bytes:
        await run()
        return await get(self, content)  # type: ignore[arg-type]  # as given

    async def embed_later(self: WordsEmbedder, model_id: str, texts: Sequence[str], **options: object) -> Embeddings:
        await run()
        return await embed(self, model_id, texts, **options)  # type: ignore[arg-type]  # as given

    if moment == "read":
        monkeypatch.setattr(VectorStoreContents, "get", read_later)
    else:
        monkeypatch.setattr(WordsEmbedder, "embed", embed_later)


@pytest.mark.parametrize("error", [StoreUnavailable("The database does not answer."), Conflict("Changed by others.")])
async def test_a_content_that_a_record_names_stays_when_its_insertion_fails(
    knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch, error: StintError
) -> None:
    """The write was made, and its answer was lost."""
    store_id, add = await knowledge.create(), VectorStoreDocuments.add

    async def add_without_answer(self: VectorStoreDocuments, *arguments: object) -> object:
        await add(self, *arguments)  # type: ignore[arg-type]  # as given
        raise error

    monkeypatch.setattr(VectorStoreDocuments, "add", add_without_answer)
    with pytest.raises(type(error)):
        await insert(knowledge, store_id, "Llamas live in Peru.")
    monkeypatch.undo()
    await insert(knowledge, store_id, "Llamas live in Peru.")
    await work_until_done(knowledge)

    assert await knowledge.find(store_id, "llamas") == ["Llamas live in Peru."]
