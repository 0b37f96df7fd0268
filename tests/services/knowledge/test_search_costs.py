"""Calls and units of a response that searches once, and of an ingestion, as docs/knowledge.md counts them."""

from collections import Counter
from typing import Any

from tests.script_model import called, said, script
from tests.services.knowledge.knowledge_fixture import KnowledgeFixture
from tests.services.knowledge.rag_fixture import RAGFixture
from tests.services.responses.responder import Responder
from tests.services.worker_fixture import WorkerFixture
from tests.store.conftest import Cloud

WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")
READS = ("GetItem", "Query", "BatchGetItem")
OBJECTS = ("PutObject", "GetObject", "ListObjectsV2", "DeleteObjects", "DeleteObject")


def count(knowledge: KnowledgeFixture) -> dict[str, float]:
    """Return the write and read units, the requests to the bucket, and the calls of the index."""
    units, calls = knowledge.cloud.units, knowledge.cloud.calls
    return {
        "written": sum(units[name] for name in WRITES),
        "read": sum(units[name] for name in READS),
        "objects": sum(calls[name] for name in OBJECTS),
        "index": sum(knowledge.index.calls.values()),
    }


def forget(knowledge: KnowledgeFixture) -> None:
    knowledge.cloud.forget()
    knowledge.index.calls.clear()


async def test_a_search_of_a_response_costs_two_steps_and_two_reads_more(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas live in Peru.")
    search = called("file_search", arguments='{"query": "llamas"}')
    fixture = WorkerFixture(
        knowledge.cloud, knowledge.tenant, script(said(), said(), search, said()), knowledge=knowledge.search
    )
    responder = Responder(fixture)
    tools: dict[str, Any] = {"tools": [{"type": "file_search", "vector_store_ids": [store_id]}]}
    await responder.respond(store=False)
    forget(knowledge)
    await responder.respond()
    plain, calls = count(knowledge), Counter(knowledge.cloud.calls)
    forget(knowledge)

    await responder.respond(**tools)

    searched = count(knowledge)
    assert plain == {"written": 3, "read": 0.5, "objects": 0, "index": 0}
    assert searched == {"written": 5, "read": 0.5, "objects": 0, "index": 1}
    assert Counter(knowledge.cloud.calls) - calls == {"BatchGetItem": 2, "PutItem": 2}


async def test_a_search_of_a_turn_costs_two_steps_three_reads_and_a_query(cloud: Cloud, tenant: str) -> None:
    rag = RAGFixture(cloud, tenant, script())
    await rag.register("team/a")
    await rag.insert("team/a", {"doc-1": "Llamas live in Peru."})
    search = called("knowledge_search", arguments='{"query": "llamas"}')
    rag.model.answers[:] = [said(), said(), search, said()]
    await rag.fixture.open(toolgroups=[{"name": "builtin::rag", "args": {"vector_db_ids": ["team/a"]}}])
    await rag.fixture.turn("Hello")
    cloud.forget()
    await rag.fixture.turn("Hello")
    calls, written = Counter(cloud.calls), sum(cloud.units[name] for name in WRITES)
    cloud.forget()
    rag.index.calls.clear()

    await rag.fixture.turn("Hello")

    assert written == 4
    assert sum(cloud.units[name] for name in WRITES) == 6
    assert Counter(cloud.calls) - calls == {"BatchGetItem": 3, "PutItem": 2, "Query": 1}
    assert rag.index.calls == {"query": 1}


async def test_a_hundred_chunks_cost_one_upsert(knowledge: KnowledgeFixture) -> None:
    small = {"type": "static", "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 0}}
    store_id = await knowledge.create(chunking_strategy=small)
    await knowledge.add(store_id, "A llama lives in Peru. ")
    await knowledge.work()
    file_id = await knowledge.upload("\n\n".join(f"Llama {number} lives in Peru. " * 15 for number in range(100)))
    before = len(knowledge.index.keys)
    forget(knowledge)

    await knowledge.attach(store_id, file_id)
    await knowledge.work()

    assert len(knowledge.index.keys) - before == 100
    assert count(knowledge) == {"written": 6, "read": 4.5, "objects": 1, "index": 1}  # 0.5 for the stops
    assert knowledge.cloud.calls["BatchGetItem"] == 4
