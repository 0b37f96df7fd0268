"""Vector dbs, the rag-tool and the search of agents, with the real table, bucket and offline embedder."""

from typing import Any
from unittest.mock import patch

import pytest
from tests.script_model import Script, called, said, script, words_of
from tests.services.knowledge.rag_fixture import RAGFixture
from tests.store.conftest import Cloud

from stint.domain.content import text_of
from stint.domain.errors import Conflict, DeadlineExceeded, Interrupted, InvalidRequest, NotFound
from stint.domain.inference import ToolResult
from stint.domain.llama_stack.rag import RAGQueryConfig
from stint.domain.steps import MemoryRetrievalStep, ToolExecutionStep
from stint.services.knowledge.memory_retrieval import SessionStores
from stint.services.turns.session_documents import INLINE_CHARACTERS

SEARCH = "builtin::rag/knowledge_search"


@pytest.fixture
def rag(cloud: Cloud, tenant: str) -> RAGFixture:
    return RAGFixture(cloud, tenant, script())


def search(**args: Any) -> dict[str, Any]:
    return {"name": SEARCH, "args": {"vector_db_ids": ["team/a"], **args}}


async def test_documents_are_found_when_the_insertion_returns(rag: RAGFixture) -> None:
    await rag.register("team/a")
    await rag.insert("team/a", {"doc-1": "Maverick has 128 experts.", "doc-2": "Guanacos run fast."})

    result = await rag.query("How many experts has Maverick?", "team/a", max_chunks=1)

    assert result[1] == (
        "Result 1\nContent: Maverick has 128 experts.\nMetadata: {'source': 'test', 'document_id': 'doc-1'}\n"
    )


async def test_the_same_insertion_again_changes_nothing(rag: RAGFixture) -> None:
    await rag.register("facts")
    await rag.insert("facts", {"llamas": "Llamas live in Peru."})
    before, objects = rag.index.keys, rag.cloud.blobs(rag.tenant)

    with rag.idle():
        await rag.insert("facts", {"llamas": "Llamas live in Peru."})

    assert rag.inbox.ingestions == []
    assert (rag.index.keys, rag.cloud.blobs(rag.tenant)) == (before, objects)


async def test_a_name_may_be_registered_again_but_not_with_another_model(rag: RAGFixture) -> None:
    first = await rag.register("team/a")

    assert await rag.register("team/a", embedding_dimension=768) == first
    assert (first.embedding_dimension, first.provider_id) == (384, "packed")
    assert await rag.dbs.list() == [first]
    with pytest.raises(Conflict, match="all-MiniLM-L6-v2"):
        await rag.register("team/a", embedding_model="hashed/words-384")
    with pytest.raises(InvalidRequest, match="Provider 'nope' not found"):
        await rag.register("b", provider_id="nope")
    with pytest.raises(InvalidRequest):
        await rag.register("b", embedding_model="nope/x")


async def test_an_unregistered_vector_db_leaves_nothing(rag: RAGFixture) -> None:
    await rag.register("team/a")
    await rag.insert("team/a", {"doc-1": "Maverick has 128 experts."})

    await rag.dbs.unregister("team/a")
    await rag.finish_deletions()

    assert rag.rest() == []
    for call in (rag.dbs.get, rag.dbs.unregister):
        with pytest.raises(NotFound, match="Vector DB 'team/a' not found"):
            await call("team/a")
    with pytest.raises(NotFound, match="Vector DB 'team/a' not found"):
        await rag.insert("team/a", {"doc-1": "x"})


async def test_a_vector_db_ends_with_its_vector_store(rag: RAGFixture) -> None:
    await rag.register("team/a")
    named = (await rag.cloud.store.vector_db_names.find(rag.tenant, ["team/a"]))["team/a"]

    await rag.cloud.store.vector_stores.mark_deleted(rag.tenant, named.store_id)

    assert await rag.dbs.list() == []
    with pytest.raises(NotFound, match="team/a"):
        await rag.dbs.get("team/a")
    again = await rag.register("team/a", embedding_model="hashed/words-384")
    await rag.remove_store(named.store_id)
    assert await rag.dbs.list() == [again]


async def test_the_name_of_a_deleted_vector_store_is_deleted(rag: RAGFixture) -> None:
    await rag.register("team/a")
    named = (await rag.cloud.store.vector_db_names.find(rag.tenant, ["team/a"]))["team/a"]
    await rag.cloud.store.vector_stores.mark_deleted(rag.tenant, named.store_id)

    await rag.remove_store(named.store_id)

    assert rag.rest() == []


async def test_the_store_of_a_session_that_is_deleted_before_it_exists_is_not_made(rag: RAGFixture) -> None:
    await rag.fixture.open(toolgroups=[SEARCH])
    sessions, create = rag.services.session_stores, type(rag.services.session_stores).create
    owner, session_id = rag.fixture.agent_id, rag.fixture.session_id

    async def create_late(self: SessionStores, session_id: str, vector_db_id: str) -> None:
        await rag.fixture.sessions.delete(owner, session_id)
        await create(sessions, session_id, vector_db_id)

    with patch.object(SessionStores, "create", create_late), pytest.raises((NotFound, Interrupted)):
        await rag.fixture.start(documents=[{"content": LONG, "mime_type": "text/plain"}])
    await rag.finish_deletions()

    own = f"vs_{session_id.replace('-', '')}"
    assert await rag.cloud.store.vector_stores.existing(rag.tenant, [own]) == set()
    assert (rag.cloud.blobs(rag.tenant), rag.index.keys) == ([], [])


async def test_an_insertion_that_takes_too_long_goes_on_in_the_worker(rag: RAGFixture) -> None:
    await rag.register("team/a")

    with rag.idle(), pytest.raises(DeadlineExceeded, match="worker"):
        await rag.insert("team/a", {"doc-1": "Maverick has 128 experts."}, seconds=0)
    await rag.work()

    assert "128 experts" in "".join(await rag.query("experts", "team/a"))


@pytest.mark.parametrize("mode", ["vector", "keyword", "hybrid"])
async def test_every_mode_finds_words(rag: RAGFixture, mode: str) -> None:
    await rag.register("team/a")
    await rag.insert("team/a", {"doc-1": "Maverick has 128 experts.", "doc-2": "Guanacos run fast."})

    found = await rag.query("Maverick experts", "team/a", max_chunks=1, mode=mode)

    assert "128 experts" in "".join(found)


async def test_a_query_names_vector_dbs_that_exist(rag: RAGFixture) -> None:
    with pytest.raises(InvalidRequest, match="No vector DBs were provided"):
        await rag.services.rag.query("x", [], RAGQueryConfig())
    with pytest.raises(NotFound, match="Vector DB 'nope' not found"):
        await rag.query("x", "nope")


async def turn_of(
    rag: RAGFixture, model: Script, *toolgroups: Any, text: str = "How many experts?", **request: Any
) -> Any:
    rag.model.requests.clear()
    rag.model.answers[:] = model.answers
    await rag.fixture.open(toolgroups=list(toolgroups))
    return await rag.fixture.turn(text, **request)


async def test_an_agent_searches_the_vector_dbs_of_its_arguments(rag: RAGFixture) -> None:
    await rag.register("team/a")
    await rag.insert("team/a", {"doc-1": "Maverick has 128 experts."})
    arguments = '{"query": "Maverick experts", "vector_db_ids": ["another"]}'

    turn = await turn_of(rag, script(called("knowledge_search", arguments=arguments), said("128")), search())

    [step] = [step for step in turn.steps if isinstance(step, ToolExecutionStep)]
    [response] = step.tool_responses
    assert "Maverick has 128 experts." in text_of(response.content)
    assert response.metadata is not None
    assert response.metadata["document_ids"] == ["doc-1"]
    assert turn.output_message.content == "128"


@pytest.mark.parametrize(
    ("args", "arguments", "words"),
    [
        ({"vector_db_ids": ["nope"]}, '{"query": "x"}', "Vector DB 'nope' not found"),
        ({}, '{"query": "x"}', "No vector DBs were provided"),
        ({"vector_db_ids": ["empty"]}, '{"query": "x"}', "found no chunks"),
        ({"vector_db_ids": ["empty"]}, "{}", "query: Field required"),
        ({"vector_db_ids": ["empty"], "query_config": {"chunk_template": "x"}}, '{"query": "x"}', "chunk_template"),
    ],
)
async def test_what_prevents_a_search_is_told_to_the_model(
    rag: RAGFixture, args: dict[str, Any], arguments: str, words: str
) -> None:
    await rag.register("empty")

    turn = await turn_of(
        rag, script(called("knowledge_search", arguments=arguments), said("Sorry")), {"name": SEARCH, "args": args}
    )

    assert turn.status == "completed"
    [result] = [each for each in rag.model.requests[-1].messages if isinstance(each, ToolResult)]
    assert words in text_of(result.content)


async def test_context_is_retrieved_before_the_inference_if_the_arguments_say_so(rag: RAGFixture) -> None:
    await rag.register("team/a")
    await rag.insert("team/a", {"doc-1": "Maverick has 128 experts."})
    rag.model.answers[:] = [said("128"), said("again")]
    await rag.fixture.open(toolgroups=[search(retrieve="before_inference")])

    turn = await rag.fixture.turn("How many experts has Maverick?")
    await rag.fixture.turn("Thanks")

    retrieval = turn.steps[0]
    assert isinstance(retrieval, MemoryRetrievalStep)
    assert retrieval.vector_db_ids == "team/a"
    assert "Maverick has 128 experts." in text_of(retrieval.inserted_context)
    question, context = rag.model.requests[0].messages[-2:]
    assert words_of(question) == "How many experts has Maverick?"
    assert "Maverick has 128 experts." in words_of(context)
    assert words_of(rag.model.requests[1].messages[1]) == words_of(context)
    stored = await rag.fixture.turns.step(rag.fixture.agent_id, rag.fixture.session_id, turn.turn_id, retrieval.step_id)
    assert stored == retrieval


async def test_the_model_may_search_further_after_context_was_retrieved(rag: RAGFixture) -> None:
    await rag.register("team/a")
    await rag.insert("team/a", {"doc-1": "Maverick has 128 experts.", "doc-2": "Pumas eat guanacos."})
    answers = script(called("knowledge_search", arguments='{"query": "pumas"}'), said("Guanacos"))

    turn = await turn_of(rag, answers, search(retrieve="before_inference"), text="How many experts has Maverick?")

    steps = [step.step_type for step in turn.steps]
    assert steps == ["memory_retrieval", "inference", "tool_execution", "inference"]
    assert [tool.name for tool in rag.model.requests[0].tools] == ["knowledge_search"]


async def test_an_unknown_time_of_retrieval_is_refused(rag: RAGFixture) -> None:
    await rag.fixture.open(toolgroups=[search(retrieve="sometimes")])

    with pytest.raises(InvalidRequest, match="before_inference"):
        await rag.fixture.start()


LONG = "Pumas eat guanacos. " * (INLINE_CHARACTERS // 20 + 1)


async def test_a_long_document_of_a_turn_is_found_in_the_sessions_own_store(rag: RAGFixture) -> None:
    model = script(called("knowledge_search", arguments='{"query": "pumas"}'), said("Guanacos"))
    documents = [{"content": LONG, "mime_type": "text/plain"}, {"content": "Short.", "mime_type": "text/plain"}]

    turn = await turn_of(rag, model, SEARCH, text="What do pumas eat?", documents=documents)

    first = rag.model.requests[0]
    seen = [words_of(message) for message in first.messages]
    assert not any("Pumas eat" in text for text in seen)
    assert any("knowledge_search" in text and f"turn-{turn.turn_id}-document-1" in text for text in seen)
    assert any("Short." in text for text in seen)
    [step] = [step for step in turn.steps if isinstance(step, ToolExecutionStep)]
    assert "Pumas eat guanacos." in text_of(step.tool_responses[0].content)
    session = await rag.fixture.sessions.get(rag.fixture.agent_id, rag.fixture.session_id)
    assert session.vector_db_id == f"vs_{session.session_id.replace('-', '')}"


async def test_without_the_search_long_documents_are_shown_whole(rag: RAGFixture) -> None:
    await turn_of(rag, script(said()), documents=[{"content": LONG, "mime_type": "text/plain"}])

    assert any(LONG.strip() in words_of(message) for message in rag.model.requests[0].messages)
    assert (await rag.fixture.sessions.get(rag.fixture.agent_id, rag.fixture.session_id)).vector_db_id is None


async def test_the_store_of_a_session_cannot_be_named_elsewhere_and_is_deleted_with_it(rag: RAGFixture) -> None:
    documents = [{"content": LONG, "mime_type": "text/plain"}]
    await turn_of(rag, script(said()), SEARCH, documents=documents)
    owner, session_id = rag.fixture.agent_id, rag.fixture.session_id
    own = (await rag.fixture.sessions.get(owner, session_id)).vector_db_id or ""

    for call in (rag.dbs.get, rag.dbs.unregister):
        with pytest.raises(NotFound, match=own):
            await call(own)
    with pytest.raises(NotFound, match=own):
        await rag.query("pumas", own)
    with pytest.raises(NotFound, match=own):
        await rag.insert(own, {"d": "x"})
    outcome = await turn_of(
        rag,
        script(called("knowledge_search", arguments='{"query": "pumas"}'), said()),
        {"name": SEARCH, "args": {"vector_db_ids": [own]}},
    )
    [step] = [step for step in outcome.steps if isinstance(step, ToolExecutionStep)]
    assert "not found" in text_of(step.tool_responses[0].content)

    for agent_id in (owner, rag.fixture.agent_id):
        await rag.fixture.agents.delete(agent_id)
    await rag.finish_deletions()

    assert rag.rest() == []


async def test_a_turn_whose_document_takes_too_long_fails_and_leaves_the_session_free(rag: RAGFixture) -> None:
    await rag.fixture.open(toolgroups=[SEARCH])
    documents = [{"content": LONG, "mime_type": "text/plain"}]

    with rag.idle(), pytest.raises(DeadlineExceeded):
        await rag.fixture.start(documents=documents, seconds=1)

    assert await rag.fixture.lease_turn() is None
