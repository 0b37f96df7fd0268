"""Vector dbs with the unmodified llama-stack-client 0.2.12, as Llama Stack's own tests use them."""

from typing import Any

import pytest
from llama_stack_client import BadRequestError, LlamaStackClient
from llama_stack_client.lib.agents.agent import Agent
from llama_stack_client.types.shared_params import Document as RAGDocument
from tests.api.app_fixture import AppFixture
from tests.api.ingesting import ingesting

NAME = "facts"
DIMENSION = 384
QUESTION = "How do alpacas sound?"
TEXTS = {
    "doc1": "Python is a high-level programming language that emphasizes code readability. It takes fewer lines than "
    "C++ or Java.",
    "doc2": "Machine learning is a subset of artificial intelligence. Systems learn and improve from experience "
    "without being explicitly programmed.",
    "doc3": "Data structures are fundamental to computer science because they organize access to data.",
    "doc4": "Neural networks are inspired by biological neural networks in animal brains.",
}
QUERIES = {
    "What makes Python different from C++ and Java?": "doc1",
    "How do systems learn without explicit programming?": "doc2",
    "Why are data structures important in computer science?": "doc3",
    "What is the biological inspiration for neural networks?": "doc4",
}


@pytest.fixture
def db(client: LlamaStackClient) -> str:
    """Register a vector db with the provider and the model that the client lists."""
    provider = next(each for each in client.providers.list() if each.api == "vector_io")
    models = [each for each in client.models.list() if each.api_model_type == "embedding"]
    model = next(each for each in models if each.metadata.get("embedding_dimension") == DIMENSION)
    client.vector_dbs.register(
        vector_db_id=NAME,
        embedding_model=model.identifier,
        embedding_dimension=DIMENSION,
        provider_id=provider.provider_id,
    )
    return NAME


def insert_chunks(client: LlamaStackClient, app: AppFixture, *chunks: dict[str, Any]) -> None:
    with ingesting(app):
        client.vector_io.insert(vector_db_id=NAME, chunks=list(chunks))  # type: ignore[arg-type]


def insert_documents(client: LlamaStackClient, app: AppFixture) -> None:
    texts = {"alpaca": "Alpacas hum when they are curious.", "guanaco": "Guanacos run up to 56 km/h."}
    documents = [
        RAGDocument(document_id=name, content=text, mime_type="text/plain", metadata={"source": "facts"})
        for name, text in texts.items()
    ]
    with ingesting(app):
        client.tool_runtime.rag_tool.insert(documents=documents, vector_db_id=NAME, chunk_size_in_tokens=512)


def test_a_vector_db_is_listed_until_it_is_unregistered(client: LlamaStackClient, db: str) -> None:
    shown = client.vector_dbs.retrieve(vector_db_id=db)

    assert (shown.identifier, shown.embedding_dimension) == (db, DIMENSION)
    assert db in [each.identifier for each in client.vector_dbs.list()]
    client.vector_dbs.unregister(vector_db_id=db)
    assert client.vector_dbs.list() == []


def test_chunks_are_found_by_their_text(client: LlamaStackClient, app_fixture: AppFixture, db: str) -> None:
    insert_chunks(
        client,
        app_fixture,
        {"content": "Alpacas hum.", "metadata": {"document_id": "a"}},
        {"content": "Guanacos run.", "metadata": {"document_id": "g"}},
    )

    found = client.vector_io.query(vector_db_id=db, query="alpacas hum", params={"max_chunks": 2})

    assert found.chunks[0].metadata["document_id"] == "a"
    assert len(found.scores) == len(found.chunks)


def test_each_query_finds_its_chunk_first_in_both_searches(client: LlamaStackClient, app_fixture: AppFixture) -> None:
    store_id = client.vector_stores.create(name="subjects").id
    chunks: Any = [{"content": text, "metadata": {"document_id": name}} for name, text in TEXTS.items()]

    with ingesting(app_fixture):
        client.vector_io.insert(vector_db_id=store_id, chunks=chunks)
    queried = {
        query: client.vector_io.query(vector_db_id=store_id, query=query).chunks[0].metadata["document_id"]
        for query in QUERIES
    }
    searched = {query: client.vector_stores.search(store_id, query=query).data[0] for query in QUERIES}
    unrelated = client.vector_io.query(vector_db_id=store_id, query="What is the capital of France?")

    assert queried == QUERIES
    assert {query: (found.attributes or {})["document_id"] for query, found in searched.items()} == QUERIES
    assert all(found.score > 0 for found in searched.values())
    assert len(unrelated.chunks) == len(unrelated.scores) == 3


def test_params_limit_the_number_and_the_scores_of_chunks(
    client: LlamaStackClient, app_fixture: AppFixture, db: str
) -> None:
    insert_chunks(
        client,
        app_fixture,
        *({"content": text, "metadata": {"document_id": name}} for name, text in TEXTS.items()),
    )

    two = client.vector_io.query(vector_db_id=db, query="computer", params={"max_chunks": 2})
    close = client.vector_io.query(vector_db_id=db, query="computer", params={"score_threshold": 0.01})

    assert len(two.chunks) == 2
    assert [chunk.metadata["document_id"] for chunk in close.chunks] == ["doc3"]
    assert all(score >= 0.01 for score in close.scores)


def test_chunks_may_bring_their_vectors(client: LlamaStackClient, app_fixture: AppFixture, db: str) -> None:
    chunk = {
        "content": "Alpacas hum.",
        "metadata": {"document_id": "a", "source": "precomputed"},
        "embedding": [0.1] * DIMENSION,
    }
    insert_chunks(client, app_fixture, chunk)

    found = client.vector_io.query(vector_db_id=db, query="Alpacas hum.", params={"max_chunks": 3, "mode": "vector"})

    assert found.chunks[0].metadata["document_id"] == "a"
    assert found.chunks[0].metadata["source"] == "precomputed"


def test_metadata_of_chunks_and_documents_are_attributes_of_openais_search(
    client: LlamaStackClient, app_fixture: AppFixture
) -> None:
    store_id = client.vector_stores.create(name="facts").id
    llama = {"content": "Llamas spit.", "metadata": {"document_id": "a", "kind": "camelid", "more": {"page": 1}}}
    engine = {"content": "Engines hum.", "metadata": {"document_id": "e", "kind": "machine"}}
    puma = RAGDocument(document_id="p", content="Pumas purr.", metadata={"kind": "cat"})

    with ingesting(app_fixture):
        client.vector_io.insert(vector_db_id=store_id, chunks=[llama, engine])  # type: ignore[list-item]
        client.tool_runtime.rag_tool.insert(documents=[puma], vector_db_id=store_id, chunk_size_in_tokens=512)
    found = {
        kind: client.vector_stores.search(store_id, query="spit", filters={"type": "eq", "key": "kind", "value": kind})
        for kind in ("camelid", "cat")
    }

    assert [one.attributes for one in found["camelid"].data] == [{"document_id": "a", "kind": "camelid"}]
    assert [one.attributes for one in found["cat"].data] == [{"document_id": "p", "kind": "cat"}]


def test_documents_are_the_context_of_a_query(client: LlamaStackClient, app_fixture: AppFixture, db: str) -> None:
    insert_documents(client, app_fixture)

    config: Any = {"mode": "vector", "max_chunks": 1}

    result = client.tool_runtime.rag_tool.query(vector_db_ids=[db], content=QUESTION, query_config=config)

    assert result.metadata["document_ids"] == ["alpaca"]
    assert "hum" in str(result.content)


def test_a_query_without_vector_dbs_or_with_a_wrong_template_is_a_bad_request(
    client: LlamaStackClient, db: str
) -> None:
    query: Any = client.tool_runtime.rag_tool.query

    with pytest.raises(BadRequestError):
        query(vector_db_ids=[], content=QUESTION)
    with pytest.raises(BadRequestError):
        query(vector_db_ids=[db], content=QUESTION, query_config={"chunk_template": "This template is invalid"})


def test_an_agent_searches_its_vector_dbs(client: LlamaStackClient, app_fixture: AppFixture, db: str) -> None:
    insert_documents(client, app_fixture)
    search: Any = {"name": "builtin::rag/knowledge_search", "args": {"vector_db_ids": [db]}}
    agent: Any = Agent(client, model="scripted/demo", instructions="Be brief.", tools=[search])
    text = 'Ask knowledge_search {"query": "How do alpacas sound?"}'

    turn: Any = agent.create_turn(
        [{"role": "user", "content": text}],
        session_id=agent.create_session("facts"),
        documents=[{"content": "Llamas spit.", "mime_type": "text/plain"}],
        stream=False,
    )

    [step] = [step for step in turn.steps if step.step_type == "tool_execution"]
    assert [call.tool_name for call in step.tool_calls] == ["knowledge_search"]
    assert "hum" in str(step.tool_responses[0].content)
